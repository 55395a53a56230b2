package storage

import (
	"context"
	"slices"
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
//
// A tat that is further away than its rate can take it was stored by a clock that has jumped
// back since: it counts as used up, and no more.
func (s *Store) TakeRates(
	ctx context.Context, limits []mediagate.RateLimit,
) (all []mediagate.RateLeft, admitted bool, err error) {
	err = s.write(ctx, "count a submit", func(tx *gorm.DB) error {
		stored, err := s.lockRates(tx, limits)
		if err != nil {
			return err
		}
		now, err := one[struct{ Micros int64 }](tx, "SELECT "+s.microsOf(s.present()))
		if err != nil {
			return err
		}
		tats := make([]int64, len(limits))
		all, admitted = nil, true
		for i, l := range limits {
			tats[i] = min(max(stored[l.Of], now.Micros), now.Micros+room(l))
			admitted = admitted && tats[i]+step(l) <= now.Micros+room(l)
		}
		for i, l := range limits {
			if admitted {
				tats[i] += step(l)
			}
			all = append(all, left(l, tats[i]-now.Micros))
			if admitted || tats[i] < stored[l.Of] {
				if _, err := exec(tx, "UPDATE rates SET tat = ? WHERE id = ?", tats[i], l.Of); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return all, admitted, err
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

const (
	// restedFor is how long a limit has been at rest when its row is swept away.
	restedFor = time.Hour
	// sweptAtOnce is how many rows are swept away whenever one is made: more than are made, so
	// that those at rest do not pile up.
	sweptAtOnce = 16
)

// lockRates locks the rows of limits, in the order of their ids, and reads their tats. It
// makes the rows that are not there, at rest, and sweeps away others that nobody has locked.
func (s *Store) lockRates(tx *gorm.DB, limits []mediagate.RateLimit) (map[string]int64, error) {
	ids := convert(limits, func(l mediagate.RateLimit) string { return l.Of })
	list, err := jsonText(ids)
	if err != nil {
		return nil, err
	}
	stored := map[string]int64{}
	query := "SELECT id, tat FROM rates WHERE id IN " + s.inList() + " ORDER BY id" + s.forUpdate("rates")
	lock := func() error {
		var rows []struct {
			ID  string
			Tat int64
		}
		err := read(tx, &rows, query, list)
		for _, r := range rows {
			stored[r.ID] = r.Tat
		}
		return err
	}
	if err := lock(); err != nil || len(stored) == len(limits) {
		return stored, err
	}
	present := "(SELECT " + s.microsOf(s.present()) + ")" // once, not for each row
	_, err = exec(tx, `DELETE FROM rates WHERE id IN (SELECT id FROM rates WHERE tat < `+present+` - ?
		LIMIT ?`+s.skipLocked("rates")+")", restedFor.Microseconds(), sweptAtOnce)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if _, err := exec(tx, "INSERT INTO rates (id, tat) VALUES (?, "+present+`)
			ON CONFLICT (id) DO UPDATE SET tat = rates.tat`, id); err != nil {
			return nil, err
		}
	}
	return stored, lock()
}
