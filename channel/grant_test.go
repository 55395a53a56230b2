package channel_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
)

// waiters are tasks that queue for the account. Each uses its slot at once, and its
// job takes a minute.
type waiters struct {
	*account
	mu      sync.Mutex
	began   time.Time
	granted map[string]time.Duration // when, by task
	deaf    bool                     // signals reach nobody
	lost    int                      // signals that did not
}

func newWaiters(t *testing.T, c mediagate.Channel) *waiters {
	t.Helper()
	w := &waiters{account: newAccount(t, c), began: time.Now(), granted: make(map[string]time.Duration)}
	w.accounts.Workflows = w
	return w
}

func (w *waiters) SignalSlot(ctx context.Context, _ string, rows []mediagate.Queued) {
	for _, row := range rows {
		w.mu.Lock()
		if w.deaf {
			w.lost++
			w.mu.Unlock()
			continue
		}
		if _, ok := w.granted[row.TaskID]; !ok {
			w.granted[row.TaskID] = time.Since(w.began).Truncate(100 * time.Millisecond)
		}
		w.mu.Unlock()
		w.begin(ctx, row.TaskID, time.Minute)
	}
}

// begin makes the job of a task.
func (w *waiters) begin(ctx context.Context, id string, duration time.Duration) {
	w.account.mu.Lock()
	w.ends[id] = time.Now().Add(duration)
	w.account.mu.Unlock()
	_, _, err := w.Store.OpenAttempt(ctx, mediagate.Attempt{
		TaskID: id, N: 1, Channel: w.channel.Name, Provider: w.channel.Provider, Fingerprint: w.channel.Fingerprint, ExternalID: id, CreatedAt: time.Now(),
	}, w.channel.Slots())
	if err == nil {
		_, err = w.Store.AcceptAttempt(ctx, id, 1, mediagate.Submission{Ref: mediagate.JobRef{JobID: "job-" + id, ExternalID: id}}, time.Now().Add(w.channel.FirstPoll(id)))
	}
	if err != nil {
		w.t.Error(err)
	}
}

// queue takes in tasks of one payer who wait under the name.
func (w *waiters) queue(name, payer string, n int) {
	w.t.Helper()
	for i := range n {
		task := w.NewVideo()
		task.ID, task.AccountID = fmt.Sprintf("%s-%d", payer, i), payer
		w.Store.Add(task)
		if err := w.Store.Queue(w.t.Context(), task.ID, 1, []string{name}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *waiters) at(id string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.granted[id]; ok {
		return at
	}
	return -1
}

func TestD7FreeSlotsAreGranted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(t, mediagate.Channel{Concurrency: 2, PollMin: time.Second, PollMax: time.Second})
		w.queue(w.channel.Name, "busy", 6)
		w.queue(w.channel.Name, "late", 1)
		w.poll(5 * time.Minute)
		if w.at("busy-0") != 0 || w.at("late-0") != 0 {
			t.Errorf("at first %v and %v, want both accounts' first at once", w.at("busy-0"), w.at("late-0"))
		}
		for _, two := range [][]string{{"busy-1", "busy-2"}, {"busy-3", "busy-4"}} {
			if a, b := w.at(two[0]), w.at(two[1]); a < time.Minute || b < a || b-a > 2*time.Second {
				t.Errorf("%v were granted at %v and %v", two, a, b)
			}
		}
		if at := w.at("busy-5"); at < 3*time.Minute || at > 3*time.Minute+6*time.Second {
			t.Errorf("the last one was granted at %v", at)
		}
		most, queued := 0, 0
		for _, beat := range w.beats {
			most, queued = max(most, beat.InFlight), max(queued, beat.Queued)
		}
		if most != 2 || queued != 5 {
			t.Errorf("beats show up to %d in flight, %d queued; want 2, 5", most, queued)
		}
	})
}

func TestD7GrantsReachDeafWorkflows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(t, mediagate.Channel{Concurrency: 1, PollMin: time.Second, PollMax: time.Second})
		w.queue(w.channel.Name, "one", 1)
		w.deaf = true
		w.poll(45 * time.Second)
		if w.lost != 2 {
			t.Errorf("%d signals in 45 s, want one at once and one after 30 s", w.lost)
		}
		w.deaf = false
		w.poll(time.Second) // the next run
		if at := w.at("one-0"); at != 45*time.Second {
			t.Errorf("told at %v, want as soon as the next run begins", at)
		}
	})
}

func TestShutChannelsGrantNothing(t *testing.T) {
	t.Parallel()
	for name, concurrency := range map[string]int{"slots": 100, "no limit": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWaiters(t, mediagate.Channel{Concurrency: concurrency, PollMin: time.Second, PollMax: time.Second})
				if _, err := w.Store.EnableChannel(t.Context(), w.channel.Name, false); err != nil {
					t.Fatal(err)
				}
				w.queue(w.channel.Name, "a", 60)
				w.poll(time.Minute)
				if len(w.granted) > 0 {
					t.Fatalf("%d were granted", len(w.granted))
				}
				if _, err := w.Store.EnableChannel(t.Context(), w.channel.Name, true); err != nil {
					t.Fatal(err)
				}
				w.poll(10 * time.Second)
				if len(w.granted) != 60 {
					t.Errorf("%d of 60 were granted once it was enabled", len(w.granted))
				}
			})
		})
	}
}

func TestStandInGrantsForTheFormerName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(t, mediagate.Channel{Concurrency: 1, PollMin: time.Second, PollMax: time.Second})
		w.channel.Former = []string{"former"}
		w.Channels.Set(w.channel)
		w.queue("former", "old", 2)
		p, err := w.accounts.Poller(t.Context(), "former")
		if err != nil {
			t.Fatal(err)
		}
		p.Report = func(context.Context, channel.Beat) {}
		calls, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		if err := p.Run(t.Context(), calls); err != nil {
			t.Fatal(err)
		}
		if w.at("old-0") != 0 || w.at("old-1") >= 0 {
			t.Errorf("granted at %v and %v, want the first one only", w.at("old-0"), w.at("old-1"))
		}
	})
}

// The rows that wait under a former name may be of an account that another
// channel has. The slots are those of the channel that the name's tasks go to.
func TestD7StandInOfAnotherAccountGrantsSlotsOfTheHeir(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(t, mediagate.Channel{Concurrency: 1, PollMin: time.Second, PollMax: time.Second})
		keeper, heir := w.channel, w.channel
		keeper.Name, keeper.Fingerprint, keeper.Concurrency = "former", "account-of-former", 10
		w.channel = keeper
		w.accept(1, time.Hour)
		keeper.Name = "keeper"
		heir.Former = []string{"former"}
		w.channel = heir
		w.Channels.Set(heir, keeper)
		w.queue("former", "old", 4)
		p, err := w.accounts.Poller(t.Context(), "former")
		if err != nil {
			t.Fatal(err)
		}
		p.Report = func(context.Context, channel.Beat) {}
		calls, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		if err := p.Run(t.Context(), calls); err != nil {
			t.Fatal(err)
		}
		if len(w.granted) != 0 { // a job under a former name counts as the heir's
			t.Errorf("%d slots granted of none: %v", len(w.granted), w.granted)
		}
	})
}

func TestOrphanedQueueGoesElsewhere(t *testing.T) {
	t.Parallel()
	w := &woken{account: newAccount(t, mediagate.Channel{}), began: time.Now()}
	w.accounts.Workflows = w
	(&waiters{account: w.account}).queue("gone", "a", 2)
	left, err := w.accounts.Orphaned("gone").GiveUp(t.Context())
	if err != nil || left != 2 || len(w.tasks) != 2 {
		t.Errorf("%d left, %v woken, error %v", left, w.tasks, err)
	}
}

var _ channel.Workflows = (*waiters)(nil)
