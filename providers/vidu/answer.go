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

// readReply reads an answer; own is false for one that is not the vendor's.
func readReply(answer vendorhttp.Answer) (r reply, own bool) {
	err := answer.Decode(&r)
	return r, err == nil
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
		return false, strange("the answer is about another job")
	case id != "", payload != "":
		return true, nil
	case r.State == "":
		return false, strange("the answer names no job")
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

// submitError judges the answer to a submission; nil means that it names a
// job. What may be said beside a job's id is the job's, and a poll tells it.
func (a *Adapter) submitError(answer vendorhttp.Answer, r reply, own bool) error {
	v := vendorhttp.Meaning{Kind: mediagate.KindAmbiguous}
	name, known, ok := r.refusal()
	switch {
	case !own:
		v.Kind = vendorhttp.RefusalKind(answer.Status)
	case answer.Status >= http.StatusInternalServerError:
	case answer.Status < http.StatusMultipleChoices && r.TaskID.ID() != "":
		return nil
	case ok:
		v = known
	case answer.Status >= http.StatusBadRequest:
		v.Kind = vendorhttp.RefusalKind(answer.Status)
	}
	return a.HTTP.Refuse(v, answer, name, "", string(r.Message))
}

// pollError judges the answer to a query; nil means that it has a job.
func (a *Adapter) pollError(answer vendorhttp.Answer, r reply, own bool) error {
	if own && answer.Status == http.StatusOK && r.State != "" {
		return nil // the error beside a failed job is the job's
	}
	return a.readError(answer, r, own)
}

// readError judges the answer to a call that makes no job; nil means that it
// states no error.
func (a *Adapter) readError(answer vendorhttp.Answer, r reply, own bool) error {
	v := vendorhttp.Meaning{Kind: mediagate.KindTransient}
	name, known, ok := r.refusal()
	switch {
	case !own, answer.Status >= http.StatusInternalServerError:
	case name == "" && answer.Status < http.StatusMultipleChoices:
		return nil
	case !ok:
	case known.Kind == mediagate.KindCredentials, known.Kind == mediagate.KindFunds,
		known.Kind == mediagate.KindThrottled, known.Kind == mediagate.KindNotFound && missing(name):
		v = known
	case known.Kind == mediagate.KindCapacity:
		v = vendorhttp.Meaning{Kind: mediagate.KindThrottled, Retry: known.Retry}
	}
	return a.HTTP.Refuse(v, answer, name, "", string(r.Message))
}

func strange(what string) error { return mediagate.Errorf(mediagate.KindTransient, "%s", what) }
