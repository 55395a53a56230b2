package app

import (
	"io"
	"log"
	"log/slog"
	"regexp"
	"strings"
)

// NewLogger writes JSON lines of the settings' level, without their secrets.
func NewLogger(c Config, w io.Writer) *slog.Logger {
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level.Set(slog.LevelInfo)
	}
	return slog.New(slog.NewJSONHandler(Scrub(w, c.secrets()...), &slog.HandlerOptions{Level: level}))
}

// SetLogger makes the logger that of the process, also for what libraries
// write by the log package. They quote what others sent: net/http does so with
// bytes that a vendor sends without having been asked, which may repeat the
// credentials of the request before.
func SetLogger(logger *slog.Logger) {
	slog.SetDefault(logger)
	log.SetOutput(libraries{logger})
}

// libraries writes the lines of libraries without what they quote.
type libraries struct{ log *slog.Logger }

var quotation = regexp.MustCompile(`"(?:[^"\\]|\\.)*"?`)

func (l libraries) Write(line []byte) (int, error) {
	l.log.Info(quotation.ReplaceAllLiteralString(strings.TrimSpace(string(line)), `"…"`))
	return len(line), nil
}
