package musicapi

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/mediagate/mediagate/sandbox/kernel"
	"github.com/mediagate/mediagate/sandbox/sample"
)

// Vendor is MusicAPI.ai with the customer that it has here.
func Vendor() kernel.Vendor {
	const name, key = "musicapi", "sandbox-musicapi-api-key"
	return kernel.Vendor{
		Name:    name,
		Account: kernel.Account{Provider: name, Credentials: map[string]string{"api_key": key}},
		Channel: kernel.Channel{Provider: name, Path: "/musicapi", Credentials: map[string]string{"api_key": key}},
		Mount:   mount,
		Files:   file,
	}
}

// bodyMax is the most that one request may hold.
const bodyMax = 1 << 20

// The songs of a job, and how long one plays; the second one is longer.
const (
	songsOfJob  = 2
	songSeconds = 16
)

type musicapi struct {
	*kernel.Service
}

func mount(s *kernel.Service) http.Handler {
	v := &musicapi{s}
	mux := http.NewServeMux()
	serve := func(path string, h func(*http.Request, kernel.Account) kernel.Reply) {
		mux.Handle(path, s.Keyed("Bearer ", h, unauthorized))
	}
	serve("POST /api/v1/sonic/sample", v.sample)
	serve("GET /api/v1/sonic/task/{id}", v.query)
	serve("/", func(*http.Request, kernel.Account) kernel.Reply {
		return refuse(kernel.CallOther, http.StatusNotFound, "Not Found")
	})
	return mux
}

func refuse(kind string, status int, message string) kernel.Reply {
	return kernel.Reply{Kind: kind, Status: status, Body: map[string]any{"code": status, "message": message}}
}

// unauthorized tells what is wrong with the key.
func unauthorized(r *http.Request) kernel.Reply {
	if r.Header.Get("Authorization") == "" {
		return refuse(kernel.CallOther, http.StatusUnauthorized, "Authorization header is missing.")
	}
	return refuse(kernel.CallOther, http.StatusUnauthorized, "Invalid authorization format.")
}

// sample takes a job. A song that is named by its link is fetched before the
// answer.
func (v *musicapi) sample(r *http.Request, a kernel.Account) kernel.Reply {
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return refuse(kernel.CallSubmit, http.StatusBadRequest, err.Error())
	}
	q := &request{in: in, songs: func(id string) (float64, bool) { return v.song(a, id) }}
	q.read()
	if in.Err() == nil && in.Has("url") {
		if err := kernel.FetchSound(r.Context(), in.Text("url")); err != nil {
			in.Fail("url", "%s", err)
		}
	}
	if in.Err() != nil {
		return refuse(kernel.CallSubmit, http.StatusBadRequest, in.Err().Error())
	}
	j := q.job()
	return v.Take(a, j, kernel.Refusals{
		Rejected:  refuse(kernel.CallSubmit, http.StatusBadRequest, "prompt: "+kernel.DirectiveTrouble(j.Prompt)),
		Moderated: refuse(kernel.CallSubmit, http.StatusForbidden, "The lyrics contain inappropriate content: 'sandbox'."),
		Broken:    refuse(kernel.CallSubmit, http.StatusInternalServerError, "Internal Server Error."),
		Busy:      refuse(kernel.CallSubmit, http.StatusTooManyRequests, "Too many requests."),
	}, func(made *kernel.Job) kernel.Reply {
		return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Body: map[string]any{"message": "success", "task_id": made.ID}}
	})
}

// query tells of the songs of a job, once there is something to tell.
func (v *musicapi) query(r *http.Request, a kernel.Account) kernel.Reply {
	j := v.Find(a, r.PathValue("id"))
	if j == nil {
		return refuse(kernel.CallPoll, http.StatusBadRequest, "task not found.")
	}
	spoiled := v.Spoiled(j)
	rep := kernel.Reply{Kind: kernel.CallPoll, Status: http.StatusOK}
	switch state := j.State(v.Now()); {
	case spoiled:
		rep = refuse(kernel.CallPoll, http.StatusInternalServerError, "Internal Server Error.")
	case state == kernel.StateQueued:
		rep.Body = map[string]any{"type": "not_ready", "message": "The task is not ready."}
	default:
		rep.Body = map[string]any{"code": http.StatusOK, "data": clips(kernel.Base(r), j, state), "message": "success"}
	}
	rep.Job = j.ID
	return rep
}

// words are the vendor's for the states of a song.
var words = map[kernel.State]string{
	kernel.StateRunning: "running", kernel.StateSucceeded: "succeeded", kernel.StateFailed: "failed", kernel.StateCancelled: "failed",
}

// clips are the songs of a job. Until they are done their links lead to a stream,
// which is no file.
func clips(base string, j *kernel.Job, state kernel.State) []any {
	var out []any
	for i := range songsOfJob {
		link := func(name string) string { return base + j.Link(fmt.Sprintf(name, i)) }
		c := map[string]any{
			"clip_id": clipID(j, i), "state": words[state], "title": j.Detail["title"], "tags": j.Detail["tags"], "lyrics": j.Detail["lyrics"],
			"image_url": link("cover-%d.png"), "audio_url": "", "video_url": nil, "created_at": j.Created.Format("2006-01-02T15:04:05.000Z"),
			"mv": j.Model, "gpt_description_prompt": nil, "duration": nil,
		}
		switch {
		case state == kernel.StateSucceeded:
			c["audio_url"], c["duration"] = link("song-%d.mp3"), strconv.FormatFloat(length(i), 'f', 2, 64)
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

func clipID(j *kernel.Job, i int) string { return kernel.Derived(j.ID, "clip "+strconv.Itoa(i)) }

// length is how many seconds a song plays.
func length(i int) float64 { return float64(songSeconds + i) }

// song finds one that the account made, and how long it plays.
func (v *musicapi) song(a kernel.Account, id string) (seconds float64, ok bool) {
	now := v.Now()
	for _, j := range v.Jobs(a, func(j *kernel.Job) bool { return j.State(now) == kernel.StateSucceeded }) {
		for i := range songsOfJob {
			if clipID(j, i) == id {
				return length(i), true
			}
		}
	}
	return 0, false
}

// file makes one of a job's files.
func file(j *kernel.Job, name string) (*io.SectionReader, string, bool) {
	stem, kind, _ := strings.Cut(name, ".")
	what, number, _ := strings.Cut(stem, "-")
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= songsOfJob {
		return nil, "", false
	}
	switch what + "." + kind {
	case "song.mp3":
		return sample.Extended(sample.MP3(length(i)), j.Directive.ResultBytes), "audio/mpeg", true
	case "cover.png":
		return sample.Padded(sample.Image(j.Media.Width, j.Media.Height), 0), "image/png", true
	case "film.mp4":
		film := sample.Video(sample.VideoSpec{Width: j.Media.Width, Height: j.Media.Height, Seconds: songSeconds + i, Sound: true})
		return sample.Padded(film, 0), "video/mp4", true
	default:
		return nil, "", false
	}
}
