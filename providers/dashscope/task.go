package dashscope

import (
	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// chargeUnit is the unit in which the vendor charges: the seconds that it bills.
const chargeUnit = "seconds"

// stateWatermark is the State of a reference whose client wants the file with a watermark. Stored
// rows hold it, so it must not change.
const stateWatermark = "watermark"

// statusUnknown is the status of a job that is older than 24 hours, or that the account does not
// have.
const statusUnknown = "UNKNOWN"

// states maps the vendor's words for the status of an existing job.
var states = map[string]mediagate.JobState{
	"PENDING":   mediagate.JobQueued,
	"SUSPENDED": mediagate.JobQueued, // appears only among the constants of the vendor's own clients
	"RUNNING":   mediagate.JobRunning,
	"SUCCEEDED": mediagate.JobSucceeded,
	"FAILED":    mediagate.JobFailed,
	"CANCELED":  mediagate.JobFailed,
}

// report translates the status of a job into a report.
func (a *Adapter) report(ref mediagate.JobRef, r reply) (mediagate.Report, error) {
	report, err := a.HTTP.Report(ref, r.Output.TaskID, states, r.Output.Status)
	if err != nil {
		return report, err
	}
	if r.Output.Status == statusUnknown {
		return mediagate.Report{}, mediagate.Errorf(
			mediagate.KindNotFound, "the vendor does not know the job, or not any more")
	}
	switch report.State {
	case mediagate.JobSucceeded:
		report.Offer(r.successOutcome(ref.State == stateWatermark), true)
	case mediagate.JobFailed:
		report.Outcome = a.failed(string(r.Output.Code), string(r.Output.Message))
	default: // still under way
	}
	return report, nil
}

// successOutcome returns the outcome of a job that succeeded. Some models offer a watermarked file
// beside the clean one. The others put the watermark into their only file.
func (r reply) successOutcome(wantsWatermark bool) *mediagate.Outcome {
	link := r.Output.VideoURL.Link()
	if other := r.Output.MarkedURL.Link(); wantsWatermark && other != "" {
		link = other
	}
	seconds := r.resultSeconds()
	out := &mediagate.Outcome{
		Seconds: seconds, VendorCharge: mediagate.ChargedBy(r.Usage.Seconds.Decimal(), chargeUnit),
	}
	if link != "" {
		out.Media = []mediagate.Media{{URL: link, MimeType: "video/mp4", Duration: seconds}}
	}
	return out
}

// resultSeconds returns the length of the result in seconds, or 0 if it is unknown. The billed
// seconds of a job with a source video include the source, so they do not give the length of the
// result.
func (r reply) resultSeconds() float64 {
	switch out := r.Usage.OutputSeconds.Seconds(); {
	case out > 0:
		return out
	case r.Usage.InputSeconds.Seconds() > 0:
		return 0
	default:
		return r.Usage.Seconds.Seconds()
	}
}

// failed returns the outcome of a failed job, by the vendor's code and text.
func (a *Adapter) failed(code, text string) *mediagate.Outcome {
	return a.HTTP.Failed(vendorhttp.FailureOf(meaningOf(code)), text)
}
