package operator_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// recovering answers the pages of a recover one after the other, and keeps what it was
// asked.
func recovering(t *testing.T, status int, pages ...string) (env []string, bodies func() []map[string]string) {
	t.Helper()
	asked := make(chan map[string]string, len(pages))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]string
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Method != http.MethodPost || r.URL.Path != "/admin/v1/recover" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(pages[len(asked)]))
		asked <- body
	}))
	t.Cleanup(server.Close)
	return []string{"MEDIAGATE_URL=" + server.URL, "MEDIAGATE_ADMIN_KEY=" + adminKey}, func() (all []map[string]string) {
		for len(asked) > 0 {
			all = append(all, <-asked)
		}
		return all
	}
}

const (
	doubted = `{"kind":"task","id":"task_1","account":"acc_1","key":"key_1","model":"alpha-v3","hold":"0.50","state":"pending","reason":null,"at":1772366400}`
	lostRun = `{"kind":"row_missing","id":"task_2","account":"acc_1","key":"key_1","model":"alpha-v3","hold":"0.42","state":"running","reason":null,"at":1772366400}`
)

func TestRecover(t *testing.T) {
	t.Parallel()
	pages := []string{
		`{"object":"list","marked":200,"data":[],"has_more":true,"next":"mark"}`,
		`{"object":"list","marked":3,"data":[` + doubted + `],"has_more":true,"next":"runs:"}`,
		`{"object":"list","marked":0,"data":[` + lostRun + `],"has_more":true,"next":"runs:x"}`,
		`{"object":"list","marked":0,"data":[` + lostRun + `],"has_more":false,"next":null}`,
	}
	env, bodies := recovering(t, http.StatusOK, pages...)
	code, out, stderr := run(t, env, "recover", "--restored-to", "2026-03-01T13:00:00+01:00")
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var after []string
	for _, b := range bodies() {
		if b["restored_to"] != "2026-03-01T12:00:00Z" {
			t.Errorf("restored to %s", b["restored_to"])
		}
		after = append(after, b["after"])
	}
	if !slices.Equal(after, []string{"", "mark", "runs:", "runs:x"}) {
		t.Errorf("pages %q", after)
	}
	for _, line := range []string{
		"KIND         ID      ACCOUNT  KEY    MODEL     HOLD  STATE    REASON  AT\n",
		"task         task_1  acc_1    key_1  alpha-v3  0.50  pending          2026-03-01T12:00:00Z\n",
		"row_missing  task_2  acc_1    key_1  alpha-v3  0.42  running          2026-03-01T12:00:00Z\n",
		"203 open tasks", "task: 1 of", "row_missing: 1 tasks",
	} {
		if strings.Count(out, line) != 1 {
			t.Errorf("%q is not there once:\n%s", line, out)
		}
	}
	env, _ = recovering(t, http.StatusOK, pages...)
	_, out, _ = run(t, env, "recover", "-restored-to", "1772366400", "-o", "json")
	var report struct {
		RestoredTo, Marked, Tasks, RowMissing int
		Data                                  []map[string]any
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(out, "_", "")), &report); err != nil {
		t.Fatalf("%s: %s", err, out)
	}
	if report.RestoredTo != 1772366400 || report.Marked != 203 || report.Tasks != 1 || report.RowMissing != 1 || len(report.Data) != 2 {
		t.Errorf("report %s", out)
	}
}

// TestRecoverWrongUse checks that an impossible time is wrong use, whether the command or the
// gateway finds it.
func TestRecoverWrongUse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no time":       {nil, "-restored-to is missing"},
		"no such time":  {[]string{"-restored-to", "yesterday"}, "RFC 3339 time or Unix seconds"},
		"negative":      {[]string{"-restored-to", "-5"}, "RFC 3339 time or Unix seconds"},
		"to come":       {[]string{"-restored-to", time.Now().Add(time.Hour).Format(time.RFC3339)}, "must not be in the future"},
		"an argument":   {[]string{"-restored-to", "5", "x"}, "unexpected argument"},
		"a verb":        {[]string{"now"}, "unexpected argument"},
		"found by them": {[]string{"-restored-to", "5"}, "the oldest open task"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, _ := recovering(t, http.StatusBadRequest, `{"error":{"message":"not before the oldest open task"}}`)
			code, _, stderr := run(t, env, append([]string{"recover"}, c.args...)...)
			if code != 2 || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, "usage: mediagate recover -restored-to TIME") {
				t.Errorf("exit %d: %s", code, stderr)
			}
		})
	}
}
