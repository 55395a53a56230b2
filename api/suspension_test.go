package api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// suspend suspends the gateway's account, or lets it go on.
func (g *gateway) suspend(body string) {
	g.t.Helper()
	g.operate(http.MethodPatch, "/accounts/"+g.account.ID, body).wantStatus(g.t, http.StatusOK, body)
}

// A suspended account gets 403 for each call that begins something, whatever it asks for.
func TestSuspension(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	waiting := g.submit(art, artBody)
	g.accept(waiting)
	g.askMore(waiting)
	running := g.submit(videos, videoBody)
	again := request{
		method: http.MethodPost, path: videos, key: g.key, body: videoBody, header: http.Header{"Idempotency-Key": {"again"}},
	}
	first := g.send(again).taskID(t)
	g.suspend(`{"suspended":true,"reason":"does not pay"}`)

	refused := func(a answer) bool {
		message, _ := a.at("error", "message").(string)
		return a.status == http.StatusForbidden && a.at("error", "type") == "permission_error" && strings.Contains(message, "suspended")
	}
	parameter := regexp.MustCompile(`:\w+`)
	for _, row := range api.Rows() {
		if row.Scope != mediagate.ScopeGenerate {
			continue
		}
		r := request{
			method: row.Method, path: parameter.ReplaceAllString(row.Path, running), key: g.key,
			body: `{"model":"zeta-3.1-flash-image-preview","prompt":"a fox"}`, header: http.Header{"Content-Type": {"application/json"}},
		}
		if row.Path == "/v1/images/edits" || strings.HasPrefix(row.Path, "/v1/uploads/") {
			r.body = formOf([2]string{`form-data; name="prompt"`, "a fox"}, [2]string{`form-data; name="image"; filename="fox.png"`, aPicture})
			r.header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
		}
		a := g.send(r)
		goesOn := row.Path == art+"/modal" || strings.HasSuffix(row.Path, "/cancel")
		if refused(a) == goesOn {
			t.Errorf("%s %s: %d %s", row.Method, row.Path, a.status, a.body)
		}
	}
	if a := g.send(again); a.taskID(t) != first || a.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("a repetition: %d %s", a.status, a.body)
	}
	g.post(art+"/modal", `{"task_id":"`+waiting+`","prompt":"a fox"}`).
		wantStatus(t, http.StatusOK, "the rest of a task's parameters")
	if a := g.get("/v1/account"); a.at("suspended") != true {
		t.Errorf("the account: %d %s", a.status, a.body)
	}
	entry := g.operate(http.MethodGet, "/audit?account="+g.account.ID, "")
	if entry.at("data", 0, "after", "suspended") != true || entry.at("data", 0, "after", "reason") != "does not pay" {
		t.Errorf("the audit: %s", entry.body)
	}
	g.suspend(`{"suspended":false}`)
	g.submit(videos, videoBody)
}
