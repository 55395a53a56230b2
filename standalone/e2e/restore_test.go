package e2e_test

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/mediagate/mediagate/workflows"
)

// decisions is the output of `mediagate recover`: the decisions that an operator has to make.
type decisions struct {
	Marked     int `json:"marked"`
	Tasks      int `json:"tasks"`
	RowMissing int `json:"row_missing"`
	Data       []struct {
		Kind    string `json:"kind"`
		ID      string `json:"id"`
		Account string `json:"account"`
		Model   string `json:"model"`
		Hold    string `json:"hold"`
		State   string `json:"state"`
	} `json:"data"`
}

func (w *world) recover(to time.Time) (d decisions) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.command("recover", "--restored-to", to.Format(time.RFC3339Nano), "-o", "json")), &d); err != nil {
		w.t.Fatal(err)
	}
	return d
}

// decides waits until the operator has exactly these decisions to make, each as "kind id".
func (w *world) decides(to time.Time, want ...string) (d decisions) {
	w.t.Helper()
	slices.Sort(want)
	eventually(w.t, 2*time.Minute, "the list of decisions", func() error {
		d = w.recover(to)
		var got []string
		for _, one := range d.Data {
			got = append(got, one.Kind+" "+one.ID)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("it is %v, want %v", got, want)
		}
		return nil
	})
	return d
}

// copyDatabase replaces one database by a copy of another, to which no client may be connected.
func (w *world) copyDatabase(from, to string) {
	w.t.Helper()
	db, err := sql.Open("pgx", suite.shared.postgres.URL("postgres"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		"DROP DATABASE IF EXISTS " + to + " WITH (FORCE)",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + from + "'",
		"CREATE DATABASE " + to + " TEMPLATE " + from,
	} {
		eventually(w.t, 30*time.Second, statement, func() error {
			_, err := db.ExecContext(w.t.Context(), statement)
			return err
		})
	}
}

// TestRestoreDatabase restores the database from a backup, while Temporal, the vendors and the
// bucket stay as they are (D17). A job is polled if the row names it, if a run remembers it, or
// if the vendor finds it by our id. An operator decides about the others. Nothing is made twice,
// and the books are right.
func TestRestoreDatabase(t *testing.T) {
	t.Parallel()
	long(t)
	w := newWorld(t, options{shape: production})
	sent := w.submit(job{model: alpha, directive: "duration=6s", noHook: true})
	w.awaitProcessing(sent)
	w.workers[0].kill()
	findable := w.submit(job{model: alpha, noHook: true})
	remembered := w.submit(job{model: delta, noHook: true})
	hidden := w.submit(job{model: delta, noHook: true})
	w.apis[0].kill()
	w.copyDatabase(w.name, w.name+"_backup")
	to := time.Now()

	w.apis[0].start(t)
	w.workers[0].start(t)
	for _, task := range []*task{sent, findable, remembered, hidden} {
		w.await(task, recoverTime, "completes", func(o object) bool { return o.Status == "completed" })
	}
	lost := w.submit(job{model: alpha, directive: "duration=600s", noHook: true})
	w.awaitProcessing(lost)

	w.workers[0].kill()
	w.apis[0].kill()
	w.copyDatabase(w.name+"_backup", w.name)
	w.apis[0].start(t)
	temporal := w.dial()
	defer temporal.Close()
	w.forget(temporal, hidden.id)
	first := w.decides(to, "task "+findable.id, "task "+remembered.id, "task "+hidden.id, "row_missing "+lost.id)
	for _, d := range first.Data {
		if price := prices[d.Model]; d.Account != w.account || d.ID == lost.id && (amount(w, d.Hold).Cmp(amount(w, price)) != 0 || d.State != "running") {
			t.Errorf("decision %+v", d)
		}
	}
	w.workers[0].start(t)
	w.decides(to, "task "+hidden.id, "row_missing "+lost.id)
	hidden.wantStatus, hidden.wantCode, hidden.objectsIfFailed = "failed", "provider_submission_unknown", 1 // the file from the lost period
	eventually(t, time.Minute, "the task parks", func() error {
		reasons, err := w.column("SELECT wait_reason FROM tasks WHERE id = $1", hidden.id)
		if err == nil && !slices.Equal(reasons, []string{hidden.wantCode}) {
			err = fmt.Errorf("it is parked for %q", reasons)
		}
		return err
	})
	w.command("tasks", "fail", hidden.id, "-reason", "the vendor's console has its job, and the client its file")

	err := temporal.SignalWorkflow(t.Context(), lost.id, "", workflows.SignalWake, nil)
	if ended := (*serviceerror.NotFound)(nil); err != nil && !errors.As(err, &ended) { // the run may have ended already, because it has no row
		t.Fatal(err)
	}
	w.tasks = slices.DeleteFunc(w.tasks, func(t *task) bool { return t == lost })
	w.submit(job{model: theta})
	w.verify(recoverTime)
	if d := w.decides(to, "row_missing "+lost.id); d.Marked != 0 || d.Data[0].State != "failed" {
		t.Errorf("at the end the decisions are %+v", d)
	}
}

// forget deletes Temporal's data of a task's run, and waits until it is gone.
func (w *world) forget(temporal client.Client, id string) {
	w.t.Helper()
	_, err := temporal.WorkflowService().DeleteWorkflowExecution(w.t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: w.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	eventually(w.t, time.Minute, "Temporal has forgotten the run", func() error {
		_, err := temporal.DescribeWorkflowExecution(w.t.Context(), id, "")
		if gone := (*serviceerror.NotFound)(nil); errors.As(err, &gone) {
			return nil
		}
		return cmp.Or(err, errors.New("it is still there"))
	})
}

// TestRestoreTemporal restores Temporal from a backup, or empty, while the database stays as it
// is (D17). The operator has nothing to do. In the restored Temporal, the run of a task that has
// ended since sleeps until the task's deadline. The test wakes the run to save that time.
func TestRestoreTemporal(t *testing.T) {
	t.Parallel()
	long(t)
	for name, older := range map[string]bool{"an older copy": true, "an empty one": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{shape: production, ownTemporal: true})
			data, backup := filepath.Join(w.dir, "temporal"), filepath.Join(w.dir, "backup")
			before := w.submit(job{model: alpha, directive: "duration=10s"})
			w.awaitProcessing(before)
			w.awaitProcessing(w.submit(job{model: alpha, directive: "duration=40s"}))
			w.temporal.kill()
			if older {
				w.copyFolder(data, backup)
			}
			w.temporal.start(t)
			after := w.submit(job{model: delta, directive: "duration=12s"})
			w.awaitProcessing(after)
			ended := w.submit(job{model: alpha, directive: "duration=1s"})
			for _, task := range []*task{before, ended} {
				w.await(task, recoverTime, "completes", func(o object) bool { return o.Status == "completed" })
			}

			w.temporal.kill()
			w.workers[0].kill()
			if err := os.RemoveAll(data); err != nil {
				t.Fatal(err)
			}
			if older {
				w.copyFolder(backup, data)
			}
			w.temporal.start(t)
			w.workers[0].start(t)
			if older {
				temporal := w.dial()
				defer temporal.Close()
				if err := temporal.SignalWorkflow(t.Context(), before.id, "", workflows.SignalWake, nil); err != nil {
					t.Fatal(err)
				}
			}
			w.verify(recoverTime)
		})
	}
}

func (w *world) copyFolder(from, to string) {
	w.t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		w.t.Fatal(err)
	}
}

// TestRestoreStandalone gives the standalone program the time of the backup at its start,
// because its worker starts with it.
func TestRestoreStandalone(t *testing.T) {
	t.Parallel()
	long(t)
	w := newWorld(t, options{shape: standalone})
	files := func(from, to string) {
		t.Helper()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(filepath.Join(to, "mediagate.db"+suffix)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(from, "mediagate.db"+suffix))
			if os.IsNotExist(err) {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(to, "mediagate.db"+suffix), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	s, data, backup := w.workers[0], filepath.Join(w.dir, "data"), t.TempDir()
	first := w.submit(job{model: alpha, directive: "duration=300s", noHook: true})
	w.awaitProcessing(first)
	s.kill()
	files(data, backup)
	to := time.Now()
	s.start(t)
	lost := w.submit(job{model: alpha, directive: "duration=300s", noHook: true})
	w.awaitProcessing(lost)
	w.cancel(first) // the restore loses the cancel too
	w.await(first, recoverTime, "is cancelled", func(o object) bool { return o.Status == "cancelled" })

	s.kill()
	files(backup, data)
	s.args = append(s.args, "-restored-to", to.Format(time.RFC3339Nano))
	s.start(t)
	if d := w.decides(to, "row_missing "+lost.id); d.Marked != 0 {
		t.Errorf("the worker started before %d tasks were marked", d.Marked)
	}
	if o, err := w.read(first.id); err != nil || o.terminal() {
		t.Errorf("the first task is %+v, %v", o, err)
	}
	if jobs, err := w.jobs(first); err != nil || len(jobs) != 1 {
		t.Errorf("the vendor has %+v, %v", jobs, err)
	}
}
