package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

// settings returns the fields of a key's answer that can be changed.
func settings(a answer) map[string]any {
	out := map[string]any{}
	for _, name := range []string{"name", "group", "unlimited", "quota", "models", "expires_at", "allow_ips", "caps", "rate", "in_flight", "scopes"} {
		out[name] = a.at(name)
	}
	return out
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	m := map[string]any{}
	must(t, json.Unmarshal([]byte(text), &m))
	return m
}

func TestKeyChanges(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	made := g.operate(http.MethodPost, "/accounts/"+g.account.ID+"/keys", `{"name":"a","quota":"5"}`)
	id, _ := made.at("id").(string)
	want := settings(made)
	for _, step := range []struct{ body, changed string }{
		{`{}`, `{}`},
		{`{"quota":"0.000001"}`, `{"quota":"0.000001"}`},
		{`{"unlimited":false}`, `{}`},
		{`{"unlimited":true,"quota":null}`, `{"unlimited":true,"quota":null}`},
		{`{"unlimited":true}`, `{}`},
		{`{"quota":"9","unlimited":null}`, `{"unlimited":false,"quota":"9.00"}`},
		{`{"caps":{"day":"1","month":0}}`, `{"caps":{"day":"1.00","week":null,"month":"0.00"}}`},
		{`{"caps":{"week":2}}`, `{"caps":{"day":"1.00","week":"2.00","month":"0.00"}}`},
		{`{"caps":{"day":null}}`, `{"caps":{"day":null,"week":"2.00","month":"0.00"}}`},
		{`{"caps":{}}`, `{}`},
		{`{"caps":null}`, `{"caps":{"day":null,"week":null,"month":null}}`},
		{`{"rate":0,"in_flight":3}`, `{"rate":0,"in_flight":3}`},
		{`{"rate":null,"in_flight":null}`, `{"rate":null,"in_flight":null}`},
		{`{"name":"b","models":["alpha-*","my own"],"group":"half"}`, `{"name":"b","models":["alpha-*","my own"],"group":"half"}`},
		{`{"models":null}`, `{"models":[]}`},
		{`{"group":null}`, `{"group":null}`},
		{`{"allow_ips":["2001:DB8::1","192.0.2.0/24"]}`, `{"allow_ips":["2001:db8::1","192.0.2.0/24"]}`},
		{`{"allow_ips":[]}`, `{"allow_ips":[]}`},
		{`{"scopes":["manage","read"]}`, `{"scopes":["read","manage"]}`},
		{`{"scopes":null}`, `{"scopes":["generate","read","manage"]}`},
		{`{"expires_at":1999999999}`, `{"expires_at":1999999999}`},
		{`{"expires_at":null,"name":null,"unknown":1}`, `{"expires_at":null}`},
	} {
		maps.Copy(want, object(t, step.changed))
		a := g.operate(http.MethodPatch, "/keys/"+id, step.body)
		if diff := cmp.Diff(want, settings(a)); a.status != 200 || diff != "" {
			t.Errorf("%s: %d (-want +got):\n%s", step.body, a.status, diff)
		}
	}
	before := g.operate(http.MethodGet, "/keys/"+id, "")
	for body, param := range map[string]string{
		`{"unlimited":true,"quota":"1"}`: "quota", `{"unlimited":false,"quota":"1"}`: "quota", `{"quota":"0"}`: "quota", `{"name":""}`: "name",
		`{"name":"never","in_flight":"1"}`: "in_flight", `[]`: "JSON object", ``: "the body is empty",
	} {
		g.operate(http.MethodPatch, "/keys/"+id, body).wantError(t, 400, "invalid_request_error", param)
	}
	if after := g.operate(http.MethodGet, "/keys/"+id, ""); after.body != before.body {
		t.Errorf("after refusals: %s", after.body)
	}
	g.operate(http.MethodPatch, "/keys/"+id, `{"unlimited":true}`)
	g.operate(http.MethodPatch, "/keys/"+id, `{"unlimited":false}`).wantError(t, 400, "invalid_request_error", "quota")
}

// TestLimitsBelowWhatIsUsed checks that a quota or a cap cannot be set below the amount used.
func TestLimitsBelowWhatIsUsed(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.submit(images, imageBody) // holds 0.015
	path := "/keys/" + g.keyRow.ID
	g.operate(http.MethodPatch, path, `{"quota":"0.014999"}`).wantError(t, 400, "invalid_request_error", "quota must be at least 0.015")
	if a := g.operate(http.MethodPatch, path, `{"quota":"0.015"}`); a.status != 200 || a.at("quota") != "0.015" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestChangesActAtOnce checks that a change of a key takes effect at once in this process, and
// within a second in others.
func TestChangesActAtOnce(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	made := g.operate(http.MethodPost, "/accounts/"+g.account.ID+"/keys", `{"name":"a","unlimited":true}`)
	id, _ := made.at("id").(string)
	secret, _ := made.at("key").(string)
	models := func() string { return g.send(request{path: "/v1/models", key: secret, remote: "192.0.2.1:1"}).body }
	if !strings.Contains(models(), "alpha-v3") {
		t.Fatal("the key sees no alpha-v3")
	}
	g.operate(http.MethodPatch, "/keys/"+id, `{"models":["theta-*"]}`)
	if text := models(); strings.Contains(text, "alpha-v3") || !strings.Contains(text, "theta-image-turbo") {
		t.Errorf("with other models: %s", text)
	}
	g.operate(http.MethodPatch, "/keys/"+id, `{"allow_ips":["198.51.100.1"]}`)
	if text := models(); !strings.Contains(text, "address") {
		t.Errorf("with other addresses: %s", text)
	}
	if _, err := g.store.UpdateKey(t.Context(), id, func(k *mediagate.Key) error { // elsewhere
		k.AllowIPs = nil
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	g.clock.advance(999 * time.Millisecond)
	if text := models(); !strings.Contains(text, "theta-image-turbo") {
		t.Errorf("a second after a change elsewhere: %s", text)
	}
	g.operate(http.MethodPatch, "/keys/"+id, `{"models":null}`)
	g.operate(http.MethodPatch, "/accounts/"+g.account.ID, `{"group":"images"}`)
	if text := models(); strings.Contains(text, "alpha-v3") || !strings.Contains(text, "theta-image-turbo") {
		t.Errorf("in another group: %s", text)
	}
}

func TestKeyRotation(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	now := g.clock.now().Unix()
	for name, test := range map[string]struct {
		body  string
		param string // of a refusal
		grace int64
	}{
		"nothing":   {"", "", 86400},
		"null":      {`{"grace_seconds":null}`, "", 86400},
		"at once":   {`{"grace_seconds":0}`, "", 0},
		"longest":   {`{"grace_seconds":2592000}`, "", 2592000},
		"too long":  {`{"grace_seconds":2592001}`, "grace_seconds", 0},
		"negative":  {`{"grace_seconds":-1}`, "grace_seconds", 0},
		"no object": {`[]`, "JSON object", 0},
	} {
		made := g.operate(http.MethodPost, "/accounts/"+g.account.ID+"/keys",
			`{"name":"a","quota":"5","models":["alpha-*"],"group":"half","caps":{"day":"1"},"rate":5,"in_flight":2,"scopes":["read"],"allow_ips":["192.0.2.1"]}`)
		id, _ := made.at("id").(string)
		a := g.operate(http.MethodPost, "/keys/"+id+"/rotate", test.body)
		if test.param != "" {
			a.wantError(t, 400, "invalid_request_error", test.param)
			if g.operate(http.MethodGet, "/keys/"+id, "").at("rotated_to") != nil {
				t.Errorf("%s: rotated all the same", name)
			}
			continue
		}
		if a.status != 201 || a.header.Get("Cache-Control") != "no-store" || a.at("id") == id || a.text("key") == made.text("key") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if diff := cmp.Diff(settings(made), settings(a)); diff != "" {
			t.Errorf("%s: other settings (-want +got):\n%s", name, diff)
		}
		shown := g.operate(http.MethodGet, "/keys/"+id, "")
		if shown.at("expires_at") != float64(now+test.grace) || shown.at("rotated_to") != a.at("id") || shown.at("key") != nil {
			t.Errorf("%s: the old key is %s", name, shown.body)
		}
		again := g.operate(http.MethodPost, "/keys/"+id+"/rotate", "")
		again.wantError(t, 409, "invalid_request_error", "rotated already, into "+a.text("id")) // however short its grace time
	}
}

func TestAudit(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.seen()
	g.operate(http.MethodPatch, "/accounts/"+g.account.ID, `{"rate":5}`)
	made := g.send(request{
		method: http.MethodPost, path: "/v1/keys", key: g.key, remote: "192.0.2.7:1", body: `{"name":"child","unlimited":true}`,
	})
	id, _ := made.at("id").(string)
	g.operate(http.MethodPatch, "/channels/kling-a", `{"enabled":false}`)
	g.post("/v1/webhooks/secret", "")
	g.operate(http.MethodPost, "/accounts/"+g.account.ID+"/grants", `{"amount":"1","reference":"r"}`)
	a := g.operate(http.MethodGet, "/audit", "")
	type line struct{ By, Action, Object, Account any }
	var got []line
	rows, _ := a.at("data").([]any)
	for i := range rows {
		got = append(got, line{a.at("data", i, "by"), a.at("data", i, "action"), a.at("data", i, "object"), a.at("data", i, "account")})
	}
	want := []line{
		{"admin", "grant", a.at("data", 0, "object"), g.account.ID},
		{g.keyRow.ID, "rotate_webhook_secret", g.account.ID, g.account.ID},
		{"admin", "change_channel", "kling-a", nil},
		{g.keyRow.ID, "create_key", id, g.account.ID},
		{"admin", "change_account", g.account.ID, g.account.ID},
	}
	if diff := cmp.Diff(want, got); diff != "" || a.at("has_more") != false || a.at("object") != "list" {
		t.Fatalf("%s\n(-want +got):\n%s", a.body, diff)
	}
	if a.at("data", 3, "address") != "192.0.2.7" || a.at("data", 3, "request_id") != made.header.Get("X-Request-Id") {
		t.Errorf("the new key: %v", a.at("data", 3))
	}
	secret, _ := made.at("key").(string)
	if signing, _ := g.get("/v1/webhooks/secret").at("secret").(string); strings.Contains(a.body, secret[10:38]) || strings.Contains(a.body, signing) {
		t.Error("the audit holds a secret")
	}
	if own := g.operate(http.MethodGet, "/audit?account="+g.account.ID, ""); own.at("data", 3) == nil || own.at("data", 4) != nil {
		t.Errorf("of the account: %s", own.body)
	}
	for query, want := range map[string]int{
		"by=admin": 3, "by=" + g.keyRow.ID: 2, "action=grant": 1, "object=kling-a": 1, "object=nothing": 0,
		"from=2020-01-01": 5, "to=2020-01-01": 0, "by=admin&action=change_account&account=" + g.account.ID: 1,
	} {
		found := g.operate(http.MethodGet, "/audit?"+query, "")
		if rows, _ := found.at("data").([]any); len(rows) != want || found.status != http.StatusOK {
			t.Errorf("%s: %d, %d entries, want %d", query, found.status, len(rows), want)
		}
	}
	for query, param := range map[string]string{
		"limit=101": "limit", "after=x": "after", "after=aud_01JZZZZZZZZZZZZZZZZZZZZZZZ": "after",
		"action=nothing": "action", "object=%00": "object", "by=%ff": "by", "from=yesterday": "from", "to=-1": "to",
	} {
		g.operate(http.MethodGet, "/audit?"+query, "").wantError(t, 400, "invalid_request_error", param)
	}
	for _, bad := range []string{noAccount, "x"} {
		g.operate(http.MethodGet, "/audit?account="+bad, "").wantError(t, 404, "not_found_error", "account")
	}
}

// TestRotationOfAnExpiredKey checks that an expired key, which is still listed, can be rotated.
func TestRotationOfAnExpiredKey(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	row, _ := g.newKey(mediagate.Key{Unlimited: true, ExpiresAt: g.clock.now().Add(time.Hour)})
	g.clock.advance(time.Hour)
	for name, rotate := range map[string]func() answer{
		"operator": func() answer { return g.operate(http.MethodPost, "/keys/"+row.ID+"/rotate", "") },
		"key":      func() answer { return g.manage(g.key, http.MethodPost, "/"+row.ID+"/rotate", "") },
	} {
		rotate().wantError(t, 409, "invalid_request_error", "the key has expired")
		if shown := g.operate(http.MethodGet, "/keys/"+row.ID, ""); shown.at("rotated_to") != nil {
			t.Errorf("%s: rotated all the same: %s", name, shown.body)
		}
	}
	g.operate(http.MethodPatch, "/keys/"+row.ID, `{"expires_at":null}`).wantStatus(t, 200)
	g.operate(http.MethodPost, "/keys/"+row.ID+"/rotate", "").wantStatus(t, 201, "a key that lives again")
}
