package dashscope

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// reply is an answer or a refusal: the vendor puts both at the top level, and
// the code of a failed job below output.
type reply struct {
	Code      vendorhttp.Text `json:"code"`
	Message   vendorhttp.Text `json:"message"`
	RequestID vendorhttp.Text `json:"request_id"`
	Output    struct {
		Code    vendorhttp.Text `json:"code"`
		Message vendorhttp.Text `json:"message"`

		// Of an image.
		Choices []struct {
			Message struct {
				Content []struct {
					Image vendorhttp.Text `json:"image"`
				} `json:"content"`
			} `json:"message"`
		} `json:"choices"`

		// Of a job.
		TaskID    vendorhttp.Text `json:"task_id"`
		Status    vendorhttp.Text `json:"task_status"`
		VideoURL  vendorhttp.Text `json:"video_url"`
		MarkedURL vendorhttp.Text `json:"watermark_video_url"`
	} `json:"output"`
	Usage struct { // numbers, or texts
		Seconds       vendorhttp.Text `json:"duration"` // those that are paid for
		OutputSeconds vendorhttp.Text `json:"output_video_duration"`
		InputSeconds  vendorhttp.Text `json:"input_video_duration"`
	} `json:"usage"`

	foreign bool // the answer is not the vendor's own
}

// read decodes an answer.
func read(answer vendorhttp.Answer) reply {
	var r reply
	if answer.Decode(&r) != nil {
		return reply{foreign: true}
	}
	return r
}

// image is the first link in the answer; the text beside it is the prompt.
func (r reply) image() string {
	for _, choice := range r.Output.Choices {
		for _, part := range choice.Message.Content {
			if link := part.Image.Link(); link != "" {
				return link
			}
		}
	}
	return ""
}

// meanings is the vendor's error table. A code is looked up whole first, then
// by the part before its first dot: "Throttling.RateQuota" is a "Throttling".
// The pairing of codes with HTTP statuses is not documented throughout, so
// the code alone decides below 500.
var meanings = map[string]vendorhttp.Meaning{
	"InvalidApiKey":        {Kind: mediagate.KindCredentials},
	"invalid_api_key":      {Kind: mediagate.KindCredentials},
	"AccessDenied":         {Kind: mediagate.KindCredentials},
	"Model.AccessDenied":   {Kind: mediagate.KindForbidden},
	"ModelNotFound":        {Kind: mediagate.KindNotFound},
	"Arrearage":            {Kind: mediagate.KindFunds},
	"insufficient_quota":   {Kind: mediagate.KindFunds},
	"InvalidParameter":     {Kind: mediagate.KindInvalid},
	"InvalidURL":           {Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing)},
	"DataInspectionFailed": {Kind: mediagate.KindModerated},
	// Seen in client code only.
	"IPInfringementSuspect": {Kind: mediagate.KindModerated},
	"Throttling":            {Kind: mediagate.KindThrottled, Retry: time.Second},
	"ModelUnavailable":      {Kind: mediagate.KindCapacity, Retry: time.Second},
	// The vendor gave up in the middle: the result may be made and charged.
	"InternalError":  {Kind: mediagate.KindAmbiguous},
	"RequestTimeOut": {Kind: mediagate.KindAmbiguous},
}

func meaningOf(code string) (vendorhttp.Meaning, bool) {
	if v, ok := meanings[code]; ok {
		return v, true
	}
	family, _, _ := strings.Cut(code, ".")
	v, ok := meanings[family]
	return v, ok
}

// refusal judges the answer to a submission; nil means that it holds what was
// asked for, as made says of an answer without a code.
func (a *Adapter) refusal(answer vendorhttp.Answer, r reply, made bool) error {
	v := vendorhttp.Meaning{Kind: vendorhttp.RefusalKind(answer.Status)}
	if r.foreign {
		return a.HTTP.Refuse(v, answer, "", "", "")
	}
	code := string(cmp.Or(r.Code, r.Output.Code))
	known, ok := meaningOf(code)
	switch {
	case answer.Status >= http.StatusInternalServerError:
		v.Kind = mediagate.KindAmbiguous
	case code == "" && answer.Status == http.StatusOK && made:
		return nil
	case ok:
		v = known
	}
	return a.HTTP.Refuse(v, answer, code, string(r.RequestID), string(cmp.Or(r.Message, r.Output.Message)))
}

// readError judges the answer to a call that makes no job; nil means that it
// states no error, and holds what was asked for. The code of a failed job is
// the job's.
func (a *Adapter) readError(answer vendorhttp.Answer, r reply, whole bool) error {
	v := vendorhttp.Meaning{Kind: mediagate.KindTransient}
	known, _ := meaningOf(string(r.Code))
	switch {
	case r.foreign, answer.Status >= http.StatusInternalServerError:
	case r.Code == "" && answer.Status == http.StatusOK && whole:
		return nil
	case known.Kind == mediagate.KindCredentials, known.Kind == mediagate.KindFunds, known.Kind == mediagate.KindThrottled:
		v = known
	case known.Kind == mediagate.KindCapacity:
		v = vendorhttp.Meaning{Kind: mediagate.KindThrottled, Retry: known.Retry}
	}
	return a.HTTP.Refuse(v, answer, string(r.Code), string(r.RequestID), string(r.Message))
}
