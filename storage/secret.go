package storage

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/mediagate/mediagate"
)

const (
	secretPrefix  = "whsec_"
	secretBytes   = 32
	secretOverlap = 24 * time.Hour // how long a replaced secret still signs
)

// sealers makes one cipher a key.
func sealers(keys [][]byte) ([]cipher.AEAD, error) {
	seals := make([]cipher.AEAD, 0, len(keys))
	for i, key := range keys {
		if len(key) != 32 {
			return nil, fmt.Errorf("encryption key %d has %d bytes, not 32", i+1, len(key))
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("encryption key %d: %w", i+1, err)
		}
		seal, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("encryption key %d: %w", i+1, err)
		}
		seals = append(seals, seal)
	}
	return seals, nil
}

// seal encrypts a secret. It is bound to its account: copied to another
// account's row it does not open.
func (s *Store) seal(accountID string, secret []byte) ([]byte, error) {
	if len(s.seals) == 0 {
		return nil, mediagate.Errorf(mediagate.KindInternal, "no encryption key is configured")
	}
	return s.seals[0].Seal(nil, nil, secret, []byte(accountID)), nil //nolint:gosec // this cipher draws its own nonce
}

func (s *Store) unseal(accountID string, sealed []byte) ([]byte, error) {
	for _, seal := range s.seals {
		if secret, err := seal.Open(nil, nil, sealed, []byte(accountID)); err == nil {
			return secret, nil
		}
	}
	return nil, mediagate.Errorf(mediagate.KindInternal, "no encryption key opens the webhook secret of %s", accountID)
}

type secretRow struct {
	ID        string
	AccountID string
	Sealed    []byte
	CreatedAt stamp
	ExpiresAt stamp
}

// TableName tells GORM.
func (secretRow) TableName() string { return "webhook_secrets" }

// WebhookSecrets returns the secrets that sign now: the current one, which is
// made at first use, then the one before while it is valid. Returns
// KindNotFound for an unknown account.
func (s *Store) WebhookSecrets(ctx context.Context, accountID string) ([]mediagate.WebhookSecret, error) {
	secrets, err := s.secrets(s.on(ctx), accountID)
	if err != nil || len(secrets) > 0 {
		return secrets, dbError(err, "read webhook secrets")
	}
	err = s.addSecret(s.on(ctx), accountID) // of two at once, one stays
	if isForeignKey(err) {
		return nil, notFound("account", accountID)
	}
	if err != nil {
		return nil, dbError(err, "make webhook secret")
	}
	secrets, err = s.secrets(s.on(ctx), accountID)
	return secrets, dbError(err, "read webhook secrets")
}

// RotateWebhookSecret makes a new secret. The one before stays valid for 24
// hours and an older one not at all: at most two are live. Returns
// KindNotFound for an unknown account.
func (s *Store) RotateWebhookSecret(ctx context.Context, accountID string) (secrets []mediagate.WebhookSecret, err error) {
	if _, err := s.WebhookSecrets(ctx, accountID); err != nil { // so that there is one to replace
		return nil, err
	}
	err = s.write(ctx, "rotate webhook secret", func(tx *gorm.DB) error {
		// The current row is the lock: of two rotations at once the second
		// finds none and replaces what the first has made.
		until := at(s.clock().Add(secretOverlap))
		replaced := tx.Select("expires_at").Where("account_id = ? AND expires_at IS NULL", accountID).Updates(&secretRow{ExpiresAt: until})
		if replaced.Error != nil {
			return replaced.Error
		}
		if replaced.RowsAffected > 0 {
			if err := tx.Where("account_id = ? AND expires_at < ?", accountID, until).Delete(&secretRow{}).Error; err != nil {
				return err
			}
			if err := s.addSecret(tx, accountID); err != nil {
				return err
			}
		}
		secrets, err = s.secrets(tx, accountID)
		return err
	})
	return secrets, err
}

func (s *Store) addSecret(db *gorm.DB, accountID string) error {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails
	sealed, err := s.seal(accountID, secret)
	if err != nil {
		return err
	}
	return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&secretRow{
		ID: s.newID("whs_"), AccountID: accountID, Sealed: sealed, CreatedAt: at(s.clock()),
	}).Error
}

func (s *Store) secrets(db *gorm.DB, accountID string) ([]mediagate.WebhookSecret, error) {
	var rows []secretRow
	err := db.Where("account_id = ? AND (expires_at IS NULL OR expires_at > ?)", accountID, at(s.clock())).
		Order("expires_at IS NOT NULL, expires_at DESC").Limit(2).Find(&rows).Error
	if err != nil {
		return nil, err
	}
	return convertAll(rows, func(r secretRow) (mediagate.WebhookSecret, error) {
		secret, err := s.unseal(accountID, r.Sealed)
		return mediagate.WebhookSecret{
			Secret: secretPrefix + base64.StdEncoding.EncodeToString(secret), ExpiresAt: r.ExpiresAt.Time,
		}, err
	})
}
