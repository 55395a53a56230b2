package storage

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// accountRow is an account, read by accountColumns.
type accountRow struct {
	mediagate.Account
	CreatedAt stamp
}

// accountColumns are in the order of the fields of mediagate.Account.
const accountColumns = `a.id, a.name, a.group_name, a.available, a.held, a.spent,
	a.rate, a.in_flight_cap, a.unpaid_cap, a.uploads_cap, a.erase_inputs, a.webhook, a.suspended, a.created_at`

func (r accountRow) account() mediagate.Account {
	r.Account.CreatedAt = r.CreatedAt.Time
	return r.Account
}

// limits returns the account's own limits, without the installation's defaults.
func (r accountRow) limits() mediagate.AccountLimits { return r.AccountLimits }

// CreateAccount stores a new account, which has no money yet.
func (s *Store) CreateAccount(ctx context.Context, a mediagate.Account) (created mediagate.Account, err error) {
	id := s.newID("acc_")
	err = s.write(ctx, "create account", func(tx *gorm.DB) error {
		if _, err := exec(tx, `INSERT INTO accounts (id, name, group_name, rate, in_flight_cap, unpaid_cap, uploads_cap,
				erase_inputs, webhook, suspended, created_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			id, a.Name, a.Group, a.Rate, a.InFlight, a.Unpaid, a.UploadsPerDay,
			a.EraseInputs, a.Webhook, a.Suspended, at(s.clock())); err != nil {
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

// Accounts lists accounts, newest first. after is the id of the last account of the page before,
// or empty. A search selects the account with that id and accounts whose name contains the text.
// Returns KindInvalid when after names no account of the list.
func (s *Store) Accounts(
	ctx context.Context, search, after string, limit int,
) (accounts []mediagate.Account, hasMore bool, err error) {
	list := (&statement{}).say("SELECT ", accountColumns, " FROM accounts a WHERE true")
	if search != "" {
		list.with(" AND "+accountNamed, search, anywhere(search))
	}
	rows, hasMore, err := newestAfter[accountRow](s.on(ctx), list, "a.id", "true", after, limit)
	return convert(rows, accountRow.account), hasMore, dbError(err, "list accounts")
}

// newestAfter reads a page of a list, newest first. after is the id of the last row of the page
// before, or empty. Rows that do not meet the condition are left out, but after may name one of
// them. Returns KindInvalid when after names no row of the list.
func newestAfter[R any](
	db *gorm.DB, list *statement, id, condition, after string, limit int,
) (rows []R, hasMore bool, err error) {
	if after != "" {
		row, err := one[R](db, list.text.String()+" AND "+id+" = ?", append(slices.Clone(list.args), after)...)
		if err != nil || row == nil {
			return nil, false, cmp.Or(err, error(mediagate.Invalid("after", "after must be the id of an entry in this list")))
		}
		list.with(" AND "+id+" < ?", after)
	}
	list.with(" AND "+condition+" ORDER BY "+id+" DESC LIMIT ?", limit+1)
	err = read(db, &rows, list.text.String(), list.args...)
	rows, hasMore = page(rows, limit)
	return rows, hasMore, err
}

// accountNamed is the condition of a search for accounts. Its parameters are an id and a
// pattern of anywhere for the name.
const accountNamed = `(id = ? OR lower(name) LIKE lower(?) ESCAPE '\')`

// wildcards escapes the characters that LIKE would interpret.
var wildcards = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

// anywhere returns the LIKE pattern of texts that contain the text.
func anywhere(text string) string { return "%" + wildcards.Replace(text) + "%" }

// Names reads the names of accounts and keys by their ids. Deleted keys are included.
func (s *Store) Names(ctx context.Context, ids []string) (map[string]string, error) {
	names := make(map[string]string, len(ids))
	if len(ids) == 0 {
		return names, nil
	}
	list, err := jsonText(ids)
	if err != nil {
		return nil, err
	}
	var rows []struct{ ID, Name string }
	if err := read(s.on(ctx), &rows, "SELECT id, name FROM accounts WHERE id IN "+s.inList()+
		" UNION ALL SELECT id, name FROM keys WHERE id IN "+s.inList(), list, list); err != nil {
		return nil, dbError(err, "read names")
	}
	for _, r := range rows {
		names[r.ID] = r.Name
	}
	return names, nil
}

// UpdateAccount calls change with an account and stores the changed settings: the name, group,
// limits, webhook, and whether inputs are erased and the account is suspended. change may be
// called more than once. If it returns an error, UpdateAccount returns that error and changes
// nothing. Returns KindNotFound.
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
				unpaid_cap = ?, uploads_cap = ?, erase_inputs = ?, webhook = ?, suspended = ?
			WHERE id = ?`,
			a.Name, a.Group, a.Rate, a.InFlight, a.Unpaid,
			a.UploadsPerDay, a.EraseInputs, a.Webhook, a.Suspended, id); err != nil {
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
