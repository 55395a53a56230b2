package storage

import (
	"cmp"
	"context"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

type accountRow struct {
	ID          string
	Name        string
	GroupName   string
	Available   mediagate.Micros
	Held        mediagate.Micros
	Spent       mediagate.Micros
	CreatedAt   stamp
	Rate        *int
	InFlightCap *int
	InFlight    int
	EraseInputs bool
	UnpaidCap   *mediagate.Micros
	UploadsCap  *int64
	Webhook     string
}

// TableName tells GORM.
func (accountRow) TableName() string { return "accounts" }

func (r accountRow) account() mediagate.Account {
	return mediagate.Account{
		ID:            r.ID,
		Name:          r.Name,
		Group:         r.GroupName,
		Available:     r.Available,
		Held:          r.Held,
		Spent:         r.Spent,
		AccountLimits: r.limits(),
		EraseInputs:   r.EraseInputs,
		Webhook:       r.Webhook,
		CreatedAt:     r.CreatedAt.Time,
	}
}

// limits are the account's own.
func (r accountRow) limits() mediagate.AccountLimits {
	return mediagate.AccountLimits{Rate: r.Rate, InFlight: r.InFlightCap, Unpaid: r.UnpaidCap, UploadsPerDay: r.UploadsCap}
}

// set writes the settings of an account into its row.
func (r *accountRow) set(a mediagate.Account) {
	r.Name, r.GroupName, r.EraseInputs, r.Webhook = a.Name, a.Group, a.EraseInputs, a.Webhook
	r.Rate, r.InFlightCap, r.UnpaidCap, r.UploadsCap = a.Rate, a.InFlight, a.Unpaid, a.UploadsPerDay
}

// CreateAccount makes an account without money.
func (s *Store) CreateAccount(ctx context.Context, a mediagate.Account) (mediagate.Account, error) {
	row := accountRow{ID: s.newID("acc_"), CreatedAt: at(s.clock())}
	row.set(a)
	err := s.write(ctx, "create account", func(tx *gorm.DB) error {
		if err := tx.Create(&row).Error; err != nil {
			return err
		}
		return s.note(ctx, tx, deed{
			action: mediagate.AuditCreateAccount, object: row.ID, account: row.ID, after: row.facts(),
		})
	})
	if err != nil {
		return mediagate.Account{}, err
	}
	return row.account(), nil
}

// Account reads an account. Returns KindNotFound.
func (s *Store) Account(ctx context.Context, id string) (mediagate.Account, error) {
	row, err := readAccount(s.on(ctx), id)
	return row.account(), dbError(err, "read account")
}

func readAccount(db *gorm.DB, id string) (accountRow, error) {
	row, err := take[accountRow](db.Where("id = ?", id))
	if err != nil || row == nil {
		return accountRow{}, cmp.Or(err, notFound("account", id))
	}
	return *row, nil
}

// Accounts lists accounts, newest first, those older than the account after.
// Returns KindInvalid when after names none.
func (s *Store) Accounts(
	ctx context.Context, after string, limit int,
) (accounts []mediagate.Account, hasMore bool, err error) {
	rows, hasMore, err := newestAfter[accountRow](s.on(ctx), after, limit)
	if err != nil {
		return nil, false, dbError(err, "list accounts")
	}
	return convert(rows, accountRow.account), hasMore, nil
}

// errAfter says that a list has no row with the id after which its page begins.
var errAfter error = mediagate.Invalid("after", "after must be an id of this list")

// newestAfter reads a page of a list, newest first, those older than the row after. Returns
// errAfter when the list has no such row.
func newestAfter[R any](list *gorm.DB, after string, limit int) (rows []R, hasMore bool, err error) {
	list = list.Session(&gorm.Session{}) // for two statements
	if after != "" {
		row, err := take[R](list.Where("id = ?", after))
		if err != nil || row == nil {
			return nil, false, cmp.Or(err, errAfter)
		}
	}
	return newest[R](list, after, limit)
}

// UpdateAccount calls change with the settings of an account and stores what it makes of
// them: the name, group, limits, webhook, and whether inputs are erased. change may be
// called again; its error is returned, and changes nothing. Returns KindNotFound.
func (s *Store) UpdateAccount(
	ctx context.Context, id string, change func(a *mediagate.Account) error,
) (a mediagate.Account, err error) {
	err = s.writeFor(ctx, id, "update account", func(tx *gorm.DB) error {
		query := "SELECT " + columnsOf[accountRow]().text + " FROM accounts WHERE id = ?" + s.forUpdate("accounts")
		row, err := one[accountRow](tx, query, id)
		if err != nil || row == nil {
			return cmp.Or(err, notFound("account", id))
		}
		a = row.account()
		if err := change(&a); err != nil {
			return err
		}
		before := row.facts()
		row.set(a)
		a = row.account()
		settings := []string{
			"name", "group_name", "rate", "in_flight_cap", "unpaid_cap", "uploads_cap", "erase_inputs", "webhook",
		}
		if err := tx.Model(&accountRow{}).Where("id = ?", id).Select(settings).Updates(row).Error; err != nil {
			return err
		}
		return s.note(ctx, tx, deed{
			action: mediagate.AuditChangeAccount, object: id, account: id, before: before, after: row.facts(),
		})
	})
	return a, err
}
