package listener

import (
	"context"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
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

// How much net/http may say of itself: what makes it speak may be others' doing.
const (
	serverLinesPerSecond = 1
	serverLinesAtOnce    = 10
	longestServerLine    = 4 << 10 // a panic brings its stack
)

// NewServerLog takes what an http.Server logs: as warnings, and a bounded number
// of them.
func NewServerLog(to *slog.Logger) *log.Logger {
	return log.New(&serverLog{to: to, bound: rate.NewLimiter(serverLinesPerSecond, serverLinesAtOnce)}, "", 0)
}

type serverLog struct {
	to    *slog.Logger
	bound *rate.Limiter

	mu      sync.Mutex
	leftOut int // since the last line
}

// Write is given one line at a time.
func (l *serverLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.bound.Allow() {
		l.leftOut++
		return len(line), nil
	}
	text := strings.ToValidUTF8(strings.TrimSpace(string(line[:min(len(line), longestServerLine)])), "")
	attrs := []slog.Attr{slog.String("says", text)}
	if l.leftOut > 0 {
		attrs = append(attrs, slog.Int("left_out", l.leftOut))
		l.leftOut = 0
	}
	l.to.LogAttrs(context.Background(), slog.LevelWarn, "HTTP server", attrs...)
	return len(line), nil
}
