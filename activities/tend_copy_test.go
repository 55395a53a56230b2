package activities_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/task"
)

// jobsEnded returns a channel whose vendor has ended the jobs of n tasks, each with a file at an
// address of its own.
func jobsEnded(t *testing.T, n int) *tending {
	t.Helper()
	d := newTending(t, n)
	for _, row := range d.Store.Awaits() {
		d.Async.End(row.TaskID, media("https://m.example.com/"+row.TaskID))
	}
	return d
}

func (d *tending) state(id string) task.State {
	st, _ := d.Store.Peek(id)
	return st
}

// TestTendCopies checks that a poller copies small files itself, and that the run is signalled
// once, after its task has ended.
func TestTendCopies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := jobsEnded(t, 2)
		d.Engine.OnWake = func(_ context.Context, id string) error {
			if st := d.state(id); st.Status != mediagate.StatusCompleted || len(st.Results) != 1 {
				t.Errorf("signalled while %s is %s with %d files", id, st.Status, len(st.Results))
			}
			return nil
		}
		d.begin()
		time.Sleep(20 * time.Second)
		d.ends()
		calls := d.Engine.Calls()
		slices.Sort(calls)
		same(t, "signals", calls, []string{"wake task-0", "wake task-1"})
	})
}

// TestTendLeavesCopies checks that the poller leaves files that it has not copied within five
// seconds to the run, and signals it at once. The channel goes on.
func TestTendLeavesCopies(t *testing.T) {
	t.Parallel()
	fetch := func(body io.Reader, length int64, err error) func(*tending) {
		return func(d *tending) {
			d.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
				return io.NopCloser(body), length, err
			}
		}
	}
	unread := readerFunc(func([]byte) (int, error) { panic("it is read") })
	for name, c := range map[string]struct {
		scene   func(d *tending)
		fetched int
	}{
		"a large file":                {fetch(unread, 64<<20+1, nil), 1},
		"a file whose server is away": {fetch(nil, 0, mediagate.Errorf(mediagate.KindTransient, "away")), 2},
		"a fault": {func(d *tending) {
			d.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) { panic("a fault") }
		}, 1},
		"all, where it may not copy": {func(d *tending) { d.Activities.Settings.QuickCopy = 0 }, 0},
		"where there is no room":     {func(d *tending) { d.Activities.Limits.PollCopies = limit.New("poll_copies", 0) }, 0},
		"while others have the permits": {func(d *tending) {
			d.Activities.Limits.Copies = limit.New("copies", 1)
			d.Activities.Limits.Copies.TryAcquire("others", 1)
		}, 0},
	} {
		inBubble(t, name, func(t *testing.T) {
			d := jobsEnded(t, 1)
			c.scene(d)
			d.begin()
			time.Sleep(20 * time.Second)
			if st := d.state("task-0"); st.Advance(time.Now()).Kind != task.Mirror || len(d.Fetcher.URLs()) != c.fetched {
				t.Errorf("the task is %s, %d files opened", st.Status, len(d.Fetcher.URLs()))
			}
			same(t, "signals", d.Engine.Calls(), []string{"wake task-0"})
			d.ends()
		})
	}
}

// slow holds the file of task-0 back until it is released.
func (d *tending) slow() *slowFile {
	file := &slowFile{letGo: make(chan struct{})}
	d.Fetcher.OnFetch = func(ctx context.Context, url, channel string) (io.ReadCloser, int64, error) {
		if strings.HasSuffix(url, "/task-0") {
			return file.fetch(ctx, url, channel)
		}
		return io.NopCloser(strings.NewReader("film")), -1, nil
	}
	return file
}

// TestTendLeavesASlowCopy checks that a slow file delays no signal of another task, and that its
// copy is left to the run after five seconds.
func TestTendLeavesASlowCopy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := jobsEnded(t, 2)
		file := d.slow()
		time.Sleep(20 * time.Second) // both rows are due
		d.begin()
		time.Sleep(4 * time.Second)
		same(t, "signals meanwhile", d.Engine.Calls(), []string{"wake task-1"})
		time.Sleep(2 * time.Second)
		same(t, "signals", d.Engine.Calls(), []string{"wake task-1", "wake task-0"})
		if st := d.state("task-0"); st.Status.Terminal() || file.hungUp.Load() != 1 {
			t.Errorf("the task is %s, hung up %d times", st.Status, file.hungUp.Load())
		}
		d.ends()
	})
}

// TestTendHandsCopiesBack checks that a worker that stops leaves its copies to their runs at
// once.
func TestTendHandsCopiesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := jobsEnded(t, 1)
		file := d.slow()
		d.begin()
		for file.opened.Load() == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		at := time.Now()
		d.ends()
		if took := time.Since(at); took != 0 || file.hungUp.Load() != 1 || d.state("task-0").Status.Terminal() {
			t.Errorf("ended after %v, hung up %d times, the task is %s", took, file.hungUp.Load(), d.state("task-0").Status)
		}
		same(t, "signals", d.Engine.Calls(), []string{"wake task-0"})
	})
}

// TestD13EndDuringACopyOfThePoller checks that an end that comes while the poller copies holds,
// and that the files are removed although they come after the sweep.
func TestD13EndDuringACopyOfThePoller(t *testing.T) {
	t.Parallel()
	cancelled := []task.Event{task.CancelRequested{}, task.EndDue{}}
	for name, c := range map[string]struct {
		events []task.Event
		erased bool
		want   mediagate.Status
	}{
		"a cancel":               {cancelled, false, mediagate.StatusCancelled},
		"a fail":                 {[]task.Event{task.FailRequested{}, task.EndDue{}}, false, mediagate.StatusFailed},
		"a cancel and erasure":   {cancelled, true, mediagate.StatusCancelled},
		"a cancel that is noted": {[]task.Event{task.CancelRequested{}}, false, mediagate.StatusCancelled},
	} {
		inBubble(t, name, func(t *testing.T) {
			d := jobsEnded(t, 1)
			file := d.slow()
			d.begin()
			for file.opened.Load() == 0 {
				time.Sleep(100 * time.Millisecond)
			}
			d.change("task-0", c.events...)
			if c.erased {
				if _, err := d.Store.EraseTask(t.Context(), d.state("task-0").AccountID, "task-0"); err != nil {
					t.Fatal(err)
				}
			}
			close(file.letGo)
			time.Sleep(time.Second)
			d.ends()
			if st := d.state("task-0"); st.Status != c.want || len(d.Bucket.Writes()) != 1 || len(d.Bucket.Objects()) != 0 {
				t.Errorf("%s, written %v, kept %v", st.Status, d.Bucket.Writes(), d.Bucket.Objects())
			}
		})
	}
}
