package api

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// sampleEvery is how often a sampledLog is told at most.
const sampleEvery = 10 * time.Second

// sampledLog tells the log of what others can make happen as often as they like: the
// first time at once, then how often in the time since, and of the last.
type sampledLog struct {
	log  *slog.Logger
	what string

	mu    sync.Mutex
	times int
	last  []slog.Attr
	timer *time.Timer // until the next line may be
}

func newSampledLog(log *slog.Logger, what string) *sampledLog {
	return &sampledLog{log: log, what: what}
}

// count notes one more.
func (t *sampledLog) count(attrs ...slog.Attr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times++
	t.last = attrs
	if t.timer == nil {
		t.tell()
	}
}

func (t *sampledLog) tell() {
	t.log.LogAttrs(context.Background(), slog.LevelWarn, t.what, append(t.last, slog.Int("times", t.times))...)
	t.times, t.last = 0, nil
	t.timer = time.AfterFunc(sampleEvery, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.timer = nil; t.times > 0 {
			t.tell()
		}
	})
}
