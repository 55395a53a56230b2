package operator_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	parked = `{"id":"task_1","status":"processing","model":"alpha-v3","type":"video","progress":10,"created":1772366400,"account":"acc_1","key":"key_1",` +
		`"waits_for":{"kind":"parked","step":"parked: provider_out_of_funds","until":1772370000,"then":"fails","actions":["retry","poll_now"],"channels":["kling-a"]},` +
		`"stuck":{"reason":"provider_out_of_funds","since":1772366460,"until":1772370000,"actions":["retry","poll_now"]}`
	ended = `{"id":"task_2","status":"failed","model":"alpha-v3","type":"video","progress":0,"created":1772366400,"account":"acc_1","key":"key_1",` +
		`"error":{"code":"internal_error","message":"no \u001b[2J luck"},"webhook":{"state":"abandoned"},"waits_for":null,"stuck":null`
	page = `,"actions":["retry","poll_now"],"events":[{"at":1772366400,"what":"submitted","detail":"by key_1"},{"at":1772366460,"what":"parked","detail":"no\u001b[2Jmoney"}],` +
		`"workflow":{"id":"task_1","run_id":"r","url":"https://temporal.example.com/task_1"}}`
)

func TestTaskCommands(t *testing.T) {
	t.Parallel()
	const act = "POST"
	for name, test := range map[string]struct {
		args   []string
		answer string
		want   request // less the key
		out    string
	}{
		"list": {
			[]string{"tasks", "list", "-stuck", "-where", "channel=kling-a status=processing", "-limit", "2"},
			list(true, parked+"}", ended+"}"),
			request{Method: "GET", Target: "/tasks?channel=kling-a&limit=2&status=processing&stuck=true"},
			"ID      CREATED               STATUS      TYPE   MODEL     ACCOUNT  STUCK                  WHAT IT WAITS FOR\n" +
				"task_1  2026-03-01T12:00:00Z  processing  video  alpha-v3  acc_1    provider_out_of_funds  parked: provider_out_of_funds [kling-a]\n" +
				"task_2  2026-03-01T12:00:00Z  failed      video  alpha-v3  acc_1                           internal_error\n" +
				"… more: -after task_2\n",
		},
		"show": {
			[]string{"tasks", "show", "task_1", "-prompt"},
			parked + page,
			request{Method: "GET", Target: "/tasks/task_1?prompt=true"},
			"task       task_1\nwhat       video by alpha-v3, of account acc_1, key key_1\nstatus     processing, 10 %\n" +
				"STUCK      provider_out_of_funds, since 2026-03-01T12:01:00Z\nwaits for  parked: provider_out_of_funds [kling-a]\nuntil      2026-03-01T13:00:00Z\n" +
				"then       fails\nactions    retry, poll-now\nworkflow   https://temporal.example.com/task_1\n\n" +
				"2026-03-01T12:00:00Z  submitted  by key_1\n2026-03-01T12:01:00Z  parked     no\\x1b[2Jmoney\n",
		},
		"show what has ended": {
			[]string{"tasks", "show", "task_2"},
			ended + "}",
			request{Method: "GET", Target: "/tasks/task_2"},
			"task      task_2\nwhat      video by alpha-v3, of account acc_1, key key_1\nstatus    failed, 0 %\nerror     internal_error: no \\x1b[2J luck\n" +
				"callback  abandoned\nactions   none\n\n",
		},
		"watch what has ended": {
			[]string{"tasks", "watch", "task_2"}, ended + "}", request{Method: "GET", Target: "/tasks/task_2"}, "task_2  failed  0 %    internal_error\n",
		},
		"watch, for scripts": {
			[]string{"tasks", "watch", "task_2", "-o", "json"}, ended + "}", request{Method: "GET", Target: "/tasks/task_2"}, ended + "}\n",
		},
		"one task": {
			[]string{"tasks", "poll-now", "task_1", "-reason", "impatience"},
			`{"id":"act_1","action":"poll_now"}`,
			request{Method: act, Target: "/tasks/task_1/actions", Body: map[string]any{"action": "poll_now", "reason": "impatience"}},
			"task_1: poll_now is on its way; `mediagate tasks show task_1` tells what came of it\n",
		},
		"another channel": {
			[]string{"tasks", "reroute", "task_1", "-channel", "kling-b", "-reason", "slow", "-o", "json"},
			`{"id":"act_1"}`,
			request{Method: act, Target: "/tasks/task_1/actions", Body: map[string]any{"action": "reroute", "reason": "slow", "channel": "kling-b"}},
			"{\"id\":\"act_1\"}\n",
		},
		"many": {
			[]string{"tasks", "redeliver", "-where", "account=acc_1 webhook=abandoned created_after=2026-03-01T12:00:00Z", "-reason", "down", "-per-second", "20"},
			`{"matched":31,"job":"job_1"}`,
			request{Method: act, Target: "/tasks/actions", Body: map[string]any{"action": "redeliver", "reason": "down", "per_second": 20.0, "filter": map[string]any{
				"account": "acc_1", "webhook": "abandoned", "created_after": "2026-03-01T12:00:00Z",
			}}},
			"31 tasks match: redeliver is under way as workflow actions/job_1\n",
		},
		"many, dry": {
			[]string{"tasks", "fail", "-stuck", "-reason", "over", "-dry-run"},
			`{"matched":3,"checked":2,"applies":1,"skipped":{"ending":1},"tasks":["task_1","task_2"]}`,
			request{Method: act, Target: "/tasks/actions", Body: map[string]any{"action": "fail", "reason": "over", "dry_run": true, "filter": map[string]any{"stuck": "true"}}},
			"task_1\ntask_2\n3 tasks match, nothing was changed; these are the newest 2\n" +
				"fail applies to 1 of the newest 2; skips 1 (ending)\n",
		},
		"many, dry, without a reason": {
			[]string{"tasks", "fail", "-stuck", "-dry-run"},
			`{"matched":0,"tasks":[]}`,
			request{Method: act, Target: "/tasks/actions", Body: map[string]any{"action": "fail", "reason": "dry run", "dry_run": true, "filter": map[string]any{"stuck": "true"}}},
			"0 tasks match, nothing was changed\n",
		},
		"none": {
			[]string{"tasks", "retry", "-where", "status=failed", "-reason", "x"},
			`{"matched":0,"job":null}`,
			request{Method: act, Target: "/tasks/actions", Body: map[string]any{"action": "retry", "reason": "x", "filter": map[string]any{"status": "failed"}}},
			"0 tasks match, nothing was changed\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := serve(t, 200, test.answer)
			code, out, stderr := run(t, g.env(), test.args...)
			if code != 0 || stderr != "" {
				t.Errorf("exit %d, %q", code, stderr)
			}
			test.want.Target, test.want.Auth = "/admin/v1"+test.want.Target, "Bearer "+adminKey
			if diff := cmp.Diff([]request{test.want}, g.requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if name == "watch what has ended" { // begins with the time of the look
				_, out, _ = strings.Cut(out, "  ")
			}
			if diff := cmp.Diff(test.out, out); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTaskCommandsWrongUse(t *testing.T) {
	t.Parallel()
	g := serve(t, 200, list(false))
	for name, test := range map[string]struct {
		args []string
		err  string
	}{
		"unknown filter":    {[]string{"list", "-where", "statsu=failed"}, `"statsu" is not a filter; the filters are: status, model`},
		"no value":          {[]string{"list", "-where", "status="}, "a filter is name=value: status"},
		"no equals sign":    {[]string{"list", "-where", "stuck"}, "a filter is name=value: stuck"},
		"twice":             {[]string{"list", "-where", "status=failed status=pending"}, "status is there twice"},
		"show nothing":      {[]string{"show"}, "name a task"},
		"watch both":        {[]string{"watch", "task_1", "-stuck"}, "exclude each other"},
		"no target":         {[]string{"retry", "-reason", "x"}, "name a task, or select some"},
		"an unset variable": {[]string{"fail", "-where", "", "-reason", "x"}, "name a task, or select some"},
		"two targets":       {[]string{"retry", "task_1", "-stuck", "-reason", "x"}, "name a task, or select some"},
		"no reason":         {[]string{"retry", "task_1"}, "-reason is missing"},
		"a dry one":         {[]string{"retry", "task_1", "-reason", "x", "-dry-run"}, "-dry-run and -per-second go with -where"},
		"two tasks":         {[]string{"retry", "task_1", "task_2", "-reason", "x"}, `unexpected argument "task_2"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, stderr := run(t, g.env(), append([]string{"tasks"}, test.args...)...)
			if code != 2 || out != "" || !strings.Contains(stderr, test.err) {
				t.Errorf("exit %d, %q, %q; want 2 and %q", code, out, stderr, test.err)
			}
		})
	}
	t.Cleanup(func() {
		if made := g.requests(); len(made) > 0 {
			t.Errorf("requests of wrong use: %+v", made)
		}
	})
}
