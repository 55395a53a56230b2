package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/log"
)

// TestEverydayLinesAreNoWarnings checks that lines of Temporal's library at each stop, and about
// successful runs, are no warnings. All other lines keep their level.
func TestEverydayLinesAreNoWarnings(t *testing.T) {
	t.Parallel()
	said := map[string]struct {
		say  func(log.Logger)
		want string // level of the line
	}{
		"a heartbeat that a stop cuts off": {func(l log.Logger) {
			l.Warn("RecordActivityHeartbeat with error", "Error", serviceerror.NewCanceled("context canceled"))
		}, "DEBUG"},
		"an activity that a stop cuts off": {func(l log.Logger) {
			l.Error("Activity error.", "Attempt", 4, "Error", fmt.Errorf("copy: %w", context.Canceled))
		}, "DEBUG"},
		"a hint that came late": {func(l log.Logger) {
			l.Warn("Workflow has unhandled signals", "SignalNames", []string{"wake", "wake"})
		}, "DEBUG"},
		"a command that came late": {func(l log.Logger) {
			l.Warn("Workflow has unhandled signals", "SignalNames", []string{"wake", "retry"})
		}, "WARN"},
		"a lost heartbeat": {func(l log.Logger) {
			l.Warn("RecordActivityHeartbeat with error", "Error", serviceerror.NewUnavailable("connection refused"))
		}, "WARN"},
		"a failed activity":   {func(l log.Logger) { l.Error("Activity error.", "Error", errors.New("broken")) }, "ERROR"},
		"an error of no kind": {func(l log.Logger) { l.Error("Failed to poll for task.") }, "ERROR"},
	}
	for name, c := range said {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo} {
				var out bytes.Buffer
				o, err := Temporal{TLS: TemporalTLS{Mode: tlsOff}}.options(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})))
				must(t, err)
				c.say(log.With(o.Logger, "WorkflowID", "task_1"))
				text := out.String()
				if level == slog.LevelInfo && c.want == "DEBUG" {
					if text != "" {
						t.Errorf("at level %s it says %s", level, text)
					}
				} else if !strings.Contains(text, "level="+c.want) || !strings.Contains(text, "WorkflowID=task_1") {
					t.Errorf("at level %s it says %q, want level %s", level, text, c.want)
				}
			}
		})
	}
}
