package app

import (
	"io"
	"log"
	"log/slog"
	"regexp"
	"strings"
)

// NewLogger returns a logger that writes JSON lines of the configured level, without the secrets
// in the settings.
func NewLogger(c Config, w io.Writer) *slog.Logger {
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level.Set(slog.LevelInfo)
	}
	return slog.New(slog.NewJSONHandler(Scrub(w, c.secrets()...), &slog.HandlerOptions{Level: level}))
}

// SetLogger makes the logger the process's default, also for libraries that use package log. The
// lines of libraries may quote what others sent: net/http, for example, logs unsolicited bytes of a
// vendor, which may repeat the credentials of an earlier request.
func SetLogger(logger *slog.Logger) {
	slog.SetDefault(logger)
	log.SetOutput(libraries{logger})
}

// libraries is a writer that logs the lines of libraries, without the text that they quote.
type libraries struct{ log *slog.Logger }

var quotation = regexp.MustCompile(`"(?:[^"\\]|\\.)*"?`)

func (l libraries) Write(line []byte) (int, error) {
	l.log.Info(quotation.ReplaceAllLiteralString(strings.TrimSpace(string(line)), `"…"`))
	return len(line), nil
}
