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
)

// woken is who a poller wakes, and when.
type woken struct {
	*account
	mu    sync.Mutex
	tasks []string
	at    []time.Duration
	began time.Time
}

func (w *woken) SignalWake(_ context.Context, _ string, ids []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		w.tasks, w.at = append(w.tasks, id), append(w.at, time.Since(w.began).Truncate(time.Second))
	}
}

// shutOutTasks is a channel with n tasks that no channel took, and one that is
// parked for something else.
func shutOutTasks(t *testing.T, n int) *woken {
	t.Helper()
	w := &woken{account: newAccount(t, mediagate.Channel{PollMin: time.Second, PollMax: time.Second}), began: time.Now()}
	w.accounts.Workflows = w
	for i := range n + 1 {
		task := w.NewVideo()
		task.ID = fmt.Sprintf("task-%04d", i)
		w.Store.Add(task)
		reason := mediagate.ParkProviderAway
		if i == n {
			reason = mediagate.ParkStorage
		}
		if err := w.Store.Park(t.Context(), task.ID, reason); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *woken) trip() {
	w.t.Helper()
	if _, _, err := w.Store.TripBreaker(w.t.Context(), mediagate.Trip{
		Channel: w.channel.Name, Reason: mediagate.ParkFunds, Began: time.Now(), OpenFor: 30 * time.Second,
	}); err != nil {
		w.t.Fatal(err)
	}
}

// While a channel is out nobody is woken, until a probe is wanted: then one
// task after the other, since nobody else may come.
func TestOneIsWokenToBeTheProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := shutOutTasks(t, 2)
		w.trip()
		w.poll(65 * time.Second)
		if want := []string{"task-0000", "task-0001", "task-0000", "task-0001"}; !slices.Equal(w.tasks, want) || w.at[0] < 30*time.Second || w.at[1]-w.at[0] < 10*time.Second {
			t.Errorf("woken %v at %v, want %v, the first when a probe is due", w.tasks, w.at, want)
		}
	})
}

// Once the channel is back all are woken, once, by whoever polls then.
func TestAllAreWokenOnceTheChannelIsBack(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(w *woken) error{
		"by its probe": func(w *woken) error {
			time.Sleep(30 * time.Second)
			if _, claimed, err := w.Store.ClaimProbe(w.t.Context(), w.channel.Name, "p", time.Minute); err != nil || !claimed {
				return fmt.Errorf("claimed %t: %w", claimed, err)
			}
			_, _, err := w.Store.CloseBreaker(w.t.Context(), w.channel.Name, "p")
			return err
		},
		"by an operator": func(w *woken) error {
			_, err := w.Store.EnableChannel(w.t.Context(), w.channel.Name, true)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := shutOutTasks(t, 600)
				w.trip()
				w.poll(5 * time.Second)
				if len(w.tasks) != 0 {
					t.Fatalf("woken while the channel is out: %v", w.tasks)
				}
				if err := back(w); err != nil {
					t.Fatal(err)
				}
				w.poll(10 * time.Second)
				if len(w.tasks) != 600 || !slices.IsSorted(w.tasks) || w.tasks[599] != "task-0599" {
					t.Errorf("woken %d, want all 600 in their order", len(w.tasks))
				}
			})
		})
	}
}

// awayOnce is a database that is away when parked tasks are looked for first.
type awayOnce struct {
	channel.Store
	asked bool
}

func (s *awayOnce) ParkedOnRoute(ctx context.Context, provider, after string, limit int) ([]string, error) {
	if !s.asked {
		s.asked = true
		return nil, mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
	}
	return s.Store.ParkedOnRoute(ctx, provider, after, limit)
}

// D12: those who could not be looked up are woken once they can be.
func TestAllAreWokenThoughTheDatabaseWasAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := shutOutTasks(t, 3)
		store := &awayOnce{Store: w.accounts.Store}
		w.accounts.Store = store
		if _, err := w.Store.EnableChannel(t.Context(), w.channel.Name, true); err != nil {
			t.Fatal(err)
		}
		w.poll(10 * time.Second)
		if !store.asked || len(w.tasks) != 3 {
			t.Errorf("asked %t, woken %v, want all three", store.asked, w.tasks)
		}
	})
}

// A channel that an operator took out wakes nobody.
func TestDisabledChannelWakesNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := shutOutTasks(t, 3)
		w.trip()
		if _, err := w.Store.EnableChannel(t.Context(), w.channel.Name, false); err != nil {
			t.Fatal(err)
		}
		w.poll(2 * time.Minute)
		if len(w.tasks) != 0 {
			t.Errorf("woken %v", w.tasks)
		}
	})
}

// A disabled channel drains: what it has is polled for to the end.
func TestDisabledChannelPolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, mediagate.Channel{PollMin: time.Second, PollMax: time.Second})
		a.accept(20, 30*time.Second)
		if _, err := a.Store.EnableChannel(t.Context(), a.channel.Name, false); err != nil {
			t.Fatal(err)
		}
		a.poll(time.Minute)
		if len(a.late) != 20 {
			t.Errorf("%d of 20 ends were seen", len(a.late))
		}
	})
}

var _ channel.Workflows = (*woken)(nil)
