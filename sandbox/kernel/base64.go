package kernel

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// Inline returns a JSON answer with files in it. Their base64 is generated while the answer is
// sent. The first Place in the document becomes the first file, the second Place the second
// file, and so on.
func Inline(document any, files ...*io.SectionReader) (*Stream, error) {
	raw, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	rest := string(raw)
	s := &Stream{Type: "application/json; charset=UTF-8"}
	var parts []io.Reader
	text := func(t string) {
		parts, s.Size = append(parts, strings.NewReader(t)), s.Size+int64(len(t))
	}
	for _, file := range files {
		head, tail, found := strings.Cut(rest, encodedPlace)
		if !found {
			return nil, errors.New("sandbox: a file has no place in the answer")
		}
		text(head)
		parts = append(parts, &encoder{source: file})
		s.Size += int64(base64.StdEncoding.EncodedLen(int(file.Size())))
		rest = tail
	}
	text(rest)
	s.Content = io.MultiReader(parts...)
	return s, nil
}

// Place marks where Inline puts a file. It must not occur in the document otherwise.
const Place = "\x00file\x00"

// encodedPlace is Place as JSON encodes it.
const encodedPlace = `\u0000file\u0000`

// encoder reads its source as base64, one piece at a time.
type encoder struct {
	source io.Reader
	raw    [48 << 10]byte // a multiple of three, so that only the last piece is padded
	text   [64 << 10]byte
	rest   []byte // part of text that is not yet read
	err    error
}

// Read implements io.Reader.
func (e *encoder) Read(p []byte) (int, error) {
	if len(e.rest) == 0 && e.err == nil {
		var n int
		n, e.err = io.ReadFull(e.source, e.raw[:])
		if errors.Is(e.err, io.ErrUnexpectedEOF) {
			e.err = io.EOF
		}
		e.rest = base64.StdEncoding.AppendEncode(e.text[:0], e.raw[:n])
	}
	if len(e.rest) == 0 {
		return 0, e.err
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}
