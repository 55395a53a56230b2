package storage

import (
	"context"
	"slices"
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
// So one statement locks both rows, in the order of their ids, judges both by what
// they then hold, and moves both or none.

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

// judgedRate is a limit as a submit found it.
type judgedRate struct {
	ID     string
	Tat    int64
	Now    int64
	Admits bool // all limits of the submit do
}

// moved is the tat after the submit.
func (r judgedRate) moved(l mediagate.RateLimit) int64 {
	if r.Admits {
		return r.Tat + step(l)
	}
	return r.Tat
}

// left is what the limit lets through after the submit.
func (r judgedRate) left(l mediagate.RateLimit) mediagate.RateLeft {
	free, step := r.Now+room(l)-r.moved(l), step(l)
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
func (s *Store) TakeRates(ctx context.Context, limits []mediagate.RateLimit) (left []mediagate.RateLeft, admitted bool, err error) {
	for range 3 { // a row may be swept away before it is used
		judged, err := s.moveRates(ctx, limits)
		if err != nil {
			return nil, false, dbError(err, "count a submit")
		}
		if len(judged) < len(limits) {
			if err := s.makeRates(ctx, limits); err != nil {
				return nil, false, dbError(err, "count a submit")
			}
			continue
		}
		for _, l := range limits {
			r := judgedOf(judged, l)
			left, admitted = append(left, r.left(l)), r.Admits
		}
		return left, admitted, nil
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

func judgedOf(judged []judgedRate, l mediagate.RateLimit) judgedRate {
	return judged[slices.IndexFunc(judged, func(r judgedRate) bool { return r.ID == l.Of })]
}

// moveRates judges a submit and moves the tats of its limits. Where a row is
// missing it moves none, and what it returns lacks that row.
func (s *Store) moveRates(ctx context.Context, limits []mediagate.RateLimit) (judged []judgedRate, err error) {
	st := s.judgeRates(limits)
	if !s.lite {
		st.say(`, moved AS (
			UPDATE rates SET tat = judged.tat + CASE WHEN admits THEN step ELSE 0 END FROM judged, verdict
			WHERE rates.id = judged.id AND whole AND (admits OR judged.tat < stored))`)
	}
	st.say(" SELECT judged.id, judged.tat, now, admits FROM judged, verdict")
	if !s.lite {
		return judged, read(s.on(ctx), &judged, st.text.String(), st.args...)
	}
	err = s.write(ctx, "count a submit", func(tx *gorm.DB) error {
		judged = nil
		if err := read(tx, &judged, st.text.String(), st.args...); err != nil || len(judged) < len(limits) {
			return err
		}
		for _, l := range limits {
			if _, err := exec(tx, "UPDATE rates SET tat = ? WHERE id = ?", judgedOf(judged, l).moved(l), l.Of); err != nil {
				return err
			}
		}
		return nil
	})
	return judged, err
}

// judgeRates begins a statement that knows where each limit stands, as judged, and
// whether all are known and admit a submit, as verdict. A tat that is further away
// than its rate can take it was stored by a clock that has jumped back since: it
// counts as used up, and no more. The present is that in which the rows are locked.
func (s *Store) judgeRates(limits []mediagate.RateLimit) *statement {
	st := (&statement{}).say("WITH asked (id, step, room) AS (VALUES ")
	for i, l := range limits {
		if i > 0 {
			st.say(", ")
		}
		st.with("(CAST(? AS text), CAST(? AS bigint), CAST(? AS bigint))", l.Of, step(l), room(l))
	}
	st.say("), held AS MATERIALIZED (SELECT id, tat FROM rates WHERE id IN (")
	for i, l := range limits {
		if i > 0 {
			st.say(", ")
		}
		st.with("?", l.Of)
	}
	st.say(") ORDER BY id", s.forUpdate("rates"), ")")
	st = s.sayNow(st.say(", moment AS MATERIALIZED (SELECT ")).say(" AS now FROM (SELECT COUNT(*) FROM held) AS locked)")
	return st.with(`, judged AS MATERIALIZED (
			SELECT held.id, step, room, now, tat AS stored,
				CASE WHEN tat < now THEN now WHEN tat > now + room THEN now + room ELSE tat END AS tat
			FROM held JOIN asked ON asked.id = held.id CROSS JOIN moment),
		verdict AS MATERIALIZED (
			SELECT COUNT(*) = ? AS whole, SUM(CASE WHEN tat + step <= now + room THEN 0 ELSE 1 END) = 0 AS admits FROM judged)`, len(limits))
}

// sayNow writes the present in microseconds. PostgreSQL reads its own clock: a
// process reckons it from its own, which may have been set since the last look.
func (s *Store) sayNow(st *statement) *statement {
	if s.lite || s.time.fixed {
		return st.with("CAST(? AS bigint)", s.clock().UnixMicro())
	}
	return st.say("CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)")
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
		st := s.sayNow((&statement{}).with("INSERT INTO rates (id, tat) SELECT CAST(? AS text), ", l.Of)).say(" WHERE true ON CONFLICT (id) DO NOTHING")
		if _, err := exec(s.on(ctx), st.text.String(), st.args...); err != nil {
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
	if err := read(s.on(ctx), &next, "SELECT id FROM rates WHERE id > ? ORDER BY id LIMIT ?", s.sweep.after, sweptAtOnce); err != nil {
		return err
	}
	if len(next) == 0 {
		s.sweep.after = ""
		return nil
	}
	first, last := s.sweep.after, next[len(next)-1].ID
	if s.sweep.after = last; len(next) < sweptAtOnce {
		s.sweep.after = ""
	}
	st := (&statement{}).with("DELETE FROM rates WHERE id IN (SELECT id FROM rates WHERE id > ? AND id <= ? AND tat < ", first, last)
	st = s.sayNow(st).with(" - ?"+s.skipLocked("rates")+")", restedFor.Microseconds())
	_, err := exec(s.on(ctx), st.text.String(), st.args...)
	return err
}
