package storage

import (
	"context"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// Rates are counted by GCRA. A row holds one time for each limit, the theoretical arrival time (tat):
// the time when the limit is fully free again if no more submits come. A submit moves the tat by one
// step, a minute divided by the rate. The submit is admitted if the moved tat is no further ahead of
// now than the room, which is one step for each submit that the rate allows in a minute. For example,
// with a rate of 60 a step is one second and the room is 60 s.
//
// A submit may have two limits, and a limit that refuses the submit must not use up the other. So one
// statement locks both rows, in the order of their ids, and moves both or neither.

// step returns how far a submit moves the tat of a limit, in microseconds. It rounds up, so that no
// rate is exceeded.
//
// Example: 90 submits a minute are a step of 666,667 microseconds. A limit of bytes moves by the
// part of a day in which the bytes become available again.
func step(l mediagate.RateLimit) int64 {
	if l.PerDay > 0 {
		const each = 1000 // by milliseconds, so that nothing overflows
		return (l.Bytes*(day.Microseconds()/each) + l.PerDay - 1) / l.PerDay * each
	}
	n := int64(l.PerMinute)
	return (time.Minute.Microseconds() + n - 1) / n
}

// room returns how far from now the tat of a limit may be, in microseconds.
//
// For submits it is a minute, rounded up with each step. For bytes it is a day.
func room(l mediagate.RateLimit) int64 {
	if l.PerDay > 0 {
		return day.Microseconds()
	}
	return int64(l.PerMinute) * step(l)
}

// left returns what a limit still admits when its tat is ahead microseconds from now.
//
// For submits, Next is the time until one more is available. It is zero while all are available.
func left(l mediagate.RateLimit, ahead int64) mediagate.RateLeft {
	free, step := room(l)-ahead, step(l)
	if step <= 0 { // bytes were given back
		return mediagate.RateLeft{}
	}
	left := mediagate.RateLeft{Submits: int(free / step)}
	if left.Submits < l.PerMinute || l.PerDay > 0 {
		left.Next = time.Duration(step-free%step) * time.Microsecond
	}
	return left
}

// rateTries is how often TakeRates tries to count a submit. It tries again if a limit refused the
// submit, but the reason is gone by the time it is looked up.
const rateTries = 4

// TakeRates takes one submit from each of the limits if all of them have one left, and otherwise from
// none. It returns what is left of each, in their order.
//
// A tat may be further away than its rate can move it. The clock was then set back after the tat was
// stored, and the limit counts as just used up.
//
// The count is not part of the submit's transaction: a request counts when it comes in, whatever
// becomes of it (ADR 13).
func (s *Store) TakeRates(
	ctx context.Context, limits []mediagate.RateLimit,
) (all []mediagate.RateLeft, admitted bool, err error) {
	// A round that admits needs one statement. A limit without a row needs a second round, after
	// refusingTats has made the row.
	for range rateTries {
		tats, err := s.moveTats(ctx, limits)
		if admitted = len(tats) > 0; err == nil && !admitted {
			tats, err = s.refusingTats(ctx, limits)
		}
		if err != nil {
			return nil, false, dbError(err, "count a submit")
		}
		if len(tats) < len(limits) { // a limit had no row
			continue
		}
		all = make([]mediagate.RateLeft, len(limits))
		for i, l := range limits {
			all[i] = left(l, max(tats[l.Of].Tat-tats[l.Of].Now, 0))
		}
		// If every limit has a submit left by now, the reason for the refusal is gone: try again.
		if admitted || slices.ContainsFunc(all, func(l mediagate.RateLeft) bool { return l.Submits == 0 }) {
			return all, admitted, nil
		}
	}
	return nil, false, mediagate.Errorf(mediagate.KindUnavailable, "the rates keep changing")
}

// TakeFetched takes bytes from the amount that may be fetched for the account in a day. If bytes is
// more than the whole amount, it takes the whole amount. The caller may give the taken bytes back as a
// negative number. ok is false if fewer bytes are left.
//
// Example: the caller takes 64 MiB before it opens a file, reads 10 MiB, and gives 54 MiB back.
func (s *Store) TakeFetched(ctx context.Context, accountID string, bytes int64) (taken int64, ok bool, err error) {
	a, err := s.Account(ctx, accountID)
	if err != nil {
		return 0, false, err
	}
	most := a.FetchesPerDay()
	// A single file larger than the amount of a day could otherwise never be read.
	taken = min(bytes, most)
	_, ok, err = s.TakeRates(ctx, []mediagate.RateLimit{{Of: accountID + "/fetches", Bytes: taken, PerDay: most}})
	return taken, ok, err
}

const (
	// restedFor is how long a limit must have been fully free before its row is deleted.
	restedFor = time.Hour
	// sweptAtOnce is how many rows may be deleted when a row is made. It is more than one, so that
	// unused rows do not pile up.
	sweptAtOnce = 16
)

// tat is the theoretical arrival time of a limit and the time when it was read, in microseconds.
type tat struct {
	ID       string
	Tat, Now int64
}

// moveTats takes a submit from the limits and returns their new tats. It returns none if one of the
// limits refuses the submit or has no row.
//
// Each tat is first set to now if it lies in the past, and to now + room if it is too far ahead.
// Then it moves by one step. The UPDATE demands that all of the limits stay within their room;
// otherwise it matches no row. The rows are locked in the order of ids, so two submits with the
// same limits cannot deadlock.
func (s *Store) moveTats(ctx context.Context, limits []mediagate.RateLimit) (map[string]tat, error) {
	list, err := jsonText(convert(limits, func(l mediagate.RateLimit) map[string]any {
		return map[string]any{"id": l.Of, "step": step(l), "room": room(l)}
	}))
	if err != nil {
		return nil, err
	}
	// PostgreSQL reads the tats again under their locks. The time is the server's, at the beginning
	// of the statement, so processes with different clocks share one limit.
	query := `WITH taken AS (SELECT r.id, @now + v.room AS most,
				@least(@greatest(r.tat, @now), @now + v.room) + v.step AS tat
			FROM @list JOIN rates r ON r.id = v.id ORDER BY r.id@lock)
		UPDATE rates SET tat = taken.tat FROM taken
		WHERE rates.id = taken.id AND (SELECT COUNT(*) FROM taken WHERE tat <= most) = ?
		RETURNING rates.id, rates.tat, @now`
	query = strings.NewReplacer(
		"@now", s.microsOf(s.present()),
		"@least", s.either("LEAST", "MIN"),
		"@greatest", s.either("GREATEST", "MAX"),
		"@list", s.rowsOf("id text, step bigint, room bigint"),
		"@lock", s.forUpdate("r"),
	).Replace(query)
	return readTats(s.on(ctx), query, list, len(limits))
}

// refusingTats reads the tats of limits. It corrects tats that are further away than their room, and
// makes missing rows, which are fully free.
func (s *Store) refusingTats(ctx context.Context, limits []mediagate.RateLimit) (map[string]tat, error) {
	list, err := jsonText(convert(limits, func(l mediagate.RateLimit) string { return l.Of }))
	if err != nil {
		return nil, err
	}
	query := "SELECT id, tat, " + s.microsOf(s.present()) + " FROM rates WHERE id IN " + s.inList()
	tats, err := readTats(s.on(ctx), query, list)
	for _, l := range limits {
		t, found := tats[l.Of]
		most := t.Now + room(l)
		switch {
		case err != nil:
		case !found:
			err = s.makeRate(ctx, l.Of)
		// The condition repeats, since a submit may have moved the tat meanwhile.
		case t.Tat > most:
			_, err = exec(s.on(ctx), "UPDATE rates SET tat = ? WHERE id = ? AND tat > ?", most, l.Of, most)
			tats[l.Of] = tat{l.Of, most, t.Now}
		}
	}
	return tats, err
}

// readTats reads tats by the ids of their limits.
func readTats(db *gorm.DB, query string, args ...any) (map[string]tat, error) {
	var rows []tat
	err := read(db, &rows, query, args...)
	tats := map[string]tat{}
	for _, row := range rows {
		tats[row.ID] = row
	}
	return tats, err
}

// makeRate makes the row of a limit, fully free, and deletes rows that are unused and not locked.
//
// If two processes make the same row, one INSERT does nothing. Deleting rested rows changes no
// limit: a limit without a row is fully free. Locked rows are left, so the DELETE waits for no
// submit.
func (s *Store) makeRate(ctx context.Context, id string) error {
	present := "(SELECT " + s.microsOf(s.present()) + ")" // once, not for each row
	_, err := exec(s.on(ctx), `DELETE FROM rates WHERE id IN (SELECT id FROM rates WHERE tat < `+present+` - ?
		LIMIT ?`+s.skipLocked("rates")+")", restedFor.Microseconds(), sweptAtOnce)
	if err == nil {
		_, err = exec(s.on(ctx), "INSERT INTO rates (id, tat) VALUES (?, "+present+") ON CONFLICT DO NOTHING", id)
	}
	return err
}
