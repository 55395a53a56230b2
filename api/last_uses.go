package api

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// lastUseEvery is how often the last uses of keys are written.
const lastUseEvery = 5 * time.Second

// lastUses collects when keys were last used and writes that in batches. One write a request
// would cost more than reading a task.
type lastUses struct {
	store CallerStore
	log   *slog.Logger

	mu     sync.Mutex
	used   map[string]time.Time
	timer  *time.Timer
	closed bool
}

func newLastUses(store CallerStore, log *slog.Logger) *lastUses {
	return &lastUses{store: store, log: log, used: map[string]time.Time{}}
}

func (t *lastUses) note(keyID string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used[keyID] = at
	if t.timer == nil && !t.closed {
		t.timer = time.AfterFunc(lastUseEvery, t.flush)
	}
}

func (t *lastUses) flush() {
	t.mu.Lock()
	used := t.used
	t.used, t.timer = map[string]time.Time{}, nil
	t.mu.Unlock()
	if len(used) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastUseEvery)
	defer cancel()
	if err := t.store.TouchKeys(ctx, used); err != nil {
		t.log.Warn("the last uses of keys were not written", "keys", len(used), "error", err)
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(used) < maxCachedKeys { // so that a long outage of the database does not use up the memory
			maps.Copy(used, t.used)
			t.used = used
		}
	}
}

// close writes the remaining uses.
func (t *lastUses) close() {
	t.mu.Lock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.flush()
}
