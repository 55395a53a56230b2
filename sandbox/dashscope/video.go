package dashscope

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

const (
	// knownTime is how long a job can be polled, and how long the link to a file is valid.
	knownTime = 24 * time.Hour
	// klingLinkTime is how long the link to a file of a Kling model is valid.
	klingLinkTime = 30 * knownTime

	// sourceLength is the length in seconds of every source video.
	sourceLength = "4.2"
	// sourceSeconds is the length in seconds of a video made from one.
	sourceSeconds = 4
)

// The keys of the details that a job's polls show.
const (
	detailSR       = "sr"       // lines of a picture
	detailSeconds  = "seconds"  // length of the result, unless it is a whole number
	detailInput    = "input"    // seconds of the source video
	detailExtended = "extended" // the prompt was extended
	detailKling    = "kling"    // the model is Kling's, which keeps a clean file beside the marked one
)

// synthesize creates the job of a request for a video. The header makes the call asynchronous.
func synthesize(api *kernel.API, r *http.Request, a kernel.Account) kernel.Reply {
	if r.Header.Get("X-DashScope-Async") != "enable" {
		return refuse(kernel.CallSubmit, wrongCall, errors.New("synchronous calls"))
	}
	j, rep := read(r, func(model string) bool { return videoModels[model] != defaults{} }, video)
	if j == nil {
		return rep
	}
	return api.AcceptAndCallBack(r, a, j)
}

func made(_ *http.Request, j *kernel.Job, _ time.Time) any {
	return map[string]any{"output": map[string]any{"task_id": j.ID, "task_status": "PENDING"}, "request_id": kernel.UUID()}
}

// known returns the job that the path names, or nil if the vendor does not know it or no longer
// does.
func known(api *kernel.API, r *http.Request, a kernel.Account) *kernel.Job {
	if j := api.Find(a, r.PathValue("id")); j != nil && api.Now().Sub(j.Created) < knownTime {
		return j
	}
	return nil
}

// words are the vendor's words for the states.
var words = map[kernel.State]string{
	kernel.StateQueued: "PENDING", kernel.StateRunning: "RUNNING", kernel.StateSucceeded: "SUCCEEDED",
	kernel.StateFailed: "FAILED", kernel.StateCancelled: "CANCELED",
}

// query answers a poll of a job. An unknown job is not an error but has the state UNKNOWN.
func query(api *kernel.API, r *http.Request, a kernel.Account) kernel.Reply {
	j := known(api, r, a)
	if j == nil {
		output := map[string]any{"task_id": r.PathValue("id"), "task_status": "UNKNOWN"}
		return kernel.OK(kernel.CallPoll, map[string]any{"output": output, "request_id": kernel.UUID()})
	}
	return api.AnswerPoll(j, func(j *kernel.Job) kernel.Reply { return kernel.OK(kernel.CallPoll, task(r, j, api.Now())) })
}

// cancel stops a job that is still queued.
func cancel(api *kernel.API, r *http.Request, a kernel.Account) kernel.Reply {
	if known(api, r, a) == nil {
		return refuse(kernel.CallCancel, kernel.NoJob, nil)
	}
	return api.Cancel(r, a)
}

// clock formats a time as the vendor does: in its time zone (UTC+8), without naming the zone.
func clock(t time.Time) string {
	return t.In(time.FixedZone("", 8*60*60)).Format("2006-01-02 15:04:05.000")
}

// task returns the answer to a poll of a job.
func task(r *http.Request, j *kernel.Job, now time.Time) any {
	state := j.State(now)
	output := map[string]any{"task_id": j.ID, "task_status": words[state], "submit_time": clock(j.Created)}
	body := map[string]any{"request_id": kernel.UUID(), "output": output}
	if state != kernel.StateQueued {
		output["scheduled_time"] = clock(j.Created.Add(j.Duration() / 10))
	}
	switch state {
	case kernel.StateFailed:
		output["end_time"] = clock(j.StateSince(now))
		output["code"], output["message"] = codeAlgorithm, "The video could not be made."
		if j.Directive.Fail == kernel.FailModeration {
			output["code"], output["message"] = codeInspection, "Output data may contain inappropriate content."
		}
	case kernel.StateSucceeded:
		output["end_time"], output["orig_prompt"] = clock(j.StateSince(now)), j.Prompt
		links(r, j, now, output)
		body["usage"] = usage(j)
	default:
	}
	return body
}

// links adds the links to a job's files. Kling keeps the clean file beside the marked one. The
// other models keep one file.
func links(r *http.Request, j *kernel.Job, now time.Time, output map[string]any) {
	link := func(name string, good time.Duration) string {
		return kernel.Base(r) + j.LinkUntil(name, j.StateSince(now).Add(good))
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

// usage returns the amounts that the vendor charges. If a source video is charged too, the
// lengths of both videos are listed. SR is then a number, and otherwise a string.
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
