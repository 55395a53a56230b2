package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"go.temporal.io/api/serviceerror"

	"github.com/mediagate/mediagate/workflows"
)

// demotedLog lowers warnings of Temporal's library about everyday events to debug level. A worker
// that stops leaves heartbeats and activities unfinished, which are repeated elsewhere. A run may
// end with unread wake signals, which lose nothing, since the run has read the row.
type demotedLog struct{ slog.Handler }

// Handle passes a line on, with its new level.
func (o demotedLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Level > slog.LevelInfo && (cutOff(r) || lateWake(r)) {
		r.Level = slog.LevelDebug
		if !o.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return o.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that adds attributes to every line.
func (o demotedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demotedLog{o.Handler.WithAttrs(attrs)}
}

// WithGroup returns a handler that puts attributes into a group.
func (o demotedLog) WithGroup(name string) slog.Handler { return demotedLog{o.Handler.WithGroup(name)} }

// cutOff reports whether a line is about a call or an activity that was cancelled on purpose. The
// worker logs such activities itself.
func cutOff(r slog.Record) bool {
	err, _ := attribute(r, "Error").(error)
	_, cancelled := errors.AsType[*serviceerror.Canceled](err)
	return cancelled || errors.Is(err, context.Canceled)
}

// lateWake reports whether a line is about unread signals at the end of a run, all of which are
// wakes. Other signals are sent by hand, and their senders expect an effect.
func lateWake(r slog.Record) bool {
	names, _ := attribute(r, "SignalNames").([]string)
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return name != workflows.SignalWake })
}

func attribute(r slog.Record, key string) (value any) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == key {
			value = a.Value.Any()
		}
		return a.Key != key
	})
	return value
}
