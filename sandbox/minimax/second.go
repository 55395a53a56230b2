package minimax

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// knownTime is how long a job of the second generation can be polled.
const knownTime = 7 * 24 * time.Hour

// kinds holds the error type of each HTTP status.
var kinds = map[int]string{
	http.StatusBadRequest: "bad_request_error", http.StatusNotFound: "bad_request_error",
	http.StatusUnauthorized: "authorized_error", http.StatusUnprocessableEntity: "unprocessable_entity_error",
	http.StatusTooManyRequests: "rate_limit_error", http.StatusInternalServerError: "server_error",
}

var refuseByKind = kernel.NewRefuse(faults, func(w kernel.FaultText) any {
	return map[string]any{"type": "error", "request_id": trace(), "error": map[string]any{
		"type": kinds[w.Status], "message": fmt.Sprintf("%s (%d)", w.Message, w.Code), "http_code": strconv.Itoa(w.Status),
	}}
})

// refuseSecond returns the answer that refuses a call, with the first generation's code after
// the message.
func refuseSecond(kind string, f kernel.Fault, err error) kernel.Reply {
	rep := refuseByKind(kind, f, err)
	body, _ := rep.Body.(map[string]any)
	id, _ := body["request_id"].(string)
	rep.Header = map[string]string{"Trace-Id": id}
	return rep
}

func madeSecond(_ *http.Request, j *kernel.Job, _ time.Time) any {
	return map[string]any{"task_id": j.ID}
}

// known returns the job that the path names, or nil if the vendor does not know it or no longer
// does.
func known(api *kernel.API, r *http.Request, a kernel.Account) *kernel.Job {
	if j := api.Find(a, r.PathValue("id")); j != nil && api.Now().Sub(j.Created) < knownTime {
		return j
	}
	return nil
}

// remove cancels a job that is queued and removes one that has succeeded or failed. It refuses a
// job that runs or was cancelled.
func remove(api *kernel.API, r *http.Request, a kernel.Account) kernel.Reply {
	j := known(api, r, a)
	if j == nil {
		return refuseSecond(kernel.CallCancel, kernel.NoJob, nil)
	}
	rep := kernel.OK(kernel.CallCancel, map[string]any{})
	if !api.Stop(j, kernel.StateQueued) && !api.Change(j, func(j *kernel.Job) bool {
		state := j.State(api.Now())
		j.Removed = state == kernel.StateSucceeded || state == kernel.StateFailed
		return j.Removed
	}) {
		rep = refuseSecond(kernel.CallCancel, kernel.WrongState, nil)
	}
	rep.Job = j.ID
	return rep
}

// secondWords are the vendor's words for the states.
var secondWords = map[kernel.State]string{
	kernel.StateQueued: "queued", kernel.StateRunning: "running", kernel.StateSucceeded: "succeeded",
	kernel.StateFailed: "failed", kernel.StateCancelled: "cancelled",
}

// taskSecond returns the answer to a poll of a job.
func taskSecond(r *http.Request, j *kernel.Job, now time.Time) any {
	state := j.State(now)
	out := map[string]any{
		"id": j.ID, "model": j.Model, "status": secondWords[state], "task_type": "generation", "modality": "video",
	}
	switch state {
	case kernel.StateFailed:
		out["error"] = map[string]any{"code": "server_error", "message": "the video could not be made"}
		if j.Directive.Fail == kernel.FailModeration {
			message := fmt.Sprintf("output new_sensitive (%d)", codeOutput)
			out["error"] = map[string]any{"code": "unprocessable_entity_error", "message": message}
		}
	case kernel.StateSucceeded:
		images, _ := strconv.Atoi(j.Detail["input_images"])
		out["content"] = map[string]any{"url": kernel.Base(r) + j.Link(file(j))}
		out["resolution"], out["duration"], out["ratio"] = j.Detail["resolution"], j.Media.Seconds, j.Detail["ratio"]
		out["usage"] = map[string]any{
			"total_seconds": j.Media.Seconds, "input_seconds": 0, "output_seconds": j.Media.Seconds, "input_image_count": images,
		}
	default:
	}
	return map[string]any{"task": out}
}
