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

// logger passes the service's warnings and errors to slog. It drops the other lines: a start
// alone writes hundreds.
type logger struct {
	to *slog.Logger
	// muted drops warnings. All loggers of a service share it.
	muted *atomic.Bool
}

func newLogger(to *slog.Logger) *logger {
	return &logger{to: to.With("component", "temporal"), muted: new(atomic.Bool)}
}

var _ log.WithLogger = (*logger)(nil)

// muteWarnings drops warnings from now on. While the service stops, its roles end one after the
// other, and each warns that it has lost the roles that ended before.
func (l *logger) muteWarnings() { l.muted.Store(true) }

// Debug drops the line.
func (*logger) Debug(string, ...tag.Tag) {}

// Info drops the line.
func (*logger) Info(string, ...tag.Tag) {}

// Warn logs a warning.
func (l *logger) Warn(msg string, tags ...tag.Tag) {
	if !l.muted.Load() && !isCallerGone(tags) && msg != metricsWarning {
		l.log(slog.LevelWarn, msg, tags)
	}
}

// Error logs an error.
func (l *logger) Error(msg string, tags ...tag.Tag) {
	if !isCallerGone(tags) {
		l.log(slog.LevelError, msg, tags)
	}
}

// metricsWarning is a harmless warning of the service: labels for its metrics are lost when one of
// its roles calls another outside a request.
const metricsWarning = "TrailerToContextMetadataInterceptor: Trailer had metadata but context not wrapped"

// isCallerGone reports whether a line is about a call that its caller cancelled. Every client that
// stops during a call is such a caller, and the client repeats the call later.
func isCallerGone(tags []tag.Tag) bool {
	for _, t := range tags {
		if zapped, ok := t.(tag.ZapTag); ok && t.Key() == "error" {
			err, _ := zapped.Field().Interface.(error)
			_, cancelled := errors.AsType[*serviceerror.Canceled](err)
			return cancelled || errors.Is(err, context.Canceled)
		}
	}
	return false
}

// DPanic logs an error. It would panic only in development.
func (l *logger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

// Panic logs an error and panics, as its callers rely on.
func (l *logger) Panic(msg string, tags ...tag.Tag) {
	l.log(slog.LevelError, msg, tags)
	panic(msg)
}

// Fatal logs an error and ends the process, as its callers rely on. The database survives that.
// If a port was taken, Fatal instead panics with a *portTakenError, and startOnce recovers it, so
// that startService can try other ports.
func (l *logger) Fatal(msg string, tags ...tag.Tag) {
	if lost := findPortTaken(tags); lost != nil {
		panic(lost)
	}
	l.log(slog.LevelError, msg, tags)
	os.Exit(1)
}

// findPortTaken returns the port that a role could not listen on because another program does,
// or nil if the tags name none.
func findPortTaken(tags []tag.Tag) *portTakenError {
	var lost portTakenError
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

// quietSDK drops the lines that the SDK logs while the frontend is still starting.
type quietSDK struct{}

// Debug drops the line.
func (quietSDK) Debug(string, ...any) {}

// Info drops the line.
func (quietSDK) Info(string, ...any) {}

// Warn drops the line.
func (quietSDK) Warn(string, ...any) {}

// Error drops the line. Failures are returned as errors.
func (quietSDK) Error(string, ...any) {}
