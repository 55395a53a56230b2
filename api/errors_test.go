package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/mediagate/mediagate"
)

// rendered is the answer to an error in an envelope.
func rendered(t *testing.T, shape envelope, err error) (status int, retryAfter string, body map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	ec := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), w)
	c := &call{Context: ec, envelope: shape, requestID: "req_1"}
	if err := renderError(c, err); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	return w.Code, w.Header().Get("Retry-After"), body
}

// TestErrorRows holds each row of the contract's error table, in both forms.
func TestErrorRows(t *testing.T) {
	t.Parallel()
	cause := errors.New("pq: secret detail")
	const word, busy = "the message", "the service is temporarily unavailable, try again"
	tests := map[string]struct {
		err           error
		status        int
		typeA, typeB  string
		codeB, reason string
	}{
		"invalid":         {&mediagate.Error{Kind: mediagate.KindInvalid, Message: word}, 400, "invalid_request_error", "invalid_request", "invalid_request", word},
		"unauthenticated": {&mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: word}, 401, "authentication_error", "authentication_error", "authentication_failed", word},
		"payment":         {&mediagate.Error{Kind: mediagate.KindPayment, Message: word}, 402, "payment_required", "payment_required", "quota_not_enough", word},
		"forbidden":       {&mediagate.Error{Kind: mediagate.KindForbidden, Message: word}, 403, "permission_error", "permission_error", "permission_denied", word},
		"not found":       {&mediagate.Error{Kind: mediagate.KindNotFound, Message: word}, 404, "not_found_error", "not_found_error", "not_found", word},
		"method":          {&mediagate.Error{Kind: mediagate.KindMethod, Message: word}, 405, "invalid_request_error", "invalid_request", "invalid_request", word},
		"stalled":         {&mediagate.Error{Kind: mediagate.KindStalled, Message: word}, 408, "invalid_request_error", "invalid_request", "invalid_request", word},
		"conflict":        {&mediagate.Error{Kind: mediagate.KindConflict, Message: word}, 409, "invalid_request_error", "invalid_request", "conflict", word},
		"idempotency":     {&mediagate.Error{Kind: mediagate.KindConflict, Code: "idempotency_conflict", Message: word}, 409, "invalid_request_error", "invalid_request", "idempotency_conflict", word},
		"too large":       {&mediagate.Error{Kind: mediagate.KindTooLarge, Message: word}, 413, "invalid_request_error", "invalid_request_error", "invalid_request", word},
		"unsupported":     {&mediagate.Error{Kind: mediagate.KindUnsupported, Message: word}, 415, "invalid_request_error", "invalid_request", "invalid_request", word},
		"moderated":       {&mediagate.Error{Kind: mediagate.KindModerated, Message: word}, 422, "invalid_request_error", "invalid_request_error", "content_policy_violation", word},
		"rate limited":    {&mediagate.Error{Kind: mediagate.KindRateLimited, Message: word}, 429, "rate_limit_error", "rate_limit_error", "rate_limited", word},
		"group saturated": {&mediagate.Error{Kind: mediagate.KindRateLimited, Code: "group_saturated", Message: word}, 429, "rate_limit_error", "rate_limit_error", "group_saturated", word},
		"bad gateway":     {&mediagate.Error{Kind: mediagate.KindBadGateway, Message: "host 10.1.1.1"}, 502, "bad_gateway", "bad_gateway", "bad_gateway", "gateway temporarily unavailable"},
		"unavailable":     {&mediagate.Error{Kind: mediagate.KindUnavailable, Message: "host 10.1.1.1", Err: cause}, 503, "server_error", "server_error", "internal_error", busy},
		"internal":        {&mediagate.Error{Kind: mediagate.KindInternal, Message: "secret", Err: cause}, 500, "server_error", "server_error", "internal_error", "internal error"},
		"foreign":         {cause, 500, "server_error", "server_error", "internal_error", "internal error"},
		"a vendor's":      {&mediagate.Error{Kind: mediagate.KindCredentials, Message: "secret"}, 500, "server_error", "server_error", "internal_error", "internal error"},
		"wrapped":         {fmt.Errorf("doing: %w", &mediagate.Error{Kind: mediagate.KindNotFound, Message: word}), 404, "not_found_error", "not_found_error", "not_found", word},
		"with a cause":    {mediagate.Errorf(mediagate.KindInvalid, word+": %w", cause), 400, "invalid_request_error", "invalid_request", "invalid_request", word},
		"without a text":  {&mediagate.Error{Kind: mediagate.KindForbidden}, 403, "permission_error", "permission_error", "permission_denied", "forbidden"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			formA := map[string]any{"code": float64(test.status), "message": test.reason, "type": test.typeA, "request_id": "req_1"}
			balance := map[string]any{"error": formA}
			if test.status == 401 {
				balance["success"], balance["message"] = false, test.reason
			}
			for shape, want := range map[envelope]map[string]any{
				envelopeA: {"error": formA},
				envelopeMusic: {"error": map[string]any{
					"message": test.reason, "type": test.typeB, "param": nil, "code": test.codeB, "request_id": "req_1",
				}},
				envelopeUpload:  {"error": map[string]any{"message": test.reason, "type": test.typeB, "request_id": "req_1"}},
				envelopeBalance: balance,
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
	err := mediagate.Invalid("multi_prompt[0].duration", "must be at least 1")
	_, _, body := rendered(t, envelopeA, err)
	e, _ := body["error"].(map[string]any)
	if e["message"] != "multi_prompt[0].duration: must be at least 1" {
		t.Errorf("form A: %v", e)
	}
	_, _, body = rendered(t, envelopeMusic, err)
	if e, _ = body["error"].(map[string]any); e["param"] != "multi_prompt[0].duration" || e["message"] != "must be at least 1" {
		t.Errorf("form B: %v", e)
	}
	_, _, body = rendered(t, envelopeA, mediagate.Invalid("duration", "duration must be 5"))
	if e, _ = body["error"].(map[string]any); e["message"] != "duration must be 5" {
		t.Errorf("the field is named twice: %v", e)
	}
	_, _, body = rendered(t, envelopeA, mediagate.Invalid("n", "a number is too large"))
	if e, _ = body["error"].(map[string]any); e["message"] != "n: a number is too large" {
		t.Errorf("a letter is taken for the field's name: %v", e)
	}
	_, _, body = rendered(t, envelopeA, mediagate.Invalid("mode", "models of this mode-free kind take no_mode, but mode"))
	if e, _ = body["error"].(map[string]any); e["message"] != "models of this mode-free kind take no_mode, but mode" {
		t.Errorf("the field is named twice: %v", e)
	}
	_, _, body = rendered(t, envelopeMusic, errTaskID)
	if e, _ = body["error"].(map[string]any); e["param"] != "task_id" || e["message"] != "invalid task id" {
		t.Errorf("task id: %v", e)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  *mediagate.Error
		want string
	}{
		"told":       {&mediagate.Error{Kind: mediagate.KindRateLimited, RetryAfter: 7 * time.Second}, "7"},
		"rounded up": {&mediagate.Error{Kind: mediagate.KindRateLimited, RetryAfter: 1500 * time.Millisecond}, "2"},
		"away":       {&mediagate.Error{Kind: mediagate.KindUnavailable}, "1"},
		"none":       {&mediagate.Error{Kind: mediagate.KindInvalid}, ""},
	} {
		if _, got, _ := rendered(t, envelopeA, test.err); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
