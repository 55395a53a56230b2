package minimax

import (
	"net/http"
	"strconv"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

const (
	// linkTime is how long the link to a file is valid.
	linkTime = time.Hour

	// fileOffset is the difference between the id of a file and that of its job.
	fileOffset = 1_000_000_000_000_000
)

var succeeded = base(0, "success")

func base(code any, message string) map[string]any {
	return map[string]any{"status_code": code, "status_msg": message}
}

var refuseByCode = kernel.NewRefuse(faults, func(w kernel.FaultText) any {
	return map[string]any{"task_id": "", "base_resp": base(w.Code, w.Message)}
})

// refuseFirst returns the answer that refuses a call. It has HTTP 200.
func refuseFirst(kind string, f kernel.Fault, err error) kernel.Reply {
	rep := refuseByCode(kind, f, err)
	rep.Status, rep.Header = http.StatusOK, map[string]string{"Trace-Id": trace()}
	return rep
}

func madeFirst(_ *http.Request, j *kernel.Job, _ time.Time) any {
	return map[string]any{"task_id": j.ID, "base_resp": succeeded}
}

// taskFirst returns the answer to a poll of a job. It contains the id of the file once the job
// has succeeded.
func taskFirst(_ *http.Request, j *kernel.Job, now time.Time) any {
	body := map[string]any{"task_id": j.ID, "status": firstWord(j, now), "file_id": "", "base_resp": succeeded}
	switch j.State(now) {
	case kernel.StateSucceeded:
		body["file_id"] = strconv.FormatInt(fileID(j), 10)
		body["video_width"], body["video_height"] = j.Media.Width, j.Media.Height
	case kernel.StateFailed:
		if j.Directive.Fail == kernel.FailModeration {
			body["base_resp"] = base(codeOutput, "output new_sensitive")
		}
	default:
	}
	return body
}

// firstWord returns the vendor's word for a job's state. A queued job is preparing for the first
// half of its time in the queue.
func firstWord(j *kernel.Job, now time.Time) string {
	switch j.State(now) {
	case kernel.StateQueued:
		if now.Sub(j.Created) < j.Duration()/20 {
			return "Preparing"
		}
		return "Queueing"
	case kernel.StateRunning:
		return "Processing"
	case kernel.StateSucceeded:
		return "Success"
	default:
		return "Fail"
	}
}

func fileID(j *kernel.Job) int64 {
	n, _ := strconv.ParseInt(j.ID, 10, 64)
	return n + fileOffset
}

// retrieve answers with a new link to a file.
func retrieve(api *kernel.API, r *http.Request, a kernel.Account) kernel.Reply {
	n, _ := strconv.ParseInt(r.FormValue("file_id"), 10, 64)
	now := api.Now()
	j := api.Find(a, strconv.FormatInt(n-fileOffset, 10))
	if j == nil || j.State(now) != kernel.StateSucceeded {
		return refuseFirst(kernel.CallOther, kernel.Invalid, kernel.NewViolation("file_id", "is unknown"))
	}
	content, _, _ := j.File(file(j))
	rep := kernel.OK(kernel.CallOther, map[string]any{
		"file": map[string]any{
			"file_id": n, "bytes": content.Size(), "created_at": j.StateSince(now).Unix(), "filename": "output_aigc.mp4",
			"purpose": "video_generation", "download_url": kernel.Base(r) + j.LinkUntil(file(j), now.Add(linkTime)),
		},
		"base_resp": succeeded,
	})
	rep.Job = j.ID
	return rep
}
