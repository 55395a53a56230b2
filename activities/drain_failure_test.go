package activities_test

import (
	"context"
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

// A task that Temporal refuses does not keep those behind it: the drain goes on for
// as long as others can be started, and ends when none can.
func TestDrainGoesOnBehindAFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refused func(id string) bool
		want    int // started
		most    int // tries
	}{
		"one task":  {func(id string) bool { return strings.HasSuffix(id, "-00000") }, 2999, 3001},
		"all tasks": {func(string) bool { return true }, 0, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := activitytest.New(time.Now)
				backlog(w, "acc_1", 3000)
				time.Sleep(time.Minute)
				tries := make(chan string, 10_000)
				w.Engine.OnEnsure = func(_ context.Context, id string) error {
					tries <- id
					if c.refused(id) {
						return mediagate.Errorf(mediagate.KindInvalid, "Temporal refuses the start")
					}
					return nil
				}
				reconcile(t, w, time.Millisecond)
				if got := len(started(w)); got != c.want {
					t.Errorf("%d started, want %d", got, c.want)
				}
				if len(tries) > c.most {
					t.Errorf("%d tries, want at most %d", len(tries), c.most)
				}
			})
		})
	}
}

// A task without a route, since its plan cannot be read, is started once it is mended:
// a run of before would call vendors through a queue that nobody serves.
func TestDrainLeavesWhatHasNoRoute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(time.Now)
		ids := backlog(w, "acc_1", 3)
		var plan mediagate.Plan
		w.Store.Edit(ids[0], func(task *mediagate.Task) { plan, task.Plan = task.Plan, mediagate.Plan{} })
		time.Sleep(time.Minute)
		reconcile(t, w, time.Millisecond)
		if diff := cmp.Diff(ids[1:], slices.Sorted(slices.Values(started(w)))); diff != "" {
			t.Errorf("started (-want +got):\n%s", diff)
		}
		w.Store.Edit(ids[0], func(task *mediagate.Task) { task.Plan = plan })
		time.Sleep(time.Minute)
		reconcile(t, w, time.Millisecond)
		if !slices.Contains(started(w), ids[0]) {
			t.Error("the mended task is not started")
		}
	})
}

// A command that no run takes does not keep those of the pages behind its own.
func TestPagesGoOnBehindAFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		all  bool // are refused
		want int  // told
		most int  // tries
	}{
		"one task":  {false, 1599, 1600},
		"all tasks": {true, 0, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := activitytest.New(time.Now)
				for _, id := range backlog(w, "acc_1", 1600) {
					if _, err := w.Store.RecordAction(t.Context(), mediagate.Action{TaskID: id, Action: mediagate.ActionRetry}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Minute)
				var mu sync.Mutex
				refused, tries := "", 0
				w.Engine.OnAction = func(id string) error {
					mu.Lock()
					defer mu.Unlock()
					tries++
					if refused == "" {
						refused = id
					}
					if c.all || id == refused {
						return mediagate.Errorf(mediagate.KindInternal, "Temporal refuses the signal")
					}
					return nil
				}
				reconcile(t, w, time.Millisecond)
				told := 0
				for _, call := range w.Engine.Calls() {
					if strings.HasPrefix(call, "action ") {
						told++
					}
				}
				if told != c.want || tries > c.most {
					t.Errorf("%d were told in %d tries, want %d in at most %d", told, tries, c.want, c.most)
				}
			})
		})
	}
}

// A panic over one task, or in what looks after the bucket or the ledger, is a failure
// of that: neither the process ends, nor what the reconciler does for others.
func TestReconcilerOutlivesPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(time.Now)
		ids := backlog(w, "acc_1", 3)
		for _, id := range ids[1:] {
			if _, _, err := w.Store.Settle(t.Context(), mediagate.Settlement{TaskID: id, Status: mediagate.StatusCancelled}); err != nil {
				t.Fatal(err)
			}
			w.Store.Erase(id) // its files are to be swept
		}
		bad, good := backlog(w, "acc_2", 1)[0], ids[0]
		time.Sleep(time.Minute)
		w.Engine.OnEnsure = func(_ context.Context, id string) error {
			if id == bad {
				panic("of one task")
			}
			return nil
		}
		sweeper := &fragile{Sweeper: w.Activities.Sweeper, task: ids[1], swept: map[string]bool{}}
		w.Activities.Sweeper, w.Activities.Ledger = sweeper, sweeper
		reconcile(t, w, time.Millisecond)
		if got := started(w); !slices.Equal(got, []string{good}) {
			t.Errorf("started %v, want %s", got, good)
		}
		if !sweeper.swept[mediagate.ResultFolder(ids[2])] {
			t.Errorf("swept %v, want the files of %s", sweeper.swept, ids[2])
		}
	})
}

// fragile is a bucket that panics over one task's files, and over all that is old,
// and a ledger that does.
type fragile struct {
	activities.Sweeper
	task  string
	mu    sync.Mutex
	swept map[string]bool
}

func (p *fragile) DeletePrefix(ctx context.Context, prefix string, keep ...string) (int, error) {
	if prefix == mediagate.ResultFolder(p.task) {
		panic("of one task")
	}
	p.mu.Lock()
	p.swept[prefix] = true
	p.mu.Unlock()
	return p.Sweeper.DeletePrefix(ctx, prefix, keep...)
}

func (p *fragile) DeleteOlder(context.Context, string, time.Duration) (int, error) {
	panic("of the bucket")
}

func (p *fragile) CheckLedgerSince(context.Context) (mediagate.LedgerReport, error) {
	panic("of the ledger")
}
