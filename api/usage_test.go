package api_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

// lines are those of an answer of text/csv.
func (a answer) lines(t *testing.T) [][]string {
	t.Helper()
	if a.status != 200 || a.header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Fatalf("%d %s %s", a.status, a.header.Get("Content-Type"), a.body)
	}
	lines, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	must(t, err)
	return lines
}

func asCSV() http.Header { return http.Header{"Accept": {"text/csv"}} }

func TestUsage(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.complete(g.submit(images, imageBody)) // 0.015
	g.clock.advance(24 * time.Hour)
	g.complete(g.submit(images, imageBody))
	failed := g.submit(videos, videoBody)
	g.fail(failed, mediagate.Failure{Code: mediagate.CodeInternal})
	g.accept(g.submit(videos, videoBody))
	g.submit(videos, videoBody)
	tasks := func(pending, processing, completed, failed int) string {
		return fmt.Sprintf(`"tasks":{"pending":%d,"processing":%d,"completed":%d,"failed":%d,"cancelled":0}}`, pending, processing, completed, failed)
	}
	const list = `{"object":"list","data":[`
	for query, want := range map[string]string{
		"":                 `{"cost":0.03,"credits_cost":30,` + tasks(1, 1, 2, 1),
		"?from=2026-03-02": `{"cost":0.015,"credits_cost":15,` + tasks(1, 1, 1, 1),
		"?to=2026-03-02":   `{"cost":0.015,"credits_cost":15,` + tasks(0, 0, 1, 0),
		"?group_by=day": `{"day":"2026-03-01","cost":0.015,"credits_cost":15,` + tasks(0, 0, 1, 0) +
			`,{"day":"2026-03-02","cost":0.015,"credits_cost":15,` + tasks(1, 1, 1, 1),
		"?from=1772409600&group_by=model,key": `{"model":"alpha-v3","key":"` + g.keyRow.ID + `","key_name":"test","cost":0,"credits_cost":0,` + tasks(1, 1, 0, 1) +
			`,{"model":"theta-image-turbo","key":"` + g.keyRow.ID + `","key_name":"test","cost":0.015,"credits_cost":15,` + tasks(0, 0, 1, 0),
		"?model=theta-image-turbo":                         `{"cost":0.03,"credits_cost":30,` + tasks(0, 0, 2, 0),
		"?model=alpha-v3&key=" + g.keyRow.ID:               `{"cost":0,"credits_cost":0,` + tasks(1, 1, 0, 1),
		"?group_by=day&key=key_01JZZZZZZZZZZZZZZZZZZZZZZZ": "",
		"?group_by=model&model=none&from=1772409600":       "",
		"?from=2025-03-02&to=2026-01-01&group_by=model":    "",
	} {
		if a := g.get("/v1/usage" + query); a.status != 200 || strings.TrimSpace(a.body) != list+want+"]}" {
			t.Errorf("%q: %d\n%s\nwant\n%s", query, a.status, a.body, list+want+"]}")
		}
	}
	same, twice := g.get("/v1/usage?group_by=key,model,model").body, g.get("/v1/usage?group_by=model&group_by=key").body
	if same != twice || !strings.Contains(same, `"model"`) {
		t.Errorf("the order of words counts:\n%s\n%s", same, twice)
	}
	if a := g.send(request{path: "/v1/usage", key: g.other()}); a.at("data", 0, "tasks", "completed") != 0.0 || a.at("data", 0, "cost") != 0.0 {
		t.Errorf("another account sees %s", a.body)
	}
}

func TestUsageRefusals(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for query, message := range map[string]string{
		"to=1969-12-31T23:59:59Z":       "to must be a date",
		"from=2026-02-02&to=2026-02-02": "from must be before to",
		"from=2026-03-02":               "from must not be in the future",
		"from=2025-01-01&to=2026-01-03": "from and to must be at most 366 days apart",
		"group_by=week":                 "group_by must be one or several of day, model, key,",
		"group_by=day,account":          "group_by must be one or several of day, model, key,",
		"key=test":                      "key must be the id of a key",
		"model=%00":                     "model must be a text",
	} {
		g.get("/v1/usage?"+query).wantError(t, 400, "invalid_request_error", message)
		g.send(request{path: "/v1/usage?" + query, key: g.key, header: asCSV()}).wantError(t, 400, "invalid_request_error", message)
	}
	g.get("/v1/usage?from=2025-01-01&to=2026-01-02&group_by=&x=y").wantStatus(t, 200, "a year")
	for query, message := range map[string]string{
		"account=x":                         "account must be",
		"account=" + noAccount:              "account must be",
		"group_by=task":                     "group_by must be one or several of day, model, key, account, provider,",
		"group_by=provider&from=1772000001": "group_by provider takes whole hours",
	} {
		g.operate(http.MethodGet, "/usage?"+query, "").wantError(t, 400, "invalid_request_error", message)
	}
}

func TestUsageAsFile(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.complete(g.submit(images, imageBody))
	get := func(accept, query string) answer {
		return g.send(request{path: "/v1/usage?" + query, key: g.key, header: http.Header{"Accept": {accept}}})
	}
	a := get("text/csv", "group_by=day,model")
	if a.body != "day,model,cost,credits_cost,pending,processing,completed,failed,cancelled\r\n2026-03-01,theta-image-turbo,0.015,15,0,0,1,0,0\r\n" {
		t.Errorf("%q", a.body)
	}
	if got := a.header.Get("Content-Disposition"); got != "attachment; filename=usage.csv" || a.header.Get("Vary") != "Accept" {
		t.Errorf("%s, Vary %s", got, a.header.Get("Vary"))
	}
	if b := get("text/csv", "group_by=key"); !strings.HasPrefix(b.body, "key,key_name,cost,") || !strings.Contains(b.body, g.keyRow.ID+",test,0.015,") {
		t.Errorf("%q", b.body)
	}
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "text/*": "application/json", "text/html": "application/json", "text/csv;q=0": "application/json",
		"text/csv;q=0.5, application/json": "application/json", "application/json;q=0.5, text/csv": "text/csv; charset=utf-8",
		"TEXT/CSV": "text/csv; charset=utf-8", "text/csv, */*;q=0.1": "text/csv; charset=utf-8", "text/csv; charset=utf-8": "text/csv; charset=utf-8",
		"nonsense;;, text/csv": "text/csv; charset=utf-8",
	} {
		if got := get(accept, "").header.Get("Content-Type"); got != want {
			t.Errorf("Accept %q: %s", accept, got)
		}
	}
}

// No text of a caller is a formula of a spreadsheet, and amounts stay numbers.
func TestFormulasAreTexts(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for i, reference := range []string{`=HYPERLINK("http://evil.example.com","x")`, "+1", "-1", "@SUM(A1)", "\t=1", "＝1", "INV-7;=1+1;\n@x", "plain, with \"quotes\"\nand lines"} {
		_, _, _, err := g.store.Grant(t.Context(), g.account.ID, mediagate.Micros(-i-1), reference)
		g.must(err)
	}
	lines := g.send(request{path: "/admin/v1/accounts/" + g.account.ID + "/statement", key: adminKey, header: asCSV()}).lines(t)
	for i, want := range []string{`'=HYPERLINK("http://evil.example.com","x")`, "'+1", "'-1", "'@SUM(A1)", "'\t=1", "'＝1", "INV-7;'=1+1;\n'@x", "plain, with \"quotes\"\nand lines"} {
		if got := lines[i+3]; got[10] != want || got[2] != fmt.Sprintf("-0.00000%d", i+1) || got[3] != got[2] {
			t.Errorf("%q", got)
		}
	}
}

func TestAdminUsage(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(images, imageBody)
	g.make(id, mediagate.Outcome{VendorCharge: mediagate.ChargedBy("2.5", "unit")}, mediagate.Result{Key: "results/" + id, MimeType: "image/png", Size: 1})
	other := g.other()
	taken := g.send(request{method: http.MethodPost, path: images, key: other, body: imageBody})
	g.complete(taken.taskID(t))
	const tasks = `"tasks":{"pending":0,"processing":0,"completed":1,"failed":0,"cancelled":0}`
	a := g.operate(http.MethodGet, "/usage?group_by=account,provider&account="+g.account.ID, "")
	want := `{"object":"list","data":[{"account":"` + g.account.ID + `","account_name":"` + g.account.Name + `","cost":0.015,"credits_cost":15,` + tasks +
		`,"provider":"kling","vendor_charges":[{"amount":"2.5","unit":"unit"}]}],"has_more":false}`
	if a.status != 200 || strings.TrimSpace(a.body) != want {
		t.Errorf("%d %s\nwant %s", a.status, a.body, want)
	}
	lines := g.send(request{path: "/admin/v1/usage?group_by=provider", key: adminKey, header: asCSV()}).lines(t)
	if diff := cmp.Diff([][]string{
		{"provider", "cost", "credits_cost", "pending", "processing", "completed", "failed", "cancelled", "vendor_charges"},
		{"kling", "0.03", "30", "0", "0", "2", "0", "0", "2.5 unit"},
	}, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	// Clients never see what the vendor took.
	for _, path := range []string{"/v1/usage?group_by=provider", "/v1/usage?group_by=model", "/v1/tasks/" + id, "/v1/tasks"} {
		if a := g.get(path); strings.Contains(a.body, "unit") || strings.Contains(a.body, "vendor") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

func TestStatement(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	path := "/accounts/" + g.account.ID + "/statement"
	done := g.submit(images, imageBody)
	g.clock.advance(time.Hour)
	cut := g.clock.now()
	g.complete(done)
	g.submit(images, imageBody)
	a := g.operate(http.MethodGet, path, "")
	if a.status != 200 || a.at("object") != "statement" || a.at("currency") != "USD" || a.at("to") != nil || a.at("has_more") != false {
		t.Fatalf("%d %s", a.status, a.body)
	}
	want := `{"available":"99.97","held":"0.015","spent":"0.015"}`
	if !strings.Contains(a.body, `"closing":`+want) || !strings.Contains(a.body, `"opening":{"available":"0.00","held":"0.00","spent":"0.00"}`) {
		t.Errorf("all of it: %s", a.body)
	}
	if got := g.operate(http.MethodGet, "/accounts/"+g.account.ID, ""); !strings.Contains(got.body, want[1:len(want)-1]) {
		t.Errorf("the account: %s", got.body)
	}
	var task, key, change any = done, g.keyRow.ID, map[string]any{"available": "0.00", "held": "-0.015", "spent": "0.015"}
	for i, want := range map[string]any{"kind": "post", "task": task, "key": key, "model": "theta-image-turbo", "amount": "0.015", "reference": nil, "change": change} {
		if diff := cmp.Diff(want, a.at("data", 2, i)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", i, diff)
		}
	}
	since := g.operate(http.MethodGet, path+"?limit=1&from="+url.QueryEscape(cut.Format(time.RFC3339)), "")
	if since.at("has_more") != true || since.at("opening", "held") != "0.015" || since.at("data", 0, "task") != done {
		t.Fatalf("a page: %s", since.body)
	}
	file := g.send(request{path: "/admin/v1" + path + "?limit=2", key: adminKey, header: asCSV()})
	lines := file.lines(t)
	if got := file.header.Get("Link"); !strings.HasPrefix(got, "</admin/v1"+path+"?after=txn_") || !strings.HasSuffix(got, `&limit=2>; rel="next"`) {
		t.Errorf("Link %s", got)
	}
	if diff := cmp.Diff([]string{"at", "kind", "amount", "available", "held", "spent", "task", "model", "key", "key_name", "reference", "id"}, lines[0]); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	var kinds []string
	for _, line := range lines[1:] {
		kinds = append(kinds, line[1]+" "+line[3])
	}
	if diff := cmp.Diff([]string{"opening 0.00", "grant 100.00", "hold -0.015", "closing 99.985"}, kinds); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// A statement by tasks has a line a task, at its end, and the balance after it.
func TestStatementByTask(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.complete(g.submit(images, imageBody))
	g.clock.advance(time.Second)
	g.cancel(g.submit(images, imageBody))
	g.submit(images, imageBody) // open: it has charged nothing
	path := "/accounts/" + g.account.ID + "/statement?by=task"
	a := g.operate(http.MethodGet, path, "")
	type line struct{ Kind, Amount, Balance any }
	var got []line
	rows, _ := a.at("data").([]any)
	for i := range rows {
		got = append(got, line{a.at("data", i, "kind"), a.at("data", i, "amount"), a.at("data", i, "balance")})
	}
	if diff := cmp.Diff([]line{{"grant", "100.00", "100.00"}, {"post", "-0.015", "99.985"}, {"void", "0.00", "99.985"}}, got); diff != "" {
		t.Errorf("%d (-want +got):\n%s", a.status, diff)
	}
	if !strings.Contains(a.body, `"opening":{"balance":"0.00","spent":"0.00"}`) || !strings.Contains(a.body, `"closing":{"balance":"99.985","spent":"0.015"}`) {
		t.Errorf("balances: %s", a.body)
	}
	first := g.operate(http.MethodGet, path+"&limit=2", "")
	id, _ := first.at("data", 1, "id").(string)
	next := g.operate(http.MethodGet, path+"&after="+id, "")
	if first.at("closing", "balance") != "99.985" || next.at("opening", "balance") != "99.985" || next.at("data", 0, "kind") != "void" {
		t.Errorf("pages: %s\n%s", first.body, next.body)
	}
	lines := g.send(request{path: "/admin/v1" + path, key: adminKey, header: asCSV()}).lines(t)
	if diff := cmp.Diff([]string{"at", "kind", "amount", "balance", "task", "model", "key", "key_name", "reference", "id"}, lines[0]); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if got := lines[3]; got[2] != "-0.015" || got[3] != "99.985" || got[7] != "test" {
		t.Errorf("a line: %q", got)
	}
}

func TestStatementRefusals(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	path := "/accounts/" + g.account.ID + "/statement"
	for query, message := range map[string]string{
		"?from=2026-01-02&to=2026-01-01": "from must be before to",
		"?by=day":                        "by must be one of task",
		"?after=x":                       "after must be", "?after=txn_01JZZZZZZZZZZZZZZZZZZZZZZZ": "after must be",
	} {
		g.operate(http.MethodGet, path+query, "").wantError(t, 400, "invalid_request_error", message)
	}
	for _, id := range []string{noAccount, "x"} {
		g.operate(http.MethodGet, "/accounts/"+id+"/statement", "").wantError(t, 404, "not_found_error", "account")
	}
	g.send(request{path: "/admin/v1" + path + "?limit=10001", key: adminKey, header: asCSV()}).wantError(t, 400, "invalid_request_error", "limit must be")
	if a := g.operate(http.MethodGet, path+"?from=0", ""); a.status != 200 { // pages bound it
		t.Errorf("all time: %d %s", a.status, a.body)
	}
}

func TestOwnAccount(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.operate(http.MethodPatch, "/accounts/"+g.account.ID, `{"in_flight":7,"unpaid":"5"}`)
	g.complete(g.submit(images, imageBody))
	g.submit(images, imageBody)
	want := `{"id":"` + g.account.ID + `","name":"` + g.account.Name + `","group":"` + g.account.Group + `","available":"99.97","held":"0.015","spent":"0.015",` +
		fmt.Sprintf(`"rate":null,"in_flight":7,"erase_inputs":false,"webhook":null,"suspended":false,"created":%d,"unpaid":"5.00","uploads_per_day":null}`, g.account.CreatedAt.Unix())
	if a := g.get("/v1/account"); a.status != 200 || strings.TrimSpace(a.body) != want {
		t.Errorf("%d %s\nwant %s", a.status, a.body, want)
	}
}

// An account reads the statement that its operator reads, and nobody else's.
func TestOwnStatement(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.complete(g.submit(images, imageBody))
	g.submit(images, imageBody)
	const path = "/v1/account/statement"
	admin := "/admin/v1/accounts/" + g.account.ID + "/statement"
	for _, query := range []string{"", "?limit=2", "?from=2026-03-01&to=2026-03-02"} {
		for name, header := range map[string]http.Header{"JSON": nil, "a file": asCSV()} {
			own := g.send(request{path: path + query, key: g.key, header: header})
			theirs := g.send(request{path: admin + query, key: adminKey, header: header})
			if own.status != 200 || own.body != theirs.body || own.header.Get("Content-Disposition") != theirs.header.Get("Content-Disposition") {
				t.Errorf("%q as %s: %d\n%s\nthe operator's:\n%s", query, name, own.status, own.body, theirs.body)
			}
		}
	}
	id, _ := g.get(path+"?limit=1").at("data", 0, "id").(string)
	file := g.send(request{path: path + "?limit=1", key: g.key, header: asCSV()})
	if got := file.header.Get("Link"); got != "<"+path+"?after="+id+`&limit=1>; rel="next"` {
		t.Errorf("Link %s", got)
	}
	other := g.other()
	g.send(request{path: path + "?after=" + id, key: other}).wantError(t, 400, "invalid_request_error", "after must be an id of this statement")
	if a := g.send(request{path: path, key: other}); a.status != 200 || strings.Contains(a.body, g.account.ID) || strings.Contains(a.body, "task_") {
		t.Errorf("another account sees %s", a.body)
	}
}
