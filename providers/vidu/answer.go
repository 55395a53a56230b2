package vidu

import (
	"net/http"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// chargeUnit is what jobs are charged in: the vendor's credits.
const chargeUnit = "credits"

// reply is any answer of the vendor's: a new job, one that was asked for, or
// an error.
type reply struct {
	TaskID    vendorhttp.Text `json:"task_id"` // of a submission
	ID        vendorhttp.Text `json:"id"`      // of a query, which may lack it
	State     vendorhttp.Text `json:"state"`
	ErrCode   vendorhttp.Text `json:"err_code"`
	Credits   vendorhttp.Text `json:"credits"`
	Payload   vendorhttp.Text `json:"payload"`
	Creations []creation      `json:"creations"`

	// The shape of an error is not documented. All of its known spellings are
	// read; err_code is one of them.
	Code    vendorhttp.Text `json:"code"`
	Reason  vendorhttp.Text `json:"reason"`
	Message vendorhttp.Text `json:"message"`
}

type creation struct {
	URL    vendorhttp.Text `json:"url"`
	Marked vendorhttp.Text `json:"watermarked_url"`
}

// said reads an answer for what it says of errors.
func (r *reply) said(answer vendorhttp.Answer) vendorhttp.Said {
	own := answer.Decode(r) == nil
	name, meaning := r.refusal()
	return vendorhttp.Said{
		Own: own, Meaning: meaning, Code: name, Text: string(r.Message),
		Sure: meaning.Kind == mediagate.KindNotFound && name != modelUnavailable, // as against a job
	}
}

// made reads the answer to a submission. What may be said beside a job's id is
// the job's, and a poll tells it.
func (r *reply) made(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.said(answer)
	said.Done = answer.Status < http.StatusMultipleChoices && r.TaskID.ID() != ""
	return said
}

// found reads the answer to a query. The error beside a failed job is the job's.
func (r *reply) found(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.said(answer)
	said.Done = answer.Status == http.StatusOK && r.State != "" || said.Code == "" && answer.Status < http.StatusMultipleChoices
	return said
}

// stopped reads the answer to a cancel: where it states no error, a yes whatever
// is in it.
func (r *reply) stopped(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.said(answer)
	if said.Code == "" && answer.Status < http.StatusMultipleChoices {
		return vendorhttp.Said{Own: true, Done: true}
	}
	return said
}

// states is the vendor's whole vocabulary.
var states = map[string]mediagate.JobState{
	"created":    mediagate.JobQueued,
	"queueing":   mediagate.JobQueued,
	"processing": mediagate.JobRunning,
	"success":    mediagate.JobSucceeded,
	"failed":     mediagate.JobFailed,
}

// report translates a job. An answer about another job is against the vendor's
// own protocol: asked again, it may be right.
func (a *Adapter) report(ref mediagate.JobRef, job reply) (mediagate.Report, error) {
	named, err := job.names(ref)
	if err != nil {
		return mediagate.Report{}, err
	}
	state, word := a.HTTP.State(states, job.State)
	report := mediagate.Report{Ref: ref, State: state, Word: word, Percent: -1, Named: named}
	switch state {
	case mediagate.JobSucceeded:
		report.Offer(job.success(ref.State == marked))
	case mediagate.JobFailed:
		report.Outcome = a.failed(job)
	default: // still under way
	}
	return report, nil
}

// names reports that the answer itself says whose it is: by the vendor's id,
// or where it lacks that, by ours in the payload.
func (r reply) names(ref mediagate.JobRef) (bool, error) {
	switch id, payload := r.ID.ID(), string(r.Payload); {
	case id != "" && id != ref.JobID, id == "" && payload != "" && payload != ref.ExternalID:
		return false, vendorhttp.Strange("the answer is about another job")
	case id != "", payload != "":
		return true, nil
	case r.State == "":
		return false, vendorhttp.Strange("the answer names no job")
	default:
		return false, nil
	}
}

// success is the outcome of a job by its files, and whether each of them has its
// link.
func (r reply) success(wantsMark bool) (out *mediagate.Outcome, whole bool) {
	out, whole = &mediagate.Outcome{VendorCharge: mediagate.ChargedBy(r.Credits.Decimal(), chargeUnit)}, true
	for i, c := range r.Creations {
		link := c.URL.Link()
		// Without a marked copy the plain file is all there is.
		if mark := c.Marked.Link(); wantsMark && mark != "" {
			link = mark
		}
		if link == "" {
			whole = false
			continue
		}
		out.Media = append(out.Media, mediagate.Media{URL: link, Index: i, MimeType: "video/mp4"})
	}
	return out, whole
}
