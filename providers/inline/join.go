package inline

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// marker names the places of the images in one written request. It is random, so that no text of
// the client can contain it.
type marker string

func newMarker() marker { return marker(rand.Text()) }

// placeholder returns the placeholder for the bytes of image i.
func (m marker) placeholder(i int) string { return fmt.Sprintf("%s-%d-", m, i) }

// join returns a body that reads the request with the images in the places of their placeholders.
// The reader lets go of each piece after reading it, so that the image can be freed.
func (m marker) join(text []byte, files [][]byte, sent func()) vendorhttp.Body {
	var pieces []io.Reader
	length := int64(0)
	add := func(r io.Reader, n int) {
		pieces = append(pieces, r)
		length += int64(n)
	}
	for i, file := range files {
		before, after, _ := bytes.Cut(text, []byte(m.placeholder(i)))
		add(bytes.NewReader(before), len(before))
		add(newEncoder(file), base64.StdEncoding.EncodedLen(len(file)))
		text = after
	}
	add(bytes.NewReader(text), len(text))
	if sent != nil {
		pieces = append(pieces, endHook(sent))
	}
	return vendorhttp.Streamed("application/json", io.MultiReader(pieces...), length)
}

// endHook is a reader that calls its function after everything else has been read.
type endHook func()

func (e endHook) Read([]byte) (int, error) {
	e()
	return 0, io.EOF
}

// newEncoder returns a reader that encodes the file as base64 while it is read.
func newEncoder(file []byte) io.Reader { return &encoder{file: file} }

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
