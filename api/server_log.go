package api

import (
	"context"
	"log"
	"log/slog"
	"strings"
	"sync"

	limit "golang.org/x/time/rate"
)

// How much net/http may say of itself: what makes it speak may be others' doing.
const (
	serverLinesPerSecond = 1
	serverLinesAtOnce    = 10
	longestServerLine    = 4 << 10 // a panic brings its stack
)

// NewServerLog takes what an http.Server logs: as warnings, and a bounded number
// of them.
func NewServerLog(to *slog.Logger) *log.Logger {
	return log.New(&serverLog{to: to, bound: limit.NewLimiter(serverLinesPerSecond, serverLinesAtOnce)}, "", 0)
}

type serverLog struct {
	to    *slog.Logger
	bound *limit.Limiter

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
