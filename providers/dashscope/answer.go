package dashscope

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// reply is an answer or a refusal. The vendor puts both at the top level, and the error of a failed
// job below output.
type reply struct {
	Code      vendorhttp.Text `json:"code"`
	Message   vendorhttp.Text `json:"message"`
	RequestID vendorhttp.Text `json:"request_id"`
	Output    struct {
		Code    vendorhttp.Text `json:"code"`
		Message vendorhttp.Text `json:"message"`

		// These are the fields of an image.
		Choices []struct {
			Message struct {
				Content []struct {
					Image vendorhttp.Text `json:"image"`
				} `json:"content"`
			} `json:"message"`
		} `json:"choices"`

		// These are the fields of a job.
		TaskID    vendorhttp.Text `json:"task_id"`
		Status    vendorhttp.Text `json:"task_status"`
		VideoURL  vendorhttp.Text `json:"video_url"`
		MarkedURL vendorhttp.Text `json:"watermark_video_url"`
	} `json:"output"`
	Usage struct { // numbers or strings
		Seconds       vendorhttp.Text `json:"duration"` // the seconds that are charged
		OutputSeconds vendorhttp.Text `json:"output_video_duration"`
		InputSeconds  vendorhttp.Text `json:"input_video_duration"`
	} `json:"usage"`
}

// image returns the first image link in the answer, or "". The text beside it is the prompt.
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

// meanings is the vendor's error table. meaningOf looks up the whole code first, then the part
// before its first dot: "Throttling.RateQuota" is a "Throttling". The vendor does not document an
// HTTP status for every code, so below 500 the code alone decides.
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
	// This code appears in client code only.
	"IPInfringementSuspect": {Kind: mediagate.KindModerated},
	"Throttling":            {Kind: mediagate.KindThrottled, Retry: time.Second},
	"ModelUnavailable":      {Kind: mediagate.KindCapacity, Retry: time.Second},
	// The vendor gave up in the middle. The result may be finished and charged.
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

// readError reads the error at the top level of an answer. The error of a failed job is below
// output.
func (r *reply) readError(answer vendorhttp.Answer) vendorhttp.Reading {
	own := answer.Decode(r) == nil
	return vendorhttp.Reading{
		FromVendor: own, Done: r.Code == "" && answer.Status == http.StatusOK,
		Meaning: meaningOf(string(r.Code)), Code: string(r.Code),
		RequestID: string(r.RequestID), Text: string(r.Message),
	}
}

// readSubmission reads the answer to a submission, whose error may also be below output.
func (r *reply) readSubmission(answer vendorhttp.Answer) vendorhttp.Reading {
	reading := r.readError(answer)
	reading.Code = cmp.Or(reading.Code, string(r.Output.Code))
	reading.Text = cmp.Or(reading.Text, string(r.Output.Message))
	reading.Meaning = meaningOf(reading.Code)
	reading.Done = reading.Done && reading.Code == ""
	return reading
}

func (r *reply) readImage(answer vendorhttp.Answer) vendorhttp.Reading {
	reading := r.readSubmission(answer)
	reading.Done = reading.Done && r.Output.Choices != nil
	return reading
}

func (r *reply) readJob(answer vendorhttp.Answer) vendorhttp.Reading {
	reading := r.readSubmission(answer)
	reading.Done = reading.Done && r.Output.TaskID.ID() != ""
	return reading
}

// readQuery reads the answer to a query. It ignores the code below output, which is the reason of a
// failed job.
func (r *reply) readQuery(answer vendorhttp.Answer) vendorhttp.Reading {
	reading := r.readError(answer)
	reading.Done = reading.Done && r.Output.TaskID.ID() != ""
	return reading
}
