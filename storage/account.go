package storage

import (
	"context"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

type accountRow struct {
	ID        string
	Name      string
	GroupName string
	Available mediagate.Micros
	Held      mediagate.Micros
	Spent     mediagate.Micros
	CreatedAt stamp
}

const accountColumns = "id, name, group_name, available, held, spent, created_at"

func (r accountRow) account() mediagate.Account {
	return mediagate.Account{
		ID: r.ID, Name: r.Name, Group: r.GroupName,
		Available: r.Available, Held: r.Held, Spent: r.Spent, CreatedAt: r.CreatedAt.Time,
	}
}

// CreateAccount makes an account without money.
func (s *Store) CreateAccount(ctx context.Context, name, group string) (mediagate.Account, error) {
	row := accountRow{ID: s.newID("acc_"), Name: name, GroupName: group, CreatedAt: at(s.clock())}
	err := s.on(ctx).Exec("INSERT INTO accounts (id, name, group_name, created_at) VALUES (?, ?, ?, ?)",
		row.ID, row.Name, row.GroupName, row.CreatedAt).Error
	if err != nil {
		return mediagate.Account{}, dbError(err, "create account")
	}
	return row.account(), nil
}

// Account reads an account. Returns KindNotFound.
func (s *Store) Account(ctx context.Context, id string) (mediagate.Account, error) {
	row, err := one[accountRow](s.on(ctx), "SELECT "+accountColumns+" FROM accounts WHERE id = ?", id)
	if err != nil {
		return mediagate.Account{}, dbError(err, "read account")
	}
	if row == nil {
		return mediagate.Account{}, notFound("account", id)
	}
	return row.account(), nil
}

// Accounts lists accounts, newest first, those older than the account after.
// Returns KindInvalid when after names none.
func (s *Store) Accounts(ctx context.Context, after string, limit int) (accounts []mediagate.Account, hasMore bool, err error) {
	if after != "" {
		if _, err := s.Account(ctx, after); err != nil {
			return nil, false, unknownAfter(err)
		}
	}
	var rows []accountRow
	err = read(s.on(ctx), &rows, "SELECT "+accountColumns+" FROM accounts WHERE (? = '' OR id < ?) ORDER BY id DESC LIMIT ?",
		after, after, limit+1)
	if err != nil {
		return nil, false, dbError(err, "list accounts")
	}
	rows, hasMore = page(rows, limit)
	return convert(rows, accountRow.account), hasMore, nil
}

// unknownAfter is the error of a list whose cursor could not be read.
func unknownAfter(err error) error {
	if mediagate.Is(err, mediagate.KindNotFound) {
		return mediagate.Invalid("after", "after must be an id of this list")
	}
	return err
}

// Transfer reads an entry of the account's ledger. Returns KindNotFound.
func (s *Store) Transfer(ctx context.Context, accountID, id string) (mediagate.Transfer, error) {
	row, err := one[transferRow](s.on(ctx), "SELECT "+transferColumns+" FROM ledger_transfers WHERE id = ? AND account_id = ?", id, accountID)
	if err != nil {
		return mediagate.Transfer{}, dbError(err, "read ledger entry")
	}
	if row == nil {
		return mediagate.Transfer{}, notFound("ledger entry", id)
	}
	return row.transfer(), nil
}

// UpdateAccount changes what is not nil. Returns KindNotFound.
func (s *Store) UpdateAccount(ctx context.Context, id string, name, group *string) (mediagate.Account, error) {
	row, err := one[accountRow](s.on(ctx), `UPDATE accounts
		SET name = COALESCE(CAST(? AS text), name), group_name = COALESCE(CAST(? AS text), group_name)
		WHERE id = ? RETURNING `+accountColumns, name, group, id)
	if err != nil {
		return mediagate.Account{}, dbError(err, "update account")
	}
	if row == nil {
		return mediagate.Account{}, notFound("account", id)
	}
	return row.account(), nil
}

// one reads the first row, or nil when there is none.
func one[T any](db *gorm.DB, query string, args ...any) (*T, error) {
	rows := make([]T, 0, 1) // GORM makes room for twenty where there is none
	if err := read(db, &rows, query, args...); err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return &rows[0], nil
}

// read reads rows of structs. GORM's Scan would do so as well, but besides
// writes out each statement with its values, for a log that nobody keeps.
func read[T any](db *gorm.DB, rows *[]T, query string, args ...any) error {
	return db.Raw(query, args...).Find(rows).Error
}

// exec runs a statement and tells how many rows it changed.
func exec(db *gorm.DB, query string, args ...any) (int64, error) {
	result := db.Exec(query, args...)
	return result.RowsAffected, result.Error
}

// page cuts the one row that was read beyond the limit.
func page[T any](rows []T, limit int) (cut []T, hasMore bool) {
	if len(rows) > limit {
		return rows[:limit], true
	}
	return rows, false
}

func convert[R, T any](rows []R, f func(R) T) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = f(row)
	}
	return out
}
