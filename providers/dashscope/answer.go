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
		Choices []struct {
			Message struct {
				Content []struct {
					Image vendorhttp.Text `json:"image"`
				} `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	} `json:"output"`
}

// image is the first link in the answer; the text beside it is the prompt.
func (r *reply) image() string {
	for _, choice := range r.Output.Choices {
		for _, part := range choice.Message.Content {
			if link := part.Image.Link(); link != "" {
				return link
			}
		}
	}
	return ""
}

// verdicts is the vendor's error table. A code is looked up whole first, then
// by the part before its first dot: "Throttling.RateQuota" is a "Throttling".
// The pairing of codes with HTTP statuses is not documented throughout, so
// the code alone decides below 500.
var verdicts = map[string]vendorhttp.Verdict{
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
	// The vendor gave up in the middle: the image may be made and charged.
	"InternalError":  {Kind: mediagate.KindAmbiguous},
	"RequestTimeOut": {Kind: mediagate.KindAmbiguous},
}

func verdictOf(code string) (vendorhttp.Verdict, bool) {
	if v, ok := verdicts[code]; ok {
		return v, true
	}
	family, _, _ := strings.Cut(code, ".")
	v, ok := verdicts[family]
	return v, ok
}

// refusal judges an answer; nil means that it holds an image.
func (a *Adapter) refusal(answer vendorhttp.Answer, r *reply) error {
	v := vendorhttp.Verdict{Kind: vendorhttp.RefusalKind(answer.Status)}
	if r == nil {
		return a.http.Refuse(v, answer, "", "", "")
	}
	code := string(cmp.Or(r.Code, r.Output.Code))
	known, ok := verdictOf(code)
	switch {
	case answer.Status >= http.StatusInternalServerError:
		v.Kind = mediagate.KindAmbiguous
	case code == "" && answer.Status == http.StatusOK && r.image() != "":
		return nil
	case ok:
		v = known
	}
	return a.http.Refuse(v, answer, code, string(r.RequestID), string(cmp.Or(r.Message, r.Output.Message)))
}
