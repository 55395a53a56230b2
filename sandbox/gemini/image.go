package gemini

import (
	"encoding/base64"
	"net/http"

	"github.com/mediagate/mediagate/sandbox/googleapi"
	"github.com/mediagate/mediagate/sandbox/kernel"
	"github.com/mediagate/mediagate/sandbox/sample"
)

// thoughtSide is the size of the drafts among the thoughts.
const thoughtSide = 64

// image answers with the job's image. Everything around it is made at once,
// the image itself while it is sent.
func image(j *kernel.Job, q *request) kernel.Reply {
	content, mimeType, _ := j.File(kernel.FileImage)
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
	parts = append(parts, map[string]any{"inlineData": map[string]any{"mimeType": mimeType, "data": kernel.Place}})
	rep := answer(q, j.Model, j.ID, candidate("STOP", parts), q.tokens())
	stream, err := kernel.Inline(rep.Body, content)
	if err != nil {
		return googleapi.Refuse(kernel.CallSubmit, googleapi.Internal, err.Error())
	}
	return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Stream: stream}
}
