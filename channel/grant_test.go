package channel_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/task"
)

// waiters are tasks that queue for the account. Each uses its slot at once, and its job takes a
// minute.
type waiters struct {
	*account
	mu      sync.Mutex
	began   time.Time
	granted map[string]time.Duration // when each task got its slot
	freed   []time.Duration          // when slots were freed
	queued  int                      // the highest number of queued tasks in a beat when slots were granted
}

func newWaiters(t *testing.T, c mediagate.Channel) *waiters {
	t.Helper()
	w := &waiters{account: newAccount(t, c), began: time.Now(), granted: make(map[string]time.Duration)}
	w.accounts.Workflows = w
	return w
}

// StepsChanged notes when a slot was freed.
func (w *waiters) StepsChanged(_ context.Context, _ string, ended []channel.StepChange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range ended {
		w.freed = append(w.freed, time.Since(w.began).Truncate(100*time.Millisecond))
	}
}

// RoomToCopy has no room.
func (*waiters) RoomToCopy(string) func() { return nil }

// Wake uses the slots.
func (w *waiters) Wake(_ context.Context, _ string, ids []string) {
	beat, _ := w.last.Beat()
	w.queued = max(w.queued, beat.Queued)
	for _, id := range ids {
		w.mu.Lock()
		w.granted[id] = time.Since(w.began).Truncate(100 * time.Millisecond)
		w.mu.Unlock()
		w.account.mu.Lock()
		w.ends[id] = time.Now().Add(time.Minute)
		w.account.mu.Unlock()
		w.submit(id)
	}
}

// queue adds tasks of one account that wait under the name.
func (w *waiters) queue(name, payer string, n int) {
	w.t.Helper()
	for i := range n {
		video := w.NewVideo()
		video.ID, video.AccountID = fmt.Sprintf("%s-%d", payer, i), payer
		w.Store.Add(video)
		w.change(video.ID, task.Queued{N: 1, Channels: []string{name}})
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
			if a, b := w.at(two[0]), w.at(two[1]); !slices.Contains(w.freed, a) || !slices.Contains(w.freed, b) {
				t.Errorf("%v were granted at %v and %v, slots were freed at %v", two, a, b, w.freed)
			}
		}
		if at := w.at("busy-5"); at < 3*time.Minute || at > 3*time.Minute+6*time.Second {
			t.Errorf("the last one was granted at %v", at)
		}
		if w.queued != 5 {
			t.Errorf("beats show up to %d queued, want 5", w.queued)
		}
	})
}

func TestShutChannelsGrantNothing(t *testing.T) {
	t.Parallel()
	for name, concurrency := range map[string]int{"slots": 100, "no limit": 0} {
		inBubble(t, name, func(t *testing.T) {
			w := newWaiters(t, mediagate.Channel{Concurrency: concurrency, PollMin: time.Second, PollMax: time.Second})
			enable(t, w.Store, w.channel.Name, false)
			w.queue(w.channel.Name, "a", 60)
			w.poll(time.Minute)
			if len(w.granted) > 0 {
				t.Fatalf("%d were granted", len(w.granted))
			}
			enable(t, w.Store, w.channel.Name, true)
			w.poll(10 * time.Second)
			if len(w.granted) != 60 {
				t.Errorf("%d of 60 were granted once it was enabled", len(w.granted))
			}
		})
	}
}

func TestAliasGrantsForTheFormerName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWaiters(t, mediagate.Channel{Concurrency: 1, PollMin: time.Second, PollMax: time.Second})
		w.channel.Former = []string{"former"}
		w.Channels.Set(w.channel)
		w.queue("former", "old", 2)
		w.pollFor("former", 50*time.Second)
		if w.at("old-0") != 0 || w.at("old-1") >= 0 {
			t.Errorf("granted at %v and %v, want the first one only", w.at("old-0"), w.at("old-1"))
		}
	})
}
