package api_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// receiver is where tests of callbacks go.
type receiver struct {
	result mediagate.DeliveryResult

	mu   sync.Mutex
	took []mediagate.WebhookTarget
}

func (r *receiver) Deliver(_ context.Context, _ string, t mediagate.WebhookTarget) (mediagate.DeliveryResult, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, t)
	return r.result, nil
}

// A test is one signed callback of a task that there is not, and its answer what the
// receiver did.
func TestWebhookTest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		result    mediagate.DeliveryResult
		delivered bool
		status    any
		says      any
	}{
		"taken":   {mediagate.DeliveryResult{Outcome: mediagate.DeliveryDone, Status: 204}, true, 204., nil},
		"refused": {mediagate.DeliveryResult{Outcome: mediagate.DeliveryAbandon, Status: 410, Reason: "the receiver answered 410"}, false, 410., "the receiver answered 410"},
		"away":    {mediagate.DeliveryResult{Outcome: mediagate.DeliveryRetry, Error: "connection refused"}, false, nil, "connection refused"},
		"dropped": {mediagate.DeliveryResult{Outcome: mediagate.DeliveryDrop, Reason: "the host is not public"}, false, nil, "the host is not public"},
	} {
		r := &receiver{result: test.result}
		g := newGateway(t, func(c *api.Config) { c.Deliverer = r })
		a := g.post("/v1/webhooks/test", `{"url":"https://hooks.example.com/a"}`)
		if a.status != http.StatusOK || a.at("url") != "https://hooks.example.com/a" || a.at("delivered") != test.delivered || a.at("status") != test.status || a.at("error") != test.says {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if len(r.took) != 1 || r.took[0].URL != "https://hooks.example.com/a" || len(r.took[0].Secrets) != 1 || r.took[0].AccountID != g.account.ID {
			t.Fatalf("%s: %+v was delivered", name, r.took)
		}
		if body := string(r.took[0].Body); !strings.Contains(body, `"id":"task_00000000000000000000000000"`) || !strings.Contains(body, `"status":"completed"`) || !strings.Contains(body, `"reference":"webhook test"`) {
			t.Errorf("%s: the callback is %s", name, body)
		}
	}
}

// The account's webhook is that of submits which name none, and of tests.
func TestAccountWebhook(t *testing.T) {
	t.Parallel()
	r := &receiver{result: mediagate.DeliveryResult{Outcome: mediagate.DeliveryDone, Status: 200}}
	g := newGateway(t, func(c *api.Config) { c.Deliverer = r })
	set := func(body string) answer {
		return g.send(request{method: http.MethodPatch, path: "/v1/account", key: g.key, body: body})
	}
	webhookOf := func(body string) string {
		t.Helper()
		row := g.row(g.submit(videos, body))
		return row.Webhook.URL
	}
	for _, body := range []string{
		videoBody, `{"model":"alpha-v3","prompt":"a","webhook":null}`, `{"model":"alpha-v3","prompt":"a","webhook":""}`,
	} {
		if got := webhookOf(body); got != "" {
			t.Errorf("the task of %s calls %q", body, got)
		}
	}
	g.post("/v1/webhooks/test", "").wantError(t, 400, "invalid_request_error", "url is required: the account has no webhook")

	if a := set(`{"webhook":"https://hooks.example.com/all"}`); a.status != http.StatusOK || a.at("webhook") != "https://hooks.example.com/all" || a.at("id") != g.account.ID {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := g.get("/v1/account"); a.at("webhook") != "https://hooks.example.com/all" {
		t.Errorf("read back: %s", a.body)
	}
	if got := webhookOf(videoBody); got != "https://hooks.example.com/all" {
		t.Errorf("a task calls %q", got)
	}
	if got := webhookOf(`{"model":"alpha-v3","prompt":"a","webhook":"https://hooks.example.com/own"}`); got != "https://hooks.example.com/own" {
		t.Errorf("a task with a webhook of its own calls %q", got)
	}
	if a := g.post("/v1/webhooks/test", ""); a.at("url") != "https://hooks.example.com/all" || len(r.took) != 1 {
		t.Errorf("a test: %s, %+v", a.body, r.took)
	}
	for body, says := range map[string]string{
		`{"webhook":"http://127.0.0.1/"}`: "webhook is not an address for callbacks",
		`{"webhook":7}`:                   "webhook must be a string",
		`{"webhook":""}`:                  "webhook is not an address for callbacks",
		`{"webhook":null,"group":"half"}`: "group cannot be changed here",
		`{"rate":5}`:                      "rate cannot be changed here",
	} {
		set(body).wantError(t, 400, "invalid_request_error", says)
	}
	g.post("/v1/webhooks/test", `{"url":"ftp://a.example.com"}`).wantError(t, 400, "invalid_request_error", "url is not an address for callbacks")
	if a := g.get("/v1/account"); a.at("webhook") != "https://hooks.example.com/all" || a.at("group") != "default" {
		t.Errorf("after what was refused: %s", a.body)
	}
	if a := set(`{"webhook":null}`); a.status != http.StatusOK || a.at("webhook") != nil {
		t.Errorf("taken away: %d %s", a.status, a.body)
	}
	_, reader := g.newKey(mediagate.Key{Unlimited: true, Scopes: []mediagate.Scope{mediagate.ScopeRead}})
	g.send(request{method: http.MethodPatch, path: "/v1/account", key: reader, body: `{}`}).wantError(t, 403, "permission_error", "manage")
}
