package inline

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// slot returns the placeholder for the bytes of image i in the written request.
func slot(i int) string { return "\u0001" + strconv.Itoa(i) + "\u0001" }

// join returns a body that reads the request with the images in the places of their slots. It
// searches for the slots from the end, because a prompt comes before the images and may hold
// anything, even text like a slot. The reader lets go of each piece after reading it, so that the
// image can be freed.
func join(text []byte, files [][]byte, sent func()) vendorhttp.Body {
	var pieces []io.Reader
	if sent != nil {
		pieces = append(pieces, end(sent))
	}
	length := int64(0)
	add := func(r io.Reader, n int) {
		pieces = append(pieces, r)
		length += int64(n)
	}
	for i, file := range slices.Backward(files) {
		at := bytes.LastIndex(text, escaped(i))
		tail := text[at+len(escaped(i)):]
		add(bytes.NewReader(tail), len(tail))
		add(encoded(file), base64.StdEncoding.EncodedLen(len(file)))
		text = text[:at]
	}
	add(bytes.NewReader(text), len(text))
	slices.Reverse(pieces)
	return vendorhttp.Streamed("application/json", io.MultiReader(pieces...), length)
}

// end is a reader that calls its function after everything else has been read.
type end func()

func (e end) Read([]byte) (int, error) {
	e()
	return 0, io.EOF
}

// escaped returns the placeholder of image i as JSON writes it.
func escaped(i int) []byte { return fmt.Appendf(nil, `\u0001%d\u0001`, i) }

// encoded returns a reader that encodes the file as base64 while it is read.
func encoded(file []byte) io.Reader { return &encoder{file: file} }

type encoder struct {
	file  []byte
	ready bytes.Buffer
}

// chunk is how many bytes the encoder encodes at once. It is a multiple of three, so that no
// padding appears between chunks.
const chunk = 3 << 12

func (e *encoder) Read(p []byte) (int, error) {
	if e.ready.Len() == 0 {
		if len(e.file) == 0 {
			return 0, io.EOF
		}
		n := min(chunk, len(e.file))
		e.ready.Write(base64.StdEncoding.AppendEncode(nil, e.file[:n]))
		e.file = e.file[n:]
	}
	return e.ready.Read(p)
}
