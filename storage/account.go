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

	Rate        *int
	InFlightCap *int
	InFlight    int
	EraseInputs bool
	UnpaidCap   *mediagate.Micros
	UploadsCap  *int64
}

// TableName tells GORM.
func (accountRow) TableName() string { return "accounts" }

func (r accountRow) account() mediagate.Account {
	return mediagate.Account{
		ID: r.ID, Name: r.Name, Group: r.GroupName,
		Available: r.Available, Held: r.Held, Spent: r.Spent, CreatedAt: r.CreatedAt.Time,
		EraseInputs: r.EraseInputs, AccountLimits: r.limits(),
	}
}

// limits are the account's own.
func (r accountRow) limits() mediagate.AccountLimits {
	return mediagate.AccountLimits{Rate: r.Rate, InFlight: r.InFlightCap, Unpaid: r.UnpaidCap, UploadsPerDay: r.UploadsCap}
}

// CreateAccount makes an account without money.
func (s *Store) CreateAccount(ctx context.Context, a mediagate.Account) (mediagate.Account, error) {
	row := accountRow{ID: s.newID("acc_"), CreatedAt: at(s.clock())}
	row.set(a)
	err := s.write(ctx, "create account", func(tx *gorm.DB) error {
		if err := tx.Create(&row).Error; err != nil {
			return err
		}
		return s.note(ctx, tx, deed{action: mediagate.AuditCreateAccount, object: row.ID, account: row.ID, after: row.facts()})
	})
	if err != nil {
		return mediagate.Account{}, err
	}
	return row.account(), nil
}

// set writes the settings of an account into its row.
func (r *accountRow) set(a mediagate.Account) {
	r.Name, r.GroupName, r.EraseInputs = a.Name, a.Group, a.EraseInputs
	r.Rate, r.InFlightCap, r.UnpaidCap, r.UploadsCap = a.Rate, a.InFlight, a.Unpaid, a.UploadsPerDay
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

// UpdateAccount lets change have its way with an account's settings: its name,
// group, limits, and whether its inputs are erased. change may be
// called again, and what it returns as error is returned and changes nothing.
// Returns KindNotFound.
func (s *Store) UpdateAccount(ctx context.Context, id string, change func(a *mediagate.Account) error) (a mediagate.Account, err error) {
	err = s.writeFor(ctx, id, "update account", func(tx *gorm.DB) error {
		row, err := one[accountRow](tx, "SELECT "+columnsOf[accountRow]().text+" FROM accounts WHERE id = ?"+s.forUpdate("accounts"), id)
		if err != nil {
			return err
		}
		if row == nil {
			return notFound("account", id)
		}
		a = row.account()
		if err := change(&a); err != nil {
			return err
		}
		before := row.facts()
		row.set(a)
		a = row.account()
		settings := []string{"name", "group_name", "rate", "in_flight_cap", "unpaid_cap", "uploads_cap", "erase_inputs"}
		if err := tx.Model(&accountRow{}).Where("id = ?", id).Select(settings).Updates(row).Error; err != nil {
			return err
		}
		return s.note(ctx, tx, deed{action: mediagate.AuditChangeAccount, object: id, account: id, before: before, after: row.facts()})
	})
	return a, err
}
