package temporalserver

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"

	"github.com/mediagate/mediagate/internal/freeport"
)

// logger hands the service's warnings and errors to slog. Its notes about
// ordinary life are dropped: a start alone writes hundreds.
type logger struct {
	to *slog.Logger
	// muted drops warnings; all loggers of a service share it.
	muted *atomic.Bool
}

func newLogger(to *slog.Logger) *logger {
	return &logger{to: to.With("component", "temporal"), muted: new(atomic.Bool)}
}

var _ log.WithLogger = (*logger)(nil)

// muteWarnings is for the stop: the roles end one after the other, and each
// warns that it has lost those that ended before.
func (l *logger) muteWarnings() { l.muted.Store(true) }

// Debug is dropped.
func (*logger) Debug(string, ...tag.Tag) {}

// Info is dropped.
func (*logger) Info(string, ...tag.Tag) {}

// Warn logs a warning.
func (l *logger) Warn(msg string, tags ...tag.Tag) {
	if !l.muted.Load() && !hungUp(tags) && msg != ownMatter {
		l.log(slog.LevelWarn, msg, tags)
	}
}

// Error logs an error.
func (l *logger) Error(msg string, tags ...tag.Tag) {
	if !hungUp(tags) {
		l.log(slog.LevelError, msg, tags)
	}
}

// ownMatter is what the service says when one of its roles calls another beside a
// request, now and then on any day: that labels for its metrics are lost.
const ownMatter = "TrailerToContextMetadataInterceptor: Trailer had metadata but context not wrapped"

// hungUp reports a call whose caller went away: each client that stops in the
// middle of one is such a caller. What the call was for, it does again.
func hungUp(tags []tag.Tag) bool {
	for _, t := range tags {
		if zapped, ok := t.(tag.ZapTag); ok && t.Key() == "error" {
			err, _ := zapped.Field().Interface.(error)
			_, cancelled := errors.AsType[*serviceerror.Canceled](err)
			return cancelled || errors.Is(err, context.Canceled)
		}
	}
	return false
}

// DPanic logs an error: it asks for a panic in development only.
func (l *logger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

// Panic logs an error and panics, as its callers count on.
func (l *logger) Panic(msg string, tags ...tag.Tag) {
	l.log(slog.LevelError, msg, tags)
	panic(msg)
}

// Fatal logs an error and ends the process, as its callers count on; the
// database survives it. That a port was taken is thrown as a *collision:
// startOnce catches it, and others are tried.
func (l *logger) Fatal(msg string, tags ...tag.Tag) {
	if lost := collisionAmong(tags); lost != nil {
		panic(lost)
	}
	l.log(slog.LevelError, msg, tags)
	os.Exit(1)
}

// collisionAmong finds what a role says of a port that it cannot listen on.
func collisionAmong(tags []tag.Tag) *collision {
	var lost collision
	for _, t := range tags {
		zapped, ok := t.(tag.ZapTag)
		switch {
		case !ok:
		case t.Key() == "error":
			lost.err, _ = zapped.Field().Interface.(error)
		case t.Key() == tag.Address("").Key():
			lost.addr, _ = t.Value().(string)
		}
	}
	if !freeport.Taken(lost.err) {
		return nil
	}
	return &lost
}

// With returns a logger that adds tags to every line.
func (l *logger) With(tags ...tag.Tag) log.Logger {
	return &logger{to: slog.New(l.to.Handler().WithAttrs(attrs(tags))), muted: l.muted}
}

func (l *logger) log(level slog.Level, msg string, tags []tag.Tag) {
	l.to.LogAttrs(context.Background(), level, msg, attrs(tags)...)
}

func attrs(tags []tag.Tag) []slog.Attr {
	out := make([]slog.Attr, 0, len(tags))
	for _, t := range tags {
		out = append(out, slog.Any(t.Key(), t.Value()))
	}
	return out
}

// quietSDK drops what the SDK says while the frontend is still starting.
type quietSDK struct{}

// Debug is dropped.
func (quietSDK) Debug(string, ...any) {}

// Info is dropped.
func (quietSDK) Info(string, ...any) {}

// Warn is dropped.
func (quietSDK) Warn(string, ...any) {}

// Error is dropped: what fails is returned.
func (quietSDK) Error(string, ...any) {}
