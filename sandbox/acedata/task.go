package acedata

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// batchMax is how many jobs one question may name here; the vendor states no
// bound.
const batchMax = 100

// query tells of one job or of several.
func (v *acedata) query(r *http.Request, c caller, api string) kernel.Reply {
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return refuse(kernel.CallPoll, badRequest, err.Error())
	}
	in.Only("id", "ids", "action")
	if in.Word("action", "retrieve", "retrieve", "retrieve_batch") == "retrieve_batch" {
		return v.queryAll(r, c, api, in)
	}
	id := in.Text("id")
	if in.Has("ids") || id == "" {
		in.Fail("id", "is required")
	}
	if in.Err() != nil {
		return refuse(kernel.CallPoll, badRequest, in.Err().Error())
	}
	j := v.find(c, api, id)
	if j == nil {
		return refuse(kernel.CallPoll, notFound, "task not found")
	}
	rep := kernel.Reply{Kind: kernel.CallPoll, Status: http.StatusOK}
	if v.Spoiled(j) {
		rep = refuse(kernel.CallPoll, apiError, "fetch failed")
	} else {
		rep.Body = v.record(r, j)
	}
	rep.Job = j.ID
	return rep
}

// queryAll leaves out what the account does not have.
func (v *acedata) queryAll(r *http.Request, c caller, api string, in *kernel.Object) kernel.Reply {
	ids, ok := in.Value("ids").([]any)
	if !ok || len(ids) == 0 || len(ids) > batchMax {
		in.Fail("ids", "must be an array of 1 to %d ids", batchMax)
	}
	if in.Err() != nil {
		return refuse(kernel.CallPoll, badRequest, in.Err().Error())
	}
	items, spoiled := []any{}, false
	for _, id := range ids {
		id, _ := id.(string)
		if j := v.find(c, api, id); j != nil {
			spoiled = v.Spoiled(j) || spoiled
			items = append(items, v.record(r, j))
		}
	}
	if spoiled {
		return refuse(kernel.CallPoll, apiError, "fetch failed")
	}
	return kernel.Reply{Kind: kernel.CallPoll, Status: http.StatusOK, Body: map[string]any{"items": items, "count": len(items)}}
}

// find is a job of the account and the API.
func (v *acedata) find(c caller, api, id string) *kernel.Job {
	if j := v.Find(c.Account, id); j != nil && j.Endpoint == api {
		return j
	}
	return nil
}

// record is a job as a question shows it. Its state is empty: the response tells.
func (v *acedata) record(r *http.Request, j *kernel.Job) map[string]any {
	out := map[string]any{
		"_id": kernel.Derived(j.ID, "record"), "id": j.ID, "created_at": float64(j.Created.UnixMilli()) / 1000, "state": "", "trace_id": kernel.Derived(j.ID, "trace"),
		"request": map[string]any{"action": j.Detail["action"], "model": j.Model, "prompt": j.Detail["prompt"]},
	}
	answer := map[string]any{"task_id": j.ID, "trace_id": kernel.Derived(j.ID, "trace")}
	switch j.State(v.Now()) {
	case kernel.StateQueued:
		return out // nothing to tell yet
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

// tracksOf are the names of what a separation makes: files of their own with
// /suno, one archive with /producer.
var tracksOf = map[string][]string{
	allStems: {"Vocals", "Backing Vocals", "Drums", "Bass"},
	stems:    {"Vocals", "Instrumental"},
}

// clips are the songs or tracks of a job. Until it is done their links lead to
// previews.
func clips(base string, j *kernel.Job, state string) []map[string]any {
	if j.Endpoint == producer && j.Detail["action"] == stems {
		return []map[string]any{archive(base, j, state)}
	}
	var out []map[string]any
	n, _ := strconv.Atoi(j.Detail["clips"])
	names := tracksOf[j.Detail["action"]]
	for i := range max(n, len(names)) {
		link := func(name string) string { return base + j.Link(fmt.Sprintf(name, i)) }
		title := j.Detail["title"]
		if len(names) > 0 {
			title = fmt.Sprintf("%s (%s)", title, names[i])
		}
		c := map[string]any{
			"id": clipID(j, i), "title": title, "lyric": j.Detail["lyric"], "created_at": j.Created.Format("2006-01-02T15:04:05.000Z"),
			"model": j.Model, "state": state, "style": j.Detail["style"], "image_url": link("cover-%d.png"), "video_url": "",
		}
		if state == "succeeded" {
			c["audio_url"], c["duration"] = link("song-%d.mp3"), shown(j.Endpoint, lengthOf(j, i))
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

// archive is the one item of a separation of /producer.
func archive(base string, j *kernel.Job, state string) map[string]any {
	c := map[string]any{"title": j.Detail["title"], "lyric": "", "model": "", "progress": "50%", "state": state}
	if state == "succeeded" {
		c["progress"], c["stems_url"] = "100%", base+j.Link("stems-0.zip")
	}
	return c
}

// native adds what only songs of /producer have.
func native(c map[string]any, j *kernel.Job, i int, state string, link func(string) string) {
	c["seed"], c["sound"], c["image_id"], c["topic"], c["video_url"] = j.Detail["seed"], j.Detail["prompt"], c["id"], nil, nil
	c["progress"] = "50%"
	if state == "succeeded" {
		c["progress"], c["wav_url"] = "100%", link("song-%d.wav")
		c["lyrics_id"], c["lyrics_timing_markers"] = kernel.Derived(j.ID, "lyrics"), marks(j.Detail["lyric"], int(lengthOf(j, i)))
	}
}

// song is what is known of one that work can be done on.
type song struct {
	title, lyric, style string
	seconds             float64 // 0: unknown
}

// song finds one that the account made with the API, or uploaded there.
func (v *acedata) song(c caller, api, id string) (song, bool) {
	if uploadedBy(c.key, api, id) {
		return song{title: "Upload"}, true
	}
	now := v.Now()
	for _, j := range v.Jobs(c.Account, func(j *kernel.Job) bool { return j.Endpoint == api && j.State(now) == kernel.StateSucceeded }) {
		if i := slices.IndexFunc(clips("", j, "succeeded"), func(c map[string]any) bool { return c["id"] == id }); i >= 0 {
			return song{j.Detail["title"], j.Detail["lyric"], j.Detail["style"], lengthOf(j, i)}, true
		}
	}
	return song{}, false
}

// voice reports that the account made a voice of that id.
func (v *acedata) voice(c caller, id string) bool {
	return len(v.Jobs(c.Account, func(j *kernel.Job) bool { return j.Endpoint == persona && kernel.Derived(j.ID, persona) == id })) > 0
}

// lengthOf is how many seconds a song plays; of two the second one is longer.
func lengthOf(j *kernel.Job, i int) float64 {
	seconds := j.Media.Seconds
	if j.Detail["clips"] == "2" {
		seconds += i
	}
	return float64(seconds)
}
