package storage

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// What keys do to the keys of their account. Whether the giver may do it is
// decided by the caller, in a function that sees the giver and the key as they are
// while nothing about them can change: a key that is narrowed or deleted at the
// same moment gives nothing more than it has left.
//
// A limited key pays for quota that it gives or takes hold of: for that of a key
// that it makes, for what it raises another's by, and for the whole quota of a key
// that it rotates, whose new secret it learns, or widens otherwise, since that key
// may lie idle in its hands. So a budget stays one whatever the number of keys among
// which it is parted. Nothing of it comes back: a key that lowers another's quota,
// or deletes it, gains nothing.

// errGiver is what becomes of a giver that has ended.
var errGiver = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "invalid API key"}

// GiveKey makes a key of the giver's account as grant says, under the hash of its
// secret. Returns KindUnauthenticated for a giver that has ended, KindForbidden
// for quota that it lacks, KindConflict for a hash that is taken, and what grant
// returns.
func (s *Store) GiveKey(
	ctx context.Context, giver string, secret mediagate.KeySecret,
	grant func(giver mediagate.Key) (mediagate.Key, error),
) (k mediagate.Key, err error) {
	err = s.write(ctx, "give key", func(tx *gorm.DB) error {
		by, key, _, err := s.lockGiver(tx, giver, giver)
		if err != nil {
			return err
		}
		if k, err = grant(key); err != nil {
			return err
		}
		row, err := s.newKeyRow(by.AccountID, secret, k)
		if err != nil {
			return err
		}
		if err := s.takeQuota(ctx, tx, by, row, row.Quota); err != nil {
			return err
		}
		if err := s.addKey(ctx, tx, row); err != nil {
			return err
		}
		k, err = row.key()
		return err
	})
	return k, err
}

// ChangeKey is UpdateKey at the word of another key of the account, or of the key
// itself. check passes what becomes of each live key that the change is one of:
// those that share a quota share limits. It reports whether the key may do more
// than before with what quota it has. Returns what GiveKey and UpdateKey do.
func (s *Store) ChangeKey(
	ctx context.Context, giver, id string,
	change func(giver mediagate.Key, k *mediagate.Key) error,
	check func(giver, was, is mediagate.Key) (widened bool, err error),
) (k mediagate.Key, err error) {
	err = s.write(ctx, "change key", func(tx *gorm.DB) error {
		by, key, row, err := s.lockGiver(tx, giver, id)
		if err != nil {
			return err
		}
		before, widened := row, false
		others, err := s.sharing(tx, before)
		if err != nil {
			return err
		}
		k, err = s.changeKey(ctx, tx, &row, func(k *mediagate.Key) error {
			was := *k
			if err := change(key, k); err != nil {
				return err
			}
			if widened, err = check(key, was, *k); err != nil {
				return err
			}
			for _, other := range others {
				more, err := check(key, other, other.WithLimits(*k))
				if err != nil {
					return err
				}
				widened = widened || more
			}
			return nil
		})
		switch {
		case err != nil:
			return err
		case widened:
			return s.takeQuota(ctx, tx, by, row, row.unspent())
		case before.Unlimited:
			return nil
		default:
			return s.takeQuota(ctx, tx, by, row, row.Quota-before.Quota)
		}
	})
	return k, err
}

// sharing reads the other live keys that share the quota of one that is locked.
// Each change of one of them locks that quota, so none changes meanwhile.
func (s *Store) sharing(tx *gorm.DB, row keyRow) ([]mediagate.Key, error) {
	rows, err := readKeys(tx, "(k.id = ? OR k.quota_id = ?) AND k.id <> ? AND "+liveKey+" ORDER BY k.id",
		row.quotaID(), row.quotaID(), row.ID, at(s.clock()))
	if err != nil {
		return nil, err
	}
	return convertAll(rows, keyRow.key)
}

// RenewKey is RotateKey at the word of another key of the account, or of the key
// itself, once check has passed it. Returns what GiveKey and RotateKey do.
func (s *Store) RenewKey(
	ctx context.Context, giver, id string, secret mediagate.KeySecret, grace time.Duration,
	check func(giver, k mediagate.Key) error,
) (k mediagate.Key, err error) {
	err = s.write(ctx, "renew key", func(tx *gorm.DB) error {
		by, key, row, err := s.lockGiver(tx, giver, id)
		if err != nil {
			return err
		}
		old, err := row.key()
		if err != nil {
			return err
		}
		if err := check(key, old); err != nil {
			return err
		}
		if err := s.takeQuota(ctx, tx, by, row, row.unspent()); err != nil {
			return err
		}
		k, err = s.rotate(ctx, tx, row, secret, grace)
		return err
	})
	return k, err
}

// lockGiver locks a key that acts and the key that it acts on.
func (s *Store) lockGiver(tx *gorm.DB, giver, id string) (by keyRow, key mediagate.Key, row keyRow, err error) {
	rows, err := s.lockKeys(tx, giver, id)
	if mediagate.Is(err, mediagate.KindNotFound) {
		if _, gone := s.lockKeys(tx, giver); gone != nil { // the giver itself is not there
			err = errGiver
		}
	}
	if err != nil {
		return by, key, row, err
	}
	by, row = rows[0], rows[1]
	if !by.ExpiresAt.IsZero() && !by.ExpiresAt.After(s.clock()) {
		return by, key, row, errGiver
	}
	key, err = by.key()
	return by, key, row, err
}

// takeQuota takes from a limited key quota that another one has by it. Keys that
// share a quota take nothing from each other.
func (s *Store) takeQuota(ctx context.Context, tx *gorm.DB, by, row keyRow, taken mediagate.Micros) error {
	if by.Unlimited || row.Unlimited || taken <= 0 || by.quotaID() == row.quotaID() {
		return nil
	}
	if taken > by.unspent()-by.Held {
		return &mediagate.Error{
			Kind:    mediagate.KindForbidden,
			Message: "quota must not be more than what this API key has left",
			Param:   "quota",
		}
	}
	before := by.facts()
	by.Quota -= taken
	if _, err := exec(tx, "UPDATE keys SET quota = ? WHERE id = ?", by.Quota, by.quotaID()); err != nil {
		return err
	}
	return s.noteKey(ctx, tx, mediagate.AuditChangeKey, by, before, by.facts())
}

// unspent is the quota that may still be spent. It includes what is held, which comes back
// where a task is cancelled.
func (r keyRow) unspent() mediagate.Micros { return r.Quota - r.Spent }
