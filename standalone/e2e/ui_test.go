package e2e_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/internal/npmtest"
)

// click is one action of an operator in Temporal's web interface.
type click struct {
	Workflow string `json:"workflow"`
	Act      string `json:"act"`
	Name     string `json:"name,omitempty"` // of a signal
}

// clicks performs the actions in a browser, in order. It returns the text that the page shows
// after each.
func (w *world) clicks(browser, folder string, orders ...click) (shown []string) {
	w.t.Helper()
	input, err := json.Marshal(orders)
	if err != nil {
		w.t.Fatal(err)
	}
	out := npmtest.Run(w.t, folder, bytes.NewReader(input), nil, "node", "ui.mjs", browser, w.ui, w.namespace)
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var text string
		if err := dec.Decode(&text); err != nil {
			w.t.Fatal(err)
		}
		shown = append(shown, text)
	}
	if len(shown) != len(orders) {
		w.t.Fatalf("%d of %d orders were done:\n%s", len(shown), len(orders), out)
	}
	return shown
}

// TestTemporalUI performs in a real browser each action of an operator on a task's run in
// Temporal's web interface: cancel, terminate, reset, and the signals that a parked task offers.
// The page shows the reason for which the task waits. Each task ends once, with its money right.
func TestTemporalUI(t *testing.T) {
	t.Parallel()
	browser, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("chromium is missing: Temporal's web interface is not tested")
	}
	folder := npmtest.Install(t, "ui", filepath.Join("testdata", "ui"))
	w := newWorld(t, options{shape: standalone})
	c := w.dial()
	t.Cleanup(c.Close)

	// The answers to these two are lost, and their vendor cannot look the jobs up.
	undecided := map[string]*task{}
	for _, signal := range []string{"retry", "fail"} {
		undecided[signal] = w.submitUnanswered()
	}
	for _, task := range undecided {
		w.awaitUndecided(c, task)
	}
	undecided["retry"].maxJobs = 2 // the operator has the submit repeated
	undecided["fail"].wantStatus, undecided["fail"].wantCode = "failed", "provider_submission_unknown"

	waiting := map[string]*task{}
	for act, directive := range map[string]string{cancelled: "duration=300s", terminated: "duration=90s", reset: "duration=90s"} {
		waiting[act] = w.submit(job{model: alpha, directive: directive})
		waiting[act].wantStatus = endAfter(act)
		w.awaitProcessing(waiting[act])
	}
	shown := w.clicks(browser, folder,
		click{waiting[terminated].id, "terminate", ""},
		click{waiting[reset].id, "reset", ""},
		click{waiting[cancelled].id, "show", ""},
		click{waiting[cancelled].id, "cancel", ""},
		click{undecided["retry"].id, "show", ""},
		click{undecided["retry"].id, "signal", "retry"},
		click{undecided["fail"].id, "signal", "fail"},
	)
	for i, want := range map[int][]string{2: {"waiting for kling"}, 4: {"parked", "provider_submission_unknown", "fail, retry"}} {
		for _, words := range want {
			if !strings.Contains(shown[i], words) {
				t.Errorf("a page does not say %q:\n%s", words, shown[i])
			}
		}
	}
	w.verify(recoverTime)
}
