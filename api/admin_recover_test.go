package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

// recovered returns all pages of POST /admin/v1/recover.
func (g *gateway) recovered(to time.Time) (marked int, list []string) {
	g.t.Helper()
	for after := ""; ; {
		a := g.operate(http.MethodPost, "/recover", fmt.Sprintf(`{"restored_to":%q,"after":%q}`, to.Format(time.RFC3339), after))
		if a.status != http.StatusOK {
			g.t.Fatalf("%d %s", a.status, a.body)
		}
		var page struct {
			Marked int `json:"marked"`
			Data   []struct {
				Kind, ID, Account, Key, Model, Hold, State string
			} `json:"data"`
			HasMore bool   `json:"has_more"`
			Next    string `json:"next"`
		}
		g.must(json.Unmarshal([]byte(a.body), &page))
		marked += page.Marked
		for _, d := range page.Data {
			list = append(list, strings.Join([]string{d.Kind, d.ID, d.Account, d.Key, d.Model, d.Hold, d.State}, " "))
		}
		if !page.HasMore {
			return marked, list
		}
		after = page.Next
	}
}

// TestRecover checks D17: open tasks are marked once as restored, and the tasks and runs that
// need a person's decision are listed with account and amount.
func TestRecover(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(videos, `{"model":"alpha-v3","prompt":"a"}`)
	g.clock.advance(time.Hour)
	to := g.clock.now().Add(-time.Minute)
	run := func(id string, at time.Time) mediagate.UncertainTask {
		return mediagate.UncertainTask{TaskID: id, AccountID: "acc_x", KeyID: "key_x", Model: "alpha-v3", Hold: 420_000, State: "running", At: at}
	}
	g.starter.runs = [][]mediagate.UncertainTask{
		{run(id, to), run("task_lost", to), run("task_lost", to), run("task_long_ago", to.Add(-time.Hour))},
		{run("task_lost_too", to.Add(-time.Minute))},
	}
	task := g.row(id)
	want := []string{
		fmt.Sprintf("task %s %s %s %s %s pending", id, task.AccountID, task.KeyID, task.Model, task.Hold),
		"row_missing task_lost acc_x key_x alpha-v3 0.42 running",
		"row_missing task_lost_too acc_x key_x alpha-v3 0.42 running",
	}
	for i, told := range []int{1, 0} {
		marked, list := g.recovered(to)
		if diff := cmp.Diff(want, list); diff != "" || marked != told {
			t.Errorf("call %d told %d tasks, lists (-want +got):\n%s", i+1, marked, diff)
		}
	}
	entries, _, err := g.store.Audit(t.Context(), mediagate.AuditFilter{Limit: 10})
	g.must(err)
	if len(entries) == 0 || entries[0].Action != mediagate.AuditRecover || entries[0].Object != to.Format(time.RFC3339) {
		t.Errorf("audit %+v", entries)
	}
}

// TestRecoverRefuses checks that a refused call records no restore.
func TestRecoverRefuses(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.submit(videos, `{"model":"alpha-v3","prompt":"a"}`)
	now := g.clock.now()
	for name, c := range map[string]struct{ body, param string }{
		"nothing":                    {`{}`, "restored_to"},
		"no time":                    {`{"restored_to":"yesterday"}`, "restored_to"},
		"a time as a text of digits": {`{"restored_to":"1772366400"}`, "restored_to"},
		"the future":                 {fmt.Sprintf(`{"restored_to":%d}`, now.Add(time.Minute).Unix()), "restored_to"},
		"before the oldest task":     {fmt.Sprintf(`{"restored_to":%d}`, now.Add(-time.Minute).Unix()), "restored_to"},
		"a page of another list":     {fmt.Sprintf(`{"restored_to":%d,"after":"task_1"}`, now.Unix()), "after"},
		"a page that is no text":     {fmt.Sprintf(`{"restored_to":%d,"after":7}`, now.Unix()), "after"},
	} {
		a := g.operate(http.MethodPost, "/recover", c.body)
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, c.param+" must") && !strings.Contains(a.body, c.param+" is required") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	// What is noted holds back every open task.
	if audit := g.operate(http.MethodGet, "/audit", ""); strings.Contains(audit.body, `"action":"`+string(mediagate.AuditRecover)+`"`) {
		t.Errorf("noted: %s", audit.body)
	}
	noPage := fmt.Sprintf(`{"restored_to":%d,"after":"runs:?"}`, now.Unix())
	g.operate(http.MethodPost, "/recover", noPage).wantError(t, 400, "invalid_request_error", "no page")
}
