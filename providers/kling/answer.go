package kling

import (
	"strconv"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// envelope is the shape of every answer.
type envelope struct {
	Code      vendorhttp.Text `json:"code"`
	Message   vendorhttp.Text `json:"message"`
	RequestID vendorhttp.Text `json:"request_id"`
	Data      task            `json:"data"`
}

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

// readEnvelope returns nil for an answer that is not the vendor's own: the
// code is what each of its answers has.
func readEnvelope(answer vendorhttp.Answer) *envelope {
	env := new(envelope)
	if answer.Decode(env) != nil {
		return nil
	}
	if _, err := strconv.Atoi(string(env.Code)); err != nil {
		return nil
	}
	return env
}

// states is the vendor's whole vocabulary; any other word is unknown, also
// those of its newer generation.
var states = map[string]mediagate.JobState{
	"submitted":  mediagate.JobQueued,
	"processing": mediagate.JobRunning,
	"succeed":    mediagate.JobSucceeded,
	"failed":     mediagate.JobFailed,
}

// maxWord bounds a status word for logs and metrics.
const maxWord = 32

// report translates a job. An answer about another job, or a success without
// a file, is against the vendor's own protocol: asked again, it may be right.
func (a *Adapter) report(ref mediagate.JobRef, env *envelope) (mediagate.Report, error) {
	id, external := env.Data.TaskID.ID(), string(env.Data.Info.ExternalID)
	switch {
	case id == "":
		return mediagate.Report{}, strange("the answer names no job")
	case ref.JobID != "" && id != ref.JobID:
		return mediagate.Report{}, strange("the answer is about another job")
	case ref.JobID == "" && external != "" && external != ref.ExternalID:
		return mediagate.Report{}, strange("the answer is about a job of another external id")
	}
	// A job id that was asked for has been compared; the external id may be left out.
	named := ref.JobID != "" || external == ref.ExternalID
	ref.JobID = id
	word := string(env.Data.Status)
	state, known := states[word]
	if !known {
		state, word = mediagate.JobUnknown, cut(a.http.Clean(word), maxWord)
	}
	report := mediagate.Report{Ref: ref, State: state, Word: word, Percent: -1, Named: named}
	switch state {
	case mediagate.JobSucceeded:
		report.Outcome = success(env.Data, placeOf(ref.State).marked)
		if len(report.Outcome.Media) == 0 {
			return mediagate.Report{}, strange("a job that succeeded names no file")
		}
	case mediagate.JobFailed:
		report.Outcome = failed(string(env.Data.StatusText), a.http.Clean)
		report.Outcome.UpstreamCost = env.Data.Units.Decimal()
	default: // still under way
	}
	return report, nil
}

func success(t task, watermarked bool) *mediagate.Outcome {
	out := &mediagate.Outcome{Succeeded: true, UpstreamCost: t.Units.Decimal()}
	stated := true
	for _, v := range t.Result.Videos {
		link := v.URL.Link()
		// The vendor makes the marked file only on demand. Without one the
		// plain link is all there is.
		if marked := v.WatermarkURL.Link(); watermarked && marked != "" {
			link = marked
		}
		if link == "" {
			continue
		}
		seconds := v.Duration.Seconds()
		stated = stated && seconds > 0
		out.Seconds += seconds
		out.Media = append(out.Media, mediagate.Media{URL: link, MimeType: "video/mp4", Duration: seconds})
	}
	if !stated {
		out.Seconds = 0 // unknown of one is unknown of all
	}
	return out
}

func strange(what string) error {
	return mediagate.Errorf(mediagate.KindTransient, "%s", what)
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
