package dashscope

import (
	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

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

// maxWord bounds a status word for logs and metrics.
const maxWord = 32

// report translates a job's state. An answer about another job, or a success
// without a file, is against the vendor's own protocol: asked again, it may be
// right.
func (a *Adapter) report(ref mediagate.JobRef, r reply) (mediagate.Report, error) {
	if r.Output.TaskID.ID() != ref.JobID {
		return mediagate.Report{}, strange("the answer is about another job")
	}
	word := string(r.Output.Status)
	if word == absent {
		return mediagate.Report{}, mediagate.Errorf(mediagate.KindNotFound, "the vendor does not know the job, or not any more")
	}
	state, known := states[word]
	if !known {
		word = a.http.Clean(word)
		state, word = mediagate.JobUnknown, string([]rune(word)[:min(maxWord, len([]rune(word)))])
	}
	report := mediagate.Report{Ref: ref, State: state, Word: word, Percent: -1, Named: true}
	switch state {
	case mediagate.JobSucceeded:
		report.Outcome = r.success(ref.State == stateMarked)
		if report.Outcome == nil {
			return mediagate.Report{}, strange("a job that succeeded names no file")
		}
	case mediagate.JobFailed:
		report.Outcome = a.failed(string(r.Output.Code), string(r.Output.Message))
	default: // still under way
	}
	return report, nil
}

// success is the outcome of a job with a file, nil without one. Some models
// offer a marked file beside the clean one, the others mark their only one.
func (r reply) success(marked bool) *mediagate.Outcome {
	link := r.Output.VideoURL.Link()
	if other := r.Output.MarkedURL.Link(); marked && other != "" {
		link = other
	}
	if link == "" {
		return nil
	}
	seconds := r.delivered()
	return &mediagate.Outcome{
		Succeeded: true, Seconds: seconds, UpstreamCost: r.Usage.Seconds.Decimal(),
		Media: []mediagate.Media{{URL: link, MimeType: "video/mp4", Duration: seconds}},
	}
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
	f := &mediagate.Failure{Code: mediagate.CodeGenerationFailed, Message: "the generation failed at the vendor", Retryable: true}
	switch v, _ := verdictOf(code); v.Kind {
	case mediagate.KindModerated:
		*f = mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: "the content was refused"}
	case mediagate.KindInvalid:
		*f = mediagate.Failure{Code: mediagate.CodeInvalidParameters, Message: "the request was refused as invalid"}
		if v.Code != "" {
			f.Code = mediagate.FailureCode(v.Code)
		}
	default: // a fault of the vendor's
	}
	out := &mediagate.Outcome{Failure: f}
	text = a.http.Clean(text)
	if shown := vendorhttp.English(text); shown != "" {
		f.Message = shown
	} else {
		out.VendorText = text
	}
	return out
}

func strange(what string) error { return mediagate.Errorf(mediagate.KindTransient, "%s", what) }
