package storage

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// Delegation means that a key, the giver, makes, changes or rotates keys of its account. The caller
// decides whether the giver may do so, in a function that sees both keys under their locks. So a
// giver that is narrowed or deleted at the same moment gives only what it has left.
//
// A limited giver pays with its own quota for what it gives:
//   - for the quota of a key that it makes;
//   - for the amount by which it raises another key's quota;
//   - for the whole unspent quota of a key that it rotates, or widens in another way, since the giver
//     could then spend that quota itself, for example with the new secret that a rotation returns.
//
// A budget therefore stays the same, however many keys share it. A giver that lowers the quota of a
// key or deletes the key gets nothing back.

// errGiver is the error for a giver that is deleted or has expired. The request was
// authenticated with this key before, maybe by a cached copy.
var errGiver = &mediagate.Error{Kind: mediagate.KindUnauthenticated, Message: "invalid API key"}

// GiveKey makes a key of the giver's account with the settings that grant returns, under the hash
// of its secret. Returns KindUnauthenticated for a giver that is deleted or has expired,
// KindForbidden for quota that the giver lacks, KindConflict for a hash that is taken, and the
// errors of grant.
func (s *Store) GiveKey(
	ctx context.Context, giver string, secret mediagate.KeySecret,
	grant func(giver mediagate.Key) (mediagate.Key, error),
) (k mediagate.Key, err error) {
	err = s.write(ctx, "give key", func(tx *gorm.DB) error {
		// A new key has no row to lock, so the giver stands for it. lockKeys locks each row once.
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
		// Nothing of the new key is spent yet, so the giver pays for all of its quota.
		if err := s.takeQuota(ctx, tx, by, row, row.Quota); err != nil {
			return err
		}
		if err := s.addKey(ctx, tx, row); err != nil {
			return err
		}
		k, err = s.keyOf(row)
		return err
	})
	return k, err
}

// ChangeKey is UpdateKey on behalf of another key of the account, or of the key itself. It calls
// check for each live key that the change concerns, since keys that share a quota share limits.
// check reports whether that key gains anything other than quota. Returns the errors of GiveKey
// and UpdateKey.
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
		// before keeps the old quota: changeKey writes the new settings into row.
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
			// A shared limit that changes for one key changes for all of them. Each key is checked
			// with its own settings.
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
		// An unlimited key that becomes limited gains no quota.
		case before.Unlimited:
			return nil
		default:
			return s.takeQuota(ctx, tx, by, row, row.Quota-before.Quota)
		}
	})
	return k, err
}

// sharing reads the other live keys that share the quota of a locked key. Every change of them
// locks that quota too, so none of them changes meanwhile.
func (s *Store) sharing(tx *gorm.DB, row keyRow) ([]mediagate.Key, error) {
	rows, err := readKeys(tx, "(k.id = ? OR k.quota_id = ?) AND k.id <> ? AND "+liveKey+" ORDER BY k.id",
		row.quotaID(), row.quotaID(), row.ID, at(s.clock()))
	if err != nil {
		return nil, err
	}
	return convertAll(rows, s.keyOf)
}

// RenewKey is RotateKey on behalf of another key of the account, or of the key itself, if check
// returns no error. Returns the errors of GiveKey and RotateKey.
func (s *Store) RenewKey(
	ctx context.Context, giver, id string, secret mediagate.KeySecret, grace time.Duration,
	check func(giver, k mediagate.Key) error,
) (k mediagate.Key, err error) {
	err = s.write(ctx, "renew key", func(tx *gorm.DB) error {
		by, key, row, err := s.lockGiver(tx, giver, id)
		if err != nil {
			return err
		}
		old, err := s.keyOf(row)
		if err != nil {
			return err
		}
		// check sees both keys under their locks, so neither can change before the rotation.
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

// lockGiver locks a giver and the key on which it acts. by and row are their rows, and key is
// the giver as callers see it. Returns errGiver for a giver that may not be used any more, and
// KindNotFound for an unknown key or a key of another account.
func (s *Store) lockGiver(tx *gorm.DB, giver, id string) (by keyRow, key mediagate.Key, row keyRow, err error) {
	rows, err := s.lockKeys(tx, giver, id)
	if mediagate.Is(err, mediagate.KindNotFound) {
		if _, gone := s.lockKeys(tx, giver); gone != nil { // the giver itself does not exist
			err = errGiver
		}
	}
	if err != nil {
		return by, key, row, err
	}
	by, row = rows[0], rows[1]
	// lockKeys leaves out deleted keys, but not keys that have expired.
	if !by.ExpiresAt.IsZero() && !by.ExpiresAt.After(s.clock()) {
		return by, key, row, errGiver
	}
	key, err = s.keyOf(by)
	return by, key, row, err
}

// takeQuota lowers the giver's quota by the amount that it gives to another key, if both are
// limited. Keys that share a quota take nothing from each other. Returns KindForbidden if the
// giver has less left.
//
// Example: a giver has a quota of 100.00, of which 30.00 are spent and 20.00 are held. It may
// give at most 50.00. If it gives 50.00 to a new key, its own quota becomes 50.00, which its
// holds and charges use up.
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

// unspent returns the quota that may still be spent. It includes the held amount, which comes back
// if the task is cancelled.
func (r keyRow) unspent() mediagate.Micros { return r.Quota - r.Spent }
