package app

import (
	"io"
	"log/slog"
)

// NewLogger writes JSON lines of the settings' level.
func NewLogger(c Config, w io.Writer) *slog.Logger {
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level.Set(slog.LevelInfo)
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}
