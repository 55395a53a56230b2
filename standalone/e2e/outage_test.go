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

// readiness returns the answer of /readyz of the first API.
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

// TestDatabaseAway checks that every call fails without the database, that nothing is half done,
// and that all continues when the database is back.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{shape: production, ownPostgres: true})
	waiting := w.submit(job{model: alpha, directive: "duration=5s"})
	w.submit(job{model: alpha})
	// The vendor's answer may come while it cannot be stored. Then the answer and its image are
	// lost.
	image := w.submit(job{model: theta})
	image.wantStatus, image.minJobs = "either", 0
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

// wrongClock puts a clock that can be set in front of the database's clock. To the processes,
// their own clock then seems wrong.
var wrongClock = []string{
	"CREATE TABLE clock_shift (by interval NOT NULL)",
	"INSERT INTO clock_shift VALUES ('0')",
	`CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
		AS 'SELECT pg_catalog.clock_timestamp() + by FROM public.clock_shift'`,
	"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END $$",
}

// TestClockDiffers checks that a process whose clock is far from the database's is not ready
// until the clock is right again (D10, D20). With a small difference, the process uses the
// database's time.
func TestClockDiffers(t *testing.T) {
	t.Parallel()
	long(t)
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

// exec runs statements on the product's database, which may be read-only for other connections.
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

// TestStorageAway checks that a task parks without the bucket, visibly to operators. When the
// bucket is back, the task finishes by itself within 30 seconds, even if parked steps are rarely
// retried.
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

// wakeLimit is how long tasks may stay parked after an outage of the bucket.
const wakeLimit = 30 * time.Second

// heartbeatPatience is the time without a heartbeat after which Temporal considers the worker of
// a copy dead, and a little more.
const heartbeatPatience = 18 * time.Second

// TestTemporalIsAwayDuringACopy makes Temporal unavailable for longer than its heartbeat timeout
// during a copy. The copy starts again, and the task ends with its file.
func TestTemporalIsAwayDuringACopy(t *testing.T) {
	t.Parallel()
	long(t)
	w := newWorld(t, options{shape: production, ownTemporal: true})
	task := w.submit(job{model: alpha, directive: "duration=1s, result_bytes=30000000, download=25s"})
	w.awaitDownload(task)
	w.temporal.kill()
	time.Sleep(heartbeatPatience) // Temporal must be away this long
	w.temporal.start(t)
	w.verify(recoverTime)
}

// awaitParked waits until the task is parked for the reason, both in our own table and in
// Temporal.
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

// column returns one column of a query on the product's tables.
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
