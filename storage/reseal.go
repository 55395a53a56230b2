package storage

import (
	"context"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// secretBatch is how many secrets are read at once.
const secretBatch = 100

// WebhookSeals counts the webhook secrets by the encryption key that opens them.
// Each that none opens is an error that names its row.
func (s *Store) WebhookSeals(ctx context.Context) (seals mediagate.Seals, err error) {
	err = s.eachSecret(ctx, func(r secretRow) error {
		_, key, err := s.unseal(r)
		seals.Count(key, err)
		return nil
	})
	return seals, err
}

// ResealWebhookSecrets seals each webhook secret anew that the first encryption
// key does not open, and says how many it has. What no key opens stays as it is
// and is an error that names its row. It may run at any time, several times at
// once, and be cut off anywhere: each row is replaced by itself, and only where
// it still is what was opened.
func (s *Store) ResealWebhookSecrets(ctx context.Context) (resealed int, seals mediagate.Seals, err error) {
	err = s.eachSecret(ctx, func(r secretRow) error {
		secret, key, err := s.unseal(r)
		if err != nil || key == 0 {
			seals.Count(key, err)
			return nil
		}
		sealed, err := s.seal(r.AccountID, secret)
		if err != nil {
			return err
		}
		var won int64
		err = s.write(ctx, "seal a webhook secret anew", func(tx *gorm.DB) error {
			replaced := tx.Select("sealed").Where("id = ? AND sealed = ?", r.ID, r.Sealed).Updates(&secretRow{Sealed: sealed})
			won = replaced.RowsAffected
			return replaced.Error
		})
		if err != nil {
			return err
		}
		resealed += int(won) // none: it was replaced or removed meanwhile
		seals.Count(0, nil)
		return nil
	})
	return resealed, seals, err
}

// eachSecret reads the secrets that sign, now or at some time to come, a batch at
// a time. One that has expired signs nothing any more: it may stay sealed by a
// key that is gone.
func (s *Store) eachSecret(ctx context.Context, do func(secretRow) error) error {
	for after := ""; ; {
		var rows []secretRow
		err := s.on(ctx).Where("id > ? AND (expires_at IS NULL OR expires_at > ?)", after, at(s.clock())).
			Order("id").Limit(secretBatch).Find(&rows).Error
		if err != nil {
			return dbError(err, "read webhook secrets")
		}
		for _, r := range rows {
			if err := do(r); err != nil {
				return err
			}
			after = r.ID
		}
		if len(rows) < secretBatch {
			return nil
		}
	}
}
