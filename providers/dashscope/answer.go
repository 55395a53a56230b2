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
	"ModelNotFound":        {Kind: mediagate.KindNoModel},
	"model_not_found":      {Kind: mediagate.KindNoModel},
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

func meaningOf(code string) vendorhttp.Meaning {
	if m, ok := meanings[code]; ok {
		return m
	}
	family, _, _ := strings.Cut(code, ".")
	return meanings[family]
}

// said reads an answer for what it says of errors. Below output stand those of a
// job.
func (r *reply) said(answer vendorhttp.Answer) vendorhttp.Said {
	own := answer.Decode(r) == nil
	return vendorhttp.Said{
		Own: own, Done: r.Code == "" && answer.Status == http.StatusOK,
		Meaning: meaningOf(string(r.Code)), Code: string(r.Code), RequestID: string(r.RequestID), Text: string(r.Message),
	}
}

// submitted reads the answer to a submission, whose own error may stand below
// output, too.
func (r *reply) submitted(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.said(answer)
	said.Code, said.Text = cmp.Or(said.Code, string(r.Output.Code)), cmp.Or(said.Text, string(r.Output.Message))
	said.Meaning = meaningOf(said.Code)
	said.Done = said.Done && said.Code == ""
	return said
}

func (r *reply) madeImage(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.submitted(answer)
	said.Done = said.Done && r.Output.Choices != nil
	return said
}

func (r *reply) madeJob(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.submitted(answer)
	said.Done = said.Done && r.Output.TaskID.ID() != ""
	return said
}

// found reads the answer to a query. The code of a failed job is the job's.
func (r *reply) found(answer vendorhttp.Answer) vendorhttp.Said {
	said := r.said(answer)
	said.Done = said.Done && r.Output.TaskID.ID() != ""
	return said
}
