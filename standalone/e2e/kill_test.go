package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate/internal/failpoint"
)

// afterKill is how much longer than without a kill a job may take whose
// processes are killed and started again at once. But for a stream of submits it is
// timed from when the process is back: how long that takes to start is what else the
// machine does.
const afterKill = 15 * time.Second

// A kill -9 of a worker costs the jobs under way seconds, not minutes,
// whatever it hits: what takes longest was a signal that
// reached the dead worker's own queue, and an outcome that nobody had told the
// workflow of.
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

// Tasks that wait are cancelled while their worker is dead and Temporal has
// not noticed.
func killBeforeSignals(t *testing.T) {
	t.Helper()
	w := newWorld(t, options{shape: production})
	cancelled := func(n int, amid func()) (slowest time.Duration) {
		all := make(series, n)
		for i := range all {
			task := w.submit(job{model: alpha, directive: "duration=300s"})
			task.want = "cancelled"
			w.awaitProcessing(task)
			all[i].task = task
		}
		amid()
		for i := range all {
			w.cancel(all[i].task)
		}
		if w.workers[0].gone() {
			w.workers[0].start(t)
		}
		for i := range all {
			all[i].began = time.Now()
		}
		w.awaitAll(all)
		return all.slowest(nil)
	}
	calm := cancelled(2, func() {})
	struck := cancelled(6, w.workers[0].kill)
	t.Logf("cancelled within %s, with a dead worker %s", calm, struck)
	if struck > calm+afterKill {
		t.Errorf("the slowest cancel took %s, want at most %s", struck, calm+afterKill)
	}
	w.verify(recoverTime)
}

// The worker dies at that point of a job's path.
func killAt(t *testing.T, point string) {
	t.Helper()
	w := newWorld(t, options{shape: production, failpoint: point})
	took := func(amid func()) time.Duration {
		all := series{{task: w.submit(job{model: alpha, directive: "duration=1s"})}}
		amid()
		all[0].began = time.Now()
		w.awaitAll(all)
		return all.slowest(nil)
	}
	struck := took(func() {
		w.victim().awaitKilled(t, crashLimit)
		w.victim().start(t)
	})
	calm := took(func() {})
	t.Logf("a job takes %s, with a kill %s", calm, struck)
	if struck > calm+afterKill {
		t.Errorf("the job took %s, want at most %s", struck, calm+afterKill)
	}
	w.verify(recoverTime)
}

// API and worker are killed amid a stream of submits, so that it hits jobs at
// every point at once. More come than the machine does at once, so what counts
// is when the last has ended. That depends on what else the machine does, during
// one series or the other: the test has it for itself.
func TestKillAmidSubmits(t *testing.T) {
	long(t)
	const n, pause = 200, 25 * time.Millisecond
	w := newWorld(t, options{shape: production})
	var began, killed time.Time
	calm := w.series(n, pause, func() { began = time.Now() })
	exempt := map[string]bool{}
	struck := w.series(n, pause, func() {
		killed = time.Now()
		w.workers[0].kill()
		w.apis[0].kill()
		exempt = w.unsent()
		for _, s := range []*service{w.workers[0], w.apis[0]} {
			if err := s.spawn(); err != nil {
				t.Error(err)
			}
		}
	})
	without, with := calm.last(nil).Sub(began), struck.last(exempt).Sub(killed)
	t.Logf("after half of %d submits the last job ends in %s, after a kill then in %s; %d were not sent", n, without, with, len(exempt))
	if with > without+afterKill {
		t.Errorf("the last job ended %s after the kill, want at most %s", with, without+afterKill)
	}
	w.verify(recoverTime)
}

// timed is a job with its times as its client has them, retries included.
type timed struct {
	task         *task
	began, ended time.Time
}

func (j timed) took() time.Duration { return j.ended.Sub(j.began).Round(time.Millisecond) }

type series []timed

func (s series) slowest(exempt map[string]bool) (most time.Duration) {
	for _, j := range s {
		if !exempt[j.task.ref] {
			most = max(most, j.took())
		}
	}
	return most
}

func (s series) last(exempt map[string]bool) (end time.Time) {
	for _, j := range s {
		if !exempt[j.task.ref] && j.ended.After(end) {
			end = j.ended
		}
	}
	return end
}

// series submits n jobs of one second at a steady pace, calls amid when half
// of them are sent, and waits until all have ended. A client whose submit
// breaks says the same again.
func (w *world) series(n int, pause time.Duration, amid func()) series {
	w.t.Helper()
	all := make(series, n)
	var group sync.WaitGroup
	pace := time.NewTicker(pause)
	defer pace.Stop()
	for i := range all {
		<-pace.C
		if i == n/2 {
			group.Go(amid)
		}
		r, t := w.request(job{model: alpha, directive: "duration=1s", noHook: true, idemKey: randomText(20)})
		all[i] = timed{task: t, began: time.Now()}
		group.Go(func() {
			err := until(w.t.Context(), readyLimit, func() error {
				a, err := r.do(w.t.Context())
				if err == nil && a.status == http.StatusOK {
					t.id, err = taskID(a)
				} else if err == nil {
					err = fmt.Errorf("status %d: %s", a.status, a.body)
				}
				return err
			})
			if err != nil {
				w.t.Errorf("submit: %v", err)
			}
		})
	}
	group.Wait()
	if w.t.Failed() {
		w.t.FailNow()
	}
	for _, j := range all {
		w.tasks = append(w.tasks, j.task)
	}
	w.awaitAll(all)
	return all
}

// awaitAll waits until these have ended, and notes when.
func (w *world) awaitAll(all series) {
	w.t.Helper()
	ends := map[string]string{}
	eventually(w.t, recoverTime, "all jobs end", func() error {
		lines, err := w.column(`SELECT reference || ' ' || to_char(ended_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
			FROM tasks WHERE ended_at IS NOT NULL`)
		if err != nil {
			return err
		}
		for _, line := range lines {
			ref, at, _ := strings.Cut(line, " ")
			ends[ref] = at
		}
		open := 0
		for _, j := range all {
			if ends[j.task.ref] == "" {
				open++
			}
		}
		if open > 0 {
			return fmt.Errorf("%d are open", open)
		}
		return nil
	})
	for i := range all {
		var err error
		if all[i].ended, err = time.Parse(time.RFC3339Nano, ends[all[i].task.ref]); err != nil {
			w.t.Fatal(err)
		}
	}
}

// unsent are the references of tasks whose submission died with its worker
// before the vendor had it. Only time proves that (D4), so the bound is not
// for them.
func (w *world) unsent() map[string]bool {
	open, err := w.column("SELECT t.reference FROM tasks t JOIN attempts a ON a.task_id = t.id WHERE a.state IN ('intent', 'unknown')")
	if err != nil {
		w.t.Error(err)
	}
	unsent := map[string]bool{}
	for _, ref := range open {
		jobs, err := w.jobs(&task{ref: ref})
		if err != nil {
			w.t.Error(err)
		}
		if len(jobs) == 0 {
			unsent[ref] = true
		}
	}
	return unsent
}
