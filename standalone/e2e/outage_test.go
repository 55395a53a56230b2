package e2e_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
)

// readiness is what /readyz of the first API says.
func (w *world) readiness() (int, string) {
	w.t.Helper()
	a, err := request{method: http.MethodGet, url: w.apiURLs[0] + "/readyz"}.do(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return a.status, string(a.body)
}

func (w *world) awaitReadiness(status int, word string) {
	w.t.Helper()
	eventually(w.t, 30*time.Second, "/readyz", func() error {
		got, body := w.readiness()
		if got != status || !strings.Contains(body, word) {
			return fmt.Errorf("%d %s, want %d with %q", got, body, status, word)
		}
		return nil
	})
}

// Without the database every call fails, nothing is half-done, and all goes on when it is
// back.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, ownPostgres: true})
	waiting := w.submit(job{model: alpha, directive: "duration=5s"})
	w.submit(job{model: alpha})
	// Its answer may come while it cannot be stored: then it is lost, and so
	// is the image.
	image := w.submit(job{model: theta})
	image.want, image.minJobs = "either", 0
	w.awaitProcessing(waiting)
	w.database.kill(t)

	r, task := w.request(job{model: alpha, idemKey: "again"})
	reads := request{method: http.MethodGet, url: w.apiURLs[0] + "/v1/tasks/" + waiting.id, key: w.key}
	for what, call := range map[string]request{"submit": r, "read": reads} {
		if a, err := call.do(t.Context()); err != nil || a.status/100 != 5 {
			t.Errorf("%s without the database: %d %s, %v", what, a.status, a.body, err)
		}
	}
	w.awaitReadiness(http.StatusServiceUnavailable, "")
	w.database.start(t)
	w.awaitReadiness(http.StatusOK, `"ready"`)

	a, err := r.do(t.Context())
	if err == nil {
		task.id, err = taskID(a)
	}
	if err != nil || a.header.Get("Idempotency-Replayed") != "" {
		t.Fatalf("submit again: %v, replayed %q", err, a.header.Get("Idempotency-Replayed"))
	}
	w.tasks = append(w.tasks, task)
	w.verify(recoverTime)
}

// wrongClock puts in front of the database's clock one that can be set: what
// the processes then see is that their own is wrong.
var wrongClock = []string{
	"CREATE TABLE clock_shift (by interval NOT NULL)",
	"INSERT INTO clock_shift VALUES ('0')",
	`CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
		AS 'SELECT pg_catalog.clock_timestamp() + by FROM public.clock_shift'`,
	"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END $$",
}

// D10, D20: a process whose clock is far from the database's is not ready
// until it is right again; one that is a little off goes on by the database's.
func TestClockDiffers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, prepare: wrongClock})
	w.submit(job{model: alpha})
	w.exec("UPDATE clock_shift SET by = '40s'")
	w.awaitReadiness(http.StatusServiceUnavailable, "clock")
	w.awaitWorker(http.StatusServiceUnavailable)
	w.exec("UPDATE clock_shift SET by = '3s'")
	w.awaitReadiness(http.StatusOK, `"ready"`)
	w.awaitWorker(http.StatusOK)
	for _, s := range []*service{w.apis[0], w.workers[0]} {
		if log, err := os.ReadFile(s.logFile()); err != nil || !strings.Contains(string(log), "clock differs from the database's") {
			t.Errorf("the log of %s has no warning (%v)", s.name, err)
		}
	}
	w.submit(job{model: alpha})
	w.submit(job{model: theta})
	w.verify(recoverTime)
}

// awaitWorker waits until /readyz of the first worker answers the status.
func (w *world) awaitWorker(status int) {
	w.t.Helper()
	eventually(w.t, 30*time.Second, "/readyz of the worker", func() error {
		url, err := w.workers[0].readyURL()
		if err != nil {
			return err
		}
		a, err := request{method: http.MethodGet, url: url}.do(w.t.Context())
		if err == nil && a.status != status {
			err = fmt.Errorf("%d %s, want %d", a.status, a.body, status)
		}
		return err
	})
}

// exec runs statements on the product's database, which may be read-only for
// others.
func (w *world) exec(statements ...string) {
	w.t.Helper()
	db, err := sql.Open("pgx", w.databaseURL+"&default_transaction_read_only=off")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.ExecContext(w.t.Context(), statement); err != nil {
			w.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// Without the bucket a task parks where operators see it, and finishes by
// itself when the bucket is back: within 30 seconds, however rarely a parked
// step is tried again.
func TestStorageAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, ownS3: true, settings: map[string]any{"park_retry": "10m"}})
	w.s3Server.kill()
	video, image := w.submit(job{model: alpha}), w.submit(job{model: theta})
	w.awaitReadiness(http.StatusOK, "bucket")
	for _, task := range []*task{video, image} {
		w.awaitParked(task, "storage_unavailable")
	}
	w.s3Server.start(t)
	back := time.Now()
	for _, task := range []*task{video, image} {
		eventually(t, time.Until(back.Add(wakeLimit)), task.id+" is woken and copied", func() error {
			o, err := w.read(task.id)
			if err == nil && !o.terminal() {
				err = fmt.Errorf("it is %s", o.Status)
			}
			return err
		})
	}
	w.verify(recoverTime)
	w.awaitReadiness(http.StatusOK, `"ready"`)
}

// wakeLimit is how long after an outage of the bucket its tasks may stay
// parked.
const wakeLimit = 30 * time.Second

// heartbeatPatience is after how long without a heartbeat Temporal takes the
// worker that copies for dead, and a little more.
const heartbeatPatience = 18 * time.Second

// A Temporal that is away for longer than its patience with a worker costs a copy that
// is under way: it begins anew, and the task ends with its file.
func TestTemporalIsAwayDuringACopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, ownTemporal: true})
	task := w.submit(job{model: alpha, directive: "duration=1s, result_bytes=30000000, download=25s"})
	w.awaitDownload(task)
	w.temporal.kill()
	time.Sleep(heartbeatPatience) // what is tested is that this passes
	w.temporal.start(t)
	w.verify(recoverTime)
}

// awaitParked waits until the task is parked for the reason, in our own table
// and in Temporal's.
func (w *world) awaitParked(t *task, reason string) {
	w.t.Helper()
	eventually(w.t, 2*time.Minute, t.id+" parks", func() error {
		got, err := w.column("SELECT wait_reason FROM tasks WHERE id = $1 AND wait_reason <> ''", t.id)
		if err == nil && (len(got) != 1 || got[0] != reason) {
			err = fmt.Errorf("park reason %q, want %s", got, reason)
		}
		return err
	})
	c := w.dial()
	defer c.Close()
	eventually(w.t, 30*time.Second, t.id+" shows as stuck in Temporal", func() error {
		found, err := c.CountWorkflow(w.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: w.namespace,
			Query:     fmt.Sprintf(`WorkflowId = %q AND MediagateStuck = true AND MediagateReason = %q`, t.id, reason),
		})
		if err == nil && found.GetCount() != 1 {
			err = fmt.Errorf("%d runs", found.GetCount())
		}
		return err
	})
}

// column reads one column of the product's tables.
func (w *world) column(query string, args ...any) ([]string, error) {
	db, err := sql.Open("pgx", w.databaseURL)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(w.t.Context(), query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, rows.Err()
}
