package storage

import (
	"cmp"
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// OpenSpeech stores a speech and its hold on key and account, both or neither. The hold lasts for
// lease, unless RenewSpeech extends it or EndSpeech ends it.
//
// Returns KindPayment when the money of key or account is not enough or a cap of the key is reached,
// KindForbidden when the account is suspended, and KindUnauthenticated when the key was deleted or has
// expired meanwhile.
//
// The API process calls OpenSpeech before it calls the vendor, so no vendor works without a hold.
// A speech has no sources, no wake and no idempotency record, and counts as no task in flight.
func (s *Store) OpenSpeech(ctx context.Context, n mediagate.Speech, lease time.Duration) error {
	now := s.clock()
	charges, err := jsonText(n.Charges)
	if err != nil {
		return err
	}
	// The end of the lease is computed by the server's clock, like all comparisons with it (see
	// present).
	row := (&statement{}).with(`INSERT INTO speeches
			(id, account_id, key_id, request_id, model, charges, hold, state, created_at, void_after)
		SELECT ?, ?, ?, ?, ?, ?, ?, 'open', ?, `,
		n.ID, n.AccountID, n.KeyID, n.RequestID, n.Model, charges, n.Hold, at(now))
	_, err = s.store(ctx, submission{
		row:  row.say(s.later(s.present(), lease), " FROM payer"),
		hold: s.newHold(n.ID, n.AccountID, n.KeyID, n.Hold, now),
		now:  at(now),
	})
	return dbError(err, "open speech")
}

// RenewSpeech extends the hold to lease from now. It reports whether the speech is still open.
//
// The API renews a lease of 30 s every 10 s (ADR 17). No row matches if the speech has ended, for
// example because another process has voided it after its lease.
func (s *Store) RenewSpeech(ctx context.Context, id string, lease time.Duration) (open bool, err error) {
	until := s.later(s.present(), lease)
	changed, err := exec(s.on(ctx), "UPDATE speeches SET void_after = "+until+" WHERE id = ? AND state = 'open'", id)
	return changed > 0, dbError(err, "renew speech")
}

// EndSpeech posts the hold in full or voids it, once. won is false if the speech has ended before.
//
// The sender and a process that voids the lease may race. Both run the same conditional UPDATE,
// and only one of them moves the money.
func (s *Store) EndSpeech(ctx context.Context, id string, end mediagate.SpeechState) (won bool, err error) {
	if end != mediagate.SpeechPosted && end != mediagate.SpeechVoided {
		return false, mediagate.Errorf(mediagate.KindInternal, "a speech does not end as %q", end)
	}
	// The account must be known before the transaction, because writeFor waits for a permit of the
	// account.
	row, err := one[struct{ AccountID string }](s.on(ctx),
		"SELECT account_id FROM speeches WHERE id = ? AND state = 'open'", id)
	if err != nil || row == nil {
		return false, dbError(err, "read speech")
	}
	err = s.writeFor(ctx, row.AccountID, "end speech", func(tx *gorm.DB) error {
		won, err = s.endSpeech(tx, id, end, "true")
		return err
	})
	return won && err == nil, err
}

// VoidSpeeches voids the speeches whose lease is over, and returns how many. A speech whose rows
// contradict each other gives an error; the others are voided all the same.
//
// Every API process calls VoidSpeeches every 10 s, so no leader is needed: a speech that two
// processes find is voided once. The partial index speeches_open (void_after) finds the rows.
func (s *Store) VoidSpeeches(ctx context.Context, limit int) (voided int, err error) {
	// The condition is written anew for each statement, because on SQLite it contains the time.
	lapsed := func() string { return "void_after <= " + s.present() }
	var ids []struct{ ID string }
	query := "SELECT id FROM speeches WHERE state = 'open' AND " + lapsed() + " ORDER BY void_after LIMIT ?"
	if err := read(s.on(ctx), &ids, query, limit); err != nil {
		return 0, dbError(err, "find speeches")
	}
	for _, row := range ids {
		var won bool
		// Each speech has its own transaction. The condition is checked again, since the sender may have
		// renewed the lease after the SELECT.
		one := s.write(ctx, "void speech", func(tx *gorm.DB) (err error) {
			won, err = s.endSpeech(tx, row.ID, mediagate.SpeechVoided, lapsed())
			return err
		})
		switch {
		case mediagate.Is(one, mediagate.KindInternal): // concerns this speech only
			err = cmp.Or(err, one)
		case one != nil:
			return voided, one
		case won:
			voided++
		}
	}
	return voided, err
}

// endSpeech ends a speech if it is open and meets the condition.
//
// A post charges the whole hold, and a void nothing. won is false if no row matched: the speech
// has ended, or its lease is not over.
func (s *Store) endSpeech(tx *gorm.DB, id string, end mediagate.SpeechState, condition string) (won bool, err error) {
	// share is the charged part of the hold: 0 or 1. The status is that under which usage counts the
	// speech.
	kind, share, status := mediagate.EntryVoid, 0, mediagate.StatusFailed
	if end == mediagate.SpeechPosted {
		kind, share, status = mediagate.EntryPost, 1, mediagate.StatusCompleted
	}
	row, err := one[struct {
		AccountID, KeyID, Model string
		Hold, Cost              mediagate.Micros
	}](tx, `UPDATE speeches SET state = ?, cost = hold * ?, ended_at = ?
		WHERE id = ? AND state = 'open' AND `+condition+` RETURNING account_id, key_id, model, hold, cost`,
		end, share, at(s.clock()), id)
	if err != nil || row == nil {
		return false, err
	}
	// tasks stays 0: a speech is no task in flight. Usage counts a speech without a provider.
	return true, s.resolve(tx, holding{
		id:        id,
		accountID: row.AccountID,
		keyID:     row.KeyID,
		amount:    row.Hold,
		model:     row.Model,
		status:    status,
	}, kind, row.Cost)
}
