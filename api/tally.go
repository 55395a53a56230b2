package api

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// tallyEvery is how often a tally is told at most.
const tallyEvery = 10 * time.Second

// tally tells the log of what others can make happen as often as they like: the
// first time at once, then how often in the time since, and of the last.
type tally struct {
	log  *slog.Logger
	what string

	mu    sync.Mutex
	times int
	last  []slog.Attr
	timer *time.Timer // until the next line may be
}

func newTally(log *slog.Logger, what string) *tally { return &tally{log: log, what: what} }

// count notes one more.
func (t *tally) count(attrs ...slog.Attr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times++
	t.last = attrs
	if t.timer == nil {
		t.tell()
	}
}

func (t *tally) tell() {
	t.log.LogAttrs(context.Background(), slog.LevelWarn, t.what, append(t.last, slog.Int("times", t.times))...)
	t.times, t.last = 0, nil
	t.timer = time.AfterFunc(tallyEvery, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.timer = nil; t.times > 0 {
			t.tell()
		}
	})
}
