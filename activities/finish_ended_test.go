package activities_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
)

const endedTask = "task-0"

// endedTending is a channel whose first task's job has succeeded, inside a bubble.
func endedTending(t *testing.T) *tending {
	t.Helper()
	d := newTending(t, 1)
	d.Async.End(endedTask, activitytest.Success())
	d.Engine.Running = map[string]bool{endedTask: true}
	return d
}

// tendsFor lets the channel's poller run for a while.
func (d *tending) tendsFor(while time.Duration) {
	d.t.Helper()
	d.begin()
	time.Sleep(while)
	if err := d.end(); err != nil {
		d.t.Error(err)
	}
}

// finds checks how far the task is and how often its run was signalled its end.
func (d *tending) finds(status mediagate.Status, signals int) {
	d.t.Helper()
	task, err := d.Store.TaskByID(context.Background(), endedTask)
	if err != nil || task.Status != status {
		d.t.Errorf("%v: the task is %s, want %s", err, task.Status, status)
	}
	told := slices.DeleteFunc(d.Engine.Calls(), func(call string) bool { return call != "upstream "+endedTask+" 1" })
	if len(told) != signals {
		d.t.Errorf("%d signals, want %d", len(told), signals)
	}
}

// outstanding tells whether the run is still to be signalled.
func (d *tending) outstanding() bool {
	return slices.ContainsFunc(d.Store.Awaits(), func(w mediagate.Await) bool { return w.TaskID == endedTask })
}

// A task that only its files keep from its end has ended when its run is told, and is
// told again until the run has heard it.
func TestFinishEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := endedTending(t)
		d.Engine.OnUpstream = func(string, int) error {
			if ends := d.Store.Settlements(endedTask); len(ends) != 1 {
				t.Errorf("it had ended %d times when its run was told", len(ends))
			}
			return mediagate.Errorf(mediagate.KindUnavailable, "Temporal is away")
		}
		d.begin()
		time.Sleep(20 * time.Second)
		if !d.outstanding() {
			t.Error("a signal that reached nobody is not outstanding")
		}
		time.Sleep(time.Minute)
		if err := d.end(); err != nil {
			t.Error(err)
		}
		d.finds(mediagate.StatusCompleted, len(d.Engine.Calls()))
		if ends := d.Store.Settlements(endedTask); len(ends) != 1 || len(d.Engine.Calls()) < 2 {
			t.Errorf("it ended %d times, and was signalled %d times", len(ends), len(d.Engine.Calls()))
		}
		st, err := d.Activities.LoadTask(t.Context(), activities.LoadArgs{TaskID: endedTask})
		if err != nil || st.Status != mediagate.StatusCompleted || d.outstanding() {
			t.Errorf("%v: the run reads %s, a signal is outstanding: %v", err, st.Status, d.outstanding())
		}
	})
}

// A signal for which there is no run any more comes up once: the task has ended.
func TestFinishEndedWithoutRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := endedTending(t)
		d.Store.Edit(endedTask, func(task *mediagate.Task) {
			task.Webhook = &mediagate.Webhook{URL: "https://a.example.com", State: mediagate.WebhookPending}
		})
		d.Engine.Gone = map[string]bool{endedTask: true}
		d.tendsFor(3 * time.Minute)
		if !slices.Contains(d.Engine.Calls(), "webhook "+endedTask+" 1") {
			t.Error("nobody delivers its callback")
		}
		d.finds(mediagate.StatusCompleted, 1)
		if starts := slices.Contains(d.Engine.Calls(), "start "+endedTask); starts || d.outstanding() {
			t.Errorf("a run was started: %v, a signal is outstanding: %v", starts, d.outstanding())
		}
	})
}

// What is between the job's end and the task's is for the run, and so is what takes
// long or goes wrong.
func TestFinishEndedLeaves(t *testing.T) {
	t.Parallel()
	for name, scene := range map[string]func(d *tending){
		"a job that failed": func(d *tending) { d.Async.End(endedTask, activitytest.Failed(mediagate.CodeContentPolicy)) },
		"a file that cannot be had": func(d *tending) {
			d.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
				return nil, 0, mediagate.Errorf(mediagate.KindTransient, "away")
			}
		},
		"a file that takes long": func(d *tending) {
			file := &slowFile{letGo: make(chan struct{})}
			d.Fetcher.OnFetch = file.fetch
		},
		"a bug": func(d *tending) {
			d.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) { panic("a bug") }
		},
		"a provider that has its share of the copies": func(d *tending) { d.Activities.Settings.CopiesAtOnce = 0 },
		"a task that is to be cancelled": func(d *tending) {
			d.Store.Edit(endedTask, func(task *mediagate.Task) { task.CancelRequestedAt = time.Now() })
		},
		"a task that is parked": func(d *tending) {
			d.Store.Edit(endedTask, func(task *mediagate.Task) { task.ParkedAt, task.ParkReason = time.Now(), mediagate.ParkFunds })
		},
		"a task that an operator fails": func(d *tending) {
			if _, err := d.Store.RecordAction(d.t.Context(), mediagate.Action{TaskID: endedTask, Action: mediagate.ActionFail, By: "operator"}); err != nil {
				d.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := endedTending(t)
				scene(d)
				task, err := d.Store.TaskByID(t.Context(), endedTask)
				if err != nil {
					t.Fatal(err)
				}
				d.tendsFor(20 * time.Second)
				d.finds(task.Status, 1)
				if !d.outstanding() {
					t.Error("the signal is not outstanding")
				}
				time.Sleep(mediagate.CopyLimit) // no copy outlives the test
			})
		})
	}
}

// A cancel that comes while the file is copied is what the task ends with.
func TestFinishEndedIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := endedTending(t)
		d.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
			d.Store.Edit(endedTask, func(task *mediagate.Task) { task.CancelRequestedAt = time.Now() })
			return io.NopCloser(strings.NewReader("film")), 4, nil
		}
		d.tendsFor(20 * time.Second)
		d.finds(mediagate.StatusCancelled, 1)
		if !d.outstanding() {
			t.Error("the signal is not outstanding")
		}
		time.Sleep(mediagate.CopyLimit)
	})
}

// A copy that its step has begun elsewhere does not go on here as well. While the run
// cannot be told there is no such step, and while Temporal is away or behind nobody
// knows of one.
func TestFinishEndedGivesUpACopyThatNobodyJoins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := endedTending(t)
		var opened, hungUp atomic.Int32
		d.Fetcher.OnFetch = func(ctx context.Context, _, _ string) (io.ReadCloser, int64, error) {
			opened.Add(1)
			return io.NopCloser(readerFunc(func(p []byte) (int, error) {
				select {
				case <-time.After(time.Second):
					return min(len(p), 16<<10), nil // in time for the source
				case <-ctx.Done():
					hungUp.Add(1)
					return 0, ctx.Err()
				}
			})), -1, nil
		}
		var works, away atomic.Bool
		d.Engine.OnWork = func(string) (bool, error) {
			if away.Load() {
				return true, errors.New("temporal is away")
			}
			return works.Load(), nil
		}
		works.Store(true) // what is at work is an earlier step
		d.begin()
		goesOn := func(after string) {
			time.Sleep(40 * time.Second)
			if opened.Load() != 1 || hungUp.Load() > 0 {
				t.Errorf("the copy was given up %s", after)
			}
		}
		goesOn("before the run was told")
		works.Store(false)
		if err := d.Store.DropAwait(t.Context(), endedTask, 1); err != nil {
			t.Fatal(err)
		}
		goesOn("before the step began")
		away.Store(true)
		goesOn("while Temporal was away")
		away.Store(false)
		works.Store(true)
		time.Sleep(20 * time.Second)
		d.finds(mediagate.StatusProcessing, 2)
		if hungUp.Load() == 0 {
			t.Error("the copy goes on although its step is at work elsewhere")
		}
		if err := d.end(); err != nil {
			t.Error(err)
		}
	})
}

// A worker that stops tells the run at once, and lets the copy go.
func TestFinishEndedStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := endedTending(t)
		file := &slowFile{letGo: make(chan struct{})}
		d.Fetcher.OnFetch = file.fetch
		d.begin()
		for file.opened.Load() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		began := time.Now()
		if err := d.end(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second || file.hungUp.Load() == 0 {
			t.Errorf("it took %s, the copy was hung up on %d times", took, file.hungUp.Load())
		}
		d.finds(mediagate.StatusProcessing, 1)
	})
}

// However singly jobs end, and however slow Temporal is: so many signals of one channel
// are under way and no more.
func TestSignalsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const jobs = 60
		d := newTending(t, jobs)
		for i := range jobs {
			d.Async.End(fmt.Sprintf("task-%d", i), activitytest.Failed(mediagate.CodeContentPolicy))
		}
		var under, most atomic.Int32
		d.Engine.OnUpstream = func(string, int) error {
			most.Store(max(most.Load(), under.Add(1)))
			time.Sleep(5 * time.Second)
			under.Add(-1)
			return nil
		}
		d.tendsFor(time.Minute)
		if n := most.Load(); n == 0 || n > 16 {
			t.Errorf("%d signals at once, want some and at most 16", n)
		}
	})
}
