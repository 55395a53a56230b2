package e2e_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mediagate/mediagate/internal/failpoint"
)

// afterKill is how much longer a job may take if its processes are killed and started again at
// once. The time counts from when the process is back, because the start depends on the load of
// the machine.
const afterKill = 15 * time.Second

// TestKillCostsSeconds checks that a kill -9 of a worker delays the jobs in progress by seconds,
// not minutes, at any point. The slowest cases were a signal that reached the dead worker's own
// queue, and an outcome that no process had reported to the workflow.
func TestKillCostsSeconds(t *testing.T) {
	t.Parallel()
	scenarios := map[string]func(*testing.T){
		"a signal after the kill": killBeforeSignals,
	}
	points := []string{failpoint.OutcomeStored, failpoint.VendorAccepted}
	if suite.verify {
		points = append(points, failpoint.VendorIDStored, failpoint.PollTerminal, failpoint.MirrorHalf, failpoint.Mirrored, failpoint.SettleBeforeCommit)
	}
	for _, point := range points {
		scenarios[point] = func(t *testing.T) { t.Helper(); killAt(t, point) }
	}
	for name, run := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t)
		})
	}
}

// killBeforeSignals cancels waiting tasks while their worker is dead and Temporal has not
// noticed.
func killBeforeSignals(t *testing.T) {
	t.Helper()
	w := newWorld(t, options{shape: production})
	cancelled := func(n int, amid func()) time.Duration {
		tasks := make([]*task, n)
		for i := range tasks {
			tasks[i] = w.submit(job{model: alpha, directive: "duration=300s"})
			tasks[i].wantStatus = "cancelled"
			w.awaitProcessing(tasks[i])
		}
		amid()
		for _, task := range tasks {
			w.cancel(task)
		}
		if w.workers[0].gone() {
			w.workers[0].start(t)
		}
		return w.timeUntilEnded(time.Now(), tasks...)
	}
	calm := cancelled(2, func() {})
	struck := cancelled(6, w.workers[0].kill)
	t.Logf("cancelled within %s, with a dead worker %s", calm, struck)
	if struck > calm+afterKill {
		t.Errorf("the slowest cancel took %s, want at most %s", struck, calm+afterKill)
	}
	w.verify(recoverTime)
}

// killAt kills the worker at a failpoint of a job's path.
func killAt(t *testing.T, point string) {
	t.Helper()
	w := newWorld(t, options{shape: production, failpoint: point})
	one := job{model: alpha, directive: "duration=1s"}
	first := w.submit(one)
	w.victim().awaitKilled(t, crashLimit)
	w.victim().start(t)
	struck := w.timeUntilEnded(time.Now(), first)
	second := w.submit(one)
	calm := w.timeUntilEnded(time.Now(), second)
	t.Logf("a job takes %s, with a kill %s", calm, struck)
	if struck > calm+afterKill {
		t.Errorf("the job took %s, want at most %s", struck, calm+afterKill)
	}
	w.verify(recoverTime)
}

// timeUntilEnded waits until the tasks have ended, and returns the time from began to the last end, by the
// database's clock.
func (w *world) timeUntilEnded(began time.Time, tasks ...*task) time.Duration {
	w.t.Helper()
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.id
	}
	var last time.Time
	eventually(w.t, recoverTime, "all jobs end", func() error {
		ends, err := w.column(`SELECT to_char(max(ended_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
			FROM tasks WHERE id = ANY($1) HAVING bool_and(ended_at IS NOT NULL)`, ids)
		switch {
		case err != nil:
			return err
		case len(ends) == 0:
			return errors.New("some are open")
		}
		last, err = time.Parse(time.RFC3339Nano, ends[0])
		return err
	})
	return last.Sub(began).Round(time.Millisecond)
}
