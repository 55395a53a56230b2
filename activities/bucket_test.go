package activities_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

var errNoBucket = mediagate.Errorf(mediagate.KindUnavailable, "the bucket is away")

// bucketScene is a world in which tasks are parked, with a bucket that is up or down.
type bucketScene struct {
	*activitytest.World
	t    *testing.T
	down atomic.Bool
}

// parkedTasks sets the scene, inside a bubble: n tasks that are parked for the bucket, and one for
// another reason.
func parkedTasks(t *testing.T, n int) *bucketScene {
	t.Helper()
	s := &bucketScene{World: activitytest.New(t, time.Now), t: t}
	for i := range n + 1 {
		added := s.NewVideo()
		added.ID = fmt.Sprintf("task_%04d", i)
		s.Store.Add(added)
		s.Engine.SetRun(added.ID, activities.RunBusy)
		reason := mediagate.ParkStorage
		if i == n {
			reason = mediagate.ParkResult
		}
		s.park(added.ID, reason)
	}
	s.Bucket.OnProbe = func() error {
		if s.down.Load() {
			return errNoBucket
		}
		return nil
	}
	return s
}

// park parks a task, whose run sleeps for an hour.
func (s *bucketScene) park(id string, reason mediagate.ParkReason) {
	s.t.Helper()
	s.Store.Park(id, reason)
	if _, err := s.Store.Change(s.t.Context(), id, task.Asked{}); err != nil {
		s.t.Fatal(err)
	}
}

// woken returns how often runs were signalled.
func (s *bucketScene) woken() int { return len(s.Engine.Calls()) }

// TestBucketThatIsBackWakesItsTasks checks that all tasks that are parked for the bucket, and no
// others, try again, once, within 30 seconds after it is back.
func TestBucketThatIsBackWakesItsTasks(t *testing.T) {
	t.Parallel()
	const tasks = 520 // more than a batch
	synctest.Test(t, func(t *testing.T) {
		s := parkedTasks(t, tasks)
		s.down.Store(true)
		go func() {
			time.Sleep(time.Minute)
			if got := s.woken(); got != 0 {
				t.Errorf("%d woken while the bucket is down", got)
			}
			s.down.Store(false)
			time.Sleep(30 * time.Second)
			if got := s.woken(); got != tasks {
				t.Errorf("%d of %d woken within 30 seconds", got, tasks)
			}
		}()
		housekeep(t, s.World, 150*time.Second)
		if got := s.woken(); got != tasks {
			t.Errorf("%d tasks were woken %d times: what still fails is tried in a hot loop", tasks, got)
		}
	})
}

// TestBucketWakesAgainAfterAnotherOutage checks that a task that failed again is not woken by
// another successful probe, unless a failed probe came in between.
func TestBucketWakesAgainAfterAnotherOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := parkedTasks(t, 1)
		go func() {
			for want := range 2 {
				time.Sleep(31 * time.Second)
				if got := s.woken(); got != want+1 {
					t.Errorf("woken %d times, want %d", got, want+1)
				}
				s.park("task_0000", mediagate.ParkStorage)
				time.Sleep(30 * time.Second)
				if got := s.woken(); got != want+1 {
					t.Errorf("woken %d times, want %d: the bucket was not away", got, want+1)
				}
				s.down.Store(true)
				time.Sleep(30 * time.Second)
				s.down.Store(false)
			}
		}()
		housekeep(t, s.World, 200*time.Second)
	})
}

// bubbled returns a bundle on the bubble's clock.
func bubbled(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{t: t, World: activitytest.New(t, time.Now)}
	b.Store.Add(b.NewVideo())
	return b
}

// late ends a task by the events, after a success at its vendor.
func late(t *testing.T, events ...task.Event) *bundle {
	t.Helper()
	b := bubbled(t)
	b.submit(1)
	b.change(append([]task.Event{task.VendorEnded{N: 1, Outcome: activitytest.Success()}}, events...)...)
	b.step(task.Settle, 1)
	return b
}

// TestD13LateFilesAreFound checks that an object that a late copy leaves after the sweep is found
// later.
func TestD13LateFilesAreFound(t *testing.T) {
	t.Parallel()
	own := []mediagate.Result{{Key: activities.ResultKey(taskID, 1, 0)}}
	for name, c := range map[string]struct {
		end  task.Event
		left []string
	}{
		"cancelled": {task.CancelRequested{}, nil},
		"completed": {
			task.Mirrored{N: 1, Results: own},
			[]string{activities.ResultKey(taskID, 1, 0), activities.ResultKey(taskID, 2, 0)},
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			b := late(t, c.end)
			b.Bucket.Put(activities.ResultKey(taskID, 1, 0))
			b.Bucket.Put(activities.ResultKey(taskID, 2, 0))
			housekeep(t, b.World, time.Minute)
			if got := b.Bucket.Objects(); len(got) != 2 {
				t.Errorf("objects %v: swept while copies may be under way", got)
			}
			time.Sleep(2 * mediagate.CopyLimit)
			housekeep(t, b.World, 2*time.Minute)
			same(t, "objects", b.Bucket.Objects(), c.left)
		})
	}
}

// TestD13FilesOfOtherAttemptsAreFound checks that of a completed task only the files that other
// attempts left are removed.
func TestD13FilesOfOtherAttemptsAreFound(t *testing.T) {
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
		inBubble(t, name, func(t *testing.T) {
			b := bubbled(t)
			b.submit(1)
			b.change(task.RerouteRequested{})
			b.submit(2)
			b.change(
				task.VendorEnded{N: 2, Outcome: mediagate.Outcome{Succeeded: true, Made: c.made}},
				task.Mirrored{N: 2, Results: c.results},
			)
			b.Bucket.Put(activities.ResultKey(taskID, 1, 0))
			b.Bucket.Put(activities.ResultKey(taskID, 2, 0))
			time.Sleep(2*mediagate.CopyLimit + time.Second)
			housekeep(t, b.World, 2*time.Minute)
			same(t, "objects", b.Bucket.Objects(), c.left)
		})
	}
}

// lateAgain is the pause after a task's files could not be removed for a reason of its own.
const lateAgain = 10 * time.Minute

// TestD13SweepIsRepeated checks that files that could not be removed are tried again.
func TestD13SweepIsRepeated(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"the bucket is away": errNoBucket, "a fault": errors.New("fault")} {
		inBubble(t, name, func(t *testing.T) {
			b := late(t, task.CancelRequested{})
			b.Bucket.Put(activities.ResultKey(taskID, 1, 0))
			tries := 0
			b.Bucket.OnSweep = func(string) error {
				if tries++; tries <= 2 {
					return failure
				}
				return nil
			}
			time.Sleep(2*mediagate.CopyLimit + time.Second)
			for range 3 {
				housekeep(t, b.World, time.Minute+time.Second)
				time.Sleep(lateAgain)
			}
			if got := b.Bucket.Objects(); len(got) != 0 || tries != 3 {
				t.Errorf("objects %v after %d tries, want none after 3", got, tries)
			}
		})
	}
}

// TestErasedTasksAreSwept checks that nothing of an erased task stays in the bucket: not what it
// showed, not what came within its request, and not what a copy that was under way leaves an hour
// later.
func TestErasedTasksAreSwept(t *testing.T) {
	t.Parallel()
	const upload = "uploads/acc_1/01A"
	synctest.Test(t, func(t *testing.T) {
		b := bubbled(t)
		b.Store.EditTask(taskID, func(t *mediagate.Task) { t.Plan.Uploads = map[string]string{"first_frame_image": upload} })
		other := b.NewVideo()
		other.ID = taskID + "0"
		b.Store.Add(other)
		b.submit(1)
		first, kept := activities.ResultKey(taskID, 1, 0), activities.ResultKey(other.ID, 1, 0)
		b.change(
			task.VendorEnded{N: 1, Outcome: activitytest.Success()},
			task.Mirrored{N: 1, Results: []mediagate.Result{{Key: first}}},
		)
		for _, key := range []string{first, activities.ResultKey(taskID, 2, 1), upload, kept} {
			b.Bucket.Put(key)
		}
		b.Store.Erase(taskID)
		time.Sleep(time.Second)
		housekeep(t, b.World, 2*time.Minute)
		same(t, "objects", b.Bucket.Objects(), []string{kept})
		b.Bucket.Put(first) // from a copy that had begun earlier
		time.Sleep(2 * mediagate.CopyLimit)
		housekeep(t, b.World, 2*time.Minute)
		same(t, "objects an hour later", b.Bucket.Objects(), []string{kept})
	})
}
