package storage

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

type keyRow struct {
	ID         string
	AccountID  string
	Hash       []byte
	Name       string
	Prefix     string
	LastFour   string
	GroupName  string
	Unlimited  bool
	Quota      mediagate.Micros
	Held       mediagate.Micros
	Spent      mediagate.Micros
	Models     document
	AllowIPs   document `gorm:"column:allow_ips"`
	ExpiresAt  stamp
	DeletedAt  stamp
	CreatedAt  stamp
	LastUsedAt stamp
}

// TableName tells GORM.
func (keyRow) TableName() string { return "keys" }

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
	err = s.on(ctx).Create(&keyRow{
		ID: k.ID, AccountID: k.AccountID, Hash: hash[:], Name: k.Name, Prefix: k.Prefix, LastFour: k.LastFour, GroupName: k.Group,
		Unlimited: k.Unlimited, Quota: k.Quota, Models: models, AllowIPs: addresses, ExpiresAt: at(k.ExpiresAt), CreatedAt: at(k.CreatedAt),
	}).Error
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
	of := func() *gorm.DB {
		if accountID == "" {
			return s.on(ctx)
		}
		return s.on(ctx).Where("account_id = ?", accountID)
	}
	if after != "" {
		if _, err := readKey(of().Where("id = ?", after), after); err != nil {
			return nil, false, unknownAfter(err)
		}
	}
	rows, hasMore, err := newest[keyRow](of().Where("deleted_at IS NULL"), after, limit)
	if err != nil {
		return nil, false, dbError(err, "list keys")
	}
	keys, err = convertAll(rows, keyRow.key)
	return keys, hasMore, err
}

// Key reads a key. Returns KindNotFound, also for one that was deleted.
func (s *Store) Key(ctx context.Context, id string) (mediagate.Key, error) {
	return readKey(s.on(ctx).Where("id = ? AND deleted_at IS NULL", id), id)
}

// KeyByHash finds the live key with that hash: not deleted and not expired.
// Returns KindNotFound.
func (s *Store) KeyByHash(ctx context.Context, hash [32]byte) (mediagate.Key, error) {
	// Written out, as each request begins with it.
	row, err := one[keyRow](s.on(ctx), "SELECT "+columnsOf[keyRow]().text+` FROM keys
		WHERE hash = ? AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`, hash[:], at(s.clock()))
	return foundKey(row, err, "")
}

// readKey reads the key that the conditions leave.
func readKey(db *gorm.DB, id string) (mediagate.Key, error) {
	row, err := take[keyRow](db)
	return foundKey(row, err, id)
}

func foundKey(row *keyRow, err error, id string) (mediagate.Key, error) {
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
	result := s.on(ctx).Select("deleted_at").Where("id = ? AND deleted_at IS NULL", id).Updates(&keyRow{DeletedAt: at(s.clock())})
	if result.Error != nil {
		return dbError(result.Error, "delete key")
	}
	if result.RowsAffected == 0 {
		return notFound("key", id)
	}
	return nil
}

// TouchKeys stores when keys were last used. Each is a transaction of its
// own: this must never hold a key that a submit waits for.
func (s *Store) TouchKeys(ctx context.Context, usedAt map[string]time.Time) error {
	for id, t := range usedAt {
		err := s.on(ctx).Select("last_used_at").Where("id = ? AND (last_used_at IS NULL OR last_used_at < ?)", id, at(t)).
			Updates(&keyRow{LastUsedAt: at(t)}).Error
		if err != nil {
			return dbError(err, "touch keys")
		}
	}
	return nil
}
