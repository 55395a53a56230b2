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

// TableName tells GORM.
func (accountRow) TableName() string { return "accounts" }

func (r accountRow) account() mediagate.Account {
	return mediagate.Account{
		ID: r.ID, Name: r.Name, Group: r.GroupName,
		Available: r.Available, Held: r.Held, Spent: r.Spent, CreatedAt: r.CreatedAt.Time,
	}
}

// CreateAccount makes an account without money.
func (s *Store) CreateAccount(ctx context.Context, name, group string) (mediagate.Account, error) {
	row := accountRow{ID: s.newID("acc_"), Name: name, GroupName: group, CreatedAt: at(s.clock())}
	if err := s.on(ctx).Create(&row).Error; err != nil {
		return mediagate.Account{}, dbError(err, "create account")
	}
	return row.account(), nil
}

// Account reads an account. Returns KindNotFound.
func (s *Store) Account(ctx context.Context, id string) (mediagate.Account, error) {
	row, err := readAccount(s.on(ctx), id)
	if err != nil {
		return mediagate.Account{}, dbError(err, "read account")
	}
	return row.account(), nil
}

func readAccount(db *gorm.DB, id string) (accountRow, error) {
	row, err := take[accountRow](db.Where("id = ?", id))
	if err != nil {
		return accountRow{}, err
	}
	if row == nil {
		return accountRow{}, notFound("account", id)
	}
	return *row, nil
}

// Accounts lists accounts, newest first, those older than the account after.
// Returns KindInvalid when after names none.
func (s *Store) Accounts(ctx context.Context, after string, limit int) (accounts []mediagate.Account, hasMore bool, err error) {
	if after != "" {
		if _, err := s.Account(ctx, after); err != nil {
			return nil, false, unknownAfter(err)
		}
	}
	rows, hasMore, err := newest[accountRow](s.on(ctx), after, limit)
	if err != nil {
		return nil, false, dbError(err, "list accounts")
	}
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
	row, err := take[transferRow](s.on(ctx).Where("id = ? AND account_id = ?", id, accountID))
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
	var row accountRow
	var changed []string
	if name != nil {
		row.Name, changed = *name, append(changed, "name")
	}
	if group != nil {
		row.GroupName, changed = *group, append(changed, "group_name")
	}
	if len(changed) > 0 {
		if err := s.on(ctx).Model(&row).Where("id = ?", id).Select(changed).Updates(&row).Error; err != nil {
			return mediagate.Account{}, dbError(err, "update account")
		}
	}
	return s.Account(ctx, id)
}
