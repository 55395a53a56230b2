package dashscope

import (
	"net/http"
	"strconv"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

const (
	// knownTime is how long a job can be asked for, and the link to a file is good.
	knownTime = 24 * time.Hour
	// klingLinkTime is how long the link to one of Kling's files is good.
	klingLinkTime = 30 * knownTime

	// sourceLength is that of every source video.
	sourceLength = "4.2"
	// sourceSeconds are those of the file that is made of one.
	sourceSeconds = 4
)

// What a job's queries show again.
const (
	detailSR      = "sr"      // the lines of a picture
	detailSeconds = "seconds" // of the result, where they are no whole ones
	detailInput   = "input"   // seconds of what the result was made from
	detailKling   = "kling"   // the model is Kling's, who keeps a clean file beside the marked one
)

// synthesize takes a job. The header is what makes the call one that takes
// jobs.
func (d *dashscope) synthesize(r *http.Request, a kernel.Account) kernel.Reply {
	if r.Header.Get("X-DashScope-Async") != "enable" {
		return d.refuse(kernel.CallSubmit, codeDenied, "current user api does not support synchronous calls")
	}
	in, err := kernel.ReadObject(r, bodyMax)
	if err != nil {
		return d.refuse(kernel.CallSubmit, codeInvalid, err.Error())
	}
	in.Only("model", "input", "parameters")
	model := in.Text("model")
	read, known := videoModels[model]
	switch {
	case in.Err() == nil && model == "":
		return d.refuse(kernel.CallSubmit, codeInvalid, "model: is required")
	case in.Err() == nil && !known:
		return d.refuse(kernel.CallSubmit, codeNoModel, "Model not exist.")
	case in.Err() != nil:
		return d.refuse(kernel.CallSubmit, codeInvalid, in.Err().Error())
	}
	j := read(in.Nested("input"), in.Nested("parameters"))
	if in.Err() != nil {
		return d.refuse(kernel.CallSubmit, codeInvalid, in.Err().Error())
	}
	j.ID, j.Endpoint, j.Model = kernel.UUID(), videos, model
	return d.accept(a, j, func(made *kernel.Job) kernel.Reply {
		return kernel.Reply{Kind: kernel.CallSubmit, Status: http.StatusOK, Body: map[string]any{
			"output":     map[string]any{"task_id": made.ID, "task_status": "PENDING"},
			"request_id": kernel.UUID(),
		}}
	})
}

// find is a job that the vendor still knows.
func (d *dashscope) find(a kernel.Account, id string) *kernel.Job {
	if j := d.Find(a, id); j != nil && j.Endpoint == videos && d.Now().Sub(j.Created) < knownTime {
		return j
	}
	return nil
}

// words are the status words.
var words = map[kernel.State]string{
	kernel.StateQueued: "PENDING", kernel.StateRunning: "RUNNING", kernel.StateSucceeded: "SUCCEEDED",
	kernel.StateFailed: "FAILED", kernel.StateCancelled: "CANCELED",
}

// query shows a job. One that is not known is no error, but UNKNOWN.
func (d *dashscope) query(r *http.Request, a kernel.Account) kernel.Reply {
	id := r.PathValue("id")
	j := d.find(a, id)
	if j == nil {
		return kernel.Reply{Kind: kernel.CallPoll, Status: http.StatusOK, Body: map[string]any{
			"output": map[string]any{"task_id": id, "task_status": "UNKNOWN"}, "request_id": kernel.UUID(),
		}}
	}
	if d.Spoiled(j) {
		rep := d.refuse(kernel.CallPoll, codeInternal, "An internal error has occurred, please try again later.")
		rep.Job = j.ID
		return rep
	}
	return kernel.Reply{Kind: kernel.CallPoll, Status: http.StatusOK, Job: j.ID, Body: d.task(r, j)}
}

// cancel stops a job that is still queued.
func (d *dashscope) cancel(r *http.Request, a kernel.Account) kernel.Reply {
	j := d.find(a, r.PathValue("id"))
	if j == nil {
		return d.refuse(kernel.CallCancel, codeInvalid, "task not exist")
	}
	d.Count(j, kernel.CallCancel)
	now := d.Now().UTC()
	stopped := d.Change(j, func(j *kernel.Job) bool {
		if j.State(now) != kernel.StateQueued {
			return false
		}
		j.Cancelled = &now
		return true
	})
	rep := kernel.Reply{Kind: kernel.CallCancel, Status: http.StatusOK, Body: map[string]any{"request_id": kernel.UUID()}}
	if !stopped {
		rep = d.refuse(kernel.CallCancel, codeUnsupport, "Failed to cancel the task, please confirm if the task is in PENDING status.")
	}
	rep.Job = j.ID
	return rep
}

// clock writes a time as the vendor does: by its own watch, without a zone.
func clock(t time.Time) string {
	return t.In(time.FixedZone("", 8*60*60)).Format("2006-01-02 15:04:05.000")
}

// task is a job as queries show it.
func (d *dashscope) task(r *http.Request, j *kernel.Job) map[string]any {
	now := d.Now()
	state := j.State(now)
	output := map[string]any{"task_id": j.ID, "task_status": words[state], "submit_time": clock(j.Created)}
	body := map[string]any{"request_id": kernel.UUID(), "output": output}
	if state != kernel.StateQueued {
		output["scheduled_time"] = clock(j.Created.Add(j.Takes() / 10))
	}
	switch state {
	case kernel.StateFailed:
		output["end_time"] = clock(j.Changed(now))
		output["code"], output["message"] = codeAlgorithm, "The video could not be made."
		if j.Directive.Fail == kernel.FailModeration {
			output["code"], output["message"] = codeInspection, "Output data may contain inappropriate content."
		}
	case kernel.StateSucceeded:
		output["end_time"], output["orig_prompt"] = clock(j.Changed(now)), j.Prompt
		d.files(r, j, output)
		body["usage"] = usage(j)
	default:
	}
	return body
}

// files offers the links. Kling keeps the clean file beside the marked one, the
// others have but one.
func (d *dashscope) files(r *http.Request, j *kernel.Job, output map[string]any) {
	link := func(name string, good time.Duration) string {
		return kernel.Base(r) + j.LinkUntil(name, j.Changed(d.Now()).Add(good))
	}
	switch {
	case j.Detail[detailKling] != "":
		output["video_url"] = link(kernel.FileVideo, klingLinkTime)
		if j.Media.Watermark {
			output["watermark_video_url"] = link(kernel.FileMarked, klingLinkTime)
		}
	case j.Media.Watermark:
		output["video_url"] = link(kernel.FileMarked, knownTime)
	default:
		output["video_url"] = link(kernel.FileVideo, knownTime)
	}
}

// usage is what a job is charged for. Where a source video counts, too, it is
// told apart; the lines are a number there, and a text elsewhere.
func usage(j *kernel.Job) map[string]any {
	out := float64(j.Media.Seconds)
	if seconds, err := strconv.ParseFloat(j.Detail[detailSeconds], 64); err == nil {
		out = seconds
	}
	used := map[string]any{"video_count": 1, "audio": j.Media.Sound}
	in, err := strconv.ParseFloat(j.Detail[detailInput], 64)
	if err != nil {
		used["duration"], used["SR"] = out, j.Detail[detailSR]
		return used
	}
	used["duration"], used["input_video_duration"], used["output_video_duration"] = in+out, in, out
	used["SR"], _ = strconv.Atoi(j.Detail[detailSR])
	return used
}
