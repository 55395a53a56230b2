package openai

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// failure is the vendor's answer to a call that failed.
type failure struct {
	Error *struct {
		Message vendorhttp.Text `json:"message"`
		Type    vendorhttp.Text `json:"type"`
		Code    vendorhttp.Text `json:"code"`
	} `json:"error"`
}

// meanings are what the vendor's words mean, of a code or else a type, in a 4xx
// only: a 5xx proves nothing. Other words are judged by the status.
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

// refusal judges an answer that is no sound.
func (a *Adapter) refusal(answer vendorhttp.Answer) error {
	var f failure
	var word, code, text vendorhttp.Text
	if err := answer.Decode(&f); err == nil && f.Error != nil {
		word, code, text = f.Error.Type, f.Error.Code, f.Error.Message
	}
	v := vendorhttp.Meaning{Kind: vendorhttp.RefusalKind(answer.Status)}
	if answer.Status >= http.StatusBadRequest && answer.Status < http.StatusInternalServerError && v.Kind != mediagate.KindAmbiguous {
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

// maxRetry bounds what the vendor may ask us to wait in its own header.
const maxRetry = 5 * time.Minute

// retryAfter is what the vendor's own header asks for, in milliseconds.
func retryAfter(answer vendorhttp.Answer) time.Duration {
	ms, err := strconv.ParseFloat(answer.Header.Get("Retry-After-Ms"), 64)
	if err != nil || !(ms > 0) {
		return 0
	}
	return time.Duration(min(ms, float64(maxRetry.Milliseconds())) * float64(time.Millisecond))
}
