package kernel

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// Inline is an answer of JSON with files in it, whose base64 is made while it is
// sent: each of them in turn takes the place of a text that Place made, and the
// texts stand in the document in the order of the files.
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
		head, tail, found := strings.Cut(rest, placed)
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

// Place stands for a file in the document of Inline. No other part of an answer
// has it.
const Place = "\x00file\x00"

// placed is how it is written.
const placed = `\u0000file\u0000`

// encoder reads its source in base64, a piece at a time.
type encoder struct {
	source io.Reader
	raw    [48 << 10]byte // whole groups of three bytes
	text   [64 << 10]byte
	rest   []byte // of text, not yet read
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
