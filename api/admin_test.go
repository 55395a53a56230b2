package api_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

const noAccount = "acc_01JZZZZZZZZZZZZZZZZZZZZZZZ"

func TestAccounts(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	a := g.operate(http.MethodPost, "/accounts", `{"name":"ada"}`)
	id, _ := a.at("id").(string)
	want := fmt.Sprintf(`{"id":%q,"name":"ada","group":"default","available":"0.00","held":"0.00","spent":"0.00","rate":null,"in_flight":null,"erase_inputs":false,"webhook":null,"created":%d,"unpaid":null,"uploads_per_day":null}`+"\n",
		id, g.clock.now().Unix())
	if a.status != 201 || a.body != want || !strings.HasPrefix(id, "acc_") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if got := g.operate(http.MethodGet, "/accounts/"+id, ""); got.status != 200 || got.body != strings.TrimSuffix(want, "}\n")+`,"abandoned":{"jobs":0,"cost":"0.00"}}`+"\n" {
		t.Errorf("read back: %d %s", got.status, got.body)
	}
	changes := []struct{ body, name, group string }{
		{`{"name":"grace"}`, "grace", "default"},
		{`{"group":"half"}`, "grace", "half"},
		{`{"name":"ada","group":"default"}`, "ada", "default"},
		{`{}`, "ada", "default"},
		{`{"name":null,"group":null}`, "ada", "default"},
	}
	limits := []struct {
		body           string
		rate, inFlight any
		erase          bool
	}{
		{`{"rate":0,"in_flight":1000000000}`, 0.0, 1e9, false},
		{`{"erase_inputs":true,"rate":5.0}`, 5.0, 1e9, true},
		{`{"rate":null,"erase_inputs":null}`, nil, 1e9, true},
		{`{"in_flight":null,"erase_inputs":false}`, nil, nil, false},
	}
	for _, limit := range []struct {
		body            string
		unpaid, uploads any
	}{
		{`{"unpaid":"12.5","uploads_per_day":0}`, "12.50", 0.0},
		{`{"unpaid":0,"uploads_per_day":1125899906842624}`, "0.00", float64(1 << 50)},
		{`{"name":"ada"}`, "0.00", float64(1 << 50)},
		{`{"unpaid":null,"uploads_per_day":null}`, nil, nil},
	} {
		got := g.operate(http.MethodPatch, "/accounts/"+id, limit.body)
		if got.status != 200 || got.at("unpaid") != limit.unpaid || got.at("uploads_per_day") != limit.uploads {
			t.Errorf("%s: %d %s", limit.body, got.status, got.body)
		}
	}
	for _, change := range changes {
		got := g.operate(http.MethodPatch, "/accounts/"+id, change.body)
		if got.status != 200 || got.at("name") != change.name || got.at("group") != change.group {
			t.Errorf("%s: %d %s", change.body, got.status, got.body)
		}
	}
	for _, limit := range limits {
		got := g.operate(http.MethodPatch, "/accounts/"+id, limit.body)
		if got.status != 200 || got.at("rate") != limit.rate || got.at("in_flight") != limit.inFlight || got.at("erase_inputs") != limit.erase {
			t.Errorf("%s: %d %s", limit.body, got.status, got.body)
		}
	}
	whole := g.operate(http.MethodPost, "/accounts", `{"name":"whole","group":"half","rate":7,"in_flight":0,"erase_inputs":true}`)
	if whole.status != 201 || whole.at("group") != "half" || whole.at("rate") != 7.0 || whole.at("in_flight") != 0.0 || whole.at("erase_inputs") != true {
		t.Errorf("with limits: %d %s", whole.status, whole.body)
	}
	// Money moves are seen.
	task := g.submit(images, imageBody)
	if got := g.operate(http.MethodGet, "/accounts/"+g.account.ID, ""); got.at("available") != "99.985" || got.at("held") != "0.015" {
		t.Errorf("during a task: %s", got.body)
	}
	g.complete(task)
	if got := g.operate(http.MethodGet, "/accounts/"+g.account.ID, ""); got.at("held") != "0.00" || got.at("spent") != "0.015" {
		t.Errorf("after it: %s", got.body)
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
	if a := g.operate(http.MethodPost, "/accounts", `{"name":"`+strings.Repeat("é", 255)+`"}`); a.status != 201 {
		t.Errorf("the longest name: %d %s", a.status, a.body)
	}
	for body, param := range map[string]string{
		`{"name":""}`: "name", `{"name":5}`: "name", `{"group":"unknown"}`: "group", `[]`: "JSON object",
		`{"name":"new","rate":-1}`: "rate", `{"name":"new","erase_inputs":"yes"}`: "erase_inputs",
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
	ids := []string{g.account.ID} // newest first
	for i := range 2 {
		g.clock.advance(time.Second)
		a, err := g.store.CreateAccount(t.Context(), mediagate.Account{Name: fmt.Sprint(i), Group: "default"})
		g.must(err)
		ids = append([]string{a.ID}, ids...)
	}
	a := g.operate(http.MethodGet, "/accounts?limit=2", "")
	if a.at("object") != "list" || a.at("data", 0, "id") != ids[0] || a.at("data", 1, "id") != ids[1] || a.at("has_more") != true {
		t.Errorf("first page: %s", a.body)
	}
	a = g.operate(http.MethodGet, "/accounts?limit=2&after="+ids[1], "")
	if a.at("data", 0, "id") != ids[2] || a.at("data", 1) != nil || a.at("has_more") != false {
		t.Errorf("second page: %s", a.body)
	}
	if a = g.operate(http.MethodGet, "/accounts?after="+ids[2], ""); !strings.Contains(a.body, `"data":[]`) {
		t.Errorf("empty page: %s", a.body)
	}
	for query, param := range map[string]string{"limit=0": "limit", "limit=101": "limit", "after=" + noTask: "after", "after=x": "after", "after=%00": "after", "after=%ff": "after"} {
		for _, list := range []string{"/accounts", "/keys", "/accounts/" + g.account.ID + "/ledger"} {
			g.operate(http.MethodGet, list+"?"+query, "").wantError(t, 400, "invalid_request_error", param)
		}
	}
	// Well-formed, but of nothing in the list.
	_, _, _, err := g.store.Grant(t.Context(), ids[0], 1, "of another account")
	g.must(err)
	others, _, err := g.store.Ledger(t.Context(), ids[0], "", "", 1)
	g.must(err)
	strange, _ := g.newKey(mediagate.Key{AccountID: ids[0]})
	const unknown = "01JZZZZZZZZZZZZZZZZZZZZZZZ"
	for _, query := range []string{
		"/accounts?after=acc_" + unknown, "/keys?after=key_" + unknown, "/keys?account=" + g.account.ID + "&after=" + strange.ID,
		"/accounts/" + g.account.ID + "/ledger?after=txn_" + unknown, "/accounts/" + g.account.ID + "/ledger?task=x&after=txn_" + unknown,
		"/accounts/" + g.account.ID + "/ledger?after=" + others[0].ID,
	} {
		g.operate(http.MethodGet, query, "").wantError(t, 400, "invalid_request_error", "after must be an id of this list")
	}
	g.must(g.store.DeleteKey(t.Context(), strange.ID))
	for _, list := range []string{"/keys?", "/keys?account=" + ids[0] + "&"} {
		if a := g.operate(http.MethodGet, list+"after="+strange.ID, ""); a.status != 200 {
			t.Errorf("after a deleted key: %d %s", a.status, a.body)
		}
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
		{`{"amount":"-12.5","reference":"a"}`, 409, "", ""},
		{`{"amount":-12.5,"reference":"b"}`, 201, "-12.50", "100.00"},
		{`{"amount":"-100.000001","reference":"c"}`, 409, "", ""},
		{`{"amount":"-100","reference":"c"}`, 201, "-100.00", "0.00"},
		{`{"amount":"0.000001","reference":"d"}`, 201, "0.000001", "0.000001"},
		{`{"amount":"000000000001","reference":"e"}`, 201, "1.00", "1.000001"},
	}
	ids := map[any]bool{}
	for _, step := range steps {
		a := g.operate(http.MethodPost, path, step.body)
		if step.status == 409 {
			a.wantError(t, 409, "invalid_request_error", "")
			continue
		}
		if a.status != step.status || a.at("amount") != step.amount || a.at("available") != step.available {
			t.Errorf("%s: %d %s", step.body, a.status, a.body)
		}
		if known := ids[a.at("id")]; known != (a.status == 200) {
			t.Errorf("%s: id %v", step.body, a.at("id"))
		}
		ids[a.at("id")] = true
	}
	for body, param := range map[string]string{
		`{"reference":"x"}`: "amount", `{"amount":null,"reference":"x"}`: "amount", `{"amount":"0","reference":"x"}`: "amount",
		`{"amount":0.000000,"reference":"x"}`: "amount", `{"amount":"1e2","reference":"x"}`: "amount", `{"amount":1e2,"reference":"x"}`: "amount",
		`{"amount":"1.0000001","reference":"x"}`: "amount", `{"amount":"1234567890123","reference":"x"}`: "amount",
		`{"amount":"+1","reference":"x"}`: "amount", `{"amount":".5","reference":"x"}`: "amount", `{"amount":"1.","reference":"x"}`: "amount",
		`{"amount":" 1","reference":"x"}`: "amount", `{"amount":"١","reference":"x"}`: "amount", `{"amount":"","reference":"x"}`: "amount",
		`{"amount":1e309,"reference":"x"}`: "amount", `{"amount":-0,"reference":"x"}`: "amount", `{"amount":"-0","reference":"x"}`: "amount",
		`{"amount":"12,50","reference":"x"}`: "amount", `{"amount":0.0000001,"reference":"x"}`: "amount",
		`{"amount":true,"reference":"x"}`: "amount", `{"amount":"-","reference":"x"}`: "amount", `{"amount":"1"}`: "reference",
		`{"amount":"1","reference":""}`: "reference", `{"amount":"1","reference":9}`: "reference",
		`{"amount":"1","reference":"` + strings.Repeat("x", 256) + `"}`: "reference",
	} {
		g.operate(http.MethodPost, path, body).wantError(t, 400, "invalid_request_error", param)
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.clock.advance(time.Second)
	id := g.submit(images, imageBody)
	g.clock.advance(time.Second)
	g.complete(id)
	path := "/accounts/" + g.account.ID + "/ledger"
	a := g.operate(http.MethodGet, path, "")
	kinds := []string{"post", "hold", "grant"}
	for i, kind := range kinds {
		if a.at("data", i, "kind") != kind {
			t.Errorf("entry %d is %v, want %s", i, a.at("data", i, "kind"), kind)
		}
	}
	if a.at("data", 3) != nil || a.at("has_more") != false {
		t.Errorf("more entries: %s", a.body)
	}
	hold, _ := a.at("data", 1).(map[string]any)
	if hold["amount"] != "0.015" || hold["task"] != id || hold["key"] != g.keyRow.ID || hold["reference"] != nil ||
		hold["at"] != float64(g.clock.now().Unix()-1) {
		t.Errorf("hold: %v", hold)
	}
	if grant, _ := a.at("data", 2).(map[string]any); grant["reference"] != "grant of 100" || grant["task"] != nil || grant["key"] != nil {
		t.Errorf("grant: %v", grant)
	}
	if a = g.operate(http.MethodGet, path+"?task="+id, ""); a.at("data", 1, "kind") != "hold" || a.at("data", 2) != nil {
		t.Errorf("of the task: %s", a.body)
	}
	for _, task := range []string{noTask, "x", "%00"} {
		if a = g.operate(http.MethodGet, path+"?task="+task, ""); a.status != 200 || !strings.Contains(a.body, `"data":[]`) {
			t.Errorf("of no task: %d %s", a.status, a.body)
		}
	}
	a = g.operate(http.MethodGet, path+"?limit=1", "")
	first, _ := a.at("data", 0, "id").(string)
	if a.at("has_more") != true {
		t.Errorf("first page: %s", a.body)
	}
	if a = g.operate(http.MethodGet, path+"?limit=1&after="+first, ""); a.at("data", 0, "kind") != "hold" {
		t.Errorf("second page: %s", a.body)
	}
	a = g.operate(http.MethodGet, "/ledger/check", "")
	checked, _ := a.at("checked").(float64)
	if a.status != 200 || a.at("ok") != true || checked < 1 || !strings.Contains(a.body, `"problems":[]`) {
		t.Errorf("check: %d %s", a.status, a.body)
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
	prefix, _ := a.at("prefix").(string)
	last, _ := a.at("last_four").(string)
	if !strings.HasPrefix(secret, prefix) || !strings.HasSuffix(secret, last) || len(prefix) < 6 || len(last) != 4 {
		t.Errorf("display parts: %s", a.body)
	}
	want := fmt.Sprintf(`{"id":%q,"prefix":%q,"last_four":%q,"account":%q,"name":"ci","unlimited":false,"quota":"2.50","held":"0.00","spent":"0.00",`+
		`"models":["alpha-*"],"group":"half","expires_at":%d,"allow_ips":["192.0.2.1","2001:db8::/32"],`+
		`"caps":{"day":null,"week":null,"month":null},"rate":null,"in_flight":null,"strict":false,"scopes":["generate","read","manage"],"rotated_to":null,"created":%d,"last_used_at":null}`+"\n",
		id, prefix, last, g.account.ID, expires.Unix(), g.clock.now().Unix())
	if got := g.operate(http.MethodGet, "/keys/"+id, ""); got.status != 200 || got.body != want {
		t.Errorf("read back %d %s want %s", got.status, got.body, want)
	}
	if got := g.send(request{path: "/v1/balance", key: secret, remote: "192.0.2.1:5"}); got.at("remain_balance") != 2.5 {
		t.Errorf("the new key: %s", got.body)
	}
	a = g.operate(http.MethodPost, path, `{"name":"all","unlimited":true,"models":[],"allow_ips":[],"caps":null,"rate":null,"quota":null,"group":null}`)
	if a.status != 201 || a.at("unlimited") != true || a.at("quota") != nil || a.at("group") != nil || a.at("expires_at") != nil ||
		!strings.Contains(a.body, `"models":[]`) || !strings.Contains(a.body, `"allow_ips":[]`) {
		t.Errorf("unlimited: %d %s", a.status, a.body)
	}
	if a = g.operate(http.MethodGet, "/keys?account="+g.account.ID, ""); strings.Contains(a.body, `"key":`) || a.at("data", 2) == nil {
		t.Errorf("list: %s", a.body)
	}
	g.other()
	all, _ := g.operate(http.MethodGet, "/keys", "").at("data").([]any)
	if len(all) != 4 {
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
		"quota as number":             {`"quota":1.5`, ""},
		"smallest quota":              {`"quota":"0.000001"`, ""},
		"too fine a quota":            {`"quota":"0.0000001"`, "quota"},
		"unlimited as text":           {`"unlimited":"true"`, "unlimited"},
		"models as text":              {`"unlimited":true,"models":"*"`, "models"},
		"blank model":                 {`"unlimited":true,"models":["*",""]`, "models[1]"},
		"unknown group":               {`"unlimited":true,"group":"vip"`, "group"},
		"expires now":                 {`"unlimited":true,"expires_at":` + strconv.FormatInt(now.Unix(), 10), "expires_at"},
		"expires in a second":         {`"unlimited":true,"expires_at":` + strconv.FormatInt(now.Unix()+1, 10), ""},
		"expired":                     {`"unlimited":true,"expires_at":"2020-01-01T00:00:00Z"`, "expires_at"},
		"expires with offset":         {`"unlimited":true,"expires_at":"2030-01-01T00:00:00+02:00"`, ""},
		"expires, small letters":      {`"unlimited":true,"expires_at":"2030-01-01t00:00:00z"`, ""},
		"expiry on the first day":     {`"unlimited":true,"expires_at":"0001-01-01T00:00:00Z"`, "expires_at"},
		"expiry as numeric text":      {`"unlimited":true,"expires_at":"1999999999"`, "expires_at"},
		"expiry as date":              {`"unlimited":true,"expires_at":"2030-01-01"`, "expires_at"},
		"expiry with decimals":        {`"unlimited":true,"expires_at":1999999999.5`, "expires_at"},
		"expiry, .0":                  {`"unlimited":true,"expires_at":1999999999.0`, ""},
		"huge expiry":                 {`"unlimited":true,"expires_at":1e300`, "expires_at"},
		"address":                     {`"unlimited":true,"allow_ips":["192.0.2.1"]`, ""},
		"host bits":                   {`"unlimited":true,"allow_ips":["192.0.2.1/24"]`, "allow_ips[0]"},
		"all addresses":               {`"unlimited":true,"allow_ips":["0.0.0.0/0"]`, "allow_ips[0]"},
		"all v6":                      {`"unlimited":true,"allow_ips":["192.0.2.1","::/0"]`, "allow_ips[1]"},
		"address a number":            {`"unlimited":true,"allow_ips":[1]`, "allow_ips[0]"},
		"caps":                        {`"unlimited":true,"caps":{"day":"1","week":0,"month":"0.00"}`, ""},
		"no caps":                     {`"unlimited":true,"caps":{"day":null},"rate":null,"in_flight":null,"scopes":null`, ""},
		"unknown cap":                 {`"unlimited":true,"caps":{"year":"1"}`, "caps"},
		"caps as amount":              {`"unlimited":true,"caps":"1"`, "caps"},
		"negative cap":                {`"unlimited":true,"caps":{"week":"-1"}`, "caps.week"},
		"cap of minus nothing":        {`"unlimited":true,"caps":{"week":-0}`, "caps.week"},
		"cap with a comma":            {`"unlimited":true,"caps":{"month":"12,50"}`, "caps.month"},
		"too fine a cap":              {`"unlimited":true,"caps":{"month":"0.0000001"}`, "caps.month"},
		"huge cap":                    {`"unlimited":true,"caps":{"month":1e309}`, "caps.month"},
		"cap as truth":                {`"unlimited":true,"caps":{"day":true}`, "caps.day"},
		"rate":                        {`"unlimited":true,"rate":0`, ""},
		"negative rate":               {`"unlimited":true,"rate":-1`, "rate"},
		"rate as text":                {`"unlimited":true,"rate":"1"`, "rate"},
		"half a rate":                 {`"unlimited":true,"rate":0.5`, "rate"},
		"in_flight":                   {`"unlimited":true,"in_flight":1000000000`, ""},
		"too much in_flight":          {`"unlimited":true,"in_flight":1000000001`, "in_flight"},
		"scopes":                      {`"unlimited":true,"scopes":["read","generate","read"]`, ""},
		"no scopes":                   {`"unlimited":true,"scopes":[]`, "scopes"},
		"unknown scope":               {`"unlimited":true,"scopes":["read","admin"]`, "scopes[1]"},
		"scope as text":               {`"unlimited":true,"scopes":"read"`, "scopes"},
		"pattern of nothing":          {`"unlimited":true,"models":["alpha-*","omega-*"]`, "models[1]"},
		"pattern of a passed model":   {`"unlimited":true,"models":["my-*"]`, "models[0]"},
		"name of no model":            {`"unlimited":true,"models":["omega-1"]`, ""},
		"quota with a comma":          {`"quota":"12,50"`, "quota"},
		"quota of minus nothing":      {`"quota":"-0"`, "quota"},
		"huge quota":                  {`"quota":1e309`, "quota"},
		"too many entries":            {`"unlimited":true,"models":["a"` + strings.Repeat(`,"a"`, 100) + `]`, "models"},
		"as many entries as may be":   {`"unlimited":true,"models":["a"` + strings.Repeat(`,"a"`, 99) + `]`, ""},
		"too long an entry":           {`"unlimited":true,"models":["` + strings.Repeat("a", 256) + `"]`, "models[0]"},
		"unknown field":               {`"unlimited":true,"colour":"red"`, ""},
	}
	t.Run("all", func(t *testing.T) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				body := strings.Replace(`{"name":"a",`+test.fields+`}`, ",}", "}", 1)
				a := g.operate(http.MethodPost, "/accounts/"+g.account.ID+"/keys", body)
				if test.param == "" {
					if a.status != 201 {
						t.Errorf("%d %s", a.status, a.body)
					}
					return
				}
				a.wantError(t, 400, "invalid_request_error", test.param)
			})
		}
	})
	g.operate(http.MethodPost, "/accounts/"+g.account.ID+"/keys", `{"unlimited":true}`).wantError(t, 400, "invalid_request_error", "name")
	if keys, _, err := g.store.Keys(t.Context(), g.account.ID, "", 100); err != nil || len(keys) != 16 {
		t.Errorf("%d keys, want the first and 15 accepted ones (%v)", len(keys), err)
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
	if a := g.send(request{path: path, key: g.other()}); a.at("secret") == secret {
		t.Error("two accounts with one secret")
	}
	rotated := g.post(path, "")
	until := float64(g.clock.now().Add(24 * time.Hour).Unix())
	if rotated.status != 200 || rotated.at("secret") == secret || rotated.at("previous_expires_at") != until {
		t.Errorf("rotated: %d %s", rotated.status, rotated.body)
	}
	if a := g.get(path); a.body != rotated.body {
		t.Errorf("after the rotation: %s", a.body)
	}
	g.clock.advance(24*time.Hour - time.Second)
	for _, query := range []string{"", "?force=", "?force=false"} {
		g.post(path+query, "").wantError(t, 409, "invalid_request_error", "force=true")
	}
	g.post(path+"?force=yes", "").wantError(t, 400, "invalid_request_error", "force must be one of true, false")
	if a := g.get(path); a.body != rotated.body {
		t.Errorf("after refusals: %s", a.body)
	}
	forced := g.post(path+"?force=true", "")
	until += 24*3600 - 1
	if forced.status != 200 || forced.at("secret") == rotated.at("secret") || forced.at("previous_expires_at") != until {
		t.Errorf("forced: %d %s", forced.status, forced.body)
	}
	g.clock.advance(24 * time.Hour)
	if a := g.post(path, ""); a.status != 200 {
		t.Errorf("once the one before has ended: %d %s", a.status, a.body)
	}
}
