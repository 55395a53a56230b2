package acedata

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// query answers a poll of one job or of several. Of several jobs, it leaves out those that the
// account does not have.
func (v api) query(r *http.Request, a kernel.Account) kernel.Reply {
	b, err := schemas.Read(r, "tasks", bodyMax)
	if err != nil {
		return refuse(kernel.CallPoll, kernel.Invalid, err)
	}
	tell := func(j *kernel.Job) kernel.Reply {
		return v.AnswerPoll(j, func(j *kernel.Job) kernel.Reply { return kernel.OK(kernel.CallPoll, record(r, j, v.Now())) })
	}
	if id := b.Text("id"); id != "" {
		return tell(v.Find(a, id))
	}
	items := []any{}
	for _, id := range b.Texts("ids") {
		if j := v.Find(a, id); j != nil {
			rep := tell(j)
			if rep.Status != http.StatusOK {
				return refuse(kernel.CallPoll, kernel.Internal, nil)
			}
			items = append(items, rep.Body)
		}
	}
	return kernel.OK(kernel.CallPoll, map[string]any{"items": items, "count": len(items)})
}

// record returns the answer to a poll of a job. Its field state is always empty, and the field
// response shows how the job stands.
func record(r *http.Request, j *kernel.Job, now time.Time) map[string]any {
	out := map[string]any{
		"_id": kernel.DeriveID(j.ID, "record"), "id": j.ID, "created_at": float64(j.Created.UnixMilli()) / 1000, "state": "",
		"trace_id": kernel.DeriveID(j.ID, "trace"),
		"request":  map[string]any{"action": j.Detail["action"], "model": j.Model, "prompt": j.Detail["prompt"]},
	}
	answer := map[string]any{"task_id": j.ID, "trace_id": kernel.DeriveID(j.ID, "trace")}
	switch j.State(now) {
	case kernel.StateQueued:
		return out // without a response
	case kernel.StateFailed, kernel.StateCancelled:
		answer["success"], answer["error"] = false, fault(badRequest, "prompt is invalid")
		if j.Directive.Fail == kernel.FailModeration {
			answer["error"] = fault(forbidden, "Song Description flagged for moderation")
		}
	case kernel.StateRunning:
		answer["success"], answer["data"] = true, clips(kernel.Base(r), j, "running")
	default:
		answer["success"], answer["data"] = true, clips(kernel.Base(r), j, "succeeded")
	}
	out["response"] = answer
	return out
}

// tracksOf holds the names of the tracks that a separation makes. /suno returns one file for
// each track, and /producer one archive.
var tracksOf = map[string][]string{
	allStems: {"Vocals", "Backing Vocals", "Drums", "Bass"},
	stems:    {"Vocals", "Instrumental"},
}

// clips returns the songs or tracks of a job. Until the job is finished, their audio_url is the
// address of a preview.
func clips(base string, j *kernel.Job, state string) []map[string]any {
	if j.Endpoint == producer && j.Detail["action"] == stems {
		return []map[string]any{archive(base, j, state)}
	}
	var out []map[string]any
	names := tracksOf[j.Detail["action"]]
	for i := range j.Media.Songs {
		link := func(name string) string { return base + j.Link(fmt.Sprintf(name, i)) }
		title := j.Detail["title"]
		if len(names) > 0 {
			title = fmt.Sprintf("%s (%s)", title, names[i])
		}
		c := map[string]any{
			"id": clipID(j, i), "title": title, "lyric": j.Detail["lyric"],
			"created_at": j.Created.Format("2006-01-02T15:04:05.000Z"),
			"model":      j.Model, "state": state, "style": j.Detail["style"],
			"image_url": link("cover-%d.png"), "video_url": "",
		}
		if state == "succeeded" {
			c["audio_url"], c["duration"] = link("song-%d.mp3"), formatLength(j.Endpoint, j.Media.Length(i))
			if i == 0 && len(names) == 0 && j.Endpoint == suno {
				c["video_url"] = link("film-%d.mp4")
			}
		} else {
			c["audio_url"] = link("preview-%d.mp3")
		}
		if j.Endpoint == producer {
			native(c, j, i, state, link)
		}
		out = append(out, c)
	}
	return out
}

// archive returns the only item of a separation by /producer.
func archive(base string, j *kernel.Job, state string) map[string]any {
	c := map[string]any{"title": j.Detail["title"], "lyric": "", "model": "", "progress": "50%", "state": state}
	if state == "succeeded" {
		c["progress"], c["stems_url"] = "100%", base+j.Link("stems-0.zip")
	}
	return c
}

// native adds the fields that only songs of /producer have.
func native(c map[string]any, j *kernel.Job, i int, state string, link func(string) string) {
	c["seed"], c["sound"], c["image_id"], c["topic"], c["video_url"] =
		j.Detail["seed"], j.Detail["prompt"], c["id"], nil, nil
	c["progress"] = "50%"
	if state == "succeeded" {
		c["progress"], c["wav_url"] = "100%", link("song-%d.wav")
		c["lyrics_id"], c["lyrics_timing_markers"] =
			kernel.DeriveID(j.ID, "lyrics"), lyricTimes(j.Detail["lyric"], j.Media.Length(i))
	}
}

// song describes a song that a request works on.
type song struct {
	title, lyric, style string
	seconds             float64 // 0: unknown
}

// song returns a song that the account has made or uploaded with this API.
func (v api) song(a kernel.Account, id string) (song, bool) {
	if uploadedBy(a.ID(), v.Endpoint, id) {
		return song{title: "Upload"}, true
	}
	now := v.Now()
	made := func(j *kernel.Job) bool { return j.Endpoint == v.Endpoint && j.State(now) == kernel.StateSucceeded }
	for _, j := range v.Jobs(a, made) {
		if i := slices.IndexFunc(clips("", j, "succeeded"), func(c map[string]any) bool { return c["id"] == id }); i >= 0 {
			return song{j.Detail["title"], j.Detail["lyric"], j.Detail["style"], j.Media.Length(i)}, true
		}
	}
	return song{}, false
}

// voice reports whether the account has made a voice with this id.
func (v api) voice(a kernel.Account, id string) bool {
	made := func(j *kernel.Job) bool { return j.Endpoint == persona && kernel.DeriveID(j.ID, persona) == id }
	return len(v.Jobs(a, made)) > 0
}
