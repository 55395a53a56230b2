package api

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// touchEvery is how often the last uses of keys are written.
const touchEvery = 5 * time.Second

// touches collects when keys were last used and writes them in batches: one
// row written a request would cost more than reading a task does.
type touches struct {
	store CallerStore
	log   *slog.Logger

	mu     sync.Mutex
	used   map[string]time.Time
	timer  *time.Timer
	closed bool
}

func newTouches(store CallerStore, log *slog.Logger) *touches {
	return &touches{store: store, log: log, used: map[string]time.Time{}}
}

func (t *touches) note(keyID string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used[keyID] = at
	if t.timer == nil && !t.closed {
		t.timer = time.AfterFunc(touchEvery, t.flush)
	}
}

func (t *touches) flush() {
	t.mu.Lock()
	used := t.used
	t.used, t.timer = map[string]time.Time{}, nil
	t.mu.Unlock()
	if len(used) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), touchEvery)
	defer cancel()
	if err := t.store.TouchKeys(ctx, used); err != nil {
		t.log.Warn("last use of keys not written", "keys", len(used), "error", err)
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(used) < maxCachedKeys { // a database that stays away must not cost memory
			maps.Copy(used, t.used)
			t.used = used
		}
	}
}

// close writes what is left.
func (t *touches) close() {
	t.mu.Lock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.flush()
}
