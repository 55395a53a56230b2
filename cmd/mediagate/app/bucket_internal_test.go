package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// someBucket answers as told.
type someBucket struct {
	ping, write    error
	pings, written int
}

func (b *someBucket) Ping(context.Context) error  { b.pings++; return b.ping }
func (b *someBucket) Probe(context.Context) error { b.written++; return b.write }

// TestBucketIsWrittenTo checks that a bucket that answers but stores no files is reported as
// degraded within seconds, and that checks write to it no more often, for any number of requests.
func TestBucketIsWrittenTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away, full := errors.New("away"), errors.New("full")
		b := &someBucket{}
		check := checkBucket(b, time.Now, slog.New(slog.DiscardHandler))
		for range 10 {
			must(t, check(t.Context()))
		}
		if b.pings != 10 || b.written != 1 {
			t.Errorf("%d questions and %d writes, want 10 and 1", b.pings, b.written)
		}
		b.ping = away
		if err := check(t.Context()); !errors.Is(err, away) {
			t.Errorf("away: %v", err)
		}
		b.ping, b.write = nil, full
		time.Sleep(writeEvery)
		if err := check(t.Context()); !errors.Is(err, full) {
			t.Errorf("full: %v", err)
		}
		b.write = nil
		time.Sleep(writeEvery)
		if err := check(t.Context()); err != nil {
			t.Errorf("mended: %v", err)
		}
	})
}
