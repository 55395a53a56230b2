package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// checkLedger compares the kinds of the task's ledger entries, newest first.
func (w *world) checkLedger(t *task, kinds ...string) {
	w.t.Helper()
	var ledger struct {
		Data []struct{ Kind string }
	}
	w.admin(http.MethodGet, "/accounts/"+w.account+"/ledger?task="+t.id, nil, &ledger)
	var got []string
	for _, entry := range ledger.Data {
		got = append(got, entry.Kind)
	}
	if diff := cmp.Diff(kinds, got); diff != "" {
		w.t.Errorf("ledger entries of %s (-want +got):\n%s", t.id, diff)
	}
}

// TestCancel checks that a cancel takes effect within seconds and reaches the vendor, which
// stops a job that it has not begun.
func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production})
	for _, model := range []string{beta, gamma} {
		w.submit(job{model: model, directive: "duration=30m"}) // the vendor begins after a tenth of the duration
	}
	for _, task := range w.tasks {
		w.awaitProcessing(task)
		w.cancel(task)
		task.wantStatus = "cancelled"
	}
	for _, task := range w.tasks {
		w.await(task, 45*time.Second, "is cancelled", func(o object) bool { return o.Status == "cancelled" })
		eventually(t, 30*time.Second, "the vendor has stopped what it had not begun", func() error {
			jobs, err := w.jobs(task)
			if err == nil && (len(jobs) != 1 || jobs[0].State != "cancelled") {
				err = fmt.Errorf("the vendor's jobs for %s: %+v", task.model, jobs)
			}
			return err
		})
		w.checkLedger(task, "void", "hold")
	}
	w.verify(recoverTime)
}
