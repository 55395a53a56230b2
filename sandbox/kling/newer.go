package kling

import (
	"net/http"
	"strings"
	"time"

	"github.com/mediagate/mediagate/sandbox/kernel"
)

// newerQuery answers a poll of several jobs. The request has a list of ids or a list of external
// ids, and not both.
func newerQuery(api *kernel.API, r *http.Request, a kernel.Account) kernel.Reply {
	own, external := r.URL.Query().Get("task_ids"), r.URL.Query().Get("external_task_ids")
	ids := strings.Split(own+external, ",")
	if (own == "") == (external == "") || len(ids) > newerIDsMax {
		return refuse(kernel.CallPoll, kernel.Invalid,
			kernel.NewViolation("task_ids", "one of it and external_task_ids, with %d ids at most", newerIDsMax))
	}
	data := []any{}
	rep := kernel.OK(kernel.CallPoll, nil)
	for _, id := range ids {
		j := api.Find(a, id)
		if j == nil || (own != "") != (j.ID == id) {
			continue
		}
		rep = api.AnswerPoll(j, func(*kernel.Job) kernel.Reply { return kernel.OK(kernel.CallPoll, nil) })
		if rep.Status != http.StatusOK {
			return rep
		}
		data = append(data, newerTask(r, j, api.Now()))
	}
	rep.Body = succeed(data)
	return rep
}

func newerCreated(j *kernel.Job) map[string]any {
	return map[string]any{
		"id": j.ID, "status": "submitted", "external_id": j.ExternalID,
		"create_time": j.Created.UnixMilli(), "update_time": j.Created.UnixMilli(),
	}
}

func newerMade(_ *http.Request, j *kernel.Job, _ time.Time) any { return succeed(newerCreated(j)) }

// newerTask returns a job as polls and callbacks show it.
func newerTask(r *http.Request, j *kernel.Job, now time.Time) any {
	data := newerCreated(j)
	data["status"], data["message"], data["outputs"], data["billing"] = statusWord(j, now), "", []any{}, []any{}
	data["update_time"] = j.StateSince(now).UnixMilli()
	switch j.State(now) {
	case kernel.StateFailed:
		data["message"] = failureText(j)
	case kernel.StateSucceeded:
		output := video(r, j)
		data["status"], output["type"] = "succeeded", "video"
		data["outputs"] = []any{output}
		data["billing"] = []any{map[string]any{"charge_type": "unit", "package_type": "video", "amount": output["duration"]}}
	default:
	}
	return data
}
