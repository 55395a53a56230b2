package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"go.temporal.io/api/serviceerror"

	"github.com/mediagate/mediagate/workflows"
)

// ordinary makes lines for debugging of what Temporal's library warns of although
// it belongs to every day: a worker that stops leaves heartbeats and activities
// unfinished, which are repeated elsewhere, and a run may end with wakes that it has
// not read: it has read the row.
type ordinary struct{ slog.Handler }

// Handle passes a line on.
func (o ordinary) Handle(ctx context.Context, r slog.Record) error {
	if r.Level > slog.LevelInfo && (cutOff(r) || lateWake(r)) {
		r.Level = slog.LevelDebug
		if !o.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return o.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler that adds attributes to every line.
func (o ordinary) WithAttrs(attrs []slog.Attr) slog.Handler {
	return ordinary{o.Handler.WithAttrs(attrs)}
}

// WithGroup returns a handler that puts attributes into a group.
func (o ordinary) WithGroup(name string) slog.Handler { return ordinary{o.Handler.WithGroup(name)} }

// cutOff reports a line on a call or an activity that was given up on purpose.
// That an activity was is told by the worker, in a line of its own.
func cutOff(r slog.Record) bool {
	err, _ := attribute(r, "Error").(error)
	_, cancelled := errors.AsType[*serviceerror.Canceled](err)
	return cancelled || errors.Is(err, context.Canceled)
}

// lateWake reports a line on signals that a run has not read before its end, where
// all are wakes: the others are sent by hand, and their sender waits for an effect.
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
