package storage

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

type keyRow struct {
	ID         string
	AccountID  string
	Name       string
	Prefix     string
	LastFour   string
	GroupName  string
	Unlimited  bool
	Quota      mediagate.Micros
	Held       mediagate.Micros
	Spent      mediagate.Micros
	Models     []byte
	AllowIPs   []byte `gorm:"column:allow_ips"`
	ExpiresAt  stamp
	CreatedAt  stamp
	LastUsedAt stamp
}

const keyColumns = "id, account_id, name, prefix, last_four, group_name, unlimited, quota, held, spent, models, allow_ips, expires_at, created_at, last_used_at"

func (r keyRow) key() (mediagate.Key, error) {
	k := mediagate.Key{
		ID: r.ID, AccountID: r.AccountID, Name: r.Name, Prefix: r.Prefix, LastFour: r.LastFour, Group: r.GroupName,
		Unlimited: r.Unlimited, Quota: r.Quota, Held: r.Held, Spent: r.Spent,
		ExpiresAt: r.ExpiresAt.Time, CreatedAt: r.CreatedAt.Time, LastUsedAt: r.LastUsedAt.Time,
	}
	if err := fromJSON("keys.models", r.Models, &k.Models); err != nil {
		return mediagate.Key{}, err
	}
	return k, fromJSON("keys.allow_ips", r.AllowIPs, &k.AllowIPs)
}

// CreateKey stores a key under the hash of its secret; its id and creation
// time are made here. Returns KindNotFound for an unknown account, KindConflict
// for a hash that is taken.
func (s *Store) CreateKey(ctx context.Context, k mediagate.Key, hash [32]byte) (mediagate.Key, error) {
	models, err := jsonText(list(k.Models))
	if err != nil {
		return mediagate.Key{}, err
	}
	addresses, err := jsonText(list(k.AllowIPs))
	if err != nil {
		return mediagate.Key{}, err
	}
	k.ID, k.CreatedAt, k.Held, k.Spent = s.newID("key_"), s.clock(), 0, 0
	err = s.on(ctx).Exec(`INSERT INTO keys (id, account_id, hash, name, prefix, last_four, group_name, unlimited, quota, models, allow_ips, expires_at, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		k.ID, k.AccountID, hash[:], k.Name, k.Prefix, k.LastFour, k.Group, k.Unlimited, k.Quota, models, addresses, at(k.ExpiresAt), at(k.CreatedAt)).Error
	switch {
	case isForeignKey(err):
		return mediagate.Key{}, notFound("account", k.AccountID)
	case isDuplicate(err):
		return mediagate.Key{}, conflict("the key exists")
	case err != nil:
		return mediagate.Key{}, dbError(err, "create key")
	}
	return k, nil
}

func list(items []string) []string {
	if items == nil {
		return []string{}
	}
	return items
}

// Keys lists the live keys of an account, or of all when accountID is empty,
// newest first, those older than the key after, which may have been deleted
// meanwhile. Returns KindInvalid when after names no key of the list.
func (s *Store) Keys(ctx context.Context, accountID, after string, limit int) (keys []mediagate.Key, hasMore bool, err error) {
	if after != "" {
		_, err := s.key(ctx, after, "SELECT "+keyColumns+" FROM keys WHERE id = ? AND (? = '' OR account_id = ?)", after, accountID, accountID)
		if err != nil {
			return nil, false, unknownAfter(err)
		}
	}
	var rows []keyRow
	err = read(s.on(ctx), &rows, "SELECT "+keyColumns+` FROM keys
		WHERE deleted_at IS NULL AND (? = '' OR account_id = ?) AND (? = '' OR id < ?) ORDER BY id DESC LIMIT ?`,
		accountID, accountID, after, after, limit+1)
	if err != nil {
		return nil, false, dbError(err, "list keys")
	}
	rows, hasMore = page(rows, limit)
	keys, err = convertAll(rows, keyRow.key)
	return keys, hasMore, err
}

// Key reads a key. Returns KindNotFound, also for one that was deleted.
func (s *Store) Key(ctx context.Context, id string) (mediagate.Key, error) {
	return s.key(ctx, id, "SELECT "+keyColumns+" FROM keys WHERE id = ? AND deleted_at IS NULL", id)
}

// KeyByHash finds the live key with that hash: not deleted and not expired.
// Returns KindNotFound.
func (s *Store) KeyByHash(ctx context.Context, hash [32]byte) (mediagate.Key, error) {
	return s.key(ctx, "", "SELECT "+keyColumns+` FROM keys
		WHERE hash = ? AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`, hash[:], at(s.clock()))
}

func (s *Store) key(ctx context.Context, id, query string, args ...any) (mediagate.Key, error) {
	row, err := one[keyRow](s.on(ctx), query, args...)
	if err != nil {
		return mediagate.Key{}, dbError(err, "read key")
	}
	if row == nil {
		return mediagate.Key{}, notFound("key", id)
	}
	return row.key()
}

// DeleteKey ends a key. Its row stays, so that the ledger stays whole.
// Returns KindNotFound.
func (s *Store) DeleteKey(ctx context.Context, id string) error {
	n, err := exec(s.on(ctx), "UPDATE keys SET deleted_at = ? WHERE id = ? AND deleted_at IS NULL", at(s.clock()), id)
	if err != nil {
		return dbError(err, "delete key")
	}
	if n == 0 {
		return notFound("key", id)
	}
	return nil
}

// TouchKeys stores when keys were last used. Each is a transaction of its
// own: this must never hold a key that a submit waits for.
func (s *Store) TouchKeys(ctx context.Context, usedAt map[string]time.Time) error {
	for id, t := range usedAt {
		_, err := exec(s.on(ctx), "UPDATE keys SET last_used_at = ? WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)", at(t), id, at(t))
		if err != nil {
			return dbError(err, "touch keys")
		}
	}
	return nil
}

func convertAll[R, T any](rows []R, f func(R) (T, error)) ([]T, error) {
	out := make([]T, len(rows))
	for i, row := range rows {
		v, err := f(row)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}
