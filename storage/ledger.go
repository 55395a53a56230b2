package storage

import (
	"context"
	"math"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// The buckets between which money moves. All of one account's sum to zero.
const (
	bucketIssued    = "issued"
	bucketAvailable = "available"
	bucketHeld      = "held"
	bucketSpent     = "spent"
)

type transferRow struct {
	ID        string
	Kind      mediagate.EntryKind
	AccountID string
	KeyID     *string
	TaskID    *string
	Amount    mediagate.Micros
	Reference *string
	At        stamp
}

const transferColumns = "id, kind, account_id, key_id, task_id, amount, reference, at"

func (r transferRow) transfer() mediagate.Transfer {
	return mediagate.Transfer{
		ID: r.ID, Kind: r.Kind, AccountID: r.AccountID, KeyID: deref(r.KeyID), TaskID: deref(r.TaskID),
		Amount: r.Amount, Reference: deref(r.Reference), At: r.At.Time,
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// entry is one line of a transfer.
type entry struct {
	bucket string
	amount mediagate.Micros
}

// entries are the lines that belong to each kind of transfer. held is what
// the hold took; it counts for posts only.
func entries(kind mediagate.EntryKind, amount, held mediagate.Micros) []entry {
	switch kind {
	case mediagate.EntryGrant:
		return []entry{{bucketIssued, -amount}, {bucketAvailable, amount}}
	case mediagate.EntryHold:
		return []entry{{bucketAvailable, -amount}, {bucketHeld, amount}}
	case mediagate.EntryPost:
		return []entry{{bucketHeld, -held}, {bucketSpent, amount}, {bucketAvailable, held - amount}}
	case mediagate.EntryVoid:
		return []entry{{bucketHeld, -amount}, {bucketAvailable, amount}}
	default:
		return nil
	}
}

// record writes the transfer with its entries. It tells false when a unique
// rule refused it: the hold is there, is resolved, or the reference is taken.
func record(tx *gorm.DB, t mediagate.Transfer, held mediagate.Micros) (bool, error) {
	n, err := exec(tx, `INSERT INTO ledger_transfers (`+transferColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		t.ID, t.Kind, t.AccountID, nullable(t.KeyID), nullable(t.TaskID), t.Amount, nullable(t.Reference), at(t.At))
	if err != nil || n == 0 {
		return false, err
	}
	query, args := "INSERT INTO ledger_entries (transfer_id, bucket, account_id, key_id, amount) VALUES ", []any{}
	for i, e := range entries(t.Kind, t.Amount, held) {
		if i > 0 {
			query += ", "
		}
		query += "(?, ?, ?, ?, ?)"
		args = append(args, t.ID, e.bucket, t.AccountID, nullable(t.KeyID), e.amount)
	}
	_, err = exec(tx, query, args...)
	return err == nil, err
}

// maxAccount bounds what an account may ever hold, so that no sum overflows.
const maxAccount = math.MaxInt64 / 4

// Grant gives an account money, or takes some back when amount is negative.
// The same reference with the same amount changes nothing and returns the
// first grant. Returns KindInvalid for zero, KindNotFound for an unknown
// account, KindConflict when the reference was used with another amount or
// less than nothing would remain available.
func (s *Store) Grant(ctx context.Context, accountID string, amount mediagate.Micros, reference string) (
	g mediagate.Transfer, available mediagate.Micros, created bool, err error,
) {
	if amount == 0 {
		return g, 0, false, mediagate.Invalid("amount", "amount must not be zero")
	}
	err = s.write(ctx, "grant", func(tx *gorm.DB) error {
		g = mediagate.Transfer{
			ID: s.newID("txn_"), Kind: mediagate.EntryGrant, AccountID: accountID,
			Amount: amount, Reference: reference, At: s.clock(),
		}
		created, err = record(tx, g, 0)
		if err != nil {
			return err
		}
		if !created {
			return s.granted(tx, &g, &available)
		}
		row, err := one[accountRow](tx, `UPDATE accounts SET available = available + ?
			WHERE id = ? AND available >= ? AND available + held + spent <= ? RETURNING `+accountColumns,
			amount, accountID, -min(amount, 0), maxAccount-max(amount, 0))
		if err != nil {
			return err
		}
		if row != nil {
			available = row.Available
			return nil
		}
		row, err = one[accountRow](tx, "SELECT "+accountColumns+" FROM accounts WHERE id = ?", accountID)
		if err != nil {
			return err
		}
		if row == nil {
			return notFound("account", accountID)
		}
		if amount > 0 {
			return conflict("the account would hold more than it can")
		}
		return conflict("only %s is available", row.Available)
	})
	if err != nil {
		return mediagate.Transfer{}, 0, false, err
	}
	return g, available, created, nil
}

// granted reads the first grant of the reference in *g.
func (s *Store) granted(tx *gorm.DB, g *mediagate.Transfer, available *mediagate.Micros) error {
	first, err := one[transferRow](tx, "SELECT "+transferColumns+` FROM ledger_transfers
		WHERE account_id = ? AND reference = ? AND kind = 'grant'`, g.AccountID, g.Reference)
	if err != nil {
		return err
	}
	if first == nil || first.Amount != g.Amount {
		return conflict("the reference was used with another amount")
	}
	row, err := one[accountRow](tx, "SELECT "+accountColumns+" FROM accounts WHERE id = ?", g.AccountID)
	if err != nil {
		return err
	}
	if row == nil {
		return notFound("account", g.AccountID)
	}
	*g, *available = first.transfer(), row.Available
	return nil
}

// Ledger lists an account's transfers, newest first, those older than the
// transfer after; of one task only when taskID is given.
func (s *Store) Ledger(ctx context.Context, accountID, taskID, after string, limit int) (transfers []mediagate.Transfer, hasMore bool, err error) {
	var rows []transferRow
	err = read(s.on(ctx), &rows, "SELECT "+transferColumns+` FROM ledger_transfers
		WHERE account_id = ? AND (? = '' OR task_id = ?) AND (? = '' OR id < ?) ORDER BY id DESC LIMIT ?`,
		accountID, taskID, taskID, after, after, limit+1)
	if err != nil {
		return nil, false, dbError(err, "list ledger")
	}
	rows, hasMore = page(rows, limit)
	return convert(rows, transferRow.transfer), hasMore, nil
}

// resolve ends a task's hold: a post of the cost, or a void. The hot account
// row is written last.
func (s *Store) resolve(tx *gorm.DB, t lockedTask, kind mediagate.EntryKind, cost mediagate.Micros) error {
	transfer := mediagate.Transfer{
		ID: s.newID("txn_"), Kind: kind, AccountID: t.AccountID, KeyID: t.KeyID, TaskID: t.ID, Amount: t.Hold, At: s.clock(),
	}
	if kind == mediagate.EntryPost {
		transfer.Amount = cost
	}
	recorded, err := record(tx, transfer, t.Hold)
	if err != nil {
		return err
	}
	if !recorded {
		return mediagate.Errorf(mediagate.KindInternal, "the hold of %s is resolved already", t.ID)
	}
	if _, err := exec(tx, "UPDATE keys SET held = held - ?, spent = spent + ? WHERE id = ?", t.Hold, cost, t.KeyID); err != nil {
		return err
	}
	_, err = exec(tx, "UPDATE accounts SET available = available + ?, held = held - ?, spent = spent + ? WHERE id = ?",
		t.Hold-cost, t.Hold, cost, t.AccountID)
	return err
}
