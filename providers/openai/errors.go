package openai

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// failure is the vendor's answer to a failed call.
type failure struct {
	Error *struct {
		Message vendorhttp.Text `json:"message"`
		Type    vendorhttp.Text `json:"type"`
		Code    vendorhttp.Text `json:"code"`
	} `json:"error"`
}

// meanings maps the vendor's error codes, or else its error types. They apply only if the status
// proves a refusal, see vendorhttp.RefusalKind. If a code or type is not in the table, the status
// decides. For example, model_not_found with status 409 proves nothing.
var meanings = map[vendorhttp.Text]vendorhttp.Meaning{
	"insufficient_quota":         {Kind: mediagate.KindFunds},
	"billing_hard_limit_reached": {Kind: mediagate.KindFunds},
	"billing_not_active":         {Kind: mediagate.KindFunds},
	"account_deactivated":        {Kind: mediagate.KindCredentials},
	"invalid_api_key":            {Kind: mediagate.KindCredentials},
	"rate_limit_exceeded":        {Kind: mediagate.KindThrottled},
	"content_policy_violation":   {Kind: mediagate.KindModerated},
	"moderation_blocked":         {Kind: mediagate.KindModerated},
	"content_filter":             {Kind: mediagate.KindModerated},
	"model_not_found":            {Kind: mediagate.KindNoModel},
}

// refusal returns the error for an answer without sound.
func (a *Adapter) refusal(answer vendorhttp.Answer) error {
	var f failure
	var word, code, text vendorhttp.Text
	if err := answer.Decode(&f); err == nil && f.Error != nil {
		word, code, text = f.Error.Type, f.Error.Code, f.Error.Message
	}
	v := vendorhttp.Meaning{Kind: vendorhttp.RefusalKind(answer.Status)}
	if answer.Status >= http.StatusBadRequest && answer.Status < http.StatusInternalServerError &&
		v.Kind != mediagate.KindAmbiguous {
		if known, ok := meanings[code]; ok {
			v = known
		} else if known, ok := meanings[word]; ok {
			v = known
		}
	}
	if v.Kind == mediagate.KindNoModel && answer.Status != http.StatusNotFound {
		v.Kind = mediagate.KindNotFound
	}
	v.Retry = retryAfter(answer)
	return a.HTTP.Refuse(v, answer, string(cmp.Or(code, word)), answer.Header.Get("X-Request-Id"), string(text))
}

// maxRetry bounds the pause that the vendor's own header may ask for.
const maxRetry = 5 * time.Minute

// retryAfter returns the pause that the vendor's own header asks for. The header counts
// milliseconds.
func retryAfter(answer vendorhttp.Answer) time.Duration {
	ms, err := strconv.ParseFloat(answer.Header.Get("Retry-After-Ms"), 64)
	if err != nil || !(ms > 0) {
		return 0
	}
	return time.Duration(min(ms, float64(maxRetry.Milliseconds())) * float64(time.Millisecond))
}
