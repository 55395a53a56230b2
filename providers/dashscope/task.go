package dashscope

import (
	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// chargeUnit is what jobs are charged in: the seconds that are paid for.
const chargeUnit = "seconds"

// stateMarked is the state of a reference whose client wants the file with a
// watermark. It stands in rows.
const stateMarked = "watermark"

// absent is the word for a job that is older than 24 hours, or not there.
const absent = "UNKNOWN"

// states are the vendor's words for a job that is there.
var states = map[string]mediagate.JobState{
	"PENDING":   mediagate.JobQueued,
	"SUSPENDED": mediagate.JobQueued, // among the constants of the vendor's own clients only
	"RUNNING":   mediagate.JobRunning,
	"SUCCEEDED": mediagate.JobSucceeded,
	"FAILED":    mediagate.JobFailed,
	"CANCELED":  mediagate.JobFailed,
}

// report translates a job's state.
func (a *Adapter) report(ref mediagate.JobRef, r reply) (mediagate.Report, error) {
	report, err := a.HTTP.Report(ref, r.Output.TaskID, states, r.Output.Status)
	if err != nil {
		return report, err
	}
	if r.Output.Status == absent {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the vendor does not know the job, or not any more")
	}
	switch report.State {
	case mediagate.JobSucceeded:
		report.Offer(r.success(ref.State == stateMarked), true)
	case mediagate.JobFailed:
		report.Outcome = a.failed(string(r.Output.Code), string(r.Output.Message))
	default: // still under way
	}
	return report, nil
}

// success is the outcome of a job by its file. Some models offer a marked file beside the clean one, the others mark their only one.
func (r reply) success(marked bool) *mediagate.Outcome {
	link := r.Output.VideoURL.Link()
	if other := r.Output.MarkedURL.Link(); marked && other != "" {
		link = other
	}
	seconds := r.delivered()
	out := &mediagate.Outcome{Seconds: seconds, VendorCharge: mediagate.ChargedBy(r.Usage.Seconds.Decimal(), chargeUnit)}
	if link != "" {
		out.Media = []mediagate.Media{{URL: link, MimeType: "video/mp4", Duration: seconds}}
	}
	return out
}

// delivered are the seconds of the result. Those that are paid for have those
// of the source among them, where there is one: then the file itself has to say.
func (r reply) delivered() float64 {
	switch out := r.Usage.OutputSeconds.Seconds(); {
	case out > 0:
		return out
	case r.Usage.InputSeconds.Seconds() > 0:
		return 0
	default:
		return r.Usage.Seconds.Seconds()
	}
}

// failed is the outcome of a failed job, by the vendor's code and text.
func (a *Adapter) failed(code, text string) *mediagate.Outcome {
	return a.HTTP.Failed(vendorhttp.FailureOf(meaningOf(code)), text)
}
