package storage

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

type speechRow struct {
	ID        string
	AccountID string
	KeyID     string
	RequestID string
	Model     string
	Charges   document
	Hold      mediagate.Micros
	Cost      mediagate.Micros
	State     mediagate.SpeechState
	CreatedAt stamp
	EndedAt   stamp
	VoidAfter stamp
}

// OpenSpeech takes a speech in: its row and the hold on key and account, all or
// nothing. The hold stands for as long as lease, unless RenewSpeech prolongs it
// or EndSpeech ends it.
//
// Returns KindPayment when key or account is short, or a cap of the key is reached,
// and KindUnauthenticated when the key was deleted or has expired meanwhile.
func (s *Store) OpenSpeech(ctx context.Context, n mediagate.Speech, lease time.Duration) error {
	now := s.clock()
	charges, err := jsonText(n.Charges)
	if err != nil {
		return err
	}
	row := speechRow{
		ID: n.ID, AccountID: n.AccountID, KeyID: n.KeyID, RequestID: n.RequestID, Model: n.Model, Charges: charges,
		Hold: n.Hold, State: mediagate.SpeechOpen, CreatedAt: at(now), VoidAfter: at(now.Add(lease)),
	}
	_, err = s.store(ctx, submission{
		row:  insert("speeches", row, s.leased(lease)),
		hold: s.newHold(n.ID, n.AccountID, n.KeyID, n.Hold, now), now: at(now),
	})
	return dbError(err, "open speech")
}

// RenewSpeech lets the hold stand for as long as lease from now. It reports
// whether there still is one.
func (s *Store) RenewSpeech(ctx context.Context, id string, lease time.Duration) (open bool, err error) {
	until, args := "?", []any{at(s.clock().Add(lease)), id}
	if own := s.leased(lease); own != nil {
		until, args = own["void_after"], []any{id}
	}
	changed, err := exec(s.on(ctx), "UPDATE speeches SET void_after = "+until+" WHERE id = ? AND state = 'open'", args...)
	return changed > 0, dbError(err, "renew speech")
}

// EndSpeech posts the hold in full or voids it, once: won is false when it has
// ended before, however it did.
func (s *Store) EndSpeech(ctx context.Context, id string, end mediagate.SpeechState) (won bool, err error) {
	if end != mediagate.SpeechPosted && end != mediagate.SpeechVoided {
		return false, mediagate.Errorf(mediagate.KindInternal, "a speech does not end as %q", end)
	}
	row, err := one[struct{ AccountID string }](s.on(ctx), "SELECT account_id FROM speeches WHERE id = ? AND state = 'open'", id)
	if err != nil || row == nil {
		return false, dbError(err, "read speech")
	}
	err = s.writeFor(ctx, row.AccountID, "end speech", func(tx *gorm.DB) error {
		won, err = s.endSpeech(tx, id, end, false)
		return err
	})
	return won && err == nil, err
}

// VoidSpeeches voids those whose lease is over, and tells how many. One whose
// rows contradict each other is an error, and the others are voided all the same.
func (s *Store) VoidSpeeches(ctx context.Context, limit int) (voided int, err error) {
	over, args := s.lapsed()
	var ids []struct{ ID string }
	if err := read(s.on(ctx), &ids, "SELECT id FROM speeches WHERE state = 'open' AND "+over+" ORDER BY void_after LIMIT ?", append(args, limit)...); err != nil {
		return 0, dbError(err, "look for speeches")
	}
	for _, row := range ids {
		var won bool
		one := s.write(ctx, "void speech", func(tx *gorm.DB) (err error) {
			won, err = s.endSpeech(tx, row.ID, mediagate.SpeechVoided, true)
			return err
		})
		switch {
		case mediagate.Is(one, mediagate.KindInternal): // this one's own trouble
			err = cmp.Or(err, one)
		case one != nil:
			return voided, one
		case won:
			voided++
		}
	}
	return voided, err
}

// Whether a lease is over PostgreSQL says by its own clock, in each statement.
// What this process makes of that clock is off for a while when its own steps:
// it would void all speeches of all processes, or have its own voided. SQLite is
// in this process, and a test's clock is everybody's.

// leased are the columns of a new or renewed lease that the database reckons
// itself; nil where it does not.
func (s *Store) leased(lease time.Duration) map[string]string {
	if s.lite || s.time.fixed {
		return nil
	}
	return map[string]string{"void_after": fmt.Sprintf("statement_timestamp() + interval '%d microseconds'", lease.Microseconds())}
}

// lapsed is the condition that a lease is over.
func (s *Store) lapsed() (condition string, args []any) {
	if s.lite || s.time.fixed {
		return "void_after <= ?", []any{at(s.clock())}
	}
	return "void_after <= statement_timestamp()", nil
}

// endSpeech ends a speech that is open, or only one whose lease is over too.
func (s *Store) endSpeech(tx *gorm.DB, id string, end mediagate.SpeechState, lapsed bool) (won bool, err error) {
	kind, share, status := mediagate.EntryVoid, 0, mediagate.StatusFailed
	if end == mediagate.SpeechPosted {
		kind, share, status = mediagate.EntryPost, 1, mediagate.StatusCompleted
	}
	query, args := "UPDATE speeches SET state = ?, cost = hold * ?, ended_at = ? WHERE id = ? AND state = 'open'", []any{end, share, at(s.clock()), id}
	if lapsed {
		over, now := s.lapsed()
		query, args = query+" AND "+over, append(args, now...)
	}
	row, err := one[speechRow](tx, query+" RETURNING "+columnsOf[speechRow]().text, args...)
	if err != nil || row == nil {
		return false, err
	}
	return true, s.resolve(tx, holding{
		id: row.ID, accountID: row.AccountID, keyID: row.KeyID, amount: row.Hold, model: row.Model, status: status,
	}, kind, row.Cost)
}
