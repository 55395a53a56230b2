package api

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
)

// versions is the one query of the watcher, counted.
type versions struct {
	TaskStore
	mu    sync.Mutex
	rows  map[string]int64
	err   error
	asked [][]string
}

func (v *versions) Versions(_ context.Context, ids []string) (map[string]int64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = append(v.asked, slices.Sorted(slices.Values(ids)))
	if v.err != nil {
		return nil, v.err
	}
	found := map[string]int64{}
	for _, id := range ids {
		if version, ok := v.rows[id]; ok {
			found[id] = version
		}
	}
	return found, nil
}

func (v *versions) set(id string, version int64, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rows[id], v.err = version, err
}

func (v *versions) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.asked)
}

func newTestWatcher(t *testing.T) (*watcher, *versions) {
	t.Helper()
	store := &versions{rows: map[string]int64{}}
	w := newWatcher(store, slog.New(slog.DiscardHandler))
	t.Cleanup(w.close)
	return w, store
}

func TestWatcherWakesOnChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, store := newTestWatcher(t)
		store.set("a", 1, nil)
		store.set("b", 1, nil)
		woken := make(chan string, 3)
		for _, id := range []string{"a", "a", "b"} {
			go func() {
				if w.wait(t.Context(), id, 1) {
					woken <- id
				}
			}()
		}
		time.Sleep(time.Second)
		if len(woken) != 0 {
			t.Fatalf("%s woke without a change", <-woken)
		}
		store.set("a", 2, nil)
		time.Sleep(2 * watchEvery)
		if first, second := <-woken, <-woken; first != "a" || second != "a" {
			t.Errorf("%s and %s woke, want both of a", first, second)
		}
		synctest.Wait()
		if got := store.asked[0]; !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("asked for %v, want each id once in one query", got)
		}
		store.set("b", 2, nil)
		<-woken
		time.Sleep(watchEvery)
		before := store.count()
		time.Sleep(time.Minute)
		if after := store.count(); after != before {
			t.Errorf("%d queries while nobody waits", after-before)
		}
	})
}

func TestWatcherWakesWhenTheRowIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := newTestWatcher(t)
		if !w.wait(t.Context(), "gone", 1) {
			t.Error("not woken")
		}
	})
}

func TestWatcherOutlivesAnAbsentDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, store := newTestWatcher(t)
		store.set("a", 1, &mediagate.Error{Kind: mediagate.KindUnavailable, Err: errors.New("away")})
		woken := make(chan bool, 1)
		go func() { woken <- w.wait(t.Context(), "a", 1) }()
		time.Sleep(10 * time.Second)
		if len(woken) != 0 {
			t.Fatal("woken by a failed look")
		}
		store.set("a", 2, nil)
		if !<-woken {
			t.Error("not woken when the database was back")
		}
	})
}

func TestWatcherEndsWithTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, store := newTestWatcher(t)
		store.set("a", 1, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		if w.wait(ctx, "a", 1) || time.Since(start) != 2*time.Second {
			t.Errorf("woke after %s", time.Since(start))
		}
		synctest.Wait()
		if len(w.waiting) != 0 {
			t.Error("the waiter was not forgotten")
		}
	})
}

func TestWatcherHandsBackOnClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, store := newTestWatcher(t)
		store.set("a", 1, nil)
		woken := make(chan bool, 1)
		go func() { woken <- w.wait(t.Context(), "a", 1) }()
		synctest.Wait()
		w.close()
		if <-woken {
			t.Error("a stop looks like a change")
		}
		if w.wait(t.Context(), "a", 1) {
			t.Error("waiting after the stop")
		}
	})
}
