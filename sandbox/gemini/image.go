package gemini

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
	"github.com/mediagate/mediagate/sandbox/sample"
)

// thoughtSide is the size of the drafts among the thoughts.
const thoughtSide = 64

// image answers with the job's image. Everything around it is made at once,
// the image itself while it is sent.
func image(j *kernel.Job, q *request) kernel.Reply {
	content, mimeType, _ := j.File(kernel.FileImage)
	// A text in the image's place, which no other part of the answer has.
	const place = "\x00image\x00"
	var parts []any
	if q.thoughts {
		draft := base64.StdEncoding.EncodeToString(sample.Image(thoughtSide, thoughtSide))
		parts = append(parts,
			map[string]any{"text": "A draft comes first.", "thought": true},
			map[string]any{"inlineData": map[string]any{"mimeType": mimeType, "data": draft}, "thought": true})
	}
	if q.talks {
		parts = append(parts, text("Here is the image."))
	}
	parts = append(parts, map[string]any{"inlineData": map[string]any{"mimeType": mimeType, "data": place}})
	rep := answer(q, j.Model, j.ID, candidate("STOP", parts), q.tokens())
	raw, err := json.Marshal(rep.Body)
	quoted, quoteErr := json.Marshal(place)
	if err := errors.Join(err, quoteErr); err != nil {
		return refuse(kernel.CallSubmit, internal, err.Error())
	}
	head, tail, _ := strings.Cut(string(raw), strings.Trim(string(quoted), `"`))
	encoded := int64(base64.StdEncoding.EncodedLen(int(content.Size())))
	return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Stream: &kernel.Stream{
		Type:    "application/json; charset=UTF-8",
		Size:    int64(len(head)+len(tail)) + encoded,
		Content: io.MultiReader(strings.NewReader(head), &encoder{source: content}, strings.NewReader(tail)),
	}}
}

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
