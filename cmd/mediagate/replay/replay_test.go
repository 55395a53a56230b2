package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/cmd/mediagate/app"
	"github.com/mediagate/mediagate/cmd/mediagate/replay"
)

var recorded = filepath.Join("..", "..", "..", "workflows", "testdata", "histories")

// history is a recorded one, in which old is written new.
func history(t *testing.T, name, old, new string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(recorded, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if old != "" && !strings.Contains(string(text), old) {
		t.Fatalf("%s holds no %q", name, old)
	}
	file := filepath.Join(t.TempDir(), name+".json")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), old, new)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func run(t *testing.T, args ...string) (same bool, out string, err error) {
	t.Helper()
	var b bytes.Buffer
	same, err = replay.Run(t.Context(), args, nil, &b)
	return same, b.String(), err
}

// TestStory checks the printed story of a lost answer and an operator's retry.
func TestStory(t *testing.T) {
	t.Parallel()
	same, out, err := run(t, filepath.Join(recorded, "lost-and-retried.json"), "-o", "json")
	if err != nil || !same {
		t.Fatalf("same %v, %v", same, err)
	}
	var report struct {
		Workflow, Type string
		Same           bool
		Steps          []struct{ What, Detail string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Workflow != "task_lost-and-retried" || report.Type != "Generate" || !report.Same {
		t.Errorf("%+v", report)
	}
	var got []string
	for _, s := range report.Steps {
		what, _, _ := strings.Cut(s.Detail, " until ")
		got = append(got, s.What+" | "+what)
	}
	want := []string{
		"started | task_lost-and-retried; next: submit of attempt 1, by sync",
		"begin SubmitJob | submit attempt 1 to sync",
		"SubmitJob ended | next: sleep",
		"sleep | the vendor's answer was lost, and it cannot be asked: find out, then decide, at the latest",
		"signal retry | ",
		"ask | next: submit of attempt 2, by sync; attempt 1 on sync-a: abandoned",
		"sleep is cut short | ",
		"begin SubmitJob | submit attempt 2 to sync",
		"SubmitJob ended | next: done, completed; attempt 2 on sync-a: ended",
		"start child | webhook/task_lost-and-retried/1",
		"completed | ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDifferences checks that a build that decides differently is found, at the right event.
func TestDifferences(t *testing.T) {
	t.Parallel()
	const after = "THIS BUILD DIFFERS"
	for name, test := range map[string]struct {
		history, old, new string
		want              []string
	}{
		"another activity": {
			"video", `"SubmitJob"`, `"MirrorResult"`,
			[]string{"DIFFERS from the run at event 5", "the run:     ActivityTaskScheduled MirrorResult", "this build:  ScheduleActivityTask SubmitJob"},
		},
		"another child": {
			"video", "webhook/task_video/1", "webhook/task_video/9",
			[]string{"after event 23", "the run:     start child", "this build:  something else", "position webhook/task_video/9"},
		},
		"another wait": {
			"callback", `"timerId": "12"`, `"timerId": "14"`,
			[]string{"the run:     sleep", "matching Timer command"},
		},
		"a signal not seen": {
			"lost-and-retried", `"signalName": "retry"`, `"signalName": "tr"`,
			[]string{"after event 16", "the run:     ask, sleep is cut short, begin SubmitJob", "this build:  something else"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			same, out, err := run(t, history(t, test.history, test.old, test.new))
			if err != nil || same {
				t.Errorf("same %v, %v", same, err)
			}
			for _, want := range append(test.want, after) {
				if !strings.Contains(out, want) {
					t.Errorf("the output lacks %q:\n%s", want, out)
				}
			}
		})
	}
}

// TestControlCharacters checks that a text in a history cannot move the cursor.
func TestControlCharacters(t *testing.T) {
	t.Parallel()
	file := history(t, "video", `"workflowId": "task_video"`, `"workflowId": "re\u001b[2Jtry"`)
	for _, format := range []string{"table", "json"} {
		_, out, err := run(t, file, "-o", format)
		if err != nil || strings.Contains(out, "\x1b") || !strings.Contains(out, "[2Jtry") {
			t.Errorf("%s: %v, %q", format, err, out)
		}
	}
}

func TestWrongInput(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "history.json")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no JSON":     {[]string{file("<html>")}, "this is no history as Temporal's UI saves it"},
		"no events":   {[]string{file("{}")}, "does not begin with the start of a workflow"},
		"a list":      {[]string{file("[]")}, "this is no history"},
		"damaged":     {[]string{history(t, "image", `"workflowTaskCompletedEventAttributes"`, `"workflowTaskStartedEventAttributes"`)}, "the history is damaged"},
		"no file":     {[]string{filepath.Join(t.TempDir(), "history.json")}, "no such file"},
		"a folder":    {[]string{t.TempDir()}, "is a directory"},
		"just begun":  {[]string{file(`{"events":[{"eventId":"1","workflowExecutionStartedEventAttributes":{}}]}`)}, "nothing to replay"},
		"no Temporal": {[]string{"task_1", "-temporal-address", "127.0.0.1:1"}, "from Temporal at 127.0.0.1:1"},
		"no data":     {[]string{"task_1", "-data", t.TempDir()}, "no standalone runs on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, out, err := run(t, test.args...); err == nil || !strings.Contains(err.Error(), test.want) || out != "" {
				t.Errorf("%v, %q; want %q", err, out, test.want)
			}
		})
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":      {nil, "name a task"},
		"two":          {[]string{"a", "b"}, `unexpected argument "b"`},
		"unknown flag": {[]string{"a", "-nope"}, "-nope"},
		"format":       {[]string{"a", "-o", "xml"}, "-o is table or json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := run(t, test.args...)
			if _, ok := errors.AsType[*app.UsageError](err); !ok || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want wrong use: %q", err, test.want)
			}
		})
	}
	if _, _, err := run(t, "-h"); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}
