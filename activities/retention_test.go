package activities_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

// remove runs one activity of retention.
func remove(t *testing.T, w *activitytest.World, kind mediagate.Removal) (slice mediagate.RemovedSlice) {
	t.Helper()
	slice, err := tryRemove(w, kind)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	return slice
}

func tryRemove(w *activitytest.World, kind mediagate.Removal) (slice mediagate.RemovedSlice, err error) {
	value, err := newEnv(w).ExecuteActivity(w.Activities.RemoveExpired, activities.RemoveArgs{Kind: kind})
	if err == nil {
		err = value.Get(&slice)
	}
	return slice, err
}

// TestRequestMediaAreSwept checks that media that came within requests are removed once no link
// to them works any more.
func TestRequestMediaAreSwept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(t, time.Now)
		w.Bucket.Write("uploads/acc_1/old", "media")
		time.Sleep(96*time.Hour - 2*time.Hour)
		w.Bucket.Write("uploads/acc_1/new", "media")
		w.Bucket.Write("results/task/1/0", "media")
		remove(t, w, mediagate.RemoveUploads)
		if got := w.Bucket.Objects(); len(got) != 3 {
			t.Errorf("objects %v, want all: links may work for three days", got)
		}
		time.Sleep(4 * time.Hour)
		remove(t, w, mediagate.RemoveUploads)
		same(t, "objects", w.Bucket.Objects(), []string{"results/task/1/0", "uploads/acc_1/new"})
	})
}

// crowded has so many objects of one kind that removing them takes all the time that there is.
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

// TestSweepsAreBounded checks that what does not fit into one slice is left to the next.
func TestSweepsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(t, time.Now)
		w.Activities.Sweeper = crowded{w.Bucket}
		began := time.Now()
		if slice := remove(t, w, mediagate.RemoveUploads); !slice.More || time.Since(began) > 10*time.Minute {
			t.Errorf("%+v after %v", slice, time.Since(began))
		}
		if states, err := w.Store.RemovalStates(
			t.Context(),
		); err != nil || !states[mediagate.RemoveUploads].EndedAt.IsZero() {
			t.Errorf("%+v, %v: it has not come to the end", states, err)
		}
	})
}

// strayed returns a world with objects of tasks that are gone, ended and open.
func strayed(t *testing.T) (b *bundle, stays []string) {
	t.Helper()
	b = bubbled(t)
	b.submit(1)
	open := mediagate.ResultFolder(taskID) + "1/0.mp4"
	b.Bucket.Write(open, "film")
	for i := range 10 {
		b.Bucket.Write(mediagate.ResultFolder(fmt.Sprint("task_gone", i))+"1/0.mp4", "film")
	}
	time.Sleep(25 * time.Hour)
	young := mediagate.ResultFolder("task_young") + "1/0.mp4"
	b.Bucket.Write(young, "film")
	return b, []string{open, young}
}

// TestStraysAreRemoved checks that objects that no row names are removed once they are a day old,
// page by page, and that the next pass begins a day later.
func TestStraysAreRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, stays := strayed(t)
		if got := remove(t, b.World, mediagate.RemoveObjects); got != (mediagate.RemovedSlice{Removed: 10}) {
			t.Errorf("%+v, want ten removed", got)
		}
		same(t, "objects", b.Bucket.Objects(), stays)
		b.change(task.CancelRequested{}, task.EndDue{})
		if got := remove(t, b.World, mediagate.RemoveObjects); got.Removed != 0 {
			t.Errorf("%+v: it has walked through them today", got)
		}
		time.Sleep(25 * time.Hour)
		if got := remove(t, b.World, mediagate.RemoveObjects); got.Removed != 2 || len(b.Bucket.Objects()) != 0 {
			t.Errorf("%+v, left %v: the task has ended and shows none", got, b.Bucket.Objects())
		}
	})
}

// TestStraysAreRemovedAfterACrash checks that objects that rows name stay, whichever call dies,
// and that the next run removes the rest.
func TestStraysAreRemovedAfterACrash(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"RemovalStates", "Unnamed", "NoteRemoval"} {
		for calls := range 4 {
			inBubble(t, fmt.Sprint(method, calls), func(t *testing.T) {
				b, stays := strayed(t)
				n := 0
				dies := func(m string) error {
					if m == method {
						if n++; n > calls {
							return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
						}
					}
					return nil
				}
				b.Store.Fault = dies
				_, err := tryRemove(b.World, mediagate.RemoveObjects)
				if n > calls && err == nil {
					t.Error("no error")
				}
				for _, key := range stays {
					if !slices.Contains(b.Bucket.Objects(), key) {
						t.Errorf("%s is gone", key)
					}
				}
				b.Store.Fault = nil
				remove(t, b.World, mediagate.RemoveObjects)
				same(t, "objects", b.Bucket.Objects(), stays)
			})
		}
	}
}

// TestRemoveExpired checks that rows that are kept for ever are not searched for, that a worker
// that stops leaves the rest, and that an unknown kind is an error.
func TestRemoveExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(t, time.Now)
		asked := map[string]int{}
		w.Store.Fault = func(method string) error {
			asked[method]++
			return nil
		}
		w.Activities.Settings.Keep = mediagate.Retention{}
		for _, kind := range []mediagate.Removal{
			mediagate.RemoveTasks, mediagate.RemoveResults, mediagate.RemoveDeliveries, mediagate.RemoveEndpointDeliveries,
			mediagate.RemoveSpeeches,
		} {
			if got := remove(t, w, kind); got != (mediagate.RemovedSlice{}) {
				t.Errorf("%s: %+v", kind, got)
			}
		}
		if asked["RemoveRows"] != 0 {
			t.Errorf("%d looks for what is kept for ever", asked["RemoveRows"])
		}
		w.Activities.Settings = activities.DefaultSettings()
		for _, kind := range append(mediagate.Removals(), mediagate.RemovalRun) {
			if got := remove(t, w, kind); got.More || got.Removed != 0 {
				t.Errorf("%s: %+v", kind, got)
			}
		}
		if asked["RemoveRows"] != 7 {
			t.Errorf("%d kinds of rows were asked for, want 7", asked["RemoveRows"])
		}
		if states, err := w.Store.RemovalStates(
			t.Context(),
		); err != nil || !states[mediagate.RemovalRun].EndedAt.Equal(time.Now()) {
			t.Errorf("%+v, %v: the run is not on record", states, err)
		}
		if _, err := tryRemove(w, "others"); err == nil {
			t.Error("a kind that nobody knows is removed")
		}
		w.Activities.Sweeper = crowded{w.Bucket}
		stop := make(chan struct{})
		env := newEnv(w)
		env.SetWorkerStopChannel(stop)
		began := time.Now()
		time.AfterFunc(time.Second, func() { close(stop) })
		value, err := env.ExecuteActivity(w.Activities.RemoveExpired, activities.RemoveArgs{Kind: mediagate.RemoveUploads})
		var slice mediagate.RemovedSlice
		if err != nil || value.Get(&slice) != nil || !slice.More || time.Since(began) != time.Second {
			t.Errorf("%+v, %v after %v: the worker stops", slice, err, time.Since(began))
		}
	})
}
