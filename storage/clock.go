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

// Bounds of how far this process's clock may be from the database's.
const (
	clockTolerance = 2 * time.Second  // beyond it, the process logs a warning
	clockLimit     = 30 * time.Second // beyond it, the process is not ready (D10)
)

const (
	clockPeriod   = 30 * time.Second // between two readings of the database's clock
	clockPatience = 10 * time.Second // for one reading
	clockReminder = 10 * time.Minute // between two warnings
)

// databaseClock estimates the database's clock: this process's clock plus an offset.
// Processes on several machines compare only times that they have stored: deadlines, leases,
// send_before. Since all processes use the database's clock, a machine whose own clock is
// wrong decides as the others do.
type databaseClock struct {
	local  func() time.Time // this process's own
	fixed  bool             // a test's clock, which stands for the database's too
	log    *slog.Logger
	offset atomic.Int64 // added to local, in nanoseconds

	mu     sync.Mutex
	warned time.Time // the time of the last warning that the clocks differ; zero: they agree
}

// newDatabaseClock returns the clock for a Config. With Now, the clock is that of a test, and
// nothing is measured. Until the first Ping, which Open makes, the offset is zero.
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

// reading is one measurement of the offset: the true offset is within doubt of offset.
type reading struct {
	offset time.Duration
	doubt  time.Duration
}

// readingOf returns the reading that a query gives. The query was sent at the time began, its
// answer came after the duration took, and the answer is the time at. The database read its
// clock at some point in between.
//
// Example: the query is sent at 12:00:00.000, takes 40 ms, and returns 12:00:01.020. Half the
// time after the query was sent it was 12:00:00.020 here, so the offset is 1.000 s and the
// doubt 20 ms.
func readingOf(began time.Time, took time.Duration, at time.Time) reading {
	return reading{offset: at.Sub(began.Add(took / 2)), doubt: took / 2}
}

// now returns the estimated time of the database's clock.
func (c *databaseClock) now() time.Time { return c.local().Add(c.difference()) }

// difference returns the offset: positive if this process's clock is behind the database's.
func (c *databaseClock) difference() time.Duration { return time.Duration(c.offset.Load()) }

// note adjusts the offset if the reading contradicts it. A reading whose doubt covers the
// present offset changes nothing, so that a slow answer never replaces the precise offset
// of a fast one.
func (c *databaseClock) note(ctx context.Context, r reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The offset is atomic for the readers, which take no lock. mu keeps two readings from mixing.
	if (r.offset - c.difference()).Abs() > r.doubt {
		c.offset.Store(int64(r.offset))
	}
	// At most one warning comes in clockReminder, and one message when the clocks agree again.
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

// apart describes for people how far this process's clock is ahead of or behind the
// database's.
func (c *databaseClock) apart() string {
	d := c.difference().Round(time.Millisecond)
	if d < 0 {
		return d.Abs().String() + " ahead"
	}
	return d.String() + " behind"
}

// Now returns the time by the database's clock. All times that are stored, or compared with
// stored times, come from Now.
func (s *Store) Now() time.Time { return s.time.now() }

// ClockOffset returns how far this process's clock is behind the database's. A negative
// offset means that it is ahead.
func (s *Store) ClockOffset() time.Duration { return s.time.difference() }

// CheckClock returns KindUnavailable when the last Ping found this process's clock more than
// clockLimit away from the database's. Such a process is not ready (D10).
func (s *Store) CheckClock(context.Context) error {
	if s.ClockOffset().Abs() <= clockLimit {
		return nil
	}
	return mediagate.Errorf(mediagate.KindUnavailable, "this machine's clock is %s of the database's", s.time.apart())
}

// clock returns Now with the precision of the columns, microseconds in UTC. So a time that was
// just made equals the same time when it is read back.
func (s *Store) clock() time.Time { return s.Now().UTC().Truncate(time.Microsecond) }

// present is the SQL expression of the time by the database's own clock. Leases are compared with
// that time, and not with this process's estimate: when the clock of a process is set, its estimate
// is wrong for up to clockPeriod. By such an estimate, the process would end the leases of other
// processes, or renew its own too late. SQLite runs in this process and has no clock of its own.
func (s *Store) present() string {
	if s.lite || s.time.fixed {
		return s.timeOf(strconv.FormatInt(s.clock().UnixMicro(), 10))
	}
	return "statement_timestamp()"
}

// watchClock pings the database each clockPeriod, and so reads its clock (D10), until Close.
// The context of Open may end earlier and does not stop it. SQLite and a test's clock need no
// readings.
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
			pinging, cancel := context.WithTimeout(ctx, clockPatience)
			if err := s.Ping(pinging); err != nil && ctx.Err() == nil {
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
