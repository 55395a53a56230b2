package storage

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// keyRow is a key with its shared quota. The two parts come from two rows of the table keys, or
// from one row if the key has the quota itself: if it was never rotated, or is the first key of a
// rotation.
type keyRow struct {
	ownKey
	sharedQuota
}

// ownKey has the columns of a single key.
type ownKey struct {
	ID        string
	AccountID string
	// Hash is the SHA-256 of the secret, by which a request finds its key. The secret is not
	// stored; Prefix and LastFour are what is shown of it.
	Hash     []byte
	Name     string
	Prefix   string
	LastFour string
	// GroupName overrides the account's group; empty: the account's.
	GroupName string
	// Models, AllowIPs and Scopes are JSON arrays, never NULL. An empty list of Models or AllowIPs
	// means that all are allowed.
	Models   document
	AllowIPs document `gorm:"column:allow_ips"`
	// The zero times mean: does not expire, is not deleted, was never used.
	ExpiresAt  stamp
	DeletedAt  stamp
	CreatedAt  stamp
	LastUsedAt stamp
	Scopes     document
	Strict     bool
	QuotaID    *string // the key with the shared quota; nil: this one
	// SuccessorID is the key that a rotation made of this one; nil: it was not rotated.
	SuccessorID *string
}

// sharedQuota has the columns that the keys of a rotation share. They are in the row of the
// first of these keys, so a hold locks one row of keys, whichever key pays (ADR 13). In the
// rows of the other keys these columns are unused.
type sharedQuota struct {
	// Quota is what the keys may spend in all; unused if Unlimited. Held is the sum of the open
	// holds, and Spent the sum of the charges. A constraint keeps Held and Spent within Quota.
	Unlimited bool
	Quota     mediagate.Micros
	Held      mediagate.Micros
	Spent     mediagate.Micros
	// Rate is in submits a minute. InFlightCap is the limit of tasks in flight, and InFlight their
	// number now, which the statements of holds and ends count. Nil means no limit.
	Rate        *int
	InFlightCap *int
	InFlight    int
	// The caps of a day, a week and a month in UTC; nil: no cap. See period for the columns of what
	// is used.
	CapDay     *mediagate.Micros
	CapWeek    *mediagate.Micros
	CapMonth   *mediagate.Micros
	DayStart   stamp
	DayUsed    mediagate.Micros
	WeekStart  stamp
	WeekUsed   mediagate.Micros
	MonthStart stamp
	MonthUsed  mediagate.Micros
}

// keyColumns are the columns of a keyRow: k is the key, q the key with its shared quota. For a
// key that was never rotated, and for the first key of a rotation, both are the same row.
var keyColumns = columnsOf[ownKey]().of("k") + ", " + columnsOf[sharedQuota]().of("q")

const (
	// keyTables joins each key with the key that has its quota. liveKey is the condition that a key
	// may be used; its parameter is the time.
	keyTables = " FROM keys k JOIN keys q ON q.id = COALESCE(k.quota_id, k.id)"
	liveKey   = "k.deleted_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?)"
)

// readKeys reads the keys that meet the conditions, without a lock. The conditions may name the
// tables k and q.
func readKeys(db *gorm.DB, conditions string, args ...any) (rows []keyRow, err error) {
	err = read(db, &rows, "SELECT "+keyColumns+keyTables+" WHERE "+conditions, args...)
	return rows, err
}

// keyOf returns the domain type, with the shared quota and what is used of the caps in the present
// periods. Returns KindInternal if one of the lists cannot be read: a key whose limits are unknown
// must not be used.
func (s *Store) keyOf(r keyRow) (mediagate.Key, error) {
	k := mediagate.Key{
		ID:          r.ID,
		AccountID:   r.AccountID,
		Name:        r.Name,
		Prefix:      r.Prefix,
		LastFour:    r.LastFour,
		Group:       r.GroupName,
		Unlimited:   r.Unlimited,
		Quota:       r.Quota,
		Held:        r.Held,
		Spent:       r.Spent,
		ExpiresAt:   r.ExpiresAt.Time,
		CreatedAt:   r.CreatedAt.Time,
		LastUsedAt:  r.LastUsedAt.Time,
		Caps:        mediagate.Caps{Day: r.CapDay, Week: r.CapWeek, Month: r.CapMonth},
		CapsUsed:    r.capsUsed(s.clock()),
		Rate:        r.Rate,
		InFlight:    r.InFlightCap,
		Strict:      r.Strict,
		QuotaID:     r.quotaID(),
		SuccessorID: deref(r.SuccessorID),
	}
	return k, errors.Join(
		fromJSON("keys.models", r.Models, &k.Models),
		fromJSON("keys.allow_ips", r.AllowIPs, &k.AllowIPs),
		fromJSON("keys.scopes", r.Scopes, &k.Scopes),
	)
}

// quotaID returns the id of the key whose row has the shared quota. Every statement that moves
// money of the key, or counts its tasks, names this row.
func (r keyRow) quotaID() string {
	if r.QuotaID == nil {
		return r.ID
	}
	return *r.QuotaID
}

// set writes the settings of a key into its row. Amounts that are held, spent or used are no
// settings.
func (r *keyRow) set(k mediagate.Key) error {
	r.Name = k.Name
	r.GroupName = k.Group
	r.ExpiresAt = at(k.ExpiresAt)
	r.Strict = k.Strict
	r.Unlimited = k.Unlimited
	r.Quota = k.Quota
	r.Rate = k.Rate
	r.InFlightCap = k.InFlight
	r.CapDay = k.Caps.Day
	r.CapWeek = k.Caps.Week
	r.CapMonth = k.Caps.Month
	var errs [3]error
	r.Models, errs[0] = jsonText(append([]string{}, k.Models...)) // an empty list, not null
	r.AllowIPs, errs[1] = jsonText(append([]string{}, k.AllowIPs...))
	r.Scopes, errs[2] = jsonText(append([]mediagate.Scope{}, k.Scopes...))
	return errors.Join(errs[:]...)
}

// CreateKey stores a key under the hash of its secret, and sets its id and creation time. A key
// without scopes gets all scopes. Returns KindNotFound for an unknown account, KindConflict for
// a hash that is taken. The quota of the key is not taken from another key: operators create keys
// this way. A key creates other keys by GiveKey.
func (s *Store) CreateKey(ctx context.Context, k mediagate.Key, hash [32]byte) (created mediagate.Key, err error) {
	if len(k.Scopes) == 0 {
		k.Scopes = mediagate.Scopes()
	}
	secret := mediagate.KeySecret{Hash: hash, Prefix: k.Prefix, LastFour: k.LastFour}
	row, err := s.newKeyRow(k.AccountID, secret, k)
	if err != nil {
		return mediagate.Key{}, err
	}
	err = s.write(ctx, "create key", func(tx *gorm.DB) error { return s.addKey(ctx, tx, row) })
	if err != nil {
		return mediagate.Key{}, err
	}
	return s.keyOf(row)
}

// newKeyRow returns the row of a new key with these settings. It has its own quota (QuotaID is
// nil).
func (s *Store) newKeyRow(account string, secret mediagate.KeySecret, settings mediagate.Key) (row keyRow, err error) {
	row.ID = s.newID("key_")
	row.AccountID = account
	row.Hash, row.Prefix, row.LastFour = secret.Hash[:], secret.Prefix, secret.LastFour
	row.CreatedAt = at(s.clock())
	return row, row.set(settings)
}

// addKey inserts a key and writes the audit entry, in the caller's transaction.
func (s *Store) addKey(ctx context.Context, tx *gorm.DB, row keyRow) error {
	if err := insertKey(tx, row); err != nil {
		return err
	}
	return s.noteKey(ctx, tx, mediagate.AuditCreateKey, row, nil, row.facts())
}

// insertKey inserts the row of a key. The foreign key to accounts refuses an unknown account,
// and the unique index keys_hash a hash that is taken.
func insertKey(tx *gorm.DB, row keyRow) error {
	into := insert("keys", row, nil)
	_, err := exec(tx, into.text.String(), into.args...)
	switch {
	case isForeignKey(err):
		return notFound("account", row.AccountID)
	case isDuplicate(err):
		return conflict("the key exists")
	default:
		return err
	}
}

// noteKey writes a change of a key to the audit. before and after come from facts, and are nil
// where the key does not exist.
func (s *Store) noteKey(
	ctx context.Context, tx *gorm.DB, action mediagate.AuditAction, row keyRow, before, after any,
) error {
	return s.note(ctx, tx, deed{action: action, object: row.ID, account: row.AccountID, before: before, after: after})
}

// UpdateKey calls change with a locked key and stores the changed settings: the name, models,
// group, scopes, addresses, expiry, strict mode, quota, caps, rate and the limit of tasks in
// flight. The last four belong to the shared quota. change may be called more than once. If it
// returns an error, UpdateKey returns that error and changes nothing. Returns KindNotFound, and
// KindInvalid for a quota or a cap below the used amount.
//
// Holds lock the same row. So change sees the used amounts as they are, and a submit that waits
// for the lock is checked against the new limits.
func (s *Store) UpdateKey(
	ctx context.Context, id string, change func(k *mediagate.Key) error,
) (k mediagate.Key, err error) {
	err = s.write(ctx, "update key", func(tx *gorm.DB) error {
		rows, err := s.lockKeys(tx, id)
		if err != nil {
			return err
		}
		k, err = s.changeKey(ctx, tx, &rows[0], change)
		return err
	})
	return k, err
}

// changeKey changes the settings of a locked key, as UpdateKey says. row has the new settings
// afterwards, so the caller can compare it with a copy from before.
func (s *Store) changeKey(
	ctx context.Context, tx *gorm.DB, row *keyRow, change func(k *mediagate.Key) error,
) (k mediagate.Key, err error) {
	before := row.facts()
	if k, err = s.keyOf(*row); err != nil {
		return k, err
	}
	if err := change(&k); err != nil {
		return k, err
	}
	if err := row.set(k); err != nil {
		return k, err
	}
	// The table's constraint would refuse such a quota too, but without naming the field.
	if err := row.checkLimits(s.clock()); err != nil {
		return k, err
	}
	// The key's own settings go into its row, and the shared ones into the row of the quota. The
	// amounts that are held and used are in neither list.
	_, err = exec(tx, `UPDATE keys
		SET name = ?, group_name = ?, expires_at = ?, models = ?, allow_ips = ?, scopes = ?, strict = ?
		WHERE id = ?`,
		row.Name, row.GroupName, row.ExpiresAt, row.Models, row.AllowIPs, row.Scopes, row.Strict, row.ID)
	if err != nil {
		return k, err
	}
	_, err = exec(tx, `UPDATE keys
		SET unlimited = ?, quota = ?, rate = ?, in_flight_cap = ?, cap_day = ?, cap_week = ?, cap_month = ?
		WHERE id = ?`,
		row.Unlimited, row.Quota, row.Rate, row.InFlightCap, row.CapDay, row.CapWeek, row.CapMonth, row.quotaID())
	if err != nil {
		return k, err
	}
	if err := s.noteKey(ctx, tx, mediagate.AuditChangeKey, *row, before, row.facts()); err != nil {
		return k, err
	}
	return s.keyOf(*row)
}

// lockKeys locks keys that are not deleted and the rows of their shared quotas, all in the
// order of their ids, so that two calls cannot deadlock. Then it reads the keys. Keys of
// another account than the first key's count as unknown. Returns KindNotFound.
//
// The keys are read after the locks were taken, one by one in the order of the parameters: a
// key that was changed or deleted during the wait is read as it is now.
func (s *Store) lockKeys(tx *gorm.DB, ids ...string) ([]keyRow, error) {
	list, err := jsonText(ids)
	if err != nil {
		return nil, err
	}
	// The inner SELECT finds the rows: the keys, and the rows of their quotas. UNION leaves out
	// duplicates. The outer SELECT locks them in order, and its result is not read. The index that
	// serves all parts is the primary key.
	if _, err := exec(tx, `SELECT id FROM keys WHERE id IN (
			SELECT id FROM keys WHERE id IN `+s.inList()+`
			UNION SELECT quota_id FROM keys WHERE id IN `+s.inList()+` AND quota_id IS NOT NULL)
		ORDER BY id`+s.forUpdate("keys"), list, list); err != nil {
		return nil, err
	}
	locked := make([]keyRow, len(ids))
	for i, id := range ids {
		rows, err := readKeys(tx, "k.id = ? AND k.deleted_at IS NULL", id)
		if err != nil {
			return nil, err
		}
		// The account is compared here, so that a key can never act on a key of another account.
		if len(rows) == 0 || i > 0 && rows[0].AccountID != locked[0].AccountID {
			return nil, notFound("key", id)
		}
		locked[i] = rows[0]
	}
	return locked, nil
}

// RotateKey makes a successor of a key: a new key with the same settings, under the hash of its
// own secret. The old key expires after grace, or earlier if it would have expired earlier.
// Both share quota, caps, rates, and the held and spent amounts. Returns KindNotFound, and
// KindConflict for a key that has expired or was rotated before.
//
// Example: key_1 has a quota of 100.00 and has spent 40.00. It is rotated at 12:00 with a grace
// of a day. Until 12:00 of the next day key_1 and its successor key_2 both work, and together
// may spend 60.00. A rotation of key_2 makes key_3, whose quota is still in the row of key_1.
func (s *Store) RotateKey(
	ctx context.Context, id string, secret mediagate.KeySecret, grace time.Duration,
) (k mediagate.Key, err error) {
	err = s.write(ctx, "rotate key", func(tx *gorm.DB) error {
		rows, err := s.lockKeys(tx, id)
		if err != nil {
			return err
		}
		k, err = s.rotate(ctx, tx, rows[0], secret, grace)
		return err
	})
	return k, err
}

// rotate makes the successor of a locked key. A key can be rotated only once: after that its
// successor can be rotated, so the keys of a rotation form a chain with one newest key.
func (s *Store) rotate(
	ctx context.Context, tx *gorm.DB, old keyRow, secret mediagate.KeySecret, grace time.Duration,
) (k mediagate.Key, err error) {
	now, quotaID := s.clock(), old.quotaID()
	if old.SuccessorID != nil {
		return k, conflict("the key was rotated already, into %s", *old.SuccessorID)
	}
	if !old.ExpiresAt.IsZero() && !old.ExpiresAt.After(now) {
		return k, conflict("the key has expired: it can be rotated once expires_at is in the future")
	}
	// The successor takes over the settings with the expiry. Only the columns of the key itself are
	// copied: those of its sharedQuota stay zero in the new row, and the old row goes on counting.
	fresh := keyRow{ownKey: old.ownKey}
	fresh.ID = s.newID("key_")
	fresh.Hash, fresh.Prefix, fresh.LastFour = secret.Hash[:], secret.Prefix, secret.LastFour
	fresh.CreatedAt, fresh.LastUsedAt = at(now), stamp{}
	fresh.QuotaID = &quotaID
	if err := insertKey(tx, fresh); err != nil {
		return k, err
	}
	// The old key never lives longer than it would have without the rotation.
	ending := old
	ending.ExpiresAt, ending.SuccessorID = at(now.Add(grace)), &fresh.ID
	if !old.ExpiresAt.IsZero() && old.ExpiresAt.Before(ending.ExpiresAt.Time) {
		ending.ExpiresAt = old.ExpiresAt
	}
	_, err = exec(tx, "UPDATE keys SET expires_at = ?, successor_id = ? WHERE id = ?",
		ending.ExpiresAt, fresh.ID, old.ID)
	if err != nil {
		return k, err
	}
	// Browsers that are signed in with the old key must sign in again.
	if err := endSessions(tx, old.ID); err != nil {
		return k, err
	}
	if err := s.noteKey(ctx, tx, mediagate.AuditRotateKey, old, old.facts(), ending.facts()); err != nil {
		return k, err
	}
	// The result shows the quota that the new key shares.
	fresh.sharedQuota = old.sharedQuota
	return s.keyOf(fresh)
}

// Keys lists the keys of an account that are not deleted, or of all accounts if accountID is
// empty, newest first. after is the id of the last key of the page before, which may have been
// deleted meanwhile, or empty. Returns KindInvalid when after names no key of the list. The
// index keys_account serves the list of an account, and the primary key the list of all.
func (s *Store) Keys(
	ctx context.Context, accountID, after string, limit int,
) (keys []mediagate.Key, hasMore bool, err error) {
	list := (&statement{}).say("SELECT ", keyColumns, keyTables, " WHERE true")
	if accountID != "" {
		list.with(" AND k.account_id = ?", accountID)
	}
	rows, hasMore, err := newestAfter[keyRow](s.on(ctx), list, "k.id", "k.deleted_at IS NULL", after, limit)
	if err != nil {
		return nil, false, dbError(err, "list keys")
	}
	keys, err = convertAll(rows, s.keyOf)
	return keys, hasMore, err
}

// withSharedQuota returns the row with its shared quota, read again. The caller has read only
// the key's own row, for example to find out why a hold was refused.
func withSharedQuota(db *gorm.DB, row keyRow) (keyRow, error) {
	quota, err := one[sharedQuota](db, "SELECT "+columnsOf[sharedQuota]().text+" FROM keys WHERE id = ?", row.quotaID())
	if err != nil || quota == nil {
		return row, cmp.Or(err, notFound("key", row.quotaID()))
	}
	row.sharedQuota = *quota
	return row, nil
}

// Key reads a key. Returns KindNotFound, also for a deleted key. A key that has expired is
// returned: its owner may still prolong it.
func (s *Store) Key(ctx context.Context, id string) (mediagate.Key, error) {
	rows, err := readKeys(s.on(ctx), "k.id = ? AND k.deleted_at IS NULL", id)
	if err != nil || len(rows) == 0 {
		return mediagate.Key{}, cmp.Or(dbError(err, "read key"), notFound("key", id))
	}
	return s.keyOf(rows[0])
}

// KeyByHash reads the key with that hash and its account, in one statement since every request
// begins with it. Returns KindNotFound, also for a key that is deleted or has expired. The
// unique index keys_hash finds the key.
func (s *Store) KeyByHash(ctx context.Context, hash [32]byte) (k mediagate.Key, a mediagate.Account, err error) {
	var row keyRow
	var account accountRow
	// The columns of the key and of the account are scanned side by side, without a struct of both.
	into := append(columnsOf[keyRow]().into(&row), columnsOf[accountRow]().into(&account)...)
	query := "SELECT " + keyColumns + ", " + accountColumns + keyTables +
		" JOIN accounts a ON a.id = k.account_id WHERE k.hash = ? AND " + liveKey
	err = s.on(ctx).Raw(query, hash[:], at(s.clock())).Row().Scan(into...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return k, a, notFound("key", "")
	case err != nil:
		return k, a, dbError(err, "read key")
	}
	k, err = s.keyOf(row)
	return k, account.account(), err
}

// DeleteKey deletes a key. Its row stays, because the ledger refers to it. Returns
// KindNotFound.
//
// Other keys may have their quota in the row, which goes on counting for them. Open tasks of
// the key go on, and their ends find the row. Sessions of the key end at once.
func (s *Store) DeleteKey(ctx context.Context, id string) error {
	return s.write(ctx, "delete key", func(tx *gorm.DB) error {
		rows, err := s.lockKeys(tx, id)
		if err != nil {
			return err
		}
		if _, err := exec(tx, "UPDATE keys SET deleted_at = ? WHERE id = ?", at(s.clock()), id); err != nil {
			return err
		}
		if err := endSessions(tx, id); err != nil {
			return err
		}
		return s.noteKey(ctx, tx, mediagate.AuditDeleteKey, rows[0], rows[0].facts(), nil)
	})
}

// TouchKeys stores when keys were last used. Each key is a transaction of its own, so that no
// submit waits for more than one of these writes. Processes write their uses some seconds late
// and in any order. An earlier use matches no row, so last_used_at never goes back.
func (s *Store) TouchKeys(ctx context.Context, usedAt map[string]time.Time) error {
	for id, t := range usedAt {
		_, err := exec(s.on(ctx), `UPDATE keys SET last_used_at = ?
			WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)`, at(t), id, at(t))
		if err != nil {
			return dbError(err, "touch keys")
		}
	}
	return nil
}
