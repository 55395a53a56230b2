package activities_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// reconcile lets the reconciler run for d, inside a bubble.
func reconcile(t *testing.T, w *activitytest.World, d time.Duration) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan error, 1)
	env := newEnv(w)
	env.SetWorkerStopChannel(stop)
	go func() {
		_, err := env.ExecuteActivity(w.Activities.Reconcile)
		done <- err
	}()
	time.Sleep(d)
	at := time.Now()
	close(stop)
	if err := <-done; err != nil || time.Since(at) != 0 {
		t.Errorf("ended with %v after %v, want at once", err, time.Since(at))
	}
}

// scene is a world before the reconciler looks at it.
type scene struct {
	*activitytest.World
	t *testing.T
}

func (s scene) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// ended is a task whose job's end is on record, and then its own.
func (s scene) ended(end mediagate.Settlement) {
	s.t.Helper()
	ctx := s.t.Context()
	epoch, err := s.Store.BeginEpoch(ctx, activitytest.AsyncChannel)
	s.check(err)
	time.Sleep(time.Minute)
	rows, err := s.Store.ClaimDue(ctx, activitytest.AsyncChannel, epoch, "claim", time.Minute, 1)
	s.check(err)
	outcome := activitytest.Success()
	_, err = s.Store.StorePolls(ctx, activitytest.AsyncChannel, "claim", []mediagate.PollResult{{TaskID: rows[0].TaskID, N: rows[0].N, Outcome: &outcome}})
	s.check(err)
	_, _, err = s.Store.Settle(ctx, end)
	s.check(err)
}

func (s scene) submitted() {
	s.t.Helper()
	_, err := newEnv(s.World).ExecuteActivity(s.Activities.SubmitJob, first())
	s.check(err)
}

// D2: what many crashes leave at once is not mended at a batch a pass.
func TestD2FullBatchIsFollowedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const tasks = 1100
		w := activitytest.New(time.Now)
		for i := range tasks {
			task := w.NewVideo()
			task.ID = fmt.Sprintf("task-%04d", i)
			w.Store.Add(task)
		}
		time.Sleep(time.Minute)
		reconcile(t, w, time.Millisecond) // one pass
		started := 0
		for _, call := range w.Engine.Calls() {
			if strings.HasPrefix(call, "start ") {
				started++
			}
		}
		if started != tasks {
			t.Errorf("%d runs started, want %d", started, tasks)
		}
	})
}

func TestD2Reconcile(t *testing.T) {
	t.Parallel()
	channel := "channel " + activitytest.AsyncChannel
	cases := map[string]struct {
		leave func(scene)
		after time.Duration // how old the scene is
		want  []string
	}{
		"a task without a run, fresh": {func(scene) {}, 5 * time.Second, nil},
		"a task without a run":        {func(scene) {}, 6 * time.Second, []string{"start " + taskID}},
		"a run that was terminated":   {scene.submitted, 2 * time.Minute, []string{"start " + taskID, channel}},
		"a run that goes on": {func(w scene) {
			w.submitted()
			w.Engine.Running = map[string]bool{taskID: true}
		}, 2 * time.Minute, []string{channel}},
		"an outcome that its run does not hear of": {func(w scene) {
			w.submitted()
			w.Engine.Running = map[string]bool{taskID: true}
			_, err := w.Store.RecordOutcome(w.t.Context(), taskID, 1, activitytest.Success())
			w.check(err)
		}, 11 * time.Minute, []string{"wake " + taskID}},
		"an end that its run does not hear of": {func(w scene) {
			w.submitted()
			w.Engine.Running = map[string]bool{taskID: true}
			w.ended(mediagate.Settlement{TaskID: taskID, N: 1, Status: mediagate.StatusCompleted, RunUntold: true})
		}, 11 * time.Minute, []string{"wake " + taskID, channel}},
		"an end of a moment ago": {func(w scene) {
			w.submitted()
			w.Engine.Running = map[string]bool{taskID: true}
			w.ended(mediagate.Settlement{TaskID: taskID, N: 1, Status: mediagate.StatusCompleted, RunUntold: true})
		}, 9 * time.Minute, []string{channel}},
		"an outcome of a moment ago": {func(w scene) {
			w.submitted()
			w.Engine.Running = map[string]bool{taskID: true}
			_, err := w.Store.RecordOutcome(w.t.Context(), taskID, 1, activitytest.Success())
			w.check(err)
		}, 9 * time.Minute, nil},
		"a task that has ended": {func(w scene) {
			_, _, err := w.Store.Settle(w.t.Context(), mediagate.Settlement{TaskID: taskID, Status: mediagate.StatusCancelled})
			w.check(err)
		}, time.Hour, nil},
		"a cancel that no run has taken": {func(w scene) {
			w.submitted()
			w.Engine.Running = map[string]bool{taskID: true}
			_, err := w.Store.RequestCancel(w.t.Context(), "acc_1", taskID)
			w.check(err)
		}, 11 * time.Second, []string{"cancel " + taskID, channel}},
		"a cancel that a failing run cannot hear": {func(w scene) {
			w.submitted()
			w.Engine.Running = map[string]bool{taskID: true}
			w.Engine.Failing = map[string]time.Duration{taskID: 30 * time.Second}
			_, err := w.Store.RequestCancel(w.t.Context(), "acc_1", taskID)
			w.check(err)
		}, 40 * time.Second, []string{"replace " + taskID, channel}},
		"one that was replaced not long ago": {func(w scene) {
			w.submitted()
			w.Engine.Running = map[string]bool{taskID: true}
			w.Engine.Failing = map[string]time.Duration{taskID: 30 * time.Second}
			_, err := w.Store.RequestCancel(w.t.Context(), "acc_1", taskID)
			w.check(err)
		}, 121 * time.Second, []string{"cancel " + taskID, channel}},
		"a command that nobody takes": {func(w scene) {
			w.submitted()
			w.Engine.Running = map[string]bool{taskID: true}
			_, err := w.Store.RecordAction(w.t.Context(), mediagate.Action{TaskID: taskID, Action: mediagate.ActionRetry})
			w.check(err)
		}, 11 * time.Second, []string{"action " + taskID + " retry", channel}},
		"a command that was taken": {func(w scene) {
			w.submitted()
			w.Engine.Running = map[string]bool{taskID: true}
			row, err := w.Store.RecordAction(w.t.Context(), mediagate.Action{TaskID: taskID, Action: mediagate.ActionRetry})
			w.check(err)
			_, err = w.Store.TakeAction(w.t.Context(), row.ID, "run")
			w.check(err)
		}, 11 * time.Second, []string{channel}},
		"a callback that nobody delivers": {func(w scene) {
			_, _, err := w.Store.Settle(w.t.Context(), mediagate.Settlement{
				TaskID: taskID, Status: mediagate.StatusFailed, Failure: &mediagate.Failure{Code: mediagate.CodeInternal}, WebhookBody: []byte("{}"),
			})
			w.check(err)
		}, 61 * time.Second, []string{"webhook " + taskID + " 1"}},
		"a callback under way": {func(w scene) {
			_, _, err := w.Store.Settle(w.t.Context(), mediagate.Settlement{
				TaskID: taskID, Status: mediagate.StatusFailed, Failure: &mediagate.Failure{Code: mediagate.CodeInternal}, WebhookBody: []byte("{}"),
			})
			w.check(err)
		}, 59 * time.Second, nil},
		"overdue, but parked": {func(w scene) {
			w.submitted()
			w.Engine.Running = map[string]bool{taskID: true}
			w.check(w.Store.Park(w.t.Context(), taskID, mediagate.ParkFunds))
		}, 2*time.Hour + 31*time.Minute, []string{channel}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := activitytest.New(time.Now)
				w.Store.Add(w.NewVideo())
				c.leave(scene{w, t})
				time.Sleep(c.after)
				reconcile(t, w, time.Millisecond)
				if diff := cmp.Diff(slices.Sorted(slices.Values(c.want)), slices.Sorted(slices.Values(w.Engine.Calls()))); diff != "" { // the concerns go beside each other
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A Temporal that was away for longer than a run may take to hear of its task's end
// leaves healthy runs behind: they are woken, and replaced if that does not help.
func TestReconcileReplacesNoRunThatCouldNotHear(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hears bool
		want  []string
	}{"one that hears": {true, []string{"wake " + taskID}}, "one that does not": {false, []string{"wake " + taskID, "replace " + taskID}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := scene{activitytest.New(time.Now), t}
				w.Store.Add(w.NewVideo())
				w.submitted()
				w.Engine.Running = map[string]bool{taskID: true}
				w.ended(mediagate.Settlement{TaskID: taskID, N: 1, Status: mediagate.StatusCompleted, RunUntold: true})
				time.Sleep(time.Hour)
				reconcile(t, w.World, time.Minute)
				if c.hears {
					w.check(w.Store.DropAwait(t.Context(), taskID, 1))
				}
				for range 3 {
					reconcile(t, w.World, 5*time.Minute)
				}
				got := slices.DeleteFunc(w.Engine.Calls(), func(call string) bool { return strings.HasPrefix(call, "channel ") })
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// One concern that fails does not keep the others from being looked at.
func TestReconcileGoesOnPastFailures(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"UnseenTasks", "OpenTasks", "MarkChecked", "StaleCancels", "UntakenActions", "PendingWebhooks", "StuckWebhooks", "ClaimOverdue", "EndSlots", "CountUsage"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				w := activitytest.New(time.Now)
				w.Activities.Logger = slog.New(slog.NewTextHandler(&log, nil))
				w.Store.Add(w.NewVideo())
				if _, err := newEnv(w).ExecuteActivity(w.Activities.SubmitJob, first()); err != nil {
					t.Fatal(err)
				}
				w.Engine.Running = map[string]bool{taskID: true}
				time.Sleep(2 * time.Minute) // its run is to be looked for, and the look noted
				w.Store.Fault = func(m string) error {
					if m == method {
						return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
					}
					return nil
				}
				reconcile(t, w, time.Millisecond)
				if diff := cmp.Diff([]string{"channel " + activitytest.AsyncChannel}, w.Engine.Calls()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
				// What it repaired is a line that operators watch for.
				if text := log.String(); !strings.Contains(text, "reconciler could not look") || strings.Contains(text, "msg=reconciled") {
					t.Errorf("the log of a pass that repaired nothing:\n%s", text)
				}
			})
		})
	}
}

// A Temporal that hangs keeps one concern, and none of the others.
func TestReconcileGoesOnPastSlowness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(time.Now)
		w.Store.Add(w.NewVideo())
		if _, err := newEnv(w).ExecuteActivity(w.Activities.SubmitJob, first()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		w.Engine.OnRuns = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		marked := 0
		w.Store.Fault = func(method string) error {
			if method == "MarkChecked" {
				marked++
			}
			return nil
		}
		reconcile(t, w, 5*time.Minute)
		if got := w.Engine.Calls(); !slices.Contains(got, "channel "+activitytest.AsyncChannel) {
			t.Errorf("calls %v, want the channel's", got)
		}
		if marked == 0 {
			t.Error("what was looked at is not noted")
		}
	})
}

// Runs that cannot be started do not hide the others; when nothing can be
// started, what was not tried is tried in the next pass.
func TestReconcileTriesAll(t *testing.T) {
	t.Parallel()
	const tasks = 200
	cases := map[string]struct {
		fails func(pass, call int) bool
		want  int // tried in the first pass, at least
		most  int
	}{
		"every second fails": {func(_, call int) bool { return call%2 == 0 }, tasks, tasks},
		"all fail at first":  {func(pass, _ int) bool { return pass == 1 }, 32, 50},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := activitytest.New(time.Now)
				ids := make([]string, tasks)
				for i := range ids {
					task := w.NewVideo()
					task.ID = fmt.Sprintf("task-%03d", i)
					ids[i] = task.ID
					w.Store.Add(task)
				}
				if err := w.Store.MarkChecked(t.Context(), ids, true); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Minute)
				var (
					mu         sync.Mutex
					pass, call int
					tried      = map[int][]string{}
				)
				w.Store.Fault = func(method string) error {
					if method == "OpenTasks" {
						mu.Lock()
						defer mu.Unlock()
						pass++
					}
					return nil
				}
				w.Engine.OnRuns = func(_ context.Context, id string) error {
					mu.Lock()
					defer mu.Unlock()
					call++
					tried[pass] = append(tried[pass], id)
					if c.fails(pass, call) {
						return mediagate.Errorf(mediagate.KindUnavailable, "away")
					}
					return nil
				}
				reconcile(t, w, 6*time.Second)
				if got := len(tried[1]); got < c.want || got > c.most {
					t.Errorf("%d tried in the first pass, want %d to %d", got, c.want, c.most)
				}
				if got := len(slices.Compact(slices.Sorted(slices.Values(slices.Concat(tried[1], tried[2]))))); got != tasks {
					t.Errorf("%d tried in two passes, want all %d", got, tasks)
				}
			})
		})
	}
}

// Passes follow each other by the interval of the settings.
func TestReconcilePasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(time.Now)
		w.Activities.Settings = activities.DefaultSettings()
		passes := 0
		w.Store.Fault = func(m string) error {
			if m == "UnseenTasks" {
				passes++
			}
			return nil
		}
		reconcile(t, w, 51*time.Second)
		if passes != 11 {
			t.Errorf("%d passes in 51 s, want 11", passes)
		}
	})
}

// What came within requests goes once no link to it works any more.
func TestRequestMediaAreSwept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(time.Now)
		w.Bucket.Write("uploads/acc_1/old", "media")
		time.Sleep(96*time.Hour - 2*time.Hour)
		w.Bucket.Write("uploads/acc_1/new", "media")
		w.Bucket.Write("results/task/1/0", "media")
		reconcile(t, w, time.Minute)
		if got := w.Bucket.Objects(); len(got) != 3 {
			t.Errorf("objects %v, want all: links may work for three days", got)
		}
		time.Sleep(4 * time.Hour)
		reconcile(t, w, time.Minute)
		if diff := cmp.Diff([]string{"results/task/1/0", "uploads/acc_1/new"}, w.Bucket.Objects()); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	})
}

// crowded has so many objects of one kind that they take all the time there is.
type crowded struct {
	activities.Sweeper
}

func (c crowded) DeleteOlder(ctx context.Context, prefix string, olderThan time.Duration) (int, error) {
	if prefix == mediagate.UploadFolder {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return c.Sweeper.DeleteOlder(ctx, prefix, olderThan)
}

// Uploads are removed after their time, however many objects of another kind
// there are.
func TestFilesAreSweptBesideMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(time.Now)
		w.Activities.Sweeper = crowded{w.Bucket}
		w.Bucket.Write("files/old", "picture")
		time.Sleep(74 * time.Hour)
		reconcile(t, w, 8*time.Minute)
		if got := w.Bucket.Objects(); len(got) != 0 {
			t.Errorf("objects %v, want none", got)
		}
	})
}
