package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

const endpoints = "/v1/webhooks/endpoints"

// patch sends a PATCH with the gateway's key.
func (g *gateway) patch(path, body string) answer {
	g.t.Helper()
	return g.send(request{method: http.MethodPatch, path: path, key: g.key, body: body})
}

// remove sends a DELETE with the gateway's key.
func (g *gateway) remove(path string) answer {
	g.t.Helper()
	return g.send(request{method: http.MethodDelete, path: path, key: g.key})
}

// newEndpoint makes an endpoint and returns its path.
func (g *gateway) newEndpoint(body string) string {
	g.t.Helper()
	a := g.post(endpoints, body)
	id, _ := a.at("id").(string)
	if a.status != http.StatusCreated || id == "" {
		g.t.Fatalf("%d %s", a.status, a.body)
	}
	return endpoints + "/" + id
}

const someEndpoint = `{"url":"https://hooks.example.com/a","events":["task.completed"]}`

// TestEndpoints checks that an endpoint is created with a secret, which is shown once, and is
// read, listed, changed and deleted.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	a := g.post(endpoints, `{"url":"https://hooks.example.com/a","events":["balance.low","task.completed","task.completed"],"balance_low":"50","description":"Production"}`)
	id, _ := a.at("id").(string)
	secret, _ := a.at("secret").(string)
	if a.status != http.StatusCreated || !strings.HasPrefix(secret, "whsec_") || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	want := fmt.Sprintf(`{"id":"%s","url":"https://hooks.example.com/a","events":["task.completed","balance.low"],"enabled":true,"description":"Production","balance_low":"50.00",`+
		`"failing_since":null,"disabled_at":null,"disabled_reason":null,"created":%d}`, id, g.clock.now().Unix())
	path := endpoints + "/" + id
	if a := g.get(path); a.body != want+"\n" && a.body != want {
		t.Errorf("read: %s, want %s", a.body, want)
	}
	second := g.newEndpoint(`{"url":"https://hooks.example.com/b","events":["task.failed"],"enabled":false}`)
	if a := g.get(endpoints + "?limit=1"); a.at("has_more") != true || !strings.Contains(a.body, second[len(endpoints)+1:]) {
		t.Errorf("the first page: %s", a.body)
	}
	if a := g.get(endpoints + "?after=" + second[len(endpoints)+1:]); a.at("has_more") != false || !strings.Contains(a.body, want) {
		t.Errorf("the second page: %s", a.body)
	}
	if a := g.operate(http.MethodGet, "/accounts/"+g.account.ID+"/endpoints", ""); a.status != 200 || !strings.Contains(a.body, want) {
		t.Errorf("operators see %s", a.body)
	}
	g.operate(http.MethodGet, "/accounts/acc_01JZZZZZZZZZZZZZZZZZZZZZZZ/endpoints", "").wantError(t, 404, "not_found_error", "account not found")

	a = g.patch(path, `{"url":"https://hooks.example.com/c","description":"","events":["key.quota_low"],"balance_low":null,"enabled":false}`)
	if a.at("url") != "https://hooks.example.com/c" || a.at("description") != nil || a.at("balance_low") != nil || a.at("enabled") != false ||
		a.at("disabled_reason") != "switched_off" || a.at("disabled_at") != float64(g.clock.now().Unix()) {
		t.Errorf("changed: %d %s", a.status, a.body)
	}
	if a = g.patch(path, `{"enabled":true,"url":null,"events":null}`); a.at("enabled") != true || a.at("disabled_reason") != nil || a.at("url") != "https://hooks.example.com/c" {
		t.Errorf("enabled: %d %s", a.status, a.body)
	}
	g.remove(path).wantStatus(t, http.StatusNoContent, "deleted")
	g.get(path).wantError(t, 404, "not_found_error", "endpoint not found")
	g.remove(path).wantError(t, 404, "not_found_error", "endpoint not found")
	audit := g.operate(http.MethodGet, "/audit", "").body
	for _, action := range []string{"create_endpoint", "change_endpoint", "delete_endpoint"} {
		if !strings.Contains(audit, action) {
			t.Errorf("the audit lacks %s", action)
		}
	}
	if strings.Contains(audit+g.log.String(), secret) {
		t.Error("the audit or the log has the secret")
	}
}

// TestEndpointRules checks that a refusal names the field of an endpoint and its rule.
func TestEndpointRules(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	with := func(rest string) string {
		return `{"url":"https://hooks.example.com","events":["task.failed"],` + rest + `}`
	}
	for name, test := range map[string]struct{ body, param, reason string }{
		"no url":                  {`{"events":["task.failed"]}`, "url", "required"},
		"a null url":              {`{"url":null,"events":["task.failed"]}`, "url", "required"},
		"a url of another type":   {`{"url":7,"events":["task.failed"]}`, "url", "wrong_type"},
		"a private address":       {`{"url":"http://10.0.0.1/","events":["task.failed"]}`, "url", "malformed"},
		"another port":            {`{"url":"https://hooks.example.com:8443/","events":["task.failed"]}`, "url", "malformed"},
		"no events":               {`{"url":"https://hooks.example.com"}`, "events", "required"},
		"an empty list of events": {`{"url":"https://hooks.example.com","events":[]}`, "events", "too_short"},
		"no list of events":       {`{"url":"https://hooks.example.com","events":"task.failed"}`, "events", "wrong_type"},
		"an unknown event":        {`{"url":"https://hooks.example.com","events":["task.failed","task.started"]}`, "events[1]", "not_one_of"},
		"the test":                {`{"url":"https://hooks.example.com","events":["test"]}`, "events[0]", "not_one_of"},
		"an event of a type":      {`{"url":"https://hooks.example.com","events":[7]}`, "events[0]", "wrong_type"},
		"enabled, in words":       {with(`"enabled":"yes"`), "enabled", "invalid"},
		"a long description":      {with(`"description":"` + strings.Repeat("é", 256) + `"`), "description", "invalid"},
		"a bound of nothing":      {with(`"balance_low":0`), "balance_low", "out_of_range"},
		"a negative bound":        {with(`"balance_low":"-1"`), "balance_low", "invalid"},
		"a bound in words":        {with(`"balance_low":"little"`), "balance_low", "invalid"},
		"balance.low alone":       {`{"url":"https://hooks.example.com","events":["balance.low"]}`, "balance_low", "required"},
	} {
		a := g.post(endpoints, test.body)
		a.wantError(t, 400, "invalid_request_error", test.param)
		if a.at("error", "param") != test.param || a.at("error", "reason") != test.reason {
			t.Errorf("%s: %s, want %s and %s", name, a.body, test.param, test.reason)
		}
	}
	path := g.newEndpoint(with(`"description":"` + strings.Repeat("é", 255) + `","balance_low":"0.000001"`))
	for body, param := range map[string]string{
		`{"events":["balance.low"],"balance_low":null}`: "balance_low", `{"events":[]}`: "events", `{"url":"ftp://a.example.com"}`: "url",
	} {
		if a := g.patch(path, body); a.status != 400 || a.at("error", "param") != param {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	for range mediagate.MaxEndpoints - 1 {
		g.newEndpoint(someEndpoint)
	}
	g.post(endpoints, someEndpoint).wantError(t, 409, "invalid_request_error", "10 endpoints already")
	_, reader := g.newKey(mediagate.Key{Unlimited: true, Scopes: []mediagate.Scope{mediagate.ScopeRead, mediagate.ScopeGenerate}})
	g.send(request{path: endpoints, key: reader}).wantError(t, 403, "permission_error", "manage")
	g.get(endpoints+"?after=ep_1").wantError(t, 400, "invalid_request_error", "after")
	g.get(path+"/deliveries?state=done").wantError(t, 400, "invalid_request_error", "state")
	g.get(path+"/deliveries?after=evt_01JZZZZZZZZZZZZZZZZZZZZZZZ").wantError(t, 400, "invalid_request_error", "after")
}

// TestEndpointDeliveries checks that deliveries are listed with their last attempt and are sent
// again on request.
func TestEndpointDeliveries(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	path := g.newEndpoint(`{"url":"https://hooks.example.com/a","events":["task.completed","task.cancelled"]}`)
	id := path[len(endpoints)+1:]
	done := g.submit(videos, videoBody)
	g.accept(done)
	g.complete(done, mediagate.Result{Key: "v/0", MimeType: "video/mp4", Size: 9, Duration: 5})
	event := mediagate.TaskEventID(done)

	a := g.get(path + "/deliveries")
	want := fmt.Sprintf(`{"id":"%s","type":"task.completed","task":"%s","state":"pending","attempts":0,"at":%d,"next_attempt_at":%[3]d,"body":null,"last_attempt":null}`,
		event, done, g.clock.now().Unix())
	if a.at("has_more") != false || !strings.Contains(a.body, want) {
		t.Errorf("before an attempt: %s, want %s", a.body, want)
	}
	again := path + "/deliveries/" + event + "/redeliver"
	g.post(again, "").wantError(t, 409, "invalid_request_error", "pending")

	attempt := func(delivered bool, last mediagate.EndpointAttempt) {
		t.Helper()
		turn, err := g.store.ClaimDeliveries(t.Context(), id, 1, time.Minute)
		g.must(err)
		if _, err := g.store.StoreEndpointBody(t.Context(), id, turn.Deliveries[0].EventID, []byte(`{"type":"x"}`)); err != nil {
			t.Fatal(err)
		}
		last.At = g.clock.now()
		g.must(g.store.RecordEndpointAttempt(t.Context(), mediagate.EndpointResult{
			EndpointID: id, URL: turn.Endpoint.URL, EventID: turn.Deliveries[0].EventID, Claim: turn.Claim, Delivered: delivered, Attempt: last,
		}))
	}
	attempt(false, mediagate.EndpointAttempt{Error: "timeout", Duration: 10 * time.Second})
	a = g.get(path + "/deliveries?state=failed")
	want = fmt.Sprintf(`"state":"failed","attempts":1,"at":%d,"next_attempt_at":null,"body":"{\"type\":\"x\"}",`+
		`"last_attempt":{"at":%[1]d,"status":null,"error":"timeout","answer":null,"headers":{},"duration_ms":10000}}`, g.clock.now().Unix())
	if !strings.Contains(a.body, want) {
		t.Errorf("a failed attempt: %s, want %s", a.body, want)
	}
	if a := g.get(path); a.at("failing_since") != float64(g.clock.now().Unix()) {
		t.Errorf("the endpoint: %s", a.body)
	}
	if a := g.post(again, ""); a.status != http.StatusAccepted || a.at("state") != "pending" || a.at("attempts") != 0. {
		t.Errorf("sent again: %d %s", a.status, a.body)
	}
	attempt(true, mediagate.EndpointAttempt{Status: 200, Answer: "thanks", Headers: map[string]string{"Webhook-Id": event}})
	if a := g.get(path + "/deliveries?state=delivered"); !strings.Contains(a.body, `"status":200,"error":null,"answer":"thanks","headers":{"Webhook-Id":"`+event+`"}`) {
		t.Errorf("delivered: %s", a.body)
	}

	g.clock.advance(time.Second)
	test := g.post(path+"/test", "")
	if body, _ := test.at("body").(string); test.status != http.StatusAccepted || test.at("type") != "test" || !strings.Contains(body, `"data":{"endpoint":"`+id+`"}`) {
		t.Errorf("a test: %d %s", test.status, test.body)
	}
	if a := g.get(path + "/deliveries?limit=1"); a.at("has_more") != true || !strings.Contains(a.body, `"type":"test"`) {
		t.Errorf("the first page: %s", a.body)
	}
	if a := g.get(path + "/deliveries?after=" + fmt.Sprint(test.at("id"))); a.at("has_more") != false || !strings.Contains(a.body, event) {
		t.Errorf("the second page: %s", a.body)
	}
	g.post(path+"/deliveries/evt_01JZZZZZZZZZZZZZZZZZZZZZZZ/redeliver", "").wantError(t, 404, "not_found_error", "delivery not found")
	g.patch(path, `{"enabled":false}`).wantStatus(t, 200)
	g.post(path+"/test", "").wantError(t, 409, "invalid_request_error", "disabled")
	g.post(again, "").wantError(t, 409, "invalid_request_error", "disabled")
	if a := g.get(path + "/deliveries?state=failed"); !strings.Contains(a.body, fmt.Sprint(test.at("id"))) {
		t.Errorf("the test ends with the endpoint: %s", a.body)
	}
}

// TestEndpointSecret checks that an endpoint's secret is rotated like the account's.
func TestEndpointSecret(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	account := g.get("/v1/webhooks/secret").at("secret")
	path := g.newEndpoint(someEndpoint)
	first := g.post(path+"/secret", "")
	if first.status != 200 || first.at("secret") == account || first.at("previous_expires_at") != float64(g.clock.now().Add(24*time.Hour).Unix()) || first.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %s", first.status, first.body)
	}
	g.post(path+"/secret", "").wantError(t, 409, "invalid_request_error", "force=true")
	if second := g.post(path+"/secret?force=true", ""); second.status != 200 || second.at("secret") == first.at("secret") {
		t.Errorf("forced: %d %s", second.status, second.body)
	}
	if a := g.get("/v1/webhooks/secret"); a.at("secret") != account || a.at("previous_expires_at") != nil {
		t.Errorf("the account's: %s", a.body)
	}
	audit := g.operate(http.MethodGet, "/audit?limit=1", "").body
	if !strings.Contains(audit, "rotate_webhook_secret") || !strings.Contains(audit, path[len(endpoints)+1:]) {
		t.Errorf("the audit: %s", audit)
	}
}
