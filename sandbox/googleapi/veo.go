package googleapi

import (
	"cmp"
	"embed"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// bodyMax is the largest request with its frames, in bytes.
const bodyMax = 20 << 20

//go:embed schema
var files embed.FS

var schemas = kernel.NewSchemas(files)

// VeoAPI is one of the two APIs that offer Veo.
type VeoAPI struct {
	Schema string // name of the schema of its requests
	Models []string
	Sound  bool // sound is always on; false: the request must set generateAudio
	NameOf func(model, id string) string
}

// API returns the kernel's API for one of the models.
func (s VeoAPI) API(v *kernel.Service, model string) *kernel.API {
	return &kernel.API{
		Service: v, Schemas: schemas, Limit: bodyMax, Endpoint: model, Refuse: Refuse,
		SubmitView: func(_ *http.Request, j *kernel.Job, _ time.Time) any {
			return map[string]any{"name": s.NameOf(model, j.ID)}
		},
	}
}

// Submit starts an operation and returns the answer.
func (s VeoAPI) Submit(v *kernel.Service, r *http.Request, a kernel.Account, model string) kernel.Reply {
	return s.API(v, model).Submit(r, a, s.Schema, func(b kernel.Body) (*kernel.Job, error) {
		one := b.List("instances")[0]
		for _, field := range []string{"image", "lastFrame"} {
			data, mimeType := one.Text(field+".bytesBase64Encoded"), one.Text(field+".mimeType")
			if p, _, err := kernel.InlinePicture(data); mimeType != "" && (err != nil || "image/"+p.Format != mimeType) {
				return nil, kernel.NewViolation("instances[0]."+field, "is no picture of the type %s", mimeType)
			}
		}
		width, height := kernel.Ratio(cmp.Or(b.Text("parameters.aspectRatio"), "16:9"))
		width, height = kernel.Pixels(shortSides[cmp.Or(b.Text("parameters.resolution"), "720p")], width, height)
		return &kernel.Job{
			ID: kernel.UUID(), Model: model, Prompt: one.Text("prompt"), Media: kernel.Media{
				Kind: "video", Width: width, Height: height, Seconds: cmp.Or(b.Int("parameters.durationSeconds"), 8),
				Sound: b.Flag("parameters.generateAudio", s.Sound),
			},
			Detail: map[string]string{"samples": strconv.Itoa(cmp.Or(b.Int("parameters.sampleCount"), 1))},
		}, nil
	})
}

var shortSides = map[string]int{"720p": 720, "1080p": 1080, "4k": 2160}

// CountVideos returns how many videos of a job are delivered and how many are held back.
func CountVideos(j *kernel.Job) (delivered, filtered int) {
	count, _ := strconv.Atoi(j.Detail["samples"])
	if j.Directive.Fails(kernel.AtPoll) && j.Directive.Fail == kernel.FailModeration {
		return 0, count
	}
	filtered = min(count, j.Directive.Filtered)
	return count - filtered, filtered
}

// Reasons returns the reasons for the videos that are held back.
func Reasons(filtered int) []string {
	return slices.Repeat([]string{
		"The video could not be shown since it violates the vendor's usage guidelines. Support codes: 58061214",
	}, filtered)
}

// Poll answers a poll of an operation. If the operation is done and has not failed, end returns
// the answer.
func (s VeoAPI) Poll(
	v *kernel.Service, a kernel.Account, model, id string, end func(j *kernel.Job, op map[string]any) kernel.Reply,
) kernel.Reply {
	api := s.API(v, model)
	return api.AnswerPoll(api.Find(a, id), func(j *kernel.Job) kernel.Reply {
		op := map[string]any{"name": s.NameOf(model, j.ID)}
		switch state := j.State(v.Now()); {
		case state == kernel.StateFailed && j.Directive.Fail != kernel.FailModeration:
			op["done"], op["error"] = true, map[string]any{"code": 13, "message": "Video generation failed. Please try again."}
		case state == kernel.StateFailed, state == kernel.StateSucceeded:
			op["done"] = true
			return end(j, op)
		}
		return kernel.OK(kernel.CallPoll, op)
	})
}
