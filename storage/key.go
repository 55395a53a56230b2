package storage

import (
	"cmp"
	"context"
	"errors"
	"slices"
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
	Scopes     document
	Strict     bool

	// What the keys of a rotation share stands in the row of the first.
	Rate        *int
	InFlightCap *int
	InFlight    int
	CapDay      *mediagate.Micros
	CapWeek     *mediagate.Micros
	CapMonth    *mediagate.Micros
	DayStart    stamp
	DayUsed     mediagate.Micros
	WeekStart   stamp
	WeekUsed    mediagate.Micros
	MonthStart  stamp
	MonthUsed   mediagate.Micros
	QuotaID     *string // nil: its own
	SuccessorID *string
}

// TableName tells GORM.
func (keyRow) TableName() string { return "keys" }

func (r keyRow) key() (mediagate.Key, error) {
	k := mediagate.Key{
		ID: r.ID, AccountID: r.AccountID, Name: r.Name, Prefix: r.Prefix, LastFour: r.LastFour, Group: r.GroupName,
		Unlimited: r.Unlimited, Quota: r.Quota, Held: r.Held, Spent: r.Spent,
		ExpiresAt: r.ExpiresAt.Time, CreatedAt: r.CreatedAt.Time, LastUsedAt: r.LastUsedAt.Time,
		Caps: mediagate.Caps{Day: r.CapDay, Week: r.CapWeek, Month: r.CapMonth}, Rate: r.Rate, InFlight: r.InFlightCap,
		QuotaID: r.quotaID(), SuccessorID: deref(r.SuccessorID), Strict: r.Strict,
	}
	return k, errors.Join(
		fromJSON("keys.models", r.Models, &k.Models), fromJSON("keys.allow_ips", r.AllowIPs, &k.AllowIPs), fromJSON("keys.scopes", r.Scopes, &k.Scopes))
}

// quotaID is the id of the row that has what the keys of a rotation share.
func (r keyRow) quotaID() string {
	if r.QuotaID == nil {
		return r.ID
	}
	return *r.QuotaID
}

// shareOf takes over what stands in the row of the shared quota.
func (r keyRow) shareOf(sharedRow keyRow) keyRow {
	r.Unlimited, r.Quota, r.Held, r.Spent = sharedRow.Unlimited, sharedRow.Quota, sharedRow.Held, sharedRow.Spent
	r.Rate, r.InFlightCap, r.InFlight = sharedRow.Rate, sharedRow.InFlightCap, sharedRow.InFlight
	r.CapDay, r.CapWeek, r.CapMonth = sharedRow.CapDay, sharedRow.CapWeek, sharedRow.CapMonth
	r.DayStart, r.DayUsed, r.WeekStart, r.WeekUsed, r.MonthStart, r.MonthUsed = sharedRow.DayStart, sharedRow.DayUsed, sharedRow.WeekStart, sharedRow.WeekUsed, sharedRow.MonthStart, sharedRow.MonthUsed
	return r
}

// set writes the settings of a key into its row, and those of its shared quota into that.
func (r *keyRow) set(k mediagate.Key) error {
	r.Name, r.GroupName, r.ExpiresAt, r.Strict = k.Name, k.Group, at(k.ExpiresAt), k.Strict
	r.Unlimited, r.Quota, r.Rate, r.InFlightCap = k.Unlimited, k.Quota, k.Rate, k.InFlight
	r.CapDay, r.CapWeek, r.CapMonth = k.Caps.Day, k.Caps.Week, k.Caps.Month
	var err error
	for _, column := range []struct {
		to    *document
		value any
	}{{&r.Models, list(k.Models)}, {&r.AllowIPs, list(k.AllowIPs)}, {&r.Scopes, list(k.Scopes)}} {
		if *column.to, err = jsonText(column.value); err != nil {
			return err
		}
	}
	return nil
}

// CreateKey stores a key under the hash of its secret; its id and creation
// time are made here. Without scopes it has all. Returns KindNotFound for an
// unknown account, KindConflict for a hash that is taken.
func (s *Store) CreateKey(ctx context.Context, k mediagate.Key, hash [32]byte) (mediagate.Key, error) {
	if len(k.Scopes) == 0 {
		k.Scopes = mediagate.Scopes()
	}
	row := keyRow{ID: s.newID("key_"), AccountID: k.AccountID, Hash: hash[:], Prefix: k.Prefix, LastFour: k.LastFour, CreatedAt: at(s.clock())}
	if err := row.set(k); err != nil {
		return mediagate.Key{}, err
	}
	err := s.write(ctx, "create key", func(tx *gorm.DB) error { return s.addKey(ctx, tx, row) })
	if err != nil {
		return mediagate.Key{}, err
	}
	return row.key()
}

func (s *Store) addKey(ctx context.Context, tx *gorm.DB, row keyRow) error {
	if err := insertKey(tx, row); err != nil {
		return err
	}
	return s.note(ctx, tx, deed{action: mediagate.AuditCreateKey, object: row.ID, account: row.AccountID, after: row.facts()})
}

func insertKey(db *gorm.DB, row keyRow) error {
	err := db.Create(&row).Error
	switch {
	case isForeignKey(err):
		return notFound("account", row.AccountID)
	case isDuplicate(err):
		return conflict("the key exists")
	default:
		return dbError(err, "create key")
	}
}

// UpdateKey lets change have its way with a key's settings: its name, models,
// group, scopes, addresses, expiry, quota, caps, rate and tasks in flight. The
// last four are those of its shared quota. Nothing else can change meanwhile; change may
// be called again, and what it returns as error is returned and changes nothing.
// Returns KindNotFound, and KindInvalid for a quota or a cap below what is used.
func (s *Store) UpdateKey(ctx context.Context, id string, change func(k *mediagate.Key) error) (k mediagate.Key, err error) {
	err = s.write(ctx, "update key", func(tx *gorm.DB) error {
		rows, err := s.lockKeys(tx, id)
		if err != nil {
			return err
		}
		k, err = s.changeKey(ctx, tx, rows[0], change)
		return err
	})
	return k, err
}

// changeKey changes the settings of a key that is locked.
func (s *Store) changeKey(ctx context.Context, tx *gorm.DB, row *keyRow, how func(k *mediagate.Key) error) (k mediagate.Key, err error) {
	before := row.facts()
	if k, err = row.key(); err != nil {
		return k, err
	}
	if err := how(&k); err != nil {
		return k, err
	}
	if err := row.set(k); err != nil {
		return k, err
	}
	if err := row.checkLimits(s.clock()); err != nil {
		return k, err
	}
	own := []string{"name", "group_name", "expires_at", "models", "allow_ips", "scopes", "strict"}
	if err := tx.Model(&keyRow{}).Where("id = ?", row.ID).Select(own).Updates(row).Error; err != nil {
		return k, err
	}
	shared := []string{"unlimited", "quota", "rate", "in_flight_cap", "cap_day", "cap_week", "cap_month"}
	if err := tx.Model(&keyRow{}).Where("id = ?", row.quotaID()).Select(shared).Updates(row).Error; err != nil {
		return k, err
	}
	err = s.note(ctx, tx, deed{action: mediagate.AuditChangeKey, object: row.ID, account: row.AccountID, before: before, after: row.facts()})
	if err != nil {
		return k, err
	}
	return row.key()
}

// lockKeys reads live keys with what they share with others, and locks all these rows in
// the order of their ids, which is the same everywhere. Those of other accounts than
// the first one's count as unknown. Returns KindNotFound.
func (s *Store) lockKeys(tx *gorm.DB, ids ...string) ([]*keyRow, error) {
	var involved []string
	account := ""
	for _, id := range ids {
		seen, err := take[keyRow](tx.Where("id = ? AND deleted_at IS NULL", id))
		if err != nil {
			return nil, err
		}
		if seen == nil || account != "" && seen.AccountID != account {
			return nil, notFound("key", id)
		}
		account = seen.AccountID
		involved = append(involved, id, seen.quotaID()) // which never changes
	}
	slices.Sort(involved)
	locked := map[string]*keyRow{}
	for _, id := range slices.Compact(involved) {
		row, err := one[keyRow](tx, "SELECT "+columnsOf[keyRow]().text+" FROM keys WHERE id = ?"+s.forUpdate("keys"), id)
		if err != nil {
			return nil, err
		}
		if row == nil {
			return nil, notFound("key", id)
		}
		locked[id] = row
	}
	rows := make([]*keyRow, len(ids))
	for i, id := range ids {
		if !locked[id].DeletedAt.IsZero() {
			return nil, notFound("key", id)
		}
		rows[i] = new(locked[id].shareOf(*locked[locked[id].quotaID()]))
	}
	return rows, nil
}

// RotateKey makes a new key with the settings of another, under the hash of its
// own secret, and lets the other end after grace, or when it would have ended
// anyway. Both share quota, caps and rates, and what is held and spent. Returns
// KindNotFound, and KindConflict for a key that has expired or was rotated before.
func (s *Store) RotateKey(ctx context.Context, id string, secret mediagate.KeySecret, grace time.Duration) (k mediagate.Key, err error) {
	err = s.write(ctx, "rotate key", func(tx *gorm.DB) error {
		rows, err := s.lockKeys(tx, id)
		if err != nil {
			return err
		}
		k, err = s.rotate(ctx, tx, *rows[0], secret, grace)
		return err
	})
	return k, err
}

// rotate rotates a key that is locked.
func (s *Store) rotate(ctx context.Context, tx *gorm.DB, old keyRow, secret mediagate.KeySecret, grace time.Duration) (k mediagate.Key, err error) {
	now, quotaID := s.clock(), old.quotaID()
	if old.SuccessorID != nil {
		return k, conflict("the key was rotated already, into %s", *old.SuccessorID)
	}
	if !old.ExpiresAt.IsZero() && !old.ExpiresAt.After(now) {
		return k, conflict("the key has expired: it can be rotated once expires_at is in the future")
	}
	fresh := keyRow{
		ID: s.newID("key_"), AccountID: old.AccountID, Hash: secret.Hash[:], Name: old.Name, Prefix: secret.Prefix, LastFour: secret.LastFour,
		GroupName: old.GroupName, Models: old.Models, AllowIPs: old.AllowIPs, Scopes: old.Scopes, Strict: old.Strict, ExpiresAt: old.ExpiresAt, CreatedAt: at(now), QuotaID: &quotaID,
	}
	if err := insertKey(tx, fresh); err != nil {
		return k, err
	}
	ending := old
	ending.ExpiresAt, ending.SuccessorID = at(now.Add(grace)), &fresh.ID
	if !old.ExpiresAt.IsZero() && old.ExpiresAt.Before(ending.ExpiresAt.Time) {
		ending.ExpiresAt = old.ExpiresAt
	}
	if _, err := exec(tx, "UPDATE keys SET expires_at = ?, successor_id = ? WHERE id = ?", ending.ExpiresAt, fresh.ID, old.ID); err != nil {
		return k, err
	}
	if err := endSessions(tx, old.ID); err != nil {
		return k, err
	}
	err = s.note(ctx, tx, deed{action: mediagate.AuditRotateKey, object: old.ID, account: old.AccountID, before: old.facts(), after: ending.facts()})
	if err != nil {
		return k, err
	}
	return fresh.shareOf(old).key()
}

func list[T any](items []T) []T {
	if items == nil {
		return []T{}
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
		if _, err := readKey(s.on(ctx), of().Where("id = ?", after), after); err != nil {
			return nil, false, unknownAfter(err)
		}
	}
	rows, hasMore, err := newest[keyRow](of().Where("deleted_at IS NULL"), after, limit)
	if err != nil {
		return nil, false, dbError(err, "list keys")
	}
	for i := range rows {
		if rows[i], err = withSharedQuota(s.on(ctx), rows[i]); err != nil {
			return nil, false, dbError(err, "list keys")
		}
	}
	keys, err = convertAll(rows, keyRow.key)
	return keys, hasMore, err
}

// withSharedQuota reads what the key shares with others, if it does.
func withSharedQuota(db *gorm.DB, row keyRow) (keyRow, error) {
	if row.QuotaID == nil {
		return row, nil
	}
	sharedRow, err := one[keyRow](db, "SELECT "+columnsOf[keyRow]().text+" FROM keys WHERE id = ?", *row.QuotaID)
	if err != nil || sharedRow == nil {
		return row, cmp.Or(err, notFound("key", *row.QuotaID))
	}
	return row.shareOf(*sharedRow), nil
}

// Key reads a key. Returns KindNotFound, also for one that was deleted.
func (s *Store) Key(ctx context.Context, id string) (mediagate.Key, error) {
	return readKey(s.on(ctx), s.on(ctx).Where("id = ? AND deleted_at IS NULL", id), id)
}

// KeyByHash finds the live key with that hash, neither deleted nor expired, and
// its account. Returns KindNotFound.
func (s *Store) KeyByHash(ctx context.Context, hash [32]byte) (mediagate.Key, mediagate.Account, error) {
	// Written out, and at once, as each request begins with it.
	keys, accounts := columnsOf[keyRow](), columnsOf[accountRow]()
	rows, err := s.on(ctx).Raw("SELECT "+keys.of("keys")+", "+accounts.of("accounts")+` FROM keys JOIN accounts ON accounts.id = keys.account_id
		WHERE hash = ? AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`, hash[:], at(s.clock())).Rows()
	if err != nil {
		return mediagate.Key{}, mediagate.Account{}, dbError(err, "read key")
	}
	defer rows.Close()
	var row *keyRow
	var account accountRow
	if rows.Next() {
		row = &keyRow{}
		err = rows.Scan(append(keys.into(row), accounts.into(&account)...)...)
	}
	// Closed before the next statement, which may need the same connection.
	k, err := foundKey(s.on(ctx), row, cmp.Or(err, rows.Err(), rows.Close()), "")
	return k, account.account(), err
}

// readKey reads the key that the conditions leave.
func readKey(db, conditions *gorm.DB, id string) (mediagate.Key, error) {
	row, err := take[keyRow](conditions)
	return foundKey(db, row, err, id)
}

func foundKey(db *gorm.DB, row *keyRow, err error, id string) (mediagate.Key, error) {
	if err != nil {
		return mediagate.Key{}, dbError(err, "read key")
	}
	if row == nil {
		return mediagate.Key{}, notFound("key", id)
	}
	whole, err := withSharedQuota(db, *row)
	if err != nil {
		return mediagate.Key{}, dbError(err, "read key")
	}
	return whole.key()
}

// DeleteKey ends a key. Its row stays, so that the ledger stays whole.
// Returns KindNotFound.
func (s *Store) DeleteKey(ctx context.Context, id string) error {
	return s.write(ctx, "delete key", func(tx *gorm.DB) error {
		rows, err := s.lockKeys(tx, id)
		if err != nil {
			return err
		}
		if err := tx.Select("deleted_at").Where("id = ?", id).Updates(&keyRow{DeletedAt: at(s.clock())}).Error; err != nil {
			return err
		}
		if err := endSessions(tx, id); err != nil {
			return err
		}
		return s.note(ctx, tx, deed{action: mediagate.AuditDeleteKey, object: id, account: rows[0].AccountID, before: rows[0].facts()})
	})
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
