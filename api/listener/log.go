package listener

import (
	"context"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// SampleEvery is the shortest time between two lines of a SampledLog.
const SampleEvery = 10 * time.Second

// SampledLog logs an event that clients can cause as often as they like. It logs the first
// occurrence at once, and after that one line every SampleEvery, with the number of occurrences
// and the attributes of the last.
type SampledLog struct {
	log  *slog.Logger
	what string

	mu    sync.Mutex
	times int
	last  []slog.Attr
	timer *time.Timer // runs until the next line may be written
}

// NewSampledLog makes a log of one kind of event.
func NewSampledLog(log *slog.Logger, what string) *SampledLog {
	return &SampledLog{log: log, what: what}
}

// Count counts an occurrence.
func (t *SampledLog) Count(attrs ...slog.Attr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times++
	t.last = attrs
	if t.timer == nil {
		t.report()
	}
}

func (t *SampledLog) report() {
	t.log.LogAttrs(context.Background(), slog.LevelWarn, t.what, append(t.last, slog.Int("times", t.times))...)
	t.times, t.last = 0, nil
	t.timer = time.AfterFunc(SampleEvery, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.timer = nil; t.times > 0 {
			t.report()
		}
	})
}

// longestServerLine bounds a message of net/http, which may include the stack of a panic.
const longestServerLine = 4 << 10

// NewServerLog returns the error log of an http.Server. It is sampled, since clients can cause
// its messages.
func NewServerLog(to *slog.Logger) *log.Logger {
	return log.New(serverLog{NewSampledLog(to, "HTTP server")}, "", 0)
}

type serverLog struct{ to *SampledLog }

// Write gets one line at a time.
func (l serverLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line[:min(len(line), longestServerLine)]))
	l.to.Count(slog.String("says", strings.ToValidUTF8(text, "")))
	return len(line), nil
}
