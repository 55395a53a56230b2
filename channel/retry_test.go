package channel_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/task"
)

// shutOut is a channel with tasks that are parked because no channel took them. A task that is
// retried parks again at once.
type shutOut struct {
	*account
	channel.Store
	ids     []string
	began   time.Time
	many    bool  // there are always more tasks than RetryParked takes at once
	fault   error // the error of RetryParked, once
	calls   int   // how often RetryParked was called
	retried []string
	at      []time.Duration
}

// shutOutTasks parks n tasks, and one for another reason.
func shutOutTasks(t *testing.T, n int) *shutOut {
	t.Helper()
	s := &shutOut{account: newAccount(t, mediagate.Channel{PollMin: time.Second, PollMax: time.Second}), began: time.Now()}
	s.Store, s.accounts.Store = s.account.Store, s
	for i := range n + 1 {
		video := s.NewVideo()
		video.ID = fmt.Sprintf("task-%04d", i)
		s.account.Store.Add(video)
		s.ids = append(s.ids, video.ID)
		reason := mediagate.ParkProviderAway
		if i == n {
			reason = mediagate.ParkCredentials // overwritten below
		}
		s.park(video.ID, reason)
	}
	s.account.Store.Exec("UPDATE tasks SET wait_reason = ? WHERE id = ?", mediagate.ParkStorage, s.ids[n])
	return s
}

// park ends a submit that no channel took.
func (s *shutOut) park(id string, reason mediagate.ParkReason) {
	s.change(id, task.StepEnded{Step: task.Submit, N: 1, Failed: true, Kind: mediagate.KindShutOut, Code: string(reason)})
}

func (s *shutOut) RetryParked(ctx context.Context, p mediagate.Parked, limit int) (int, error) {
	s.calls++
	if err := s.fault; err != nil {
		s.fault = nil
		return 0, err
	}
	retried, err := s.Store.RetryParked(ctx, p, limit)
	for _, id := range s.account.Store.Retried() {
		s.retried, s.at = append(s.retried, id), append(s.at, time.Since(s.began).Truncate(time.Second))
		s.park(id, mediagate.ParkProviderAway)
	}
	if s.many {
		retried = limit
	}
	return retried, err
}

func (s *shutOut) trip() {
	s.t.Helper()
	if _, _, err := s.account.Store.TripBreaker(s.t.Context(), mediagate.Trip{
		Channel: s.channel.Name, Reason: mediagate.ParkFunds, Began: time.Now(), OpenFor: 30 * time.Second,
	}); err != nil {
		s.t.Fatal(err)
	}
}

// TestD12OneIsRetriedToBeTheProbe checks that no task is retried while a channel takes no jobs,
// until a probe is due. Then one task after the other is, since no other task may come.
func TestD12OneIsRetriedToBeTheProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shutOutTasks(t, 2)
		s.trip()
		s.poll(65 * time.Second)
		if want := []string{
			"task-0000", "task-0001", "task-0000", "task-0001",
		}; !slices.Equal(s.retried, want) || s.at[0] < 30*time.Second || s.at[1]-s.at[0] < 10*time.Second {
			t.Errorf("retried %v at %v, want %v, the first when a probe is due", s.retried, s.at, want)
		}
	})
}

// TestD12AllAreRetriedOnceTheChannelIsBack checks that all tasks are retried once the channel is
// back, by any poller.
func TestD12AllAreRetriedOnceTheChannelIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const tasks = 300 // more than a batch
		s := shutOutTasks(t, tasks)
		s.trip()
		s.poll(5 * time.Second)
		if len(s.retried) != 0 {
			t.Fatalf("retried while the channel is out: %v", s.retried)
		}
		enable(t, s.account.Store, s.channel.Name, true)
		s.poll(5 * time.Second)
		slices.Sort(s.retried)
		if first := slices.Compact(s.retried); len(first) != tasks || first[tasks-1] != s.ids[tasks-1] {
			t.Errorf("%d retried, want all %d", len(first), tasks)
		}
	})
}

// TestD12RetriesEnd checks that tasks that park again although the channel is back are retried
// for some minutes at most.
func TestD12RetriesEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shutOutTasks(t, 1)
		s.many = true
		enable(t, s.account.Store, s.channel.Name, true)
		s.poll(6 * time.Minute)
		if last := s.at[len(s.at)-1]; len(s.at) <= 1 || last > 5*time.Minute {
			t.Errorf("%d retries, the last after %v", len(s.at), last)
		}
	})
}

// TestD12AllAreRetriedThoughTheDatabaseWasAway checks that tasks that could not be retried,
// because the database was away, are retried later.
func TestD12AllAreRetriedThoughTheDatabaseWasAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shutOutTasks(t, 3)
		s.fault = mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
		enable(t, s.account.Store, s.channel.Name, true)
		s.poll(10 * time.Second)
		if s.fault != nil || len(s.retried) != 3 || s.calls != 2 {
			t.Errorf("%d calls, retried %v, want all three by the second", s.calls, s.retried)
		}
	})
}

// TestDisabledChannelRetriesNone checks that no task is retried for a channel that an operator
// has disabled.
func TestDisabledChannelRetriesNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shutOutTasks(t, 3)
		s.trip()
		enable(t, s.account.Store, s.channel.Name, false)
		s.poll(2 * time.Minute)
		if len(s.retried) != 0 {
			t.Errorf("retried %v", s.retried)
		}
	})
}

// TestD12RetriedOnceTheVendorAnswers checks that tasks that were parked while the vendor did not
// answer polls are retried once it answers again.
func TestD12RetriedOnceTheVendorAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shutOutTasks(t, 0)
		s.accept(1, time.Hour)
		s.accept(1, time.Hour)
		s.change(
			"task-1", task.Claimed{N: 1, Claim: "c"}, task.Troubled{N: 1, Claim: "c", Reason: mediagate.ParkProviderAway},
		)
		s.ids = []string{"task-1"}
		s.back = time.Now().Add(time.Minute)
		s.poll(2 * time.Minute)
		if !slices.Equal(s.retried, []string{"task-1"}) || s.at[0] < time.Minute {
			t.Errorf("retried %v at %v, want it once the vendor answers", s.retried, s.at)
		}
	})
}

// TestDisabledChannelPolls checks that a disabled channel drains: it polls for its jobs until
// they end.
func TestDisabledChannelPolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, mediagate.Channel{PollMin: time.Second, PollMax: time.Second})
		a.accept(3, 30*time.Second)
		enable(t, a.Store, a.channel.Name, false)
		a.poll(time.Minute)
		if len(a.late) != 3 {
			t.Errorf("%d of 3 ends were seen", len(a.late))
		}
	})
}
