package activities_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
)

var errNoBucket = mediagate.Errorf(mediagate.KindUnavailable, "the bucket is away")

// bucketScene is a world in which tasks are parked, and a bucket that is up or
// down.
type bucketScene struct {
	scene
	down   atomic.Bool
	probes atomic.Int32
}

// parkedTasks sets the scene, inside a bubble.
func parkedTasks(t *testing.T, n int, reason mediagate.ParkReason) *bucketScene {
	t.Helper()
	s := &bucketScene{scene: scene{activitytest.New(time.Now), t}}
	s.Engine.Running = make(map[string]bool)
	for i := range n {
		task := s.NewVideo()
		task.ID = fmt.Sprintf("task_%04d", i)
		s.Store.Add(task)
		s.Engine.Running[task.ID] = true
		s.check(s.Store.MarkChecked(t.Context(), []string{task.ID}, true))
		s.check(s.Store.Park(t.Context(), task.ID, reason))
	}
	s.Bucket.OnProbe = func() error {
		s.probes.Add(1)
		if s.down.Load() {
			return errNoBucket
		}
		return nil
	}
	return s
}

// woken is how often tasks were woken since the last look.
func (s *bucketScene) woken(before int) int { return len(s.Engine.Calls()) - before }

// A bucket that is back wakes what had parked for it within
// 30 seconds, all of it, and once.
func TestBucketThatIsBackWakesItsTasks(t *testing.T) {
	t.Parallel()
	const tasks = 1200 // more than a page
	synctest.Test(t, func(t *testing.T) {
		s := parkedTasks(t, tasks, mediagate.ParkStorage)
		s.down.Store(true)
		go func() {
			time.Sleep(3 * time.Minute)
			if got := s.woken(0); got != 0 {
				t.Errorf("%d woken while the bucket is down", got)
			}
			s.down.Store(false)
			time.Sleep(30 * time.Second)
			if got := s.woken(0); got != tasks {
				t.Errorf("%d of %d woken within 30 seconds", got, tasks)
			}
		}()
		reconcile(t, s.World, 9*time.Minute)
		if got := s.woken(0); got != tasks {
			t.Errorf("%d tasks were woken %d times: what still fails is tried in a hot loop", tasks, got)
		}
	})
}

// A probe that works is no reason to wake a task again that failed all the
// same; one that failed in between is.
func TestBucketWakesAgainAfterAnotherOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := parkedTasks(t, 1, mediagate.ParkStorage)
		go func() {
			for want := range 3 {
				time.Sleep(time.Minute + time.Second)
				if got := s.woken(0); got != want+1 {
					t.Errorf("woken %d times, want %d", got, want+1)
				}
				s.down.Store(true)
				time.Sleep(time.Minute)
				s.down.Store(false)
			}
		}()
		reconcile(t, s.World, 8*time.Minute)
	})
}

// The bucket is not asked while nothing waits for it.
func TestBucketIsAskedWhileTasksWait(t *testing.T) {
	t.Parallel()
	for reason, want := range map[mediagate.ParkReason]bool{mediagate.ParkStorage: true, mediagate.ParkResult: false, mediagate.ParkFunds: false} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := parkedTasks(t, 1, reason)
				go func() {
					time.Sleep(time.Minute)
					s.check(s.Store.Unpark(t.Context(), "task_0000"))
					before := s.probes.Load()
					if (before > 0) != want || (s.woken(0) > 0) != want {
						t.Errorf("%d probes, %d woken", before, s.woken(0))
					}
					time.Sleep(time.Minute)
					if s.probes.Load() > before+1 {
						t.Errorf("%d probes while nothing is parked", s.probes.Load()-before)
					}
				}()
				reconcile(t, s.World, 3*time.Minute)
			})
		})
	}
}

// late leaves a task ended, with a file that came after its files were swept.
func late(t *testing.T, end mediagate.Settlement) *bundle {
	t.Helper()
	b := &bundle{t: t, clock: nil}
	b.World = activitytest.New(time.Now)
	b.Store.Add(b.NewVideo())
	b.submit(1)
	_, err := b.Store.RecordOutcome(t.Context(), taskID, 1, activitytest.Success())
	b.ok(err)
	end.TaskID = taskID
	_, _, err = b.Store.Settle(t.Context(), end)
	b.ok(err)
	must[any](b, b.Activities.SweepResults, activities.TaskArgs{TaskID: taskID})
	return b
}

// D13: an object that a late mirror leaves after the sweep is found again.
func TestD13LateFilesAreFound(t *testing.T) {
	t.Parallel()
	own := []mediagate.Result{{Key: activities.ResultKey(taskID, 1, 0)}}
	for name, c := range map[string]struct {
		end  mediagate.Settlement
		left []string
	}{
		"cancelled": {mediagate.Settlement{Status: mediagate.StatusCancelled}, nil},
		"failed":    {mediagate.Settlement{Status: mediagate.StatusFailed, Failure: &mediagate.Failure{Code: mediagate.CodeInternal}}, nil},
		"completed": {
			mediagate.Settlement{Status: mediagate.StatusCompleted, N: 1, Results: own},
			[]string{activities.ResultKey(taskID, 1, 0), activities.ResultKey(taskID, 2, 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := late(t, c.end)
				b.Bucket.Put(activities.ResultKey(taskID, 1, 0))
				b.Bucket.Put(activities.ResultKey(taskID, 2, 0))
				reconcile(t, b.World, time.Minute)
				if got := b.Bucket.Objects(); len(got) != 2 {
					t.Errorf("objects %v: swept while copies may be under way", got)
				}
				time.Sleep(2 * mediagate.CopyLimit)
				reconcile(t, b.World, 2*time.Minute)
				if diff := cmp.Diff(c.left, b.Bucket.Objects()); diff != "" {
					t.Errorf("objects (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// D13: of a completed task only what other attempts left goes.
func TestD13LosersFilesAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		results []mediagate.Result
		made    *mediagate.Made
		left    []string
	}{
		"the second attempt's files are shown": {
			[]mediagate.Result{{Key: activities.ResultKey(taskID, 2, 0)}, {Key: activities.ResultKey(taskID, 2, 1)}},
			nil,
			[]string{activities.ResultKey(taskID, 2, 0)},
		},
		"nobody knows which": {
			[]mediagate.Result{{Key: "elsewhere/0"}},
			nil,
			[]string{activities.ResultKey(taskID, 1, 0), activities.ResultKey(taskID, 2, 0)},
		},
		"nobody knows whether": {
			[]mediagate.Result{},
			&mediagate.Made{Clips: []mediagate.Clip{{ID: "c"}}},
			[]string{activities.ResultKey(taskID, 1, 0), activities.ResultKey(taskID, 2, 0)},
		},
		"there are none to show": {[]mediagate.Result{}, &mediagate.Made{Voices: []string{"v"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := activitytest.New(time.Now)
				w.Store.Add(w.NewVideo())
				s := scene{w, t}
				s.submitted()
				_, err := w.Store.RecordOutcome(t.Context(), taskID, 1, activitytest.Success())
				s.check(err)
				w.Store.EditAttempt(taskID, 1, func(a *mediagate.Attempt) { a.State = mediagate.AttemptEnded })
				_, _, err = w.Store.OpenAttempt(t.Context(), mediagate.Attempt{TaskID: taskID, N: 2}, mediagate.Slots{})
				s.check(err)
				_, _, err = w.Store.Settle(t.Context(), mediagate.Settlement{TaskID: taskID, N: 2, Status: mediagate.StatusCompleted, Results: c.results, Made: c.made})
				s.check(err)
				w.Bucket.Put(activities.ResultKey(taskID, 1, 0))
				w.Bucket.Put(activities.ResultKey(taskID, 2, 0))
				time.Sleep(2*mediagate.CopyLimit + time.Second)
				reconcile(t, w, 2*time.Minute)
				if diff := cmp.Diff(c.left, w.Bucket.Objects()); diff != "" {
					t.Errorf("objects (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// D13: what could not be removed is tried again.
func TestD13SweepIsRepeated(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"the bucket is away": errNoBucket, "a fault": errors.New("fault")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := late(t, mediagate.Settlement{Status: mediagate.StatusCancelled})
				b.Bucket.Put(activities.ResultKey(taskID, 1, 0))
				tries := 0
				b.Bucket.OnSweep = func(string) error {
					if tries++; tries <= 2 {
						return failure
					}
					return nil
				}
				time.Sleep(2*mediagate.CopyLimit + time.Second)
				for range 4 {
					reconcile(t, b.World, 9*time.Minute)
				}
				if got := b.Bucket.Objects(); len(got) != 0 || tries != 3 {
					t.Errorf("objects %v after %d tries, want none after 3", got, tries)
				}
			})
		})
	}
}

// Of an erased task nothing stays in the bucket: not what it showed, nor what came
// within its request, nor what a copy that was under way leaves an hour later.
// What could not be removed is tried again.
func TestErasedTasksAreSwept(t *testing.T) {
	t.Parallel()
	const upload = "uploads/acc_1/01A"
	for name, c := range map[string]struct {
		end     mediagate.Settlement
		failure error
	}{
		"completed":          {mediagate.Settlement{Status: mediagate.StatusCompleted, N: 1, Results: []mediagate.Result{{Key: activities.ResultKey(taskID, 1, 0)}}}, nil},
		"without files":      {mediagate.Settlement{Status: mediagate.StatusCompleted, N: 1, Made: &mediagate.Made{Clips: []mediagate.Clip{{ID: "c"}}}}, nil},
		"failed":             {mediagate.Settlement{Status: mediagate.StatusFailed, Failure: &mediagate.Failure{Code: mediagate.CodeInternal}}, nil},
		"the bucket is away": {mediagate.Settlement{Status: mediagate.StatusCompleted, N: 1, Results: []mediagate.Result{{Key: activities.ResultKey(taskID, 1, 0)}}}, errNoBucket},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := activitytest.New(time.Now)
				task := w.NewVideo()
				task.Plan.Uploads = map[string]string{"first_frame_image": upload}
				w.Store.Add(task)
				other := w.NewVideo()
				other.ID = taskID + "0"
				w.Store.Add(other)
				s := scene{w, t}
				s.submitted()
				c.end.TaskID = taskID
				_, _, err := w.Store.Settle(t.Context(), c.end)
				s.check(err)
				kept := activities.ResultKey(other.ID, 1, 0)
				for _, key := range []string{activities.ResultKey(taskID, 1, 0), activities.ResultKey(taskID, 2, 1), upload, kept} {
					w.Bucket.Put(key)
				}
				w.Store.Erase(taskID)
				down := c.failure != nil
				w.Bucket.OnSweep = func(string) error {
					if down {
						return c.failure
					}
					return nil
				}
				if down {
					reconcile(t, w, 2*time.Minute)
					if got := len(w.Bucket.Objects()); got != 4 {
						t.Errorf("%d objects, want 4: the bucket was away", got)
					}
					down = false
				}
				time.Sleep(time.Second)
				reconcile(t, w, 2*time.Minute)
				if diff := cmp.Diff([]string{kept}, w.Bucket.Objects()); diff != "" {
					t.Errorf("objects (-want +got):\n%s", diff)
				}
				w.Bucket.Put(activities.ResultKey(taskID, 1, 0)) // by a copy that had begun
				time.Sleep(2 * mediagate.CopyLimit)
				reconcile(t, w, 2*time.Minute)
				if diff := cmp.Diff([]string{kept}, w.Bucket.Objects()); diff != "" {
					t.Errorf("objects an hour later (-want +got):\n%s", diff)
				}
				due, err := w.Store.DueSweeps(t.Context(), 10)
				s.check(err)
				if len(due) != 0 {
					t.Errorf("still to be swept: %+v", due)
				}
			})
		})
	}
}
