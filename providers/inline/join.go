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

// slot stands for the bytes of an image in the written request.
func slot(i int) string { return "\u0001" + strconv.Itoa(i) + "\u0001" }

// join puts the images into the written request while it is read. It looks for
// their slots from the end: a prompt, which may hold anything, comes before. A
// piece that was read is let go of.
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

// end is read after all else.
type end func()

func (e end) Read([]byte) (int, error) {
	e()
	return 0, io.EOF
}

// escaped is a slot as it stands in JSON.
func escaped(i int) []byte { return fmt.Appendf(nil, `\u0001%d\u0001`, i) }

// encoded is the base64 of a file, made while it is read.
func encoded(file []byte) io.Reader { return &encoder{file: file} }

type encoder struct {
	file  []byte
	ready bytes.Buffer
}

// chunk is a multiple of three, so that no padding comes between.
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
