package api_test

import (
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

const hooked = `{"model":"alpha-v3","prompt":"a secret cat","webhook":"https://hooks.example.com"}`

// told returns the events of a task's story with their details.
func (a answer) told(t *testing.T) (lines []string) {
	t.Helper()
	events, ok := a.at("events").([]any)
	if a.status != 200 || !ok {
		t.Fatalf("no story: %d %s", a.status, a.body)
	}
	last := 0.0
	for _, e := range events {
		line := e.(map[string]any)
		at := line["at"].(float64)
		if at < last {
			t.Errorf("%v comes after a later line", line)
		}
		last = at
		lines = append(lines, strings.TrimSuffix(line["what"].(string)+": "+line["detail"].(string), ": "))
	}
	return lines
}

func (g *gateway) story(id string) answer {
	g.t.Helper()
	return g.operate(http.MethodGet, "/tasks/"+id, "")
}

func (g *gateway) act(id, body string) answer {
	g.t.Helper()
	return g.operate(http.MethodPost, "/tasks/"+id+"/actions", body)
}

// park parks a task whose next step is to submit.
func (g *gateway) park(id string, reason mediagate.ParkReason) {
	g.t.Helper()
	state, next := g.change(id), 1
	if last := state.Last(); last != nil {
		next = last.N + 1
	}
	g.change(id, task.StepEnded{Step: task.Submit, N: next, Failed: true, Kind: mediagate.KindShutOut, Code: string(reason)})
}

func (g *gateway) exec(statement string, args ...any) {
	g.t.Helper()
	db, err := sql.Open("pgx", g.store.(*databaseStore).address)
	g.must(err)
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(g.t.Context(), statement, args...)
	g.must(err)
}

// deliver records an attempt at the callback.
func (g *gateway) deliver(id string, round, attempt, status int, state mediagate.WebhookState) {
	g.t.Helper()
	d := mediagate.Delivery{TaskID: id, Round: round, Attempt: attempt, At: g.clock.now(), Status: status, Duration: 120 * time.Millisecond}
	if state == "" {
		d.Error, d.NextAttemptAt = "the receiver did not answer", g.clock.now().Add(10*time.Second)
	}
	g.must(g.store.(*databaseStore).RecordDelivery(g.t.Context(), d, state, ""))
}

// TestStories checks the story of a task in each state: what the task waits for, and why.
func TestStories(t *testing.T) {
	t.Parallel()
	accepted := []string{"submitted: alpha-v3, key KEY", "hold: 0.42", "attempt 1: to one as TASK", "attempt 1 accepted: the vendor's id is job"}
	channels := map[string][]any{"new": {}, "the vendor works": {"one"}, "queued": {"kling-a", "kling-b"}}
	for name, c := range map[string]struct {
		scene  func(g *gateway, id string)
		kind   any // of waits_for
		stuck  any // its reason
		acts   []any
		events []string
	}{
		"new": {func(*gateway, string) {}, "submit", nil, []any{"fail", "reroute"}, accepted[:2]},
		"the vendor works": {
			func(g *gateway, id string) { g.accept(id) }, "vendor", nil, []any{"fail", "retry", "reroute", "poll_now"}, accepted,
		},
		"parked": {
			func(g *gateway, id string) { g.park(id, mediagate.ParkFunds) }, "parked", "provider_out_of_funds",
			[]any{"fail", "retry", "reroute"},
			append(accepted[:2:2], "parked: provider_out_of_funds"),
		},
		"queued": {
			func(g *gateway, id string) { g.change(id, task.Queued{N: 1, Channels: []string{"kling-a", "kling-b"}}) }, "slot", nil,
			[]any{"fail", "retry", "reroute"},
			append(accepted[:2:2], "queued: for a slot of kling-a, kling-b"),
		},
		"overdue": {
			func(g *gateway, id string) { g.exec("UPDATE wakes SET tries = 3 WHERE task_id = $1", id) }, "submit", "run_overdue",
			[]any{"fail", "reroute"},
			accepted[:2],
		},
		"nobody scans": {func(g *gateway, _ string) { g.clock.advance(2 * time.Minute) }, "submit", nil, []any{"fail", "reroute"}, accepted[:2]},
		"unreadable": {
			func(g *gateway, id string) {
				g.exec("UPDATE tasks SET document = '{' WHERE id = $1", id)
				g.change(id, task.Asked{})
			}, "parked", "internal_error", []any{"fail"}, append(accepted[:2:2], "parked: internal_error"),
		},
		"two attempts, and a redelivery": {
			func(g *gateway, id string) {
				g.accept(id)
				g.clock.advance(time.Minute)
				g.act(id, `{"action":"reroute","channel":"kling-b","reason":"kling-a is slow"}`)
				now := g.clock.now()
				sent := task.Sending{
					N: 2, Channel: "kling-b", Provider: "kling", Fingerprint: "f", Route: mediagate.Route{Provider: "kling"}, ExternalID: task.ExternalID(id, 2),
					SendBefore: now.Add(10 * time.Second), CallEnds: now.Add(time.Minute),
				}
				g.change(id, task.IntentStored{Sending: sent}, task.Accepted{Sending: sent, Submission: mediagate.Submission{Ref: mediagate.JobRef{JobID: "job-2"}}, FirstPollAt: now})
				g.clock.advance(time.Minute)
				g.change(id, task.VendorEnded{N: 2, Outcome: mediagate.Outcome{Succeeded: true}},
					task.Mirrored{N: 2, Results: []mediagate.Result{{Key: "r", MimeType: "video/mp4", Size: 9, Duration: 5}}})
				g.clock.advance(time.Second)
				g.deliver(id, 1, 1, 0, "")
				g.clock.advance(time.Minute)
				g.deliver(id, 1, 2, 410, mediagate.WebhookAbandoned)
				g.clock.advance(time.Hour)
				g.act(id, `{"action":"redeliver","reason":"their receiver was down"}`)
				g.clock.advance(time.Second)
				g.deliver(id, 2, 1, 204, mediagate.WebhookDelivered)
			}, nil, nil,
			[]any{"redeliver"},
			append(accepted[:4:4], "command reroute: to kling-b, by admin: kling-a is slow", "attempt 1 given up: by a command",
				"attempt 2: to kling-b as TASK-2", "attempt 2 accepted: the vendor's id is job-2", "attempt 2 succeeded",
				"completed: 1 file copied, 9 bytes", "post: 0.42", "callback: round 1, attempt 1: the receiver did not answer, 120 ms",
				"callback: round 1, attempt 2: status 410, 120 ms", "command redeliver: by admin: their receiver was down",
				"callback: round 2, attempt 1: status 204, 120 ms"),
		},
		"cancelled, and its job may run on": {
			func(g *gateway, id string) {
				g.accept(id)
				g.clock.advance(time.Minute)
				g.change(id, task.CancelRequested{}, task.EndDue{})
			}, nil, nil,
			[]any{},
			append(accepted[:4:4], "cancel requested", "cancelled", "void: 0.42", "attempt 1 abandoned: its job may run on, until 2026-03-01T12:07:00Z at the latest"),
		},
		"cancelled, and its job has ended": {
			func(g *gateway, id string) {
				g.accept(id)
				g.clock.advance(time.Minute)
				g.change(id, task.CancelRequested{}, task.EndDue{})
				g.clock.advance(time.Minute)
				g.change(id, task.VendorEnded{N: 1, Outcome: mediagate.Outcome{Succeeded: true}})
			}, nil, nil,
			[]any{},
			append(accepted[:4:4], "cancel requested", "cancelled", "void: 0.42", "attempt 1 succeeded"),
		},
		"failed by its vendor": {
			func(g *gateway, id string) {
				g.accept(id)
				g.fail(id, mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: "too much cat"})
			}, nil, nil,
			[]any{"redeliver"},
			append(accepted[:4:4], "attempt 1 ended: content_policy_violation: too much cat", "failed: content_policy_violation: too much cat", "void: 0.42"),
		},
		"erased": {
			func(g *gateway, id string) {
				g.complete(id)
				g.clock.advance(time.Minute)
				g.send(request{method: http.MethodDelete, path: "/v1/tasks/" + id, key: g.key})
			}, nil, nil,
			[]any{},
			append(accepted[:2:2], "attempt 1: to one as", "attempt 1 accepted: the vendor's id is", "attempt 1 succeeded", "completed", "post: 0.42", "inputs erased", "erased"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t)
			g.seen()
			id := g.submit(videos, hooked)
			c.scene(g, id)
			a := g.story(id)
			got := a.told(t)
			for i := range got {
				got[i] = strings.TrimSpace(strings.NewReplacer(id, "TASK", g.keyRow.ID, "KEY").Replace(got[i]))
			}
			if diff := cmp.Diff(c.events, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			acts := a.at("actions")
			if diff := cmp.Diff([]any{c.kind, c.stuck, any(c.acts)}, []any{a.at("waits_for", "kind"), a.at("stuck", "reason"), acts}); diff != "" {
				t.Errorf("waits for, stuck, actions (-want +got):\n%s\n%s", diff, a.body)
			}
			if strings.Contains(a.body, "secret cat") {
				t.Errorf("the story holds the prompt: %s", a.body)
			}
			if want := channels[name]; want != nil {
				if diff := cmp.Diff(any(want), a.at("waits_for", "channels")); diff != "" {
					t.Errorf("channels (-want +got):\n%s", diff)
				}
			}
			then, _ := a.at("waits_for", "then").(string)
			if late := strings.HasPrefix(then, "this time has passed"); late != (name == "nobody scans") {
				t.Errorf("then %q", then)
			}
			if wait, ok := a.at("waits_for").(map[string]any); ok && (wait["until"] == nil || wait["then"] == "" || wait["step"] == "") {
				t.Errorf("waits_for leaves something open: %v", wait)
			}
			if a.at("account") != g.account.ID || a.at("key") != g.keyRow.ID || a.at("workflow", "run_id") != "run-of-"+id || a.at("id") != id {
				t.Errorf("whose is it: %s", a.body)
			}
		})
	}
}

// TestPromptIsAudited checks that a prompt is shown only on request, and that the audit records
// who read it.
func TestPromptIsAudited(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(videos, hooked)
	if a := g.operate(http.MethodGet, "/tasks/"+id+"?prompt=true", ""); a.at("request", "prompt") != "a secret cat" {
		t.Errorf("%d %s", a.status, a.body)
	}
	a := g.operate(http.MethodGet, "/audit?limit=1", "")
	if a.at("data", 0, "action") != "read_prompt" || a.at("data", 0, "object") != id || a.at("data", 0, "by") != "admin" || a.at("data", 0, "account") != g.account.ID {
		t.Errorf("audit: %s", a.body)
	}
	g.operate(http.MethodGet, "/tasks/"+id+"?prompt=1", "").wantStatus(t, 400)
}

// TestStoryWithoutTemporal checks that a story does not wait for Temporal.
func TestStoryWithoutTemporal(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(videos, hooked)
	g.started()
	g.starter.fail = errors.New("temporal is away")
	if a := g.story(id); a.status != 200 || a.at("workflow", "run_id") != nil || a.at("workflow", "url") != "https://temporal.example.com/"+id {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestAdminTaskList(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.seen()
	stuck, video := g.submit(videos, videoBody), g.submit(videos, videoBody)
	g.park(stuck, mediagate.ParkFunds)
	g.accept(video)
	other := g.other()
	foreign := g.send(request{method: http.MethodPost, path: images, key: other, body: imageBody}).taskID(t)
	for query, want := range map[string][]string{
		"":                               {foreign, video, stuck},
		"?limit=2":                       {foreign, video},
		"?after=" + video:                {stuck},
		"?stuck=true":                    {stuck},
		"?stuck=false&type=image":        {foreign},
		"?account=" + g.account.ID:       {video, stuck},
		"?channel=one":                   {video},
		"?status=processing":             {video},
		"?model=alpha-v3&status=pending": {stuck},
		"?channel=%00":                   nil,
		"?q=" + video:                    {video},
		"?q=OTHER":                       {foreign},
		"?q=" + g.account.ID:             {video, stuck},
		"?q=nobody":                      nil,
		"?webhook=pending":               nil,
	} {
		a := g.operate(http.MethodGet, "/tasks"+query, "")
		var got []string
		list, _ := a.at("data").([]any)
		for i := range list {
			id, _ := a.at("data", i, "id").(string)
			got = append(got, id)
		}
		if diff := cmp.Diff(want, got); diff != "" || a.status != 200 || a.at("object") != "list" || a.at("has_more") != (query == "?limit=2") {
			t.Errorf("%s: %d (-want +got):\n%s\n%s", query, a.status, diff, a.body)
		}
	}
	for query, want := range map[string]struct {
		status  int
		message string // how it begins
	}{
		"?stuck=maybe":                   {400, "stuck"},
		"?webhook=lost":                  {400, "webhook"},
		"?total=maybe":                   {400, "total"},
		"?q=%00":                         {400, "q"},
		"?q=" + strings.Repeat("x", 256): {400, "q"},
		"?after=nothing":                 {400, "after"},
		"?after=" + unknownID:            {400, "after"},
		"?account=acc_nothing":           {404, "account_id"},
	} {
		if a := g.operate(http.MethodGet, "/tasks"+query, ""); a.status != want.status || !strings.HasPrefix(a.at("error", "message").(string), want.message) {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}

// TestAdminTaskTotals checks that a list is counted on request, with the stuck tasks by reason.
func TestAdminTaskTotals(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for range 3 {
		g.park(g.submit(videos, videoBody), mediagate.ParkFunds)
	}
	g.submit(videos, videoBody)
	for query, want := range map[string][]any{
		"?limit=1":                       {nil, nil},
		"?limit=1&total=true":            {4.0, nil},
		"?limit=1&total=true&stuck=true": {3.0, map[string]any{"provider_out_of_funds": 3.0}},
		"?total=true&channel=%00":        {0.0, nil},
	} {
		a := g.operate(http.MethodGet, "/tasks"+query, "")
		if diff := cmp.Diff(want, []any{a.at("total"), a.at("reasons")}); diff != "" {
			t.Errorf("%s: %d (-want +got):\n%s", query, a.status, diff)
		}
	}
}

// TestAdminTaskOfDrainedChannel checks that a task without an attempt names its channels that an
// operator disabled.
func TestAdminTaskOfDrainedChannel(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.seen()
	id := g.submit(videos, `{"model":"alpha-video-o1","prompt":"a"}`) // which kling-b does not serve
	g.park(id, mediagate.ParkProviderAway)
	if a := g.operate(http.MethodGet, "/tasks/"+id, ""); a.at("stuck", "reason") != "provider_unavailable" || a.at("stuck", "drained") != nil {
		t.Errorf("no channel is drained: %s", a.body)
	}
	for channel, want := range map[string]any{"kling-a": []any{"kling-a"}, "kling-b": nil} {
		g.operate(http.MethodPatch, "/channels/"+channel, `{"enabled":false}`)
		if a := g.operate(http.MethodGet, "/tasks?stuck=true", ""); !cmp.Equal(a.at("data", 0, "stuck", "drained"), want) {
			t.Errorf("%s is drained: %s", channel, a.body)
		}
		g.operate(http.MethodPatch, "/channels/"+channel, `{"enabled":true}`)
	}
}

// unknownID has the form of a task id and belongs to no task.
const unknownID = "task_00000000000000000000000000"

// TestActions checks that a command is recorded and audited before its task's run is signalled. A
// command that does not apply changes nothing and names those that do.
func TestActions(t *testing.T) {
	t.Parallel()
	parked := func(g *gateway, id string) { g.park(id, mediagate.ParkFunds) }
	for name, c := range map[string]struct {
		scene   func(g *gateway, id string)
		body    string
		status  int
		message string // of an error; else empty
	}{
		"retry":                {parked, `{"action":"retry","reason":"the bill is paid"}`, 202, ""},
		"reroute":              {parked, `{"action":"reroute","reason":"x"}`, 202, ""},
		"reroute to a channel": {parked, `{"action":"reroute","channel":"kling-b","reason":"x"}`, 202, ""},
		"fail":                 {parked, `{"action":"fail","reason":"x"}`, 202, ""},
		"poll_now":             {(*gateway).accept, `{"action":"poll_now","reason":"x"}`, 202, ""},
		"redeliver":            {func(g *gateway, id string) { g.complete(id) }, `{"action":"redeliver","reason":"x"}`, 202, ""},
		"no action":            {parked, `{"reason":"x"}`, 400, "action is required"},
		"unknown action":       {parked, `{"action":"cancel","reason":"x"}`, 400, "action must be one of retry, reroute, fail, poll_now, redeliver"},
		"no reason":            {parked, `{"action":"retry"}`, 400, "reason is required"},
		"channel of a retry":   {parked, `{"action":"retry","channel":"kling-b","reason":"x"}`, 400, "channel is allowed only with the action reroute"},
		"unknown channel":      {parked, `{"action":"reroute","channel":"nobody","reason":"x"}`, 400, `there is no channel "nobody"`},
		"channel that is no use": {func(g *gateway, id string) {
			parked(g, id)
			g.exec("UPDATE tasks SET model = 'alpha-video-o1' WHERE id = $1", id)
		}, `{"action":"reroute","channel":"kling-b","reason":"x"}`, 400, "channel does not serve alpha-video-o1: kling-b"},
		"disabled channel": {func(g *gateway, id string) {
			parked(g, id)
			g.operate(http.MethodPatch, "/channels/kling-b", `{"enabled":false}`)
		}, `{"action":"reroute","channel":"kling-b","reason":"x"}`, 400, "channel is disabled, enable it or name another: kling-b"},
		"of an open task":          {parked, `{"action":"redeliver","reason":"x"}`, 409, "redeliver does not apply to this task now: what does is fail, retry, reroute"},
		"of a task that ended":     {func(g *gateway, id string) { g.complete(id) }, `{"action":"retry","reason":"x"}`, 409, "retry does not apply to this task now: what does is redeliver"},
		"of an erased task":        {func(g *gateway, id string) { g.complete(id); g.erased(id) }, `{"action":"redeliver","reason":"x"}`, 409, "redeliver does not apply to this task: no action does"},
		"of a task that is ending": {func(g *gateway, id string) { g.change(id, task.CancelRequested{}) }, `{"action":"retry","reason":"x"}`, 409, "retry does not apply to this task: no action does"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t)
			g.seen()
			id := g.submit(videos, hooked)
			g.started()
			c.scene(g, id)
			before := g.story(id)
			g.starter.woken = nil
			a := g.act(id, c.body)
			if a.status != c.status {
				t.Fatalf("%d %s, want %d", a.status, a.body, c.status)
			}
			open := before.at("completed") == nil
			if c.message != "" {
				after := g.story(id)
				if a.at("error", "message") != c.message || before.body != after.body || len(g.starter.woken) > 0 {
					t.Errorf("%s\n%s", a.body, cmp.Diff(before.body, after.body))
				}
				return
			}
			if id := a.at("id"); a.at("task", "id") == nil || id == nil || g.operate(http.MethodGet, "/audit?limit=1", "").at("data", 0, "after", "id") != id {
				t.Errorf("what is on record: %s", a.body)
			}
			if signalled := len(g.starter.woken) == 1; signalled != open {
				t.Errorf("signalled: %v, of an open task: %v", signalled, open)
			}
		})
	}
}

func TestActionsOfUnknownTasks(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for _, id := range []string{unknownID, "nothing"} {
		g.act(id, `{"action":"fail","reason":"x"}`).wantStatus(t, 404, id)
		g.story(id).wantStatus(t, 404, id)
	}
}

// TestRedeliveries checks that a client can repeat its callback. The golden file has the
// attempts.
func TestRedeliveries(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(videos, hooked)
	g.complete(id)
	g.deliver(id, 1, 1, 410, mediagate.WebhookAbandoned)
	if a := g.post("/v1/tasks/"+id+"/redeliver", ""); a.status != 202 || a.at("data", "webhook", "state") != "pending" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if by := g.operate(http.MethodGet, "/audit?limit=1", "").at("data", 0, "by"); by != g.keyRow.ID {
		t.Errorf("by %v", by)
	}
	g.deliver(id, 2, 1, 204, mediagate.WebhookDelivered)
	if a := g.get("/v1/tasks/" + id + "/deliveries?limit=1"); a.at("data", 0, "round") != 2.0 || a.at("has_more") != true {
		t.Errorf("the newest: %s", a.body)
	}
	g.get("/v1/tasks/"+id+"/deliveries?limit=0").wantStatus(t, 400)
	dropped := g.submit(videos, `{"model":"alpha-v3","prompt":"a","webhook":"http://127.0.0.1/"}`)
	g.complete(dropped)
	g.post("/v1/tasks/"+dropped+"/redeliver", "").wantStatus(t, 409)
	_, manages := g.newKey(mediagate.Key{Unlimited: true, Scopes: []mediagate.Scope{mediagate.ScopeManage}})
	if a := g.send(request{method: http.MethodPost, path: "/v1/tasks/" + id + "/redeliver", key: manages}); a.status != 202 || a.at("data", "model") != nil {
		t.Errorf("without the scope read: %d %s", a.status, a.body)
	}
}

// TestRedeliveriesAreBounded checks that redeliveries of a client are limited, so that they
// cannot fill the audit or flood a receiver. Those of an operator are not.
func TestRedeliveriesAreBounded(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(videos, hooked)
	g.complete(id)
	_, second := g.newKey(mediagate.Key{Unlimited: true})
	path := "/v1/tasks/" + id + "/redeliver"
	g.repeat(202, "an account may have callbacks delivered again 120 times a minute", func(i int) answer {
		return g.send(request{method: http.MethodPost, path: path, key: []string{g.key, second}[i%2]})
	})
	g.get("/v1/tasks/"+id+"/deliveries").wantStatus(t, 200, "reading")
	g.manage(g.key, http.MethodPatch, "/"+g.keyRow.ID, `{"name":"x"}`).wantStatus(t, 200, "another change")
	g.act(id, `{"action":"redeliver","reason":"x"}`).wantStatus(t, 202, "an operator's")
}

// repeat makes a call until it is refused for its number, which takes 120 of a minute.
func (g *gateway) repeat(status int, refusal string, call func(i int) answer) {
	g.t.Helper()
	made, refused := 0, answer{}
	for i := range 1000 {
		if a := call(i); a.status != status {
			refused = a
			break
		}
		made++
	}
	refused.wantError(g.t, 429, "rate_limit_error", refusal)
	if refused.header.Get("Retry-After") == "" || made < 120 {
		g.t.Errorf("%d calls, then %v", made, refused.header)
	}
}
