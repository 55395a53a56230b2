package activities_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// backlog adds tasks of the account of which no run was ever seen.
func backlog(w *activitytest.World, account string, n int) (ids []string) {
	for i := range n {
		task := w.NewVideo()
		task.ID, task.AccountID = fmt.Sprintf("task-%s-%05d", account, i), account
		w.Store.Add(task)
		ids = append(ids, task.ID)
	}
	return ids
}

// started are the tasks that the reconciler has started, in order.
func started(w *activitytest.World) (ids []string) {
	for _, call := range w.Engine.Calls() {
		if id, ok := strings.CutPrefix(call, "start "); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// What a drain asks the database grows with the tasks that it starts, not with
// those that wait behind them.
func TestDrainIsLinear(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1000, 8000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := activitytest.New(time.Now)
				backlog(w, "acc_1", n)
				time.Sleep(time.Minute)
				var mu sync.Mutex
				asked := map[string]int{}
				w.Store.Fault = func(method string) error {
					mu.Lock()
					defer mu.Unlock()
					asked[method]++
					return nil
				}
				reconcile(t, w, time.Millisecond)
				if got := len(started(w)); got != n {
					t.Errorf("%d started, want %d", got, n)
				}
				for method, most := range map[string]int{
					"UnseenTasks": n/500 + 1, "MarkChecked": 2 * n / 500, "TaskByID": 0, "OpenTasks": 1, "StaleCancels": 1,
				} {
					if asked[method] > most {
						t.Errorf("%d calls of %s, want at most %d", asked[method], method, most)
					}
				}
			})
		})
	}
}

// An account's backlog delays neither another's only task, nor one that is
// submitted while it drains; and none of the other concerns.
func TestDrainTakesTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many, each = 16_000, 20 * time.Millisecond // at 16 at once: 20 s
		w := activitytest.New(time.Now)
		backlog(w, "acc_busy", many)
		early := backlog(w, "acc_zz", 1)
		cancelled := w.NewVideo()
		cancelled.ID = "task-cancelled"
		w.Store.Add(cancelled)
		w.Engine.Running = map[string]bool{cancelled.ID: true}
		if err := w.Store.MarkChecked(t.Context(), []string{cancelled.ID}, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		began := time.Now()
		late := backlog(w, "acc_late", 1) // due 5 s later
		if _, err := w.Store.RequestCancel(t.Context(), cancelled.AccountID, cancelled.ID); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		at := map[string]time.Duration{}
		w.Engine.OnEnsure = func(_ context.Context, id string) error {
			time.Sleep(each)
			mu.Lock()
			defer mu.Unlock()
			at[id] = time.Since(began)
			return nil
		}
		reports(t, w, 16*time.Second)
		if got := len(started(w)); got >= many {
			t.Fatalf("all %d are started: nothing was drained beside the others", got)
		}
		batch := 500 / 16 * each
		for id, most := range map[string]time.Duration{early[0]: batch, late[0]: 5*time.Second + 2*batch} {
			if got, ok := at[id]; !ok || got > most {
				t.Errorf("%s started after %v (%v), want at most %v", id, got, ok, most)
			}
		}
		if !slices.Contains(w.Engine.Calls(), "cancel "+cancelled.ID) {
			t.Error("no cancel was repeated beside the drain")
		}
	})
}

// What cannot be marked, or was marked by nobody, is not begun again at once for
// ever.
func TestDrainEndsWhereNothingIsNew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(time.Now)
		ids := backlog(w, "acc_1", 3)
		time.Sleep(time.Minute)
		w.Store.Skip = map[string]bool{ids[1]: true}
		reconcile(t, w, time.Millisecond)
		if got := len(started(w)); got != 3+1 {
			t.Errorf("%d starts, want one each, and a second of the one that could not be marked", got)
		}
	})
}

// reports are what the reconciler's heartbeats tell within d.
func reports(t *testing.T, w *activitytest.World, d time.Duration) (all []activities.PassReport) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan error, 1)
	var mu sync.Mutex
	env := newEnv(w)
	env.SetWorkerStopChannel(stop)
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&beatWatch{heard: func(details []any) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, details[0].(activities.PassReport))
	}}}})
	go func() {
		_, err := env.ExecuteActivity(w.Activities.Reconcile)
		done <- err
	}()
	time.Sleep(d)
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
	return all
}

// Runs of open tasks are looked for at a bounded rate, all of them in turn, and
// the report tells how long the longest went without a look.
func TestLooksArePaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const tasks, perSecond = 15_000, 200
		w := activitytest.New(time.Now)
		ids := backlog(w, "acc_1", tasks)
		w.Engine.Running = map[string]bool{}
		for _, id := range ids {
			w.Engine.Running[id] = true
		}
		gone := ids[tasks-1]
		w.Engine.Running[gone] = false
		if err := w.Store.MarkChecked(t.Context(), ids, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(61 * time.Second)
		var mu sync.Mutex
		looked, within := map[string]int{}, 0
		began := time.Now()
		w.Engine.OnRuns = func(_ context.Context, id string) error {
			mu.Lock()
			defer mu.Unlock()
			looked[id]++
			if time.Since(began) < 10*time.Second {
				within++
			}
			return nil
		}
		beats := reports(t, w, 76*time.Second)
		if most := 11 * perSecond; within > most {
			t.Errorf("%d looks in 10 s, want at most %d", within, most)
		}
		if len(looked) != tasks {
			t.Errorf("%d of %d tasks were looked at in 76 s", len(looked), tasks)
		}
		if got := started(w); !slices.Equal(got, []string{gone}) {
			t.Errorf("started %v, want the one whose run is gone", got)
		}
		longest := 0
		for _, r := range beats {
			longest = max(longest, r.LookSeconds)
		}
		if longest < 130 || longest > 140 {
			t.Errorf("the reports tell of a task without a look for %d s, want 61 s and the 75 s of the round", longest)
		}
	})
}

// A look at the same task again is a matter of time, not of passes.
func TestLooksAreAMinuteApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(time.Now)
		ids := backlog(w, "acc_1", 1)
		w.Engine.Running = map[string]bool{ids[0]: true}
		if err := w.Store.MarkChecked(t.Context(), ids, true); err != nil {
			t.Fatal(err)
		}
		looks := 0
		w.Engine.OnRuns = func(context.Context, string) error { looks++; return nil }
		reconcile(t, w, 8*time.Minute)
		if looks < 6 || looks > 8 {
			t.Errorf("%d looks in 8 minutes, want one a minute", looks)
		}
	})
}

// An outcome that the run has read is signalled once, however long its files wait
// to be copied; one whose signal was lost is signalled until it is read.
func TestHeardOutcomeIsNotSignalledAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost int // signals, before one arrives
		read func(d *tending, id string) (activity, args any)
		want int
	}{
		"heard at once": {0, loaded, 1},
		"lost once":     {1, loaded, 2},
		"lost thrice":   {3, loaded, 4},
		// After 30 s, then by the lease of 45 s.
		"read while a step is under way, only": {0, func(d *tending, id string) (activity, args any) {
			return d.Activities.LoadTask, activities.LoadArgs{TaskID: id, Working: true}
		}, 6},
		"read by a parking, after which the run waits": {0, func(d *tending, id string) (activity, args any) {
			return d.Activities.ParkTask, activities.ParkArgs{TaskID: id, Reason: mediagate.ParkSubmissionUnknown}
		}, 6},
		"read while the channel is to ask again, after which the run waits": {0, func(d *tending, id string) (activity, args any) {
			return d.Activities.RestoreAwait, activities.AttemptArgs{TaskID: id, N: 1}
		}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newTending(t, 1)
				var mu sync.Mutex
				left := c.lost
				d.Engine.OnUpstream = func(id string, _ int) error {
					mu.Lock()
					defer mu.Unlock()
					if left--; left >= 0 {
						return mediagate.Errorf(mediagate.KindUnavailable, "Temporal is away")
					}
					_, err := newEnv(d.World).ExecuteActivity(c.read(d, id))
					return err
				}
				d.Async.End("task-0", activitytest.Success())
				d.begin()
				time.Sleep(4 * time.Minute)
				if err := d.end(); err != nil {
					t.Error(err)
				}
				if got := len(d.Engine.Calls()); got != c.want {
					t.Errorf("%d signals in 4 minutes, want %d", got, c.want)
				}
			})
		})
	}
}

// loaded reads the story as a run does that goes on from it.
func loaded(d *tending, id string) (activity, args any) {
	return d.Activities.LoadTask, activities.LoadArgs{TaskID: id}
}

// D1: an outcome whose run was terminated, and whose task has more to come, starts
// another at once.
func TestOutcomeWithoutARunStartsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTending(t, 1)
		d.Activities.Settings.QuickCopy = 0
		d.Engine.Gone = map[string]bool{"task-0": true}
		d.Async.End("task-0", activitytest.Success())
		d.begin()
		time.Sleep(20 * time.Second)
		if err := d.end(); err != nil {
			t.Error(err)
		}
		if got := started(d.World); !slices.Equal(got, []string{"task-0"}) {
			t.Errorf("started %v, want the task", got)
		}
	})
}
