package storage

import (
	"cmp"
	"context"
	"slices"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// accountRow is an account as it is read by accountColumns.
type accountRow struct {
	mediagate.Account
	CreatedAt stamp
}

// accountColumns are in the order of the fields of mediagate.Account.
const accountColumns = `a.id, a.name, a.group_name, a.available, a.held, a.spent,
	a.rate, a.in_flight_cap, a.unpaid_cap, a.uploads_cap, a.erase_inputs, a.webhook, a.created_at`

func (r accountRow) account() mediagate.Account {
	r.Account.CreatedAt = r.CreatedAt.Time
	return r.Account
}

// limits are the account's own.
func (r accountRow) limits() mediagate.AccountLimits { return r.AccountLimits }

// CreateAccount makes an account without money.
func (s *Store) CreateAccount(ctx context.Context, a mediagate.Account) (created mediagate.Account, err error) {
	id := s.newID("acc_")
	err = s.write(ctx, "create account", func(tx *gorm.DB) error {
		if _, err := exec(tx, `INSERT INTO accounts (id, name, group_name, rate, in_flight_cap, unpaid_cap, uploads_cap,
				erase_inputs, webhook, created_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			id, a.Name, a.Group, a.Rate, a.InFlight, a.Unpaid, a.UploadsPerDay,
			a.EraseInputs, a.Webhook, at(s.clock())); err != nil {
			return err
		}
		row, err := readAccount(tx, id)
		if err != nil {
			return err
		}
		created = row.account()
		return s.note(ctx, tx, deed{
			action: mediagate.AuditCreateAccount, object: id, account: id, after: row.facts(),
		})
	})
	return created, err
}

// Account reads an account. Returns KindNotFound.
func (s *Store) Account(ctx context.Context, id string) (mediagate.Account, error) {
	row, err := readAccount(s.on(ctx), id)
	return row.account(), dbError(err, "read account")
}

func readAccount(db *gorm.DB, id string) (accountRow, error) {
	row, err := one[accountRow](db, "SELECT "+accountColumns+" FROM accounts a WHERE a.id = ?", id)
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
	list := (&statement{}).say("SELECT ", accountColumns, " FROM accounts a WHERE true")
	rows, hasMore, err := newestAfter[accountRow](s.on(ctx), list, "a.id", "true", after, limit)
	return convert(rows, accountRow.account), hasMore, dbError(err, "list accounts")
}

// newestAfter reads a page of a list, newest first, those older than the row after. Rows that
// do not meet the condition are left out, but may be the one after which the page begins.
// Returns KindInvalid when the list has no such row.
func newestAfter[R any](
	db *gorm.DB, list *statement, id, condition, after string, limit int,
) (rows []R, hasMore bool, err error) {
	if after != "" {
		row, err := one[R](db, list.text.String()+" AND "+id+" = ?", append(slices.Clone(list.args), after)...)
		if err != nil || row == nil {
			return nil, false, cmp.Or(err, error(mediagate.Invalid("after", "after must be an id of this list")))
		}
		list.with(" AND "+id+" < ?", after)
	}
	list.with(" AND "+condition+" ORDER BY "+id+" DESC LIMIT ?", limit+1)
	err = read(db, &rows, list.text.String(), list.args...)
	rows, hasMore = page(rows, limit)
	return rows, hasMore, err
}

// UpdateAccount calls change with the settings of an account and stores what it makes of
// them: the name, group, limits, webhook, and whether inputs are erased. change may be
// called again; its error is returned, and changes nothing. Returns KindNotFound.
func (s *Store) UpdateAccount(
	ctx context.Context, id string, change func(a *mediagate.Account) error,
) (a mediagate.Account, err error) {
	err = s.writeFor(ctx, id, "update account", func(tx *gorm.DB) error {
		query := "SELECT " + accountColumns + " FROM accounts a WHERE a.id = ?" + s.forUpdate("a")
		row, err := one[accountRow](tx, query, id)
		if err != nil || row == nil {
			return cmp.Or(err, notFound("account", id))
		}
		before := row.facts()
		a = row.account()
		if err := change(&a); err != nil {
			return err
		}
		if _, err := exec(tx, `UPDATE accounts SET name = ?, group_name = ?, rate = ?, in_flight_cap = ?,
				unpaid_cap = ?, uploads_cap = ?, erase_inputs = ?, webhook = ?
			WHERE id = ?`,
			a.Name, a.Group, a.Rate, a.InFlight, a.Unpaid,
			a.UploadsPerDay, a.EraseInputs, a.Webhook, id); err != nil {
			return err
		}
		after, err := readAccount(tx, id)
		if err != nil {
			return err
		}
		a = after.account()
		return s.note(ctx, tx, deed{
			action: mediagate.AuditChangeAccount, object: id, account: id, before: before, after: after.facts(),
		})
	})
	return a, err
}
