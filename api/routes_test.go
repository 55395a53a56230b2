package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

// TestRows checks that each row of the table is complete and has nothing needless, and that the
// limits of a connection leave time for the row's.
func TestRows(t *testing.T) {
	t.Parallel()
	defaults, _ := Config{}.withDefaults()
	seen := map[string]bool{}
	uncounted := map[string]bool{
		"POST " + quotePath: true, "POST /v1/tasks/:task_id/cancel": true, "POST /v1/tasks/:task_id/redeliver": true, "POST /v1/webhooks/secret": true, "POST /v1/webhooks/test": true,
		"POST /mcp":             true, // the calls within are counted
		"POST " + endpointsPath: true, "POST " + endpointsPath + "/:endpoint_id/test": true, "POST " + endpointsPath + "/:endpoint_id/secret": true,
		"POST " + endpointsPath + "/:endpoint_id/deliveries/:event_id/redeliver": true,
		"POST " + keysPath: true, "POST " + keysPath + "/:key_id/rotate": true,
	}
	for _, r := range routes() {
		name := r.method + " " + r.path
		if want := r.access == accessKey && r.method == http.MethodPost && !uncounted[name]; r.isRated() != want {
			t.Errorf("%s: whether rates count it is %t", name, r.isRated())
		}
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
		if r.handler == nil {
			t.Errorf("%s has no handler", name)
		}
		if (r.body == bodyNone) != (r.bound == 0) {
			t.Errorf("%s: body %d, bound %d", name, r.body, r.bound)
		}
		if strings.HasPrefix(r.path, admin+"/") != (r.access == accessAdmin) {
			t.Errorf("%s: access %d", name, r.access)
		}
		if (r.access == accessAdmin) != (r.role != "") {
			t.Errorf("%s: access %d, role %q", name, r.access, r.role)
		}
		if needs := r.access == accessKey || r.access == accessLists; needs != (r.scope != "") {
			t.Errorf("%s: access %d, scope %q", name, r.access, r.scope)
		}
		took := r.time + defaults.StoreTimeout
		if r.body != bodyNone {
			took += requestTimeout
		}
		if took > answerTimeout {
			t.Errorf("%s may take %s, and the connection is cut after %s", name, took, answerTimeout)
		}
	}
}

// TestRolesOfRoutes lists the routes that each role of operators may use in addition to those of
// lower roles. A new route of the admin API needs a line here.
func TestRolesOfRoutes(t *testing.T) {
	t.Parallel()
	want := map[mediagate.OperatorRole][]string{
		mediagate.RoleRead: {
			"GET /accounts", "GET /accounts/:account_id", "GET /accounts/:account_id/ledger", "GET /accounts/:account_id/statement",
			"GET /keys", "GET /keys/:key_id",
			"GET /tasks", "GET /tasks/:task_id", "GET /tasks/actions/:job_id",
			"GET /channels", "GET /channels/:channel",
			"GET /openapi.yaml", "GET /usage", "GET /ledger/check", "GET /audit", "GET /vendors", "GET /accounts/:account_id/endpoints",
		},
		mediagate.RoleOperate: {"POST /tasks/:task_id/actions", "POST /tasks/actions", "PATCH /channels/:channel"},
		mediagate.RoleAdmin: {
			"POST /accounts", "PATCH /accounts/:account_id", "POST /accounts/:account_id/grants",
			"POST /accounts/:account_id/keys", "PATCH /keys/:key_id", "POST /keys/:key_id/rotate", "DELETE /keys/:key_id",
			"POST /recover",
		},
	}
	got := map[mediagate.OperatorRole][]string{}
	for _, r := range routes() {
		if r.access == accessAdmin {
			got[r.role] = append(got[r.role], r.method+" "+strings.TrimPrefix(r.path, admin))
		}
	}
	for _, lists := range []map[mediagate.OperatorRole][]string{want, got} {
		for _, list := range lists {
			slices.Sort(list)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes by role (-want +got):\n%s", diff)
	}
}
