package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/task"
)

// jobs records the started jobs.
func (g *gateway) jobs() []mediagate.TaskJob {
	g.starter.mu.Lock()
	defer g.starter.mu.Unlock()
	return g.starter.jobs
}

// TestTaskActions checks that a command for many tasks begins a job with the filter.
func TestTaskActions(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.seen()
	g.submit(videos, `{"model":"alpha-v3","prompt":"a"}`)
	g.fail(g.submit(videos, `{"model":"alpha-v3","prompt":"b"}`), mediagate.Failure{Code: "internal_error", Message: "m"})
	began := g.clock.now()
	g.clock.advance(time.Minute)
	call := func(body string) answer { return g.operate(http.MethodPost, "/tasks/actions", body) }

	if a := call(`{"filter":{"model":"none"},"action":"retry","reason":"a test"}`); a.status != 200 || strings.TrimSpace(a.body) != `{"matched":0,"job":null}` {
		t.Errorf("nothing: %d %s", a.status, a.body)
	}
	if jobs := g.jobs(); len(jobs) != 0 {
		t.Fatalf("jobs: %+v", jobs)
	}

	a := call(`{"filter":{"status":"pending","created_after":0},"action":"reroute","channel":"kling-a","reason":"the other is slow","per_second":3}`)
	id, _ := a.at("job").(string)
	if a.status != 202 || !strings.HasPrefix(id, "job_") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	want := []mediagate.TaskJob{{
		ID: id, Filter: mediagate.TaskFilter{Status: mediagate.StatusPending, CreatedAfter: time.Unix(0, 0).UTC(), CreatedBefore: began.Add(time.Minute)},
		Action: mediagate.ActionReroute, Channel: "kling-a", Reason: "the other is slow", By: mediagate.AdminOperator, PerSecond: 3, Matched: 1,
	}}
	if diff := cmp.Diff(want, g.jobs()); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	shown := `{"job":"` + id + `","state":"running","progress":{"done":2,"skipped":1,"failed":0},` +
		`"workflow":{"id":"actions/` + id + `","run_id":"run-of-` + id + `","url":"https://temporal.example.com/actions%2F` + id + `"}}`
	if a := g.operate(http.MethodGet, "/tasks/actions/"+id, ""); a.status != 200 || strings.TrimSpace(a.body) != shown {
		t.Errorf("the job: %d %s, want %s", a.status, a.body, shown)
	}
	for _, unknown := range []string{"job_00000000000000000000000000", "x"} {
		g.operate(http.MethodGet, "/tasks/actions/"+unknown, "").wantError(t, 404, "not_found_error", "job_id")
	}
	audit := g.operate(http.MethodGet, "/audit?limit=1", "")
	if body := audit.body; !strings.Contains(body, `"task_job"`) || !strings.Contains(body, id) || !strings.Contains(body, "the other is slow") {
		t.Errorf("the audit: %s", body)
	}
	before := began.Add(30 * time.Second) // a time in the past stays
	call(`{"filter":{"created_before":"` + before.Format(time.RFC3339) + `"},"action":"fail","reason":"a test"}`)
	if jobs := g.jobs(); len(jobs) != 2 || !jobs[1].Filter.CreatedBefore.Equal(before) || jobs[1].PerSecond != 10 {
		t.Errorf("of the past: %+v", jobs)
	}
}

// TestTaskActionsDryRun checks that a dry run counts the tasks that would get the command and those
// that would be skipped, lists the matching tasks, and begins nothing.
func TestTaskActionsDryRun(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(cfg *api.Config) {
		cfg.Channels = append(cfg.Channels, api.Channel{Name: "vidu-a", Provider: "vidu", Weight: 1, Serves: servesOf("vidu")})
	})
	g.seen()
	first, second := g.submit(videos, `{"model":"alpha-v3","prompt":"a"}`), g.submit(videos, `{"model":"alpha-v3","prompt":"b"}`)
	g.fail(second, mediagate.Failure{Code: "internal_error", Message: "m"})
	g.clock.advance(time.Minute)
	both := `,"tasks":["` + second + `","` + first + `"]}`
	for name, test := range map[string]struct{ filter, command, want string }{
		"nothing matches": {`{"model":"none"}`, `"fail"`, `{"matched":0,"checked":0,"applies":0,"skipped":{},"tasks":[]}`},
		"fail":            {`{"model":"alpha-v3"}`, `"fail"`, `{"matched":2,"checked":2,"applies":1,"skipped":{"ended":1}` + both},
		"retry":           {`{"model":"alpha-v3"}`, `"retry"`, `{"matched":2,"checked":2,"applies":0,"skipped":{"at_work":1,"ended":1}` + both},
		"redeliver":       {`{"model":"alpha-v3"}`, `"redeliver"`, `{"matched":2,"checked":2,"applies":0,"skipped":{"no_callback":1,"open":1}` + both},
		"reroute":         {`{"model":"alpha-v3"}`, `"reroute","channel":"kling-a"`, `{"matched":2,"checked":2,"applies":1,"skipped":{"ended":1}` + both},
		"reroute to a channel that does not serve the model": {
			`{"model":"alpha-v3"}`, `"reroute","channel":"vidu-a"`, `{"matched":2,"checked":2,"applies":0,"skipped":{"channel":1,"ended":1}` + both,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := g.operate(http.MethodPost, "/tasks/actions", `{"filter":`+test.filter+`,"action":`+test.command+`,"reason":"a test","dry_run":true}`)
			if a.status != 200 || strings.TrimSpace(a.body) != test.want {
				t.Errorf("%d %s, want %s", a.status, a.body, test.want)
			}
		})
	}
	t.Cleanup(func() {
		if jobs := g.jobs(); len(jobs) != 0 {
			t.Errorf("jobs: %+v", jobs)
		}
	})
}

// TestTaskActionsDryRunUnreadable checks that a dry run counts a task that cannot be read next to the others.
func TestTaskActionsDryRunUnreadable(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.seen()
	other, id := g.submit(videos, `{"model":"alpha-v3","prompt":"a"}`), g.submit(videos, `{"model":"alpha-v3","prompt":"b"}`)
	g.exec("UPDATE tasks SET document = '{' WHERE id = $1", id)
	g.change(id, task.Asked{})
	g.clock.advance(time.Minute)
	a := g.operate(http.MethodPost, "/tasks/actions", `{"filter":{"model":"alpha-v3"},"action":"poll_now","reason":"a test","dry_run":true}`)
	want := `{"matched":2,"checked":2,"applies":0,"skipped":{"not_polled":1,"unreadable":1},"tasks":["` + id + `","` + other + `"]}`
	if a.status != 200 || strings.TrimSpace(a.body) != want {
		t.Errorf("%d %s, want %s", a.status, a.body, want)
	}
	stuck := g.operate(http.MethodGet, "/tasks?stuck=true", "")
	if stuck.status != 200 || !strings.Contains(stuck.body, id) {
		t.Errorf("the stuck tasks: %d %s", stuck.status, stuck.body)
	}
}

// TestTaskActionsDryRunOfMany checks that a dry run reads page after page, and lists the ids of the
// first page only.
func TestTaskActionsDryRunOfMany(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.grant("1000")
	for range 101 {
		g.submit(videos, `{"model":"alpha-v3","prompt":"a"}`)
	}
	g.clock.advance(time.Minute)
	a := g.operate(http.MethodPost, "/tasks/actions", `{"filter":{"model":"alpha-v3"},"action":"fail","reason":"a test","dry_run":true}`)
	tasks, _ := a.at("tasks").([]any)
	if a.at("matched") != 101.0 || a.at("checked") != 101.0 || a.at("applies") != 101.0 || len(tasks) != 100 {
		t.Errorf("%d, %d tasks: %s", a.status, len(tasks), a.body)
	}
}

func TestTaskActionsRefused(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.seen()
	g.submit(videos, `{"model":"alpha-v3","prompt":"a"}`)
	const rest = `"action":"retry","reason":"a test"`
	for name, test := range map[string]struct{ body, message string }{
		"no filter":         {`{` + rest + `}`, "filter is required"},
		"an empty filter":   {`{"filter":{},` + rest + `}`, "filter must select something"},
		"not stuck":         {`{"filter":{"stuck":false},` + rest + `}`, "filter must select something"},
		"a mistyped filter": {`{"filter":{"statsu":"failed"},` + rest + `}`, `\"statsu\" is not a filter; the filters are: status, model`},
		"a page":            {`{"filter":{"stuck":true,"limit":5},` + rest + `}`, `\"limit\" is not a filter`},
		"an empty value":    {`{"filter":{"status":""},` + rest + `}`, "filter.status must be a string that is not empty, a number, true or false"},
		"null":              {`{"filter":{"status":null},` + rest + `}`, "filter.status must be a string"},
		"a wrong status":    {`{"filter":{"status":"broken"},` + rest + `}`, "status must be one of"},
		"a mistyped field":  {`{"filter":{"stuck":true},"dryrun":true,` + rest + `}`, `\"dryrun\" is not a field of this call`},
		"no action":         {`{"filter":{"stuck":true},"reason":"a test"}`, "action is required"},
		"a channel to fail": {`{"filter":{"stuck":true},"action":"fail","channel":"kling-a","reason":"a test"}`, "channel is allowed only with the action reroute"},
		"unknown channel":   {`{"filter":{"stuck":true},"action":"reroute","channel":"nowhere","reason":"a test"}`, "there is no channel"},
		"no pace":           {`{"filter":{"stuck":true},"per_second":0,` + rest + `}`, "per_second must be an integer from 1 to 100"},
		"too fast":          {`{"filter":{"stuck":true},"per_second":101,` + rest + `}`, "per_second must be an integer from 1 to 100"},
		"a pace in words":   {`{"filter":{"stuck":true},"per_second":"10",` + rest + `}`, "per_second must be an integer"},
		"dry in words":      {`{"filter":{"stuck":true},"dry_run":"yes",` + rest + `}`, "dry_run must be true or false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := g.operate(http.MethodPost, "/tasks/actions", test.body)
			if a.status != 400 || !strings.Contains(a.body, test.message) {
				t.Errorf("%d %s, want 400 and %s", a.status, a.body, test.message)
			}
		})
	}
	t.Cleanup(func() {
		if jobs := g.jobs(); len(jobs) > 0 {
			t.Errorf("jobs: %+v", jobs)
		}
	})
}

// TestTaskActionsWithoutTemporal checks that a command fails with an error while Temporal does
// not answer.
func TestTaskActionsWithoutTemporal(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.submit(videos, `{"model":"alpha-v3","prompt":"a"}`)
	g.clock.advance(time.Second)
	g.starter.mu.Lock()
	g.starter.fail = errors.New("Temporal is away")
	g.starter.mu.Unlock()
	g.operate(http.MethodPost, "/tasks/actions", `{"filter":{"model":"alpha-v3"},"action":"fail","reason":"a test"}`).
		wantStatus(t, 503)
}
