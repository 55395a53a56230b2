package storage

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

const (
	// A secret is shown as the prefix and the base64 of its bytes.
	secretPrefix  = "whsec_"
	secretBytes   = 32
	secretOverlap = 24 * time.Hour // how long a replaced secret still signs
)

// errNoEncryptionKey is returned where something must be encrypted or signed, but the settings
// name no key.
var errNoEncryptionKey = &mediagate.Error{
	Kind:    mediagate.KindInternal,
	Message: "no encryption key is configured",
}

// sealers returns a cipher for each key.
//
// The first cipher encrypts, and all decrypt, so a new key can be put first while the old one
// still opens what it sealed. The keys are for AES-256: 32 bytes.
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

// secretOwner is the owner of a secret: an account, whose callbacks it signs, or an endpoint, whose
// events it signs.
type secretOwner struct {
	account  string
	endpoint string // empty for the account's own
}

// bound returns the additional data of the encryption. A sealed secret that was copied to the row of
// another owner cannot be decrypted.
func (o secretOwner) bound() []byte { return []byte(o.account + o.endpoint) }

// seal encrypts a secret of the owner.
func (s *Store) seal(owner secretOwner, secret []byte) ([]byte, error) {
	if len(s.seals) == 0 {
		return nil, errNoEncryptionKey
	}
	return s.seals[0].Seal(nil, nil, secret, owner.bound()), nil //nolint:gosec // this cipher draws its own nonce
}

// unseal decrypts the secret of a row. key is the index of the encryption key that decrypts it.
func (s *Store) unseal(r secretRow) (secret []byte, key int, err error) {
	// GCM detects a wrong key, so the keys are tried in order.
	for i, seal := range s.seals {
		if secret, err := seal.Open(nil, nil, r.Sealed, r.owner().bound()); err == nil {
			return secret, i, nil
		}
	}
	return nil, 0, mediagate.Errorf(mediagate.KindInternal,
		"no encryption key opens webhook secret %s of account %s: the key that sealed it is missing", r.ID, r.AccountID)
}

// secretRow is a row of webhook_secrets. ExpiresAt is zero for the current secret. The partial
// unique index webhook_secrets_current allows one current secret for each owner.
type secretRow struct {
	ID         string
	AccountID  string
	EndpointID string
	Sealed     []byte
	CreatedAt  stamp
	ExpiresAt  stamp
}

// owner returns the account or the endpoint whose secret it is.
func (r secretRow) owner() secretOwner { return secretOwner{r.AccountID, r.EndpointID} }

// selectSecrets begins a SELECT of secretRow, and ofOwner is the condition that a row is the owner's.
var selectSecrets = "SELECT " + columnsOf[secretRow]().text + " FROM webhook_secrets WHERE "

const ofOwner = "account_id = ? AND endpoint_id = ?"

// WebhookSecrets returns the secrets that sign callbacks now: the current one, then the previous one
// while it is valid. The first call for an account makes its first secret. Returns KindNotFound for an
// unknown account.
func (s *Store) WebhookSecrets(ctx context.Context, accountID string) ([]mediagate.WebhookSecret, error) {
	owner := secretOwner{account: accountID}
	secrets, err := s.secrets(s.on(ctx), owner)
	if err != nil || len(secrets) > 0 {
		return secrets, dbError(err, "read webhook secrets")
	}
	// The unique index refuses a second current secret, and ON CONFLICT DO NOTHING makes that no
	// error. Both calls read the same secret afterwards.
	err = s.addSecret(s.on(ctx), owner) // of two concurrent calls, one succeeds
	if isForeignKey(err) {
		return nil, notFound("account", accountID)
	}
	if err != nil {
		return nil, dbError(err, "make webhook secret")
	}
	secrets, err = s.secrets(s.on(ctx), owner)
	return secrets, dbError(err, "read webhook secrets")
}

// RotateWebhookSecret makes a new secret for the account's callbacks. The previous secret stays valid
// for 24 hours. If the secret before that is still valid, there would be three: then
// RotateWebhookSecret returns KindConflict, or drops the earliest secret if force is set. Of two
// concurrent calls one rotates, and both return the result. Returns KindNotFound for an unknown
// account.
func (s *Store) RotateWebhookSecret(
	ctx context.Context, accountID string, force bool,
) (secrets []mediagate.WebhookSecret, err error) {
	if _, err := s.WebhookSecrets(ctx, accountID); err != nil { // so that there is one to replace
		return nil, err
	}
	return s.rotateSecret(ctx, secretOwner{account: accountID}, force)
}

// RotateEndpointSecret is RotateWebhookSecret for an endpoint of the account. Returns KindNotFound for
// an unknown endpoint.
func (s *Store) RotateEndpointSecret(
	ctx context.Context, accountID, endpointID string, force bool,
) (secrets []mediagate.WebhookSecret, err error) {
	return s.rotateSecret(ctx, secretOwner{accountID, endpointID}, force)
}

// rotateSecret replaces the owner's current secret and returns those that sign now. If there is no
// current secret, it changes nothing.
func (s *Store) rotateSecret(
	ctx context.Context, owner secretOwner, force bool,
) (secrets []mediagate.WebhookSecret, err error) {
	err = s.write(ctx, "rotate webhook secret", func(tx *gorm.DB) error {
		// An endpoint is locked first, as for all its changes, so that no secret outlives a
		// concurrent deletion. The row of the current secret is the lock of a rotation: the second
		// of two concurrent rotations finds no current row.
		if owner.endpoint != "" {
			if _, err := s.lockEndpoint(tx, owner.account, owner.endpoint); err != nil {
				return err
			}
		}
		now := s.clock()
		current, err := one[secretRow](tx, selectSecrets+ofOwner+" AND expires_at IS NULL"+s.forUpdate("webhook_secrets"),
			owner.account, owner.endpoint)
		if err != nil {
			return err
		}
		if current != nil {
			if err := s.replaceSecret(ctx, tx, *current, now, force); err != nil {
				return err
			}
		}
		secrets, err = s.secrets(tx, owner)
		return err
	})
	return secrets, err
}

// replaceSecret makes a new secret in place of the current one, whose row is locked.
//
// At most two secrets sign at a time. If the previous one is still valid, it is dropped only if
// force is set.
func (s *Store) replaceSecret(ctx context.Context, tx *gorm.DB, current secretRow, now time.Time, force bool) error {
	owner := current.owner()
	previous, err := one[secretRow](tx, selectSecrets+ofOwner+" AND expires_at > ?",
		owner.account, owner.endpoint, at(now))
	if err != nil {
		return err
	}
	if previous != nil && !force {
		return conflict("the secret before still signs, until %s: force=true drops it at once",
			previous.ExpiresAt.Format(time.RFC3339))
	}
	// The current secret has no expiry and stays.
	_, err = exec(tx, "DELETE FROM webhook_secrets WHERE "+ofOwner+" AND expires_at IS NOT NULL",
		owner.account, owner.endpoint)
	if err != nil {
		return err
	}
	until := at(now.Add(secretOverlap))
	if _, err := exec(tx, "UPDATE webhook_secrets SET expires_at = ? WHERE id = ?", until, current.ID); err != nil {
		return err
	}
	// The replaced secret has an expiry now, so the unique index admits the new one.
	if err := s.addSecret(tx, owner); err != nil {
		return err
	}
	return s.note(ctx, tx, deed{
		action:  mediagate.AuditRotateWebhookSecret,
		object:  cmp.Or(owner.endpoint, owner.account),
		account: owner.account,
		after:   facts{"previous_expires_at": unix(until)},
	})
}

// addSecret makes a secret of random bytes and stores it encrypted. If the owner has a current
// secret, it stores nothing.
func (s *Store) addSecret(db *gorm.DB, owner secretOwner) error {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails
	sealed, err := s.seal(owner, secret)
	if err != nil {
		return err
	}
	row := secretRow{
		ID:         s.newID("whs_"),
		AccountID:  owner.account,
		EndpointID: owner.endpoint,
		Sealed:     sealed,
		CreatedAt:  at(s.clock()),
	}
	return insert("webhook_secrets", row, nil).say(" WHERE true ON CONFLICT DO NOTHING").run(db)
}

// secrets reads the valid secrets of an owner, decrypted: the current one first, then the previous
// one.
func (s *Store) secrets(db *gorm.DB, owner secretOwner) ([]mediagate.WebhookSecret, error) {
	var rows []secretRow
	err := read(db, &rows, selectSecrets+ofOwner+` AND (expires_at IS NULL OR expires_at > ?)
		ORDER BY expires_at IS NOT NULL, expires_at DESC LIMIT 2`, owner.account, owner.endpoint, at(s.clock()))
	if err != nil {
		return nil, err
	}
	return convertAll(rows, func(r secretRow) (mediagate.WebhookSecret, error) {
		secret, _, err := s.unseal(r)
		return mediagate.WebhookSecret{
			Secret:    mediagate.NewSecret(secretPrefix + base64.StdEncoding.EncodeToString(secret)),
			ExpiresAt: r.ExpiresAt.Time,
		}, err
	})
}

// secretBatch is how many secrets are read at once.
//
// A batch is read before its rows are worked on, so no cursor stays open meanwhile.
const secretBatch = 100

// WebhookSeals counts the webhook secrets by the encryption key that decrypts them. A secret that no
// key decrypts adds an error that names its row.
func (s *Store) WebhookSeals(ctx context.Context) (seals mediagate.Seals, err error) {
	err = s.eachSecret(ctx, func(r secretRow) error {
		_, key, err := s.unseal(r)
		seals.Count(key, err)
		return nil
	})
	return seals, err
}

// ResealWebhookSecrets encrypts with the first encryption key each webhook secret that this key does
// not decrypt, and returns how many. A secret that no key decrypts stays as it is and adds an error that
// names its row. ResealWebhookSecrets may run at any time, also concurrently, and may be interrupted:
// it replaces each row on its own, and only if the row has not changed since it was read.
func (s *Store) ResealWebhookSecrets(ctx context.Context) (resealed int, seals mediagate.Seals, err error) {
	err = s.eachSecret(ctx, func(r secretRow) error {
		secret, key, err := s.unseal(r)
		if err != nil || key == 0 {
			seals.Count(key, err)
			return nil
		}
		sealed, err := s.seal(r.owner(), secret)
		if err != nil {
			return err
		}
		// The row is found by its sealed bytes as well: a concurrent call has sealed it anew if they
		// differ.
		won, err := exec(s.on(ctx), "UPDATE webhook_secrets SET sealed = ? WHERE id = ? AND sealed = ?",
			sealed, r.ID, r.Sealed)
		if err != nil {
			return dbError(err, "seal a webhook secret anew")
		}
		resealed += int(won) // 0 if the row was replaced or removed meanwhile
		seals.Count(0, nil)
		return nil
	})
	return resealed, seals, err
}

// eachSecret calls do for each secret that has not expired, a batch at a time. An expired secret signs
// nothing, so it does not matter whether any key still decrypts it.
func (s *Store) eachSecret(ctx context.Context, do func(secretRow) error) error {
	for after := ""; ; {
		var rows []secretRow
		err := read(s.on(ctx), &rows, selectSecrets+`id > ? AND (expires_at IS NULL OR expires_at > ?)
			ORDER BY id LIMIT ?`, after, at(s.clock()), secretBatch)
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
