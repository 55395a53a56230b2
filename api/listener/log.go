package listener

import (
	"context"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// SampleEvery is how often a SampledLog is told at most.
const SampleEvery = 10 * time.Second

// SampledLog tells the log of what others can make happen as often as they like: the
// first time at once, then how often in the time since, and of the last.
type SampledLog struct {
	log  *slog.Logger
	what string

	mu    sync.Mutex
	times int
	last  []slog.Attr
	timer *time.Timer // until the next line may be
}

func NewSampledLog(log *slog.Logger, what string) *SampledLog {
	return &SampledLog{log: log, what: what}
}

// Count notes one more.
func (t *SampledLog) Count(attrs ...slog.Attr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times++
	t.last = attrs
	if t.timer == nil {
		t.tell()
	}
}

func (t *SampledLog) tell() {
	t.log.LogAttrs(context.Background(), slog.LevelWarn, t.what, append(t.last, slog.Int("times", t.times))...)
	t.times, t.last = 0, nil
	t.timer = time.AfterFunc(SampleEvery, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.timer = nil; t.times > 0 {
			t.tell()
		}
	})
}

// longestServerLine bounds what net/http may say of itself: a panic brings its stack.
const longestServerLine = 4 << 10

// NewServerLog takes what an http.Server logs: what makes it speak may be others' doing.
func NewServerLog(to *slog.Logger) *log.Logger {
	return log.New(serverLog{NewSampledLog(to, "HTTP server")}, "", 0)
}

type serverLog struct{ to *SampledLog }

// Write is given one line at a time.
func (l serverLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line[:min(len(line), longestServerLine)]))
	l.to.Count(slog.String("says", strings.ToValidUTF8(text, "")))
	return len(line), nil
}
