package musicapi

import (
	"cmp"
	"embed"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// Vendor returns MusicAPI.ai with its customer account.
func Vendor() kernel.Vendor {
	return kernel.NewVendor("musicapi", "/musicapi", "api_key", "sandbox-musicapi-api-key", mount)
}

//go:embed schema
var files embed.FS

var schemas = kernel.NewSchemas(files)

// bodyMax is the largest request, in bytes.
const bodyMax = 1 << 20

// pair describes the two songs of a job.
var pair = kernel.Media{Kind: "audio", Seconds: 16, Songs: 2, SecondLonger: true}

// slack is how much longer a file may play than the stated duration of its song, because a file
// consists of whole frames.
const slack = 0.05

var refuse = kernel.NewRefuse(map[kernel.Fault]kernel.FaultText{
	kernel.NoKey:   kernel.NewFaultText(http.StatusUnauthorized, nil, "Invalid authorization format."),
	kernel.NoPath:  kernel.NewFaultText(http.StatusNotFound, nil, "Not Found"),
	kernel.NoJob:   kernel.NewFaultText(http.StatusBadRequest, nil, "task not found."),
	kernel.Invalid: kernel.NewFaultText(http.StatusBadRequest, nil, ""),
	kernel.Inappropriate: kernel.NewFaultText(http.StatusForbidden, nil,
		"The lyrics contain inappropriate content: 'sandbox'."),
	kernel.Internal:    kernel.NewFaultText(http.StatusInternalServerError, nil, "Internal Server Error."),
	kernel.TooManyJobs: kernel.NewFaultText(http.StatusTooManyRequests, nil, "Too many requests."),
}, func(w kernel.FaultText) any { return map[string]any{"code": w.Status, "message": w.Message} })

func mount(s *kernel.Service) http.Handler {
	api := &kernel.API{Service: s, Schemas: schemas, Limit: bodyMax, Refuse: refuse, SubmitView: made, PollView: task}
	return s.Routes(s.ByCredential("Authorization", "Bearer ", "api_key", refuse), refuse, map[string]kernel.Handler{
		"POST /api/v1/sonic/sample": func(r *http.Request, a kernel.Account) kernel.Reply {
			return api.Submit(r, a, "sample", func(b kernel.Body) (*kernel.Job, error) {
				if err := check(s, r, a, b); err != nil {
					return nil, err
				}
				return job(b), nil
			})
		},
		"GET /api/v1/sonic/task/{id}": api.Query,
	})
}

func made(_ *http.Request, j *kernel.Job, _ time.Time) any {
	return map[string]any{"message": "success", "task_id": j.ID}
}

// task returns the answer about a job, with its songs once it has left the queue.
func task(r *http.Request, j *kernel.Job, now time.Time) any {
	state := j.State(now)
	if state == kernel.StateQueued {
		return map[string]any{"type": "not_ready", "message": "The task is not ready."}
	}
	return map[string]any{"code": http.StatusOK, "data": clips(kernel.Base(r), j, state), "message": "success"}
}

// check fetches the song to sample from and checks the part that is sampled.
func check(s *kernel.Service, r *http.Request, a kernel.Account, b kernel.Body) error {
	link := b.Text("url")
	if link != "" {
		if err := kernel.FetchSound(r.Context(), link); err != nil {
			return kernel.NewViolation("url", "%s", err)
		}
	}
	start, end := b.Number("chop_sample_start_s"), b.Number("chop_sample_end_s")
	seconds, known := song(s, a, b.Text("sample_clip_id"))
	switch {
	case link == "" && !known:
		return kernel.NewViolation("sample_clip_id", "there is no such clip")
	case end != 0 && end <= start:
		return kernel.NewViolation("chop_sample_end_s", "must be after the start")
	case known && max(start, end) > seconds+slack:
		return kernel.NewViolation("chop_sample_end_s", "is beyond the end of the clip")
	default:
		return nil
	}
}

// job returns the job of a request.
func job(b kernel.Body) *kernel.Job {
	prompt, description, title, tags := b.Text("prompt"), b.Text("gpt_description_prompt"), b.Text("title"), b.Text("tags")
	lyrics := prompt
	switch {
	case b.Flag("make_instrumental", false):
		lyrics = "[Instrumental]"
	case !b.Flag("custom_mode", false) || b.Flag("auto_lyrics", false):
		lyrics = "[Verse]\n" + cmp.Or(description, prompt)
	}
	return &kernel.Job{
		ID: kernel.UUID(), Model: b.Text("mv"), Prompt: kernel.DirectiveText(prompt, description, tags, title), Media: pair,
		Detail: map[string]string{"lyrics": lyrics, "title": cmp.Or(title, "Untitled"), "tags": tags},
	}
}

// words are the vendor's names for the states of a song.
var words = map[kernel.State]string{
	kernel.StateRunning: "running", kernel.StateSucceeded: "succeeded", kernel.StateFailed: "failed",
}

// clips returns the songs of a job. Until a song is finished, its audio_url is the address of a
// stream, which is not a file.
func clips(base string, j *kernel.Job, state kernel.State) []any {
	var out []any
	for i := range pair.Songs {
		link := func(name string) string { return base + j.Link(fmt.Sprintf(name, i)) }
		c := map[string]any{
			"clip_id": clipID(j, i), "state": words[state], "title": j.Detail["title"], "tags": j.Detail["tags"],
			"lyrics": j.Detail["lyrics"], "image_url": link("cover-%d.png"), "audio_url": "", "video_url": nil,
			"created_at": j.Created.Format("2006-01-02T15:04:05.000Z"),
			"mv":         j.Model, "gpt_description_prompt": nil, "duration": nil,
		}
		switch {
		case state == kernel.StateSucceeded:
			c["audio_url"], c["duration"] = link("song-%d.mp3"), strconv.FormatFloat(pair.Length(i), 'f', 2, 64)
		case state == kernel.StateRunning:
			c["audio_url"] = link("stream-%d.mp3")
		case j.Directive.Fail == kernel.FailModeration:
			c["message"] = "The song contains inappropriate content."
		default:
			c["message"] = "The song could not be made."
		}
		if state == kernel.StateSucceeded && i == 0 {
			c["video_url"] = link("film-%d.mp4")
		}
		out = append(out, c)
	}
	return out
}

func clipID(j *kernel.Job, i int) string { return kernel.DeriveID(j.ID, "clip "+strconv.Itoa(i)) }

// song finds a finished song of the account by its clip id and returns how long it plays.
func song(v *kernel.Service, a kernel.Account, id string) (seconds float64, ok bool) {
	now := v.Now()
	for _, j := range v.Jobs(a, func(j *kernel.Job) bool { return j.State(now) == kernel.StateSucceeded }) {
		for i := range pair.Songs {
			if clipID(j, i) == id {
				return pair.Length(i), true
			}
		}
	}
	return 0, false
}
