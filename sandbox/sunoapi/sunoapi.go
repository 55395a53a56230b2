package sunoapi

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
	"github.com/mediagate/mediagate/sandbox/sample"
)

// Vendor is sunoapi.org with the customer that it has here.
func Vendor() kernel.Vendor {
	const name, key = "sunoapi", "sandbox-sunoapi-api-key"
	return kernel.Vendor{
		Name:    name,
		Account: kernel.Account{Provider: name, Credentials: map[string]string{"api_key": key}},
		Channel: kernel.Channel{Provider: name, Path: "/sunoapi", Credentials: map[string]string{"api_key": key}},
		Mount:   mount,
		Files:   file,
	}
}

// The codes that stand in the answers' bodies.
const (
	fine         = 200
	invalid      = 400
	unauthorized = 401
	notFound     = 404
	tooLong      = 413
	tooFrequent  = 430
	broken       = 500
)

// What a job makes.
const (
	songs  = "songs"
	tracks = "tracks"
)

const bodyMax = 1 << 20

type sunoapi struct {
	*kernel.Service
}

func mount(s *kernel.Service) http.Handler {
	v := &sunoapi{s}
	mux := http.NewServeMux()
	serve := func(path string, h func(*http.Request, kernel.Account) kernel.Reply) {
		mux.Handle(path, s.Keyed("Bearer ", h, func(*http.Request) kernel.Reply {
			return refuse(kernel.CallOther, unauthorized, "You do not have access permissions")
		}))
	}
	submit := func(read func(*request), makes string) func(*http.Request, kernel.Account) kernel.Reply {
		return func(r *http.Request, a kernel.Account) kernel.Reply { return v.submit(r, a, read, makes) }
	}
	query := func(makes string) func(*http.Request, kernel.Account) kernel.Reply {
		return func(r *http.Request, a kernel.Account) kernel.Reply { return v.query(r, a, makes) }
	}
	serve("POST /api/v1/generate", submit((*request).readSong, songs))
	serve("POST /api/v1/generate/replace-section", submit((*request).readSection, songs))
	serve("GET /api/v1/generate/record-info", query(songs))
	serve("POST /api/v1/vocal-removal/generate", submit((*request).readSeparation, tracks))
	serve("GET /api/v1/vocal-removal/record-info", query(tracks))
	serve("/", func(*http.Request, kernel.Account) kernel.Reply {
		return refuse(kernel.CallOther, notFound, "there is no such page")
	})
	return mux
}

func answer(kind string, code int, msg string, data any) kernel.Reply {
	return kernel.Reply{Kind: kind, Status: http.StatusOK, Body: map[string]any{"code": code, "msg": msg, "data": data}}
}

func refuse(kind string, code int, msg string) kernel.Reply { return answer(kind, code, msg, nil) }

func (v *sunoapi) submit(r *http.Request, a kernel.Account, read func(*request), makes string) kernel.Reply {
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return refuse(kernel.CallSubmit, invalid, err.Error())
	}
	q := &request{in: in, code: invalid, find: func(task, id string) (*kernel.Job, int) { return v.song(a, task, id) }}
	read(q)
	if !in.Has("callBackUrl") {
		in.Fail("callBackUrl", "is required")
	}
	in.Link("callBackUrl")
	if in.Err() != nil {
		return refuse(kernel.CallSubmit, q.code, in.Err().Error())
	}
	j := q.job()
	j.ID, j.Endpoint = strings.ReplaceAll(kernel.UUID(), "-", ""), makes
	rep := v.Take(a, j, kernel.Refusals{
		Rejected:  refuse(kernel.CallSubmit, invalid, "prompt: "+kernel.DirectiveTrouble(j.Prompt)),
		Moderated: refuse(kernel.CallSubmit, invalid, "The prompt contains sensitive words"),
		Broken:    refuse(kernel.CallSubmit, broken, "Server exception"),
		Busy:      refuse(kernel.CallSubmit, tooFrequent, "Your call frequency is too high. Please try again later."),
	}, func(made *kernel.Job) kernel.Reply {
		return answer(kernel.CallSubmit, fine, "success", map[string]any{"taskId": made.ID})
	})
	if rep.Made {
		v.CallBack(j, kernel.Callback{To: in.Text("callBackUrl"), Word: stage, Body: func(j *kernel.Job) any {
			return map[string]any{"code": fine, "msg": "success", "data": map[string]any{
				"callbackType": stage(j, v.Now()), "task_id": j.ID, "data": v.record(r, j)["response"],
			}}
		}})
	}
	return rep
}

func (v *sunoapi) query(r *http.Request, a kernel.Account, makes string) kernel.Reply {
	j := v.Find(a, r.FormValue("taskId"))
	if j == nil || j.Endpoint != makes {
		return refuse(kernel.CallPoll, notFound, "task not found")
	}
	rep := answer(kernel.CallPoll, fine, "success", v.record(r, j))
	if v.Spoiled(j) {
		rep = refuse(kernel.CallPoll, broken, "Server exception")
	}
	rep.Job = j.ID
	return rep
}

// record is a job as a query shows it.
func (v *sunoapi) record(r *http.Request, j *kernel.Job) map[string]any {
	now := v.Now()
	word, done := status(j, now)
	out := map[string]any{"taskId": j.ID, "errorCode": nil, "errorMessage": nil, "response": nil, "createTime": j.Created.UnixMilli()}
	if j.State(now) == kernel.StateFailed {
		out["errorCode"], out["errorMessage"] = invalid, "the request was refused"
	}
	if j.Endpoint == tracks {
		out["successFlag"], out["audioId"] = word, j.Detail["source"]
		if word == "SUCCESS" {
			out["response"] = separated(kernel.Base(r), j)
		}
		return out
	}
	out["status"], out["param"], out["type"] = word, "{}", "GENERATE"
	if done >= 0 {
		out["response"] = map[string]any{"taskId": j.ID, "sunoData": made(kernel.Base(r), j, done)}
	}
	return out
}

// status is the word for a job, and how many of its songs are done: -1 while
// nothing is known of them. The stages of songs share the time.
func status(j *kernel.Job, now time.Time) (word string, done int) {
	switch state := j.State(now); {
	case state == kernel.StateSucceeded:
		return "SUCCESS", songsOf(j)
	case state == kernel.StateFailed && j.Directive.Fail == kernel.FailModeration && j.Endpoint == songs:
		return "SENSITIVE_WORD_ERROR", -1
	case state == kernel.StateFailed:
		return "GENERATE_AUDIO_FAILED", -1
	case state == kernel.StateQueued, j.Endpoint == tracks:
		return "PENDING", -1
	case now.Sub(j.Created) < j.Takes()/2 || songsOf(j) < 2:
		return "TEXT_SUCCESS", 0
	default:
		return "FIRST_SUCCESS", 1
	}
}

// stage is the word of callbacks.
func stage(j *kernel.Job, now time.Time) string {
	switch word, _ := status(j, now); word {
	case "PENDING":
		return ""
	case "TEXT_SUCCESS":
		return "text"
	case "FIRST_SUCCESS":
		return "first"
	case "SUCCESS":
		return "complete"
	default:
		return "error"
	}
}

func songsOf(j *kernel.Job) int {
	n, _ := strconv.Atoi(j.Detail["songs"])
	return n
}

// made are the songs of a job, of which so many are done.
func made(base string, j *kernel.Job, done int) []any {
	var out []any
	for i := range songsOf(j) {
		s := map[string]any{
			"id": songID(j, i), "audioUrl": "", "streamAudioUrl": base + j.Link(fmt.Sprintf("stream-%d.mp3", i)),
			"imageUrl": base + j.Link(fmt.Sprintf("cover-%d.png", i)), "prompt": j.Detail["lyrics"], "modelName": j.Model,
			"title": j.Detail["title"], "tags": j.Detail["tags"], "createTime": j.Created.UnixMilli(),
		}
		if i < done {
			s["audioUrl"], s["duration"] = base+j.Link(fmt.Sprintf("song-%d.mp3", i)), length(j, i)
		}
		out = append(out, s)
	}
	return out
}

// parts are the tracks of a separation.
var parts = []string{"vocal", "backingVocals", "drums", "bass"}

func separated(base string, j *kernel.Job) map[string]any {
	out := map[string]any{"originUrl": nil, "instrumentalUrl": nil, "guitarUrl": nil, "keyboardUrl": nil, "synthUrl": nil}
	for i, part := range parts {
		out[part+"Url"] = base + j.Link(fmt.Sprintf("song-%d.mp3", i))
	}
	return out
}

// song finds a song of a task that has ended.
func (v *sunoapi) song(a kernel.Account, task, id string) (*kernel.Job, int) {
	j := v.Find(a, task)
	if j == nil || j.Endpoint != songs || j.State(v.Now()) != kernel.StateSucceeded {
		return nil, 0
	}
	for i := range songsOf(j) {
		if songID(j, i) == id {
			return j, i
		}
	}
	return nil, 0
}

func songID(j *kernel.Job, i int) string { return kernel.Derived(j.ID, "song "+strconv.Itoa(i)) }

// songSeconds is how long a song plays; the second one of a request is longer.
const songSeconds = 16

func length(j *kernel.Job, i int) float64 {
	seconds := j.Media.Seconds
	if songsOf(j) > 1 {
		seconds += i
	}
	return float64(seconds)
}

// file makes one of a job's files.
func file(j *kernel.Job, name string) (*io.SectionReader, string, bool) {
	stem, kind, _ := strings.Cut(name, ".")
	what, number, _ := strings.Cut(stem, "-")
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= max(songsOf(j), len(parts)) {
		return nil, "", false
	}
	switch what + "." + kind {
	case "song.mp3":
		return sample.Extended(sample.MP3(length(j, i)), j.Directive.ResultBytes), "audio/mpeg", true
	case "cover.png":
		return sample.Padded(sample.Image(j.Media.Width, j.Media.Height), 0), "image/png", true
	default:
		return nil, "", false
	}
}
