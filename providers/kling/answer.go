package kling

import (
	"strconv"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// head is the beginning of every answer, in both generations.
type head struct {
	Code      vendorhttp.Text `json:"code"`
	Message   vendorhttp.Text `json:"message"`
	RequestID vendorhttp.Text `json:"request_id"`
}

// chargeUnit is the unit in which the older generation charges.
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

// readHead reads the head of an answer. It returns nil if the answer has no numeric code, which
// every answer of the vendor has.
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

// readTask reads the job in an answer that has a head.
func readTask(answer vendorhttp.Answer) task {
	var body struct {
		Data task `json:"data"`
	}
	_ = answer.Decode(&body) // anything but a task reads as an empty one
	return body.Data
}

// readJobID returns the job's id from the answer to a submission.
func readJobID(answer vendorhttp.Answer, at place) string {
	if at.newer() {
		return readSubmittedID(answer)
	}
	return readTask(answer).TaskID.ID()
}

// states holds all status words of the older generation. Any other word is unknown, including those
// of the newer one.
var states = map[string]mediagate.JobState{
	"submitted":  mediagate.JobQueued,
	"processing": mediagate.JobRunning,
	"succeed":    mediagate.JobSucceeded,
	"failed":     mediagate.JobFailed,
}

// report translates a job into a report. An answer about another job violates the vendor's
// protocol. The error is KindTransient, since a second call may return the right one.
func (a *Adapter) report(ref mediagate.JobRef, t task) (mediagate.Report, error) {
	report, err := reportOf(ref, t.TaskID.ID(), string(t.Info.ExternalID))
	if err != nil {
		return report, err
	}
	report.State, report.Word = a.http.State(states, t.Status)
	switch report.State {
	case mediagate.JobSucceeded:
		report.Offer(successOutcome(t, placeOf(ref.State).wantsWatermark))
	case mediagate.JobFailed:
		report.Outcome = a.failed(string(t.StatusText))
		report.Outcome.VendorCharge = mediagate.ChargedBy(t.Units.Decimal(), chargeUnit)
	default: // still under way
	}
	return report, nil
}

// reportOf begins a report on the job with the ids that the answer names.
func reportOf(ref mediagate.JobRef, id, external string) (mediagate.Report, error) {
	switch {
	case id == "":
		return mediagate.Report{}, vendorhttp.ProtocolError("the answer names no job")
	case ref.JobID != "" && id != ref.JobID:
		return mediagate.Report{}, vendorhttp.ProtocolError("the answer is about another job")
	case ref.JobID == "" && external != "" && external != ref.ExternalID:
		return mediagate.Report{}, vendorhttp.ProtocolError("the answer is about a job of another external id")
	}
	// If the reference has the vendor's id, the ids were compared above. A lookup by our id counts
	// only if the answer repeats our id, which the vendor may leave out.
	named := ref.JobID != "" || external == ref.ExternalID
	ref.JobID = id
	return mediagate.Report{Ref: ref, Percent: -1, Named: named}, nil
}

// successOutcome returns the outcome of a job by its files. whole reports whether every file has a
// link.
func successOutcome(t task, watermarked bool) (out *mediagate.Outcome, whole bool) {
	out, whole = &mediagate.Outcome{VendorCharge: mediagate.ChargedBy(t.Units.Decimal(), chargeUnit)}, true
	stated := true
	for i, v := range t.Result.Videos {
		link := v.URL.Link()
		// The vendor makes the file with a watermark only on demand. If it made none, the plain
		// file is the result.
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
		out.Seconds = 0 // one unknown duration makes the sum unknown
	}
	return out, whole
}
