package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/mediagate/mediagate"
)

// rendered returns the answer for an error in an envelope.
func rendered(t *testing.T, shape envelope, err error) (status int, header http.Header, body map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	ec := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), w)
	c := &call{Context: ec, envelope: shape, requestID: "req_1"}
	must(t, renderError(c, err))
	must(t, json.Unmarshal(w.Body.Bytes(), &body))
	return w.Code, w.Header(), body
}

// TestErrorRows checks each row of the contract's error table, in both forms.
func TestErrorRows(t *testing.T) {
	t.Parallel()
	cause := errors.New("pq: secret detail")
	const word, busy = "the message", "the service is temporarily unavailable, try again"
	tests := map[string]struct {
		err            error
		status         int
		typeA, typeB   string
		codeB, message string
		reason         string // in form A
	}{
		"invalid":         {&mediagate.Error{Kind: mediagate.KindInvalid, Message: word}, 400, "invalid_request_error", "invalid_request", "invalid_request", word, "invalid"},
		"unauthenticated": {&mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: word}, 401, "authentication_error", "authentication_error", "authentication_failed", word, "authentication_failed"},
		"payment":         {&mediagate.Error{Kind: mediagate.KindPayment, Message: word}, 402, "payment_required", "payment_required", "quota_not_enough", word, "quota_not_enough"},
		"forbidden":       {&mediagate.Error{Kind: mediagate.KindForbidden, Message: word}, 403, "permission_error", "permission_error", "permission_denied", word, "permission_denied"},
		"not found":       {&mediagate.Error{Kind: mediagate.KindNotFound, Message: word}, 404, "not_found_error", "not_found_error", "not_found", word, "not_found"},
		"method":          {&mediagate.Error{Kind: mediagate.KindMethod, Message: word}, 405, "invalid_request_error", "invalid_request", "invalid_request", word, "method_not_allowed"},
		"stalled":         {&mediagate.Error{Kind: mediagate.KindStalled, Message: word}, 408, "invalid_request_error", "invalid_request", "invalid_request", word, "request_timeout"},
		"conflict":        {&mediagate.Error{Kind: mediagate.KindConflict, Message: word}, 409, "invalid_request_error", "invalid_request", "conflict", word, "conflict"},
		"idempotency":     {&mediagate.Error{Kind: mediagate.KindConflict, Code: "idempotency_conflict", Message: word}, 409, "invalid_request_error", "invalid_request", "idempotency_conflict", word, "idempotency_conflict"},
		"too large":       {&mediagate.Error{Kind: mediagate.KindTooLarge, Message: word}, 413, "invalid_request_error", "invalid_request_error", "invalid_request", word, "too_large"},
		"unsupported":     {&mediagate.Error{Kind: mediagate.KindUnsupported, Message: word}, 415, "invalid_request_error", "invalid_request", "invalid_request", word, "unsupported_encoding"},
		"moderated":       {&mediagate.Error{Kind: mediagate.KindModerated, Message: word}, 422, "invalid_request_error", "invalid_request_error", "content_policy_violation", word, "content_policy_violation"},
		"rate limited":    {&mediagate.Error{Kind: mediagate.KindRateLimited, Message: word}, 429, "rate_limit_error", "rate_limit_error", "rate_limited", word, "rate_limited"},
		"group saturated": {&mediagate.Error{Kind: mediagate.KindRateLimited, Code: "group_saturated", Message: word}, 429, "rate_limit_error", "rate_limit_error", "group_saturated", word, "group_saturated"},
		"bad gateway":     {&mediagate.Error{Kind: mediagate.KindBadGateway, Message: "host 10.1.1.1"}, 502, "bad_gateway", "bad_gateway", "bad_gateway", "gateway temporarily unavailable", "bad_gateway"},
		"unavailable":     {&mediagate.Error{Kind: mediagate.KindUnavailable, Message: "host 10.1.1.1", Err: cause}, 503, "server_error", "server_error", "internal_error", busy, "unavailable"},
		"internal":        {&mediagate.Error{Kind: mediagate.KindInternal, Message: "secret", Err: cause}, 500, "server_error", "server_error", "internal_error", "internal error", "internal_error"},
		"foreign":         {cause, 500, "server_error", "server_error", "internal_error", "internal error", "internal_error"},
		"a vendor's":      {&mediagate.Error{Kind: mediagate.KindCredentials, Message: "secret"}, 500, "server_error", "server_error", "internal_error", "internal error", "internal_error"},
		"wrapped":         {fmt.Errorf("doing: %w", &mediagate.Error{Kind: mediagate.KindNotFound, Message: word}), 404, "not_found_error", "not_found_error", "not_found", word, "not_found"},
		"with a cause":    {mediagate.Errorf(mediagate.KindInvalid, word+": %w", cause), 400, "invalid_request_error", "invalid_request", "invalid_request", word, "invalid"},
		"of a vendor":     {&mediagate.Error{Kind: mediagate.KindInvalid, Code: "vendor's own", Message: word}, 400, "invalid_request_error", "invalid_request", "invalid_request", word, "invalid"},
		"too late":        {&mediagate.Error{Kind: mediagate.KindTimeout, Message: word}, 504, "server_error", "server_error", "timeout", word, "timeout"},
		"failed":          {&mediagate.Error{Kind: mediagate.KindFailed, Message: word}, 502, "bad_gateway", "bad_gateway", "bad_gateway", word, "task_failed"},
		"no such model":   {&mediagate.Error{Kind: mediagate.KindNoModel, Message: "host 10.1.1.1"}, 502, "bad_gateway", "bad_gateway", "bad_gateway", "the provider no longer has the model", "model_retired"},
		"without a text":  {&mediagate.Error{Kind: mediagate.KindForbidden}, 403, "permission_error", "permission_error", "permission_denied", "forbidden", "permission_denied"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			formA := map[string]any{"code": float64(test.status), "message": test.message, "type": test.typeA, "param": nil, "reason": test.reason, "request_id": "req_1"}
			balance := map[string]any{"error": formA}
			if test.status == 401 {
				balance["success"], balance["message"] = false, test.message
			}
			for shape, want := range map[envelope]map[string]any{
				envelopeA: {"error": formA},
				envelopeMusic: {"error": map[string]any{
					"message": test.message, "type": test.typeB, "param": nil, "code": test.codeB, "request_id": "req_1",
				}},
				envelopeUpload:  {"error": map[string]any{"message": test.message, "type": test.typeB, "request_id": "req_1"}},
				envelopeBalance: balance,
				envelopeOpenAI:  {"error": map[string]any{"message": test.message, "type": test.typeA, "param": nil, "code": test.codeB, "request_id": "req_1"}},
			} {
				status, _, body := rendered(t, shape, test.err)
				if diff := cmp.Diff(want, body); diff != "" || status != test.status {
					t.Errorf("envelope %d: status %d\n%s", shape, status, diff)
				}
			}
		})
	}
}

func TestErrorsNameTheField(t *testing.T) {
	t.Parallel()
	const deep = "multi_prompt[0].duration"
	const modes = "models of this mode-free kind take no_mode, but mode"
	for name, test := range map[string]struct {
		shape   envelope
		err     error
		param   any
		message string
	}{
		"form A":                   {envelopeA, mediagate.Invalid(deep, "must be at least 1"), deep, deep + ": must be at least 1"},
		"form B":                   {envelopeMusic, mediagate.Invalid(deep, "must be at least 1"), deep, "must be at least 1"},
		"named by the message":     {envelopeA, mediagate.Invalid("duration", "duration must be 5"), "duration", "duration must be 5"},
		"a letter is no name":      {envelopeA, mediagate.Invalid("n", "a number is too large"), "n", "n: a number is too large"},
		"named in the middle":      {envelopeA, mediagate.Invalid("mode", modes), "mode", modes},
		"the task id of a request": {envelopeMusic, errTaskID, "task_id", "invalid task id"},
	} {
		_, _, body := rendered(t, test.shape, test.err)
		if e, _ := body["error"].(map[string]any); e["param"] != test.param || e["message"] != test.message {
			t.Errorf("%s: %v", name, e)
		}
	}
}

func TestRetryAdvice(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err                *mediagate.Error
		after, shouldRetry string
	}{
		"told":                  {&mediagate.Error{Kind: mediagate.KindRateLimited, RetryAfter: 7 * time.Second}, "7", ""},
		"rounded up":            {&mediagate.Error{Kind: mediagate.KindRateLimited, RetryAfter: 1500 * time.Millisecond}, "2", ""},
		"no time to wait for":   {&mediagate.Error{Kind: mediagate.KindRateLimited}, "", "false"},
		"a conflict":            {&mediagate.Error{Kind: mediagate.KindConflict}, "", "false"},
		"another body of a key": {&mediagate.Error{Kind: mediagate.KindConflict, Code: "idempotency_conflict"}, "", "false"},
		"away":                  {&mediagate.Error{Kind: mediagate.KindUnavailable}, "1", ""},
		"none":                  {&mediagate.Error{Kind: mediagate.KindInvalid}, "", ""},
	} {
		_, header, _ := rendered(t, envelopeA, test.err)
		if after, should := header.Get("Retry-After"), header.Get("X-Should-Retry"); after != test.after || should != test.shouldRetry {
			t.Errorf("%s: Retry-After %q, X-Should-Retry %q, want %q, %q", name, after, should, test.after, test.shouldRetry)
		}
	}
}
