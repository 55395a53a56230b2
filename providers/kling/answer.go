package kling

import (
	"strconv"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// head is what every answer begins with, of both generations.
type head struct {
	Code      vendorhttp.Text `json:"code"`
	Message   vendorhttp.Text `json:"message"`
	RequestID vendorhttp.Text `json:"request_id"`
}

// chargeUnit is what the older generation charges in.
const chargeUnit = "unit"

type task struct {
	TaskID     vendorhttp.Text `json:"task_id"`
	Status     vendorhttp.Text `json:"task_status"`
	StatusText vendorhttp.Text `json:"task_status_msg"`
	Units      vendorhttp.Text `json:"final_unit_deduction"`
	Info       struct {
		ExternalID vendorhttp.Text `json:"external_task_id"`
	} `json:"task_info"`
	Result struct {
		Videos []video `json:"videos"`
	} `json:"task_result"`
}

type video struct {
	URL          vendorhttp.Text `json:"url"`
	WatermarkURL vendorhttp.Text `json:"watermark_url"`
	Duration     vendorhttp.Text `json:"duration"`
}

// readHead returns nil for an answer that is not the vendor's own: the code is
// what each of its answers has.
func readHead(answer vendorhttp.Answer) *head {
	h := new(head)
	if answer.Decode(h) != nil {
		return nil
	}
	if _, err := strconv.Atoi(string(h.Code)); err != nil {
		return nil
	}
	return h
}

// readTask reads what an answer with a head says of a job.
func readTask(answer vendorhttp.Answer) task {
	var body struct {
		Data task `json:"data"`
	}
	_ = answer.Decode(&body) // what is no task is an empty one
	return body.Data
}

// idOf is the id of the job in the answer to a submission.
func idOf(answer vendorhttp.Answer, at place) string {
	if at.newer() {
		return readMade(answer)
	}
	return readTask(answer).TaskID.ID()
}

// states is the older generation's whole vocabulary; any other word is unknown,
// also those of the newer one.
var states = map[string]mediagate.JobState{
	"submitted":  mediagate.JobQueued,
	"processing": mediagate.JobRunning,
	"succeed":    mediagate.JobSucceeded,
	"failed":     mediagate.JobFailed,
}

// report translates a job. An answer about another job is against the vendor's
// own protocol: asked again, it may be right.
func (a *Adapter) report(ref mediagate.JobRef, t task) (mediagate.Report, error) {
	report, err := reportOf(ref, t.TaskID.ID(), string(t.Info.ExternalID))
	if err != nil {
		return report, err
	}
	report.State, report.Word = a.http.State(states, t.Status)
	switch report.State {
	case mediagate.JobSucceeded:
		report.Offer(success(t, placeOf(ref.State).marked))
	case mediagate.JobFailed:
		report.Outcome = a.failed(string(t.StatusText))
		report.Outcome.VendorCharge = mediagate.ChargedBy(t.Units.Decimal(), chargeUnit)
	default: // still under way
	}
	return report, nil
}

// reportOf begins the report on a job by the ids that its answer carries.
func reportOf(ref mediagate.JobRef, id, external string) (mediagate.Report, error) {
	switch {
	case id == "":
		return mediagate.Report{}, vendorhttp.Strange("the answer names no job")
	case ref.JobID != "" && id != ref.JobID:
		return mediagate.Report{}, vendorhttp.Strange("the answer is about another job")
	case ref.JobID == "" && external != "" && external != ref.ExternalID:
		return mediagate.Report{}, vendorhttp.Strange("the answer is about a job of another external id")
	}
	// A job id that was asked for has been compared; the external id may be left out.
	named := ref.JobID != "" || external == ref.ExternalID
	ref.JobID = id
	return mediagate.Report{Ref: ref, Percent: -1, Named: named}, nil
}

// success is the outcome of a job by its files, and whether each of them has its
// link.
func success(t task, watermarked bool) (out *mediagate.Outcome, whole bool) {
	out, whole = &mediagate.Outcome{VendorCharge: mediagate.ChargedBy(t.Units.Decimal(), chargeUnit)}, true
	stated := true
	for i, v := range t.Result.Videos {
		link := v.URL.Link()
		// The vendor makes the marked file only on demand. Without one the
		// plain link is all there is.
		if marked := v.WatermarkURL.Link(); watermarked && marked != "" {
			link = marked
		}
		if link == "" {
			whole = false
			continue
		}
		seconds := v.Duration.Seconds()
		stated = stated && seconds > 0
		out.Seconds += seconds
		out.Media = append(out.Media, mediagate.Media{URL: link, Index: i, MimeType: "video/mp4", Duration: seconds})
	}
	if !stated {
		out.Seconds = 0 // unknown of one is unknown of all
	}
	return out, whole
}
