package storage

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
)

// How far this process's clock may be from the database's.
const (
	clockTolerance = 2 * time.Second  // beyond it, the log says so
	clockLimit     = 30 * time.Second // beyond it, the process is not ready (D10)
)

const (
	clockPeriod   = 30 * time.Second // between two looks at the database's clock
	clockPatience = 10 * time.Second // for one look
	clockReminder = 10 * time.Minute // between two warnings
)

// databaseClock is the database's clock, reckoned from this process's own.
// Processes on several machines compare times only through what they have
// stored: deadlines, leases, send_before. With one clock for all of them, a
// machine whose clock is wrong decides as the others do.
type databaseClock struct {
	local  func() time.Time // this process's own
	fixed  bool             // a test's clock is everybody's
	log    *slog.Logger
	offset atomic.Int64 // what to add to local, in nanoseconds

	mu     sync.Mutex
	warned time.Time // when the log last said that the clocks differ; zero: they agree
}

func newDatabaseClock(c Config, log *slog.Logger) *databaseClock {
	switch {
	case c.Now != nil:
		return &databaseClock{local: c.Now, fixed: true, log: log}
	case c.LocalNow != nil:
		return &databaseClock{local: c.LocalNow, log: log}
	default:
		return &databaseClock{local: time.Now, log: log}
	}
}

// reading is what one look at the database's clock tells: the offset lies
// within doubt of what was found.
type reading struct {
	offset time.Duration
	doubt  time.Duration
}

// readingOf makes a reading of a question that was asked at began and
// answered after took with the time at.
func readingOf(began time.Time, took time.Duration, at time.Time) reading {
	return reading{offset: at.Sub(began.Add(took / 2)), doubt: took / 2}
}

func (c *databaseClock) now() time.Time { return c.local().Add(c.difference()) }

func (c *databaseClock) difference() time.Duration { return time.Duration(c.offset.Load()) }

// note takes a reading into account. One that the offset in force agrees with
// says nothing new: a slow answer never spoils what a fast one has found.
func (c *databaseClock) note(ctx context.Context, r reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if (r.offset - c.difference()).Abs() > r.doubt {
		c.offset.Store(int64(r.offset))
	}
	differs, now := c.difference().Abs() > clockTolerance, c.local()
	switch {
	case differs && (c.warned.IsZero() || now.Sub(c.warned).Abs() >= clockReminder):
		c.warned = now
		c.log.WarnContext(ctx, "this machine's clock differs from the database's",
			"clock", c.apart(), "not_ready_beyond", clockLimit.String())
	case !differs && !c.warned.IsZero():
		c.warned = time.Time{}
		c.log.InfoContext(ctx, "this machine's clock agrees with the database's again", "clock", c.apart())
	}
}

// apart says how this process's clock stands to the database's.
func (c *databaseClock) apart() string {
	d := c.difference().Round(time.Millisecond)
	if d < 0 {
		return d.Abs().String() + " ahead"
	}
	return d.String() + " behind"
}

// Now is the present by the database's clock. Whatever is stored, or compared
// with what is, goes by it.
func (s *Store) Now() time.Time { return s.time.now() }

// ClockOffset is what this process's clock lacks of the database's: negative
// when it is ahead.
func (s *Store) ClockOffset() time.Duration { return s.time.difference() }

// CheckClock returns KindUnavailable when this process's clock is too far
// from the database's to be trusted with anything, as Ping last found it.
func (s *Store) CheckClock(context.Context) error {
	if s.ClockOffset().Abs() <= clockLimit {
		return nil
	}
	return mediagate.Errorf(mediagate.KindUnavailable, "this machine's clock is %s of the database's", s.time.apart())
}

// clock is the present in what the columns can hold.
func (s *Store) clock() time.Time { return s.Now().UTC().Truncate(time.Microsecond) }

// present is the expression for the present by the database's own clock, in each statement.
// When the clock of a process steps, its reckoning of the database's time is wrong for a
// while: it would end the leases of all processes, or let others end its own. SQLite is in this process, and a test's
// clock is everybody's.
func (s *Store) present() string {
	if s.lite || s.time.fixed {
		return s.timeOf(strconv.FormatInt(s.clock().UnixMicro(), 10))
	}
	return "statement_timestamp()"
}

// watchClock pings the database, and so reads its clock (D10), until Close. SQLite has no
// clock of its own.
func (s *Store) watchClock(ctx context.Context) {
	if s.lite || s.time.fixed {
		return
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(clockPeriod)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			look, cancel := context.WithTimeout(ctx, clockPatience)
			if err := s.Ping(look); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "the database's clock was not read", "error", err)
			}
			cancel()
		}
	})
	s.unwatch = func() {
		stop()
		watching.Wait()
	}
}
