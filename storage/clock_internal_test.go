package storage

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A clock that is off is told of once, then rarely, and once when it is right
// again (D10).
func TestClockWarnings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := newDatabaseClock(Config{}, slog.New(slog.NewTextHandler(&log, nil)))
		for _, step := range []struct {
			after, offset time.Duration
			says          string // empty: nothing
		}{
			{0, 1900 * time.Millisecond, ""},
			{time.Second, 3 * time.Second, "3s behind"},
			{clockPeriod, 3 * time.Second, ""},
			{clockReminder, -4 * time.Second, "4s ahead"},
			{clockPeriod, -5 * time.Second, ""},
			{clockPeriod, 0, "agrees"},
			{clockPeriod, 0, ""},
			{clockPeriod, -time.Hour, "1h0m0s ahead"},
		} {
			time.Sleep(step.after)
			log.Reset()
			c.note(t.Context(), reading{offset: step.offset})
			said := log.String()
			if (said == "") != (step.says == "") || !strings.Contains(said, step.says) {
				t.Errorf("an offset of %s after %s: says %q, want %q", step.offset, step.after, said, step.says)
			}
			if c.difference() != step.offset {
				t.Errorf("the offset is %s, want %s", c.difference(), step.offset)
			}
		}
	})
}

// A slow answer leaves a better reading in force; one that contradicts it
// counts however slow it was.
func TestClockBelievesFastAnswers(t *testing.T) {
	t.Parallel()
	c := newDatabaseClock(Config{}, slog.New(slog.DiscardHandler))
	asked := time.Now()
	for _, step := range []struct {
		took time.Duration // of the answer
		says time.Duration // the database's time then, from when it was asked
		want time.Duration
	}{
		{2 * time.Millisecond, 3*time.Second + time.Millisecond, 3 * time.Second},
		{4 * time.Second, 6 * time.Second, 3 * time.Second}, // from 2 to 6 s, which says nothing against it
		{4 * time.Second, 20 * time.Second, 18 * time.Second},
		{2 * time.Millisecond, 17*time.Second + time.Millisecond, 17 * time.Second},
	} {
		c.note(t.Context(), readingOf(asked, step.took, asked.Add(step.says)))
		if c.difference() != step.want {
			t.Errorf("the offset is %s after an answer of %s, want %s", c.difference(), step.took, step.want)
		}
	}
}
