package channel_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/task"
)

// changing is a store whose changes take a moment, and may fail.
type changing struct {
	channel.Store
	fail      func(taskID string) error
	now, most atomic.Int32 // the number of changes under way
}

func (c *changing) Change(ctx context.Context, taskID string, events ...task.Event) (task.Changed, error) {
	c.most.Store(max(c.most.Load(), c.now.Add(1)))
	defer c.now.Add(-1)
	time.Sleep(20 * time.Millisecond)
	if err := c.fail(taskID); err != nil {
		return task.Changed{}, err
	}
	return c.Store.Change(ctx, taskID, events...)
}

// TestD8OneEndIsNotStored checks that an end that could not be stored, or whose change panics,
// only delays its own row by a lease. Changes are made at the same time, up to a bound.
func TestD8OneEndIsNotStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, mediagate.Channel{PollMin: time.Second, PollMax: time.Second})
		failures := map[string]error{
			"task-3": mediagate.Errorf(mediagate.KindUnavailable, "the database is away"),
			"task-4": mediagate.Errorf(mediagate.KindNotFound, "no such task"),
		}
		var panicked atomic.Bool
		c := &changing{Store: a.Store, fail: func(id string) error {
			if failures[id] != nil && panicked.CompareAndSwap(false, true) {
				panic("a fault in one of them")
			}
			return failures[id]
		}}
		a.accounts.Store = c
		a.accept(60, 5*time.Second)
		time.Sleep(10 * time.Second) // all rows are due
		a.poll(20 * time.Second)
		if len(a.late) != 58 {
			t.Errorf("%d ends, want all but two", len(a.late))
		}
		if most := c.most.Load(); most != 16 {
			t.Errorf("%d changes at once, want 16", most)
		}
		clear(failures)
		a.poll(time.Minute)
		if len(a.late) != 60 {
			t.Errorf("%d ends, want the others too", len(a.late))
		}
	})
}

// TestD2RoomForACopy checks that an end has room for the copy of its files if files are to be
// copied next and there is room. Room that is not needed is given back.
func TestD2RoomForACopy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scene  func(a *account)
		copies []string
		left   int
	}{
		"a success":       {func(*account) {}, []string{"task-0"}, 1},
		"no room":         {func(a *account) { a.room = 0 }, nil, 0},
		"a cancel before": {func(a *account) { a.change("task-0", task.CancelRequested{}) }, nil, 2},
		"a failure": {func(a *account) {
			a.offer = func(r *mediagate.Report, _ time.Duration) {
				*r.Outcome = activitytest.Failed(mediagate.CodeContentPolicy)
			}
		}, nil, 2},
		"an end that is not stored": {func(a *account) {
			a.accounts.Store = &changing{
				Store: a.Store, fail: func(string) error { return mediagate.Errorf(mediagate.KindUnavailable, "away") },
			}
		}, nil, 2},
		"a change that panics": {func(a *account) {
			a.accounts.Store = &changing{Store: a.Store, fail: func(string) error { panic("a fault") }}
		}, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, mediagate.Channel{PollMin: time.Second, PollMax: time.Second})
				a.room = 2
				a.accept(1, time.Second)
				c.scene(a)
				a.poll(10 * time.Second)
				if !slices.Equal(a.copies, c.copies) || a.room != c.left {
					t.Errorf("room for the copies of %v, and for %d more, want %v and %d", a.copies, a.room, c.copies, c.left)
				}
			})
		})
	}
}

// TestD15PollerBeginsTheWait checks that a vendor that waits for modal parameters is not polled
// any more, and that the run is signalled.
func TestD15PollerBeginsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, mediagate.Channel{PollMin: time.Second, PollMax: time.Second})
		a.waits = true
		a.accept(1, time.Hour)
		a.poll(10 * time.Second)
		if st := a.state("task-0"); st.Modal.State != mediagate.ModalWaiting || len(a.late) != 1 || len(a.calls) != 1 {
			t.Errorf("modal %q after %d polls, %d signals", st.Modal.State, len(a.calls), len(a.late))
		}
	})
}

// TestD11AnswerEndsTheParking checks that an answer for a parked task ends the parking, and that
// the run is signalled. Quiet answers signal no run.
func TestD11AnswerEndsTheParking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, mediagate.Channel{PollMin: time.Second, PollMax: time.Second})
		a.accept(2, time.Hour)
		a.change("task-0", task.Claimed{N: 1, Claim: "c"}, task.Troubled{N: 1, Claim: "c", Reason: mediagate.ParkJobLost})
		a.change("task-0", task.BreakerClosed{Reasons: []mediagate.ParkReason{mediagate.ParkJobLost}}, task.Asked{})
		a.poll(10 * time.Second)
		if st := a.state("task-0"); st.Wait.Reason != "" || len(a.late) != 1 {
			t.Errorf("waits %+v, %d signals", st.Wait, len(a.late))
		}
		if st := a.state("task-1"); st.Progress == 0 && len(a.calls) < 10 {
			t.Errorf("progress %d after %d polls", st.Progress, len(a.calls))
		}
	})
}

// TestD10LastAnswer checks that after the deadline a quiet answer is the last one, and that the
// run is signalled. While the vendor does not answer, the task waits.
func TestD10LastAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, mediagate.Channel{PollMin: time.Second, PollMax: time.Second})
		a.accept(1, 1000*time.Hour)
		time.Sleep(time.Until(a.state("task-0").DeadlineAt))
		a.back = time.Now().Add(time.Minute)
		a.poll(time.Minute)
		if st := a.state("task-0"); st.Wait.Why != "" || len(a.late) != 0 {
			t.Errorf("waits %+v, %d signals", st.Wait, len(a.late))
		}
		a.poll(10 * time.Second)
		if st := a.state("task-0"); st.Advance(time.Now()).Kind != task.Settle || len(a.late) != 1 {
			t.Errorf("waits %+v, %d signals", st.Wait, len(a.late))
		}
	})
}

// TestD10MediaComeAfterTheDeadline checks that a job that has succeeded by the deadline, and
// whose media are not all named yet, is polled for again as at any other time.
func TestD10MediaComeAfterTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, mediagate.Channel{PollMin: time.Second, PollMax: time.Second})
		a.accept(1, time.Second)
		a.offer = func(report *mediagate.Report, _ time.Duration) { report.Incomplete = true }
		time.Sleep(time.Until(a.state("task-0").DeadlineAt))
		a.change("task-0", task.Asked{})
		a.poll(time.Minute)
		if st := a.state("task-0"); st.Advance(time.Now()).Kind != task.Sleep {
			t.Errorf("next is %s, before the media came", st.Advance(time.Now()).Kind)
		}
		a.offer = nil
		a.poll(10 * time.Second)
		if st := a.state("task-0"); st.Advance(time.Now()).Kind != task.Mirror {
			t.Errorf("next is %s, once the media came", st.Advance(time.Now()).Kind)
		}
	})
}

// TestD10UnknownAtTheDeadline checks that a job that the vendor does not know, or does not show,
// at the deadline parks its task, however rarely the channel polls (D10, D11).
func TestD10UnknownAtTheDeadline(t *testing.T) {
	t.Parallel()
	for reason, kind := range map[mediagate.ParkReason]mediagate.Kind{
		mediagate.ParkJobLost: mediagate.KindNotFound, mediagate.ParkCredentials: mediagate.KindCredentials,
	} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, mediagate.Channel{PollMin: 10 * time.Minute, PollMax: 10 * time.Minute})
				a.spoil = func() error { return mediagate.Errorf(kind, "no") }
				a.accept(4, 1000*time.Hour)
				time.Sleep(time.Until(a.state(spoilt).DeadlineAt))
				a.change(spoilt, task.Asked{})
				a.poll(9 * time.Minute)
				if st := a.state(spoilt); st.Wait.Reason != reason {
					t.Errorf("waits %+v", st.Wait)
				}
			})
		})
	}
}

// TestD8FencedPollerEnds checks that a poller that another one has fenced ends, and stores no
// trouble for rows that it lost.
func TestD8FencedPollerEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, mediagate.Channel{PollMin: time.Second, PollMax: time.Second})
		a.accept(1, time.Hour)
		p, err := a.accounts.Poller(t.Context(), a.channel.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.accounts.Poller(t.Context(), a.channel.Name); err != nil {
			t.Fatal(err)
		}
		if err := p.Run(t.Context(), t.Context()); !mediagate.Is(err, mediagate.KindConflict) || len(a.calls) != 0 {
			t.Errorf("%d calls, then %v, want it fenced", len(a.calls), err)
		}
	})
}
