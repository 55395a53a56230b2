package storage

import (
	"context"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// Rates are counted by GCRA. Of each limit one time is kept, its tat: when it is
// at rest if no more submits come. A submit moves it one step further, a minute
// divided by the rate, and is admitted while it stays within as many steps from
// now as the rate has.
//
// A submit may have two limits, and one that refuses it must not use up the other.
// So a transaction locks both rows, in the order of their ids, reads the clock, and
// moves both or none.

// step is what a submit takes of a limit, in microseconds: rounded up, so that no
// rate is exceeded.
func step(l mediagate.RateLimit) int64 {
	if l.PerDay > 0 {
		const each = 1000 // by milliseconds, so that nothing overflows
		return (l.Bytes*(day.Microseconds()/each) + l.PerDay - 1) / l.PerDay * each
	}
	n := int64(l.PerMinute)
	return (time.Minute.Microseconds() + n - 1) / n
}

// room is how far from now the tat of a limit may be.
func room(l mediagate.RateLimit) int64 {
	if l.PerDay > 0 {
		return day.Microseconds()
	}
	return int64(l.PerMinute) * step(l)
}

// left is what a limit lets through whose tat is so far from now.
func left(l mediagate.RateLimit, ahead int64) mediagate.RateLeft {
	free, step := room(l)-ahead, step(l)
	if step <= 0 { // something was given back
		return mediagate.RateLeft{}
	}
	left := mediagate.RateLeft{Submits: int(free / step)}
	if left.Submits < l.PerMinute || l.PerDay > 0 {
		left.Next = time.Duration(step-free%step) * time.Microsecond
	}
	return left
}

// TakeRates takes a submit of each of the limits if all of them have one left, and
// otherwise of none. It tells what is left of each, in their order.
func (s *Store) TakeRates(
	ctx context.Context, limits []mediagate.RateLimit,
) (left []mediagate.RateLeft, admitted bool, err error) {
	for range 3 { // a row may be swept away before it is used
		var known bool
		err := s.write(ctx, "count a submit", func(tx *gorm.DB) (err error) {
			left, admitted, known, err = s.moveRates(tx, limits)
			return err
		})
		if err != nil || known {
			return left, admitted, err
		}
		if err := s.makeRates(ctx, limits); err != nil {
			return nil, false, dbError(err, "count a submit")
		}
	}
	return nil, false, mediagate.Errorf(mediagate.KindUnavailable, "the rows of rates keep disappearing")
}

// TakeFetched takes bytes of those that may be fetched for the account in a day: all of
// them where they are fewer. taken are those that a caller may give back, as negative
// ones. ok is false while there are not as many left.
func (s *Store) TakeFetched(ctx context.Context, accountID string, bytes int64) (taken int64, ok bool, err error) {
	a, err := s.Account(ctx, accountID)
	if err != nil {
		return 0, false, err
	}
	most := a.FetchesPerDay()
	taken = min(bytes, most)
	_, ok, err = s.TakeRates(ctx, []mediagate.RateLimit{{Of: accountID + "/fetches", Bytes: taken, PerDay: most}})
	return taken, ok, err
}

// moveRates judges a submit and moves the tats of its limits. Where a row is missing it
// moves none, and known is false. A tat that is further away than its rate can take it
// was stored by a clock that has jumped back since: it counts as used up, and no more.
func (s *Store) moveRates(
	tx *gorm.DB, limits []mediagate.RateLimit,
) (all []mediagate.RateLeft, admitted, known bool, err error) {
	ids := make([]string, len(limits))
	for i, l := range limits {
		ids[i] = l.Of
	}
	list, err := jsonText(ids)
	if err != nil {
		return nil, false, false, err
	}
	var rows []struct {
		ID  string
		Tat int64
	}
	query := "SELECT id, tat FROM rates WHERE id IN " + s.inList() + " ORDER BY id" + s.forUpdate("rates")
	if err := read(tx, &rows, query, list); err != nil || len(rows) < len(limits) {
		return nil, false, false, err
	}
	stored := make(map[string]int64, len(rows))
	for _, r := range rows {
		stored[r.ID] = r.Tat
	}
	now, err := one[struct{ Now int64 }](tx, "SELECT "+s.microsOf(s.present()))
	if err != nil {
		return nil, false, false, err
	}
	tats := make([]int64, len(limits))
	admitted = true
	for i, l := range limits {
		tats[i] = min(max(stored[l.Of], now.Now), now.Now+room(l))
		admitted = admitted && tats[i]+step(l) <= now.Now+room(l)
	}
	for i, l := range limits {
		if admitted {
			tats[i] += step(l)
		}
		all = append(all, left(l, tats[i]-now.Now))
		if admitted || tats[i] < stored[l.Of] {
			if _, err := exec(tx, "UPDATE rates SET tat = ? WHERE id = ?", tats[i], l.Of); err != nil {
				return nil, false, false, err
			}
		}
	}
	return all, admitted, true, nil
}

const (
	// restedFor is how long a limit has been at rest when its row is swept away.
	restedFor = time.Hour
	// sweptAtOnce is how many rows are looked at whenever one was missing: more
	// than were made, so that those at rest do not pile up.
	sweptAtOnce = 16
)

// rateSweep remembers how far the rows of rates were looked at.
type rateSweep struct {
	mu    sync.Mutex
	after string
}

// makeRates makes the rows of limits, at rest, and sweeps others away.
func (s *Store) makeRates(ctx context.Context, limits []mediagate.RateLimit) error {
	for _, l := range limits {
		query := "INSERT INTO rates (id, tat) VALUES (?, " + s.microsOf(s.present()) + ") ON CONFLICT (id) DO NOTHING"
		if _, err := exec(s.on(ctx), query, l.Of); err != nil {
			return err
		}
	}
	return s.sweepRates(ctx)
}

// sweepRates deletes the next rows that have been at rest for long. It waits for
// nobody: neither for who holds one, nor for another sweep of this process.
func (s *Store) sweepRates(ctx context.Context) error {
	if !s.sweep.mu.TryLock() {
		return nil
	}
	defer s.sweep.mu.Unlock()
	var next []struct{ ID string }
	query := "SELECT id FROM rates WHERE id > ? ORDER BY id LIMIT ?"
	if err := read(s.on(ctx), &next, query, s.sweep.after, sweptAtOnce); err != nil {
		return err
	}
	first := s.sweep.after
	if len(next) < sweptAtOnce { // the table's end: the next sweep begins anew
		s.sweep.after = ""
	} else {
		s.sweep.after = next[len(next)-1].ID
	}
	if len(next) == 0 {
		return nil
	}
	_, err := exec(s.on(ctx), `DELETE FROM rates WHERE id IN (SELECT id FROM rates
		WHERE id > ? AND id <= ? AND tat < `+s.microsOf(s.present())+" - ?"+s.skipLocked("rates")+")",
		first, next[len(next)-1].ID, restedFor.Microseconds())
	return err
}
