package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

const noAccount = "acc_01JZZZZZZZZZZZZZZZZZZZZZZZ"

func TestAccounts(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	a := g.operate(http.MethodPost, "/accounts", `{"name":"ada"}`)
	id := a.text("id")
	if a.status != 201 || !strings.HasPrefix(id, "acc_") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	want := object(t, a.body)
	for _, step := range []struct{ body, changed string }{
		{`{"name":"grace"}`, `{"name":"grace"}`},
		{`{"group":"half"}`, `{"group":"half"}`},
		{`{"name":"ada","group":"default"}`, `{"name":"ada","group":"default"}`},
		{`{"name":null,"group":null}`, `{}`},
		{`{"rate":0,"in_flight":1000000000}`, `{"rate":0,"in_flight":1000000000}`},
		{`{"erase_inputs":true,"rate":5.0}`, `{"erase_inputs":true,"rate":5}`},
		{`{"rate":null,"erase_inputs":null}`, `{"rate":null}`},
		{`{"in_flight":null,"erase_inputs":false}`, `{"in_flight":null,"erase_inputs":false}`},
		{`{"unpaid":"12.5","uploads_per_day":0}`, `{"unpaid":"12.50","uploads_per_day":0}`},
		{`{"unpaid":0,"uploads_per_day":1125899906842624}`, `{"unpaid":"0.00","uploads_per_day":1125899906842624}`},
		{`{"unpaid":null,"uploads_per_day":null}`, `{"unpaid":null,"uploads_per_day":null}`},
		{`{"suspended":true,"reason":"a reason"}`, `{"suspended":true}`},
		{`{"suspended":null}`, `{}`},
		{`{"suspended":false}`, `{"suspended":false}`},
	} {
		maps.Copy(want, object(t, step.changed))
		got := g.operate(http.MethodPatch, "/accounts/"+id, step.body)
		if diff := cmp.Diff(want, got.data); got.status != 200 || diff != "" {
			t.Errorf("%s: %d (-want +got):\n%s", step.body, got.status, diff)
		}
	}
	want["abandoned"] = map[string]any{"jobs": 0.0, "cost": "0.00"}
	if diff := cmp.Diff(want, g.operate(http.MethodGet, "/accounts/"+id, "").data); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	whole := g.operate(http.MethodPost, "/accounts", `{"name":"whole","group":"half","rate":7,"in_flight":0,"erase_inputs":true}`)
	if whole.status != 201 || whole.at("group") != "half" || whole.at("rate") != 7.0 || whole.at("in_flight") != 0.0 || whole.at("erase_inputs") != true {
		t.Errorf("with limits: %d %s", whole.status, whole.body)
	}
}

func TestAccountRefusals(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for body, param := range map[string]string{
		`{}`: "name", `{"name":null}`: "name", `{"name":""}`: "name", `{"name":" \u3000"}`: "name", `{"name":1}`: "name",
		`{"name":"` + strings.Repeat("é", 256) + `"}`: "name", `{"name":"a","group":"unknown"}`: "group", `{"name":"a","group":7}`: "group",
		`{`: "JSON", `{"name":"a","name":"a"}`: "name",
		`{"name":"a","rate":-1}`: "rate", `{"name":"a","rate":"5"}`: "rate", `{"name":"a","rate":1.5}`: "rate", `{"name":"a","rate":1000000001}`: "rate",
		`{"name":"a","unpaid":-1}`: "unpaid", `{"name":"a","unpaid":"much"}`: "unpaid", `{"name":"a","unpaid":1e30}`: "unpaid", `{"name":"a","unpaid":"0.0000001"}`: "unpaid",
		`{"name":"a","uploads_per_day":-1}`: "uploads_per_day", `{"name":"a","uploads_per_day":1.5}`: "uploads_per_day", `{"name":"a","uploads_per_day":"20GiB"}`: "uploads_per_day",
		`{"name":"a","uploads_per_day":1125899906842625}`: "uploads_per_day",
		`{"name":"a","in_flight":-1}`:                     "in_flight", `{"name":"a","in_flight":true}`: "in_flight", `{"name":"a","erase_inputs":1}`: "erase_inputs",
		`{"name":"a","rate":1e309}`: "rate",
	} {
		g.operate(http.MethodPost, "/accounts", body).wantError(t, 400, "invalid_request_error", param)
	}
	g.operate(http.MethodPost, "/accounts", `{"name":"`+strings.Repeat("é", 255)+`"}`).
		wantStatus(t, 201, "the longest name")
	for body, param := range map[string]string{
		`{"name":""}`: "name", `{"name":5}`: "name", `{"group":"unknown"}`: "group", `[]`: "JSON object",
		`{"name":"new","rate":-1}`: "rate", `{"name":"new","erase_inputs":"yes"}`: "erase_inputs",
		`{"suspended":"yes"}`: "suspended", `{"suspended":true,"reason":""}`: "reason",
	} {
		g.operate(http.MethodPatch, "/accounts/"+g.account.ID, body).wantError(t, 400, "invalid_request_error", param)
	}
	for _, id := range []string{noAccount, "x", "acc_%00", "%ff", noTask} {
		for method, path := range map[string]string{
			"GET": "/accounts/" + id, "PATCH": "/accounts/" + id, "POST": "/accounts/" + id + "/grants",
			"get": "/accounts/" + id + "/ledger", "post": "/accounts/" + id + "/keys",
		} {
			body := `{"name":"a","unlimited":true,"amount":"1","reference":"a"}`
			g.operate(strings.ToUpper(method), path, body).wantError(t, 404, "not_found_error", "account")
		}
	}
}

func TestAccountList(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	made, err := g.store.CreateAccount(t.Context(), mediagate.Account{Name: "second", Group: "default"})
	g.must(err)
	a := g.operate(http.MethodGet, "/accounts?limit=1", "")
	if a.at("data", 0, "id") != made.ID || a.at("data", 1) != nil || a.at("has_more") != true {
		t.Errorf("first page: %s", a.body)
	}
	a = g.operate(http.MethodGet, "/accounts?limit=1&after="+made.ID, "")
	if a.at("data", 0, "id") != g.account.ID || a.at("has_more") != false {
		t.Errorf("second page: %s", a.body)
	}
	if a := g.operate(http.MethodGet, "/accounts?q=SECON", ""); a.at("data", 0, "id") != made.ID || a.at("data", 1) != nil {
		t.Errorf("by name: %s", a.body)
	}
	g.operate(http.MethodGet, "/accounts?q=%00", "").wantError(t, 400, "invalid_request_error", "q")
	if a := g.operate(http.MethodGet, "/accounts?after="+g.account.ID, ""); !strings.Contains(a.body, `"data":[]`) {
		t.Errorf("empty page: %s", a.body)
	}
	for query, param := range map[string]string{"limit=0": "limit", "limit=101": "limit", "after=" + noTask: "after", "after=x": "after", "after=%00": "after", "after=%ff": "after"} {
		for _, list := range []string{"/accounts", "/keys", "/accounts/" + g.account.ID + "/ledger"} {
			g.operate(http.MethodGet, list+"?"+query, "").wantError(t, 400, "invalid_request_error", param)
		}
	}
	ledger := "/accounts/" + g.account.ID + "/ledger"
	for _, list := range []string{"/accounts?after=acc_", "/keys?after=key_", ledger + "?after=txn_"} {
		g.operate(http.MethodGet, list+"01JZZZZZZZZZZZZZZZZZZZZZZZ", "").
			wantError(t, 400, "invalid_request_error", "after must be the id of an entry in this list")
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	path := "/accounts/" + g.account.ID + "/grants"
	steps := []struct {
		body      string
		status    int
		amount    string
		available string
	}{
		{`{"amount":"12.50","reference":"a"}`, 201, "12.50", "112.50"},
		{`{"amount":"12.50","reference":"a"}`, 200, "12.50", "112.50"}, // again: nothing
		{`{"amount":12.5,"reference":"a"}`, 200, "12.50", "112.50"},    // the same amount, as a number
		{`{"amount":"12.51","reference":"a"}`, 409, "", ""},
		{`{"amount":-12.5,"reference":"b"}`, 201, "-12.50", "100.00"},
		{`{"amount":"-100.000001","reference":"c"}`, 409, "", ""},
	}
	for _, step := range steps {
		a := g.operate(http.MethodPost, path, step.body)
		if step.status == 409 {
			a.wantError(t, 409, "invalid_request_error", "")
			continue
		}
		if a.status != step.status || a.at("amount") != step.amount || a.at("available") != step.available {
			t.Errorf("%s: %d %s", step.body, a.status, a.body)
		}
	}
	for body, param := range map[string]string{
		`{"reference":"x"}`: "amount", `{"amount":null,"reference":"x"}`: "amount", `{"amount":"-0","reference":"x"}`: "amount",
		`{"amount":0.000000,"reference":"x"}`: "amount", `{"amount":"1e2","reference":"x"}`: "amount", `{"amount":1e2,"reference":"x"}`: "amount",
		`{"amount":1e309,"reference":"x"}`: "amount", `{"amount":true,"reference":"x"}`: "amount", `{"amount":"1"}`: "reference",
		`{"amount":"1","reference":""}`: "reference", `{"amount":"1","reference":9}`: "reference",
		`{"amount":"1","reference":"` + strings.Repeat("x", 256) + `"}`: "reference",
	} {
		g.operate(http.MethodPost, path, body).wantError(t, 400, "invalid_request_error", param)
	}
}

// The golden file has the entries themselves.
func TestLedger(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(images, imageBody)
	path := "/accounts/" + g.account.ID + "/ledger"
	if a := g.operate(http.MethodGet, path+"?task="+id, ""); a.at("data", 0, "kind") != "hold" || a.at("data", 1) != nil {
		t.Errorf("of the task: %s", a.body)
	}
	for _, task := range []string{noTask, "x", "%00"} {
		if a := g.operate(http.MethodGet, path+"?task="+task, ""); a.status != 200 || !strings.Contains(a.body, `"data":[]`) {
			t.Errorf("of no task: %d %s", a.status, a.body)
		}
	}
	newest := g.operate(http.MethodGet, path+"?limit=1", "").ids("data", "id")
	if a := g.operate(http.MethodGet, path+"?limit=1&after="+newest[0], ""); a.at("data", 0, "kind") != "grant" {
		t.Errorf("second page: %s", a.body)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	path := "/accounts/" + g.account.ID + "/keys"
	expires := g.clock.now().Add(time.Hour)
	a := g.operate(http.MethodPost, path, `{"name":"ci","quota":"2.5","models":["alpha-*"],"group":"half",
		"expires_at":"`+expires.Format(time.RFC3339)+`","allow_ips":["192.0.2.1","2001:db8::/32"]}`)
	secret, _ := a.at("key").(string)
	id, _ := a.at("id").(string)
	if a.status != 201 || len(secret) != 42 || !strings.HasPrefix(secret, "mgk_") || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	want := object(t, a.body)
	delete(want, "key") // which is told once
	got := g.operate(http.MethodGet, "/keys/"+id, "")
	if diff := cmp.Diff(want, got.data); got.status != 200 || diff != "" {
		t.Errorf("read back: %d (-want +got):\n%s", got.status, diff)
	}
	addresses := []any{"192.0.2.1", "2001:db8::/32"}
	if !cmp.Equal(addresses, got.at("allow_ips")) || got.at("expires_at") != float64(expires.Unix()) {
		t.Errorf("addresses and end: %s", got.body)
	}
	if got := g.send(request{path: "/v1/balance", key: secret, remote: "192.0.2.1:5"}); got.at("remain_balance") != 2.5 {
		t.Errorf("the new key: %s", got.body)
	}
	if a = g.operate(http.MethodGet, "/keys?account="+g.account.ID, ""); strings.Contains(a.body, `"key":`) || a.at("data", 1) == nil {
		t.Errorf("list: %s", a.body)
	}
	g.other()
	all, _ := g.operate(http.MethodGet, "/keys", "").at("data").([]any)
	if len(all) != 3 {
		t.Errorf("%d keys of all accounts", len(all))
	}
	for _, bad := range []string{noAccount, "x", "%00"} {
		g.operate(http.MethodGet, "/keys?account="+bad, "").wantError(t, 404, "not_found_error", "account")
	}
	if a = g.operate(http.MethodDelete, "/keys/"+id, ""); a.status != 204 {
		t.Errorf("deletion: %d %s", a.status, a.body)
	}
}

func TestKeyRefusals(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	now := g.clock.now()
	tests := map[string]struct {
		fields string // beside the name
		param  string // empty: accepted
	}{
		"neither quota nor unlimited": {``, "quota"},
		"unlimited is false":          {`"unlimited":false`, "quota"},
		"both":                        {`"unlimited":true,"quota":"1"`, "quota"},
		"quota of zero":               {`"quota":"0"`, "quota"},
		"negative quota":              {`"quota":"-1"`, "quota"},
		"unlimited as text":           {`"unlimited":"true"`, "unlimited"},
		"blank model":                 {`"unlimited":true,"models":["*",""]`, "models[1]"},
		"unknown group":               {`"unlimited":true,"group":"vip"`, "group"},
		"expires now":                 {`"unlimited":true,"expires_at":` + strconv.FormatInt(now.Unix(), 10), "expires_at"},
		"expires in a second":         {`"unlimited":true,"expires_at":` + strconv.FormatInt(now.Unix()+1, 10), ""},
		"expiry, .0":                  {`"unlimited":true,"expires_at":1999999999.0`, ""},
		"expiry as numeric text":      {`"unlimited":true,"expires_at":"1999999999"`, "expires_at"},
		"expiry with decimals":        {`"unlimited":true,"expires_at":1999999999.5`, "expires_at"},
		"huge expiry":                 {`"unlimited":true,"expires_at":1e300`, "expires_at"},
		"all v6":                      {`"unlimited":true,"allow_ips":["192.0.2.1","::/0"]`, "allow_ips[1]"},
		"address a number":            {`"unlimited":true,"allow_ips":[1]`, "allow_ips[0]"},
		"caps":                        {`"unlimited":true,"caps":{"day":"1","week":0,"month":"0.00"}`, ""},
		"no caps":                     {`"unlimited":true,"caps":{"day":null},"rate":null,"in_flight":null,"scopes":null`, ""},
		"unknown cap":                 {`"unlimited":true,"caps":{"year":"1"}`, "caps"},
		"caps as amount":              {`"unlimited":true,"caps":"1"`, "caps"},
		"negative cap":                {`"unlimited":true,"caps":{"week":"-1"}`, "caps.week"},
		"cap of minus nothing":        {`"unlimited":true,"caps":{"week":-0}`, "caps.week"},
		"cap as truth":                {`"unlimited":true,"caps":{"day":true}`, "caps.day"},
		"rate":                        {`"unlimited":true,"rate":0`, ""},
		"negative rate":               {`"unlimited":true,"rate":-1`, "rate"},
		"in_flight":                   {`"unlimited":true,"in_flight":1000000000`, ""},
		"too much in_flight":          {`"unlimited":true,"in_flight":1000000001`, "in_flight"},
		"scopes":                      {`"unlimited":true,"scopes":["read","generate","read"]`, ""},
		"no scopes":                   {`"unlimited":true,"scopes":[]`, "scopes"},
		"unknown scope":               {`"unlimited":true,"scopes":["read","admin"]`, "scopes[1]"},
		"pattern of nothing":          {`"unlimited":true,"models":["alpha-*","omega-*"]`, "models[1]"},
		"pattern of a passed model":   {`"unlimited":true,"models":["my-*"]`, "models[0]"},
		"name of no model":            {`"unlimited":true,"models":["omega-1"]`, ""},
		"quota with a comma":          {`"quota":"12,50"`, "quota"},
		"too many entries":            {`"unlimited":true,"models":["a"` + strings.Repeat(`,"a"`, 100) + `]`, "models"},
		"as many entries as may be":   {`"unlimited":true,"models":["a"` + strings.Repeat(`,"a"`, 99) + `]`, ""},
		"too long an entry":           {`"unlimited":true,"models":["` + strings.Repeat("a", 256) + `"]`, "models[0]"},
		"unknown field":               {`"unlimited":true,"colour":"red"`, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			body := strings.Replace(`{"name":"a",`+test.fields+`}`, ",}", "}", 1)
			a := g.operate(http.MethodPost, "/accounts/"+g.account.ID+"/keys", body)
			if test.param != "" {
				a.wantError(t, 400, "invalid_request_error", test.param)
			} else if a.status != 201 {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	g.operate(http.MethodPost, "/accounts/"+g.account.ID+"/keys", `{"unlimited":true}`).wantError(t, 400, "invalid_request_error", "name")
	if keys, _, err := g.store.Keys(t.Context(), g.account.ID, "", 100); err != nil || len(keys) != 11 {
		t.Errorf("%d keys, want the first and 10 accepted ones (%v)", len(keys), err)
	}
}

func TestWebhookSecret(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	const path = "/v1/webhooks/secret"
	first := g.get(path)
	secret, _ := first.at("secret").(string)
	if want := fmt.Sprintf(`{"secret":%q,"previous_expires_at":null}`+"\n", secret); first.status != 200 || first.body != want ||
		!strings.HasPrefix(secret, "whsec_") || len(secret) != 50 || first.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", first.status, first.body)
	}
	_, sibling := g.newKey(mediagate.Key{Quota: 1})
	if again := g.send(request{path: path, key: sibling}); again.body != first.body {
		t.Errorf("the account's other key sees %s", again.body)
	}
	rotated := g.post(path, "")
	until := float64(g.clock.now().Add(24 * time.Hour).Unix())
	if rotated.status != 200 || rotated.at("secret") == secret || rotated.at("previous_expires_at") != until {
		t.Errorf("rotated: %d %s", rotated.status, rotated.body)
	}
	for _, query := range []string{"", "?force=", "?force=false"} {
		g.post(path+query, "").wantError(t, 409, "invalid_request_error", "force=true")
	}
	g.post(path+"?force=yes", "").wantError(t, 400, "invalid_request_error", "force must be one of true, false")
	if a := g.get(path); a.body != rotated.body {
		t.Errorf("after refusals: %s", a.body)
	}
	if forced := g.post(path+"?force=true", ""); forced.status != 200 || forced.at("secret") == rotated.at("secret") {
		t.Errorf("forced: %d %s", forced.status, forced.body)
	}
	// Each rotation adds a row to the audit.
	for range 1000 {
		if forced := g.post(path+"?force=true", ""); forced.status != 200 {
			forced.wantError(t, 429, "rate_limit_error", "the secret of an account may be rotated 120 times a minute")
			return
		}
	}
	t.Error("a thousand rotations within a minute")
}
