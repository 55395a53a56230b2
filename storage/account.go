package storage

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// accountRow is an account, read by accountColumns. CreatedAt hides the field of
// mediagate.Account: a stamp can read the times of both databases, and account copies it into
// the domain type.
type accountRow struct {
	mediagate.Account
	CreatedAt stamp
}

// accountColumns are in the order of the fields of mediagate.Account. The column in_flight is
// not among them: it is a counter that holds and their ends write (see inFlight).
const accountColumns = `a.id, a.name, a.group_name, a.available, a.held, a.spent,
	a.rate, a.in_flight_cap, a.unpaid_cap, a.uploads_cap, a.erase_inputs, a.webhook, a.suspended, a.created_at`

// account returns the domain type, with its own limits only.
func (r accountRow) account() mediagate.Account {
	r.Account.CreatedAt = r.CreatedAt.Time
	return r.Account
}

// limits returns the account's own limits, without the installation's defaults. A nil limit
// means that the default counts: callers fill it in with AccountLimits.Or.
func (r accountRow) limits() mediagate.AccountLimits { return r.AccountLimits }

// CreateAccount stores a new account, which has no money yet: the columns of its balances begin
// at zero, and Grant gives it money. The row and its audit entry are stored in one transaction.
func (s *Store) CreateAccount(ctx context.Context, a mediagate.Account) (created mediagate.Account, err error) {
	// The id is made outside of the transaction, so that a second run of it makes no second id.
	id := s.newID("acc_")
	err = s.write(ctx, "create account", func(tx *gorm.DB) error {
		if _, err := exec(tx, `INSERT INTO accounts (id, name, group_name, rate, in_flight_cap, unpaid_cap, uploads_cap,
				erase_inputs, webhook, suspended, created_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			id, a.Name, a.Group, a.Rate, a.InFlight, a.Unpaid, a.UploadsPerDay,
			a.EraseInputs, a.Webhook, a.Suspended, at(s.clock())); err != nil {
			return err
		}
		// The row is read back, so that the result has the values as the columns hold them.
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

// readAccount reads an account without locking it. Returns KindNotFound.
func readAccount(db *gorm.DB, id string) (accountRow, error) {
	row, err := one[accountRow](db, "SELECT "+accountColumns+" FROM accounts a WHERE a.id = ?", id)
	if err != nil || row == nil {
		return accountRow{}, cmp.Or(err, notFound("account", id))
	}
	return *row, nil
}

// Accounts lists accounts, newest first. after is the id of the last account of the page
// before, or empty. A search selects the account with that id and accounts whose name contains
// the text. No index serves the search for a name: the statement reads accounts until the page
// is full. Returns KindInvalid when after names no account of the list.
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
//
// Ids begin with a prefix and the time at which they were made, so descending order of ids is
// newest first. The page begins below the id after, and not at an offset. So rows that were
// inserted since the page before shift nothing, and no row is shown twice.
//
// The list ends in a WHERE clause, to which newestAfter appends its own conditions. condition
// is for rows that may leave the list between two pages. Example: keys are listed without
// deleted keys. If the last key of a page is deleted before the next page is read, the key
// still marks where that page begins.
func newestAfter[R any](
	db *gorm.DB, list *statement, id, condition, after string, limit int,
) (rows []R, hasMore bool, err error) {
	if after != "" {
		row, err := one[R](db, list.text.String()+" AND "+id+" = ?", append(slices.Clone(list.args), after)...)
		if err != nil || row == nil {
			return nil, false, cmp.Or(err,
				error(mediagate.Invalid("after", "after must be the id of an entry in this list")))
		}
		list.with(" AND "+id+" < ?", after)
	}
	// One row more than the limit is read. The row shows that another page follows; page removes
	// it.
	list.with(" AND "+condition+" ORDER BY "+id+" DESC LIMIT ?", limit+1)
	err = read(db, &rows, list.text.String(), list.args...)
	rows, hasMore = page(rows, limit)
	return rows, hasMore, err
}

// accountNamed is the condition of a search for accounts. Its parameters are an id and a
// pattern of anywhere for the name. Upper and lower case count as equal in names, but not in
// ids.
const accountNamed = `(id = ? OR lower(name) LIKE lower(?) ESCAPE '\')`

// wildcards escapes the characters that LIKE would interpret.
var wildcards = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

// anywhere returns the LIKE pattern of texts that contain the text.
func anywhere(text string) string { return "%" + wildcards.Replace(text) + "%" }

// Names reads the names of accounts and keys by their ids. Deleted keys are included, since
// usage and the audit still show them. Unknown ids are left out of the map.
func (s *Store) Names(ctx context.Context, ids []string) (map[string]string, error) {
	names := make(map[string]string, len(ids))
	if len(ids) == 0 {
		return names, nil
	}
	list, err := jsonText(ids)
	if err != nil {
		return nil, err
	}
	// Both halves search for the same list. The prefixes of the ids differ (acc_, key_), so an id
	// is found by one half at most.
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
//
// The row is locked before change sees it. So of two operators who change the account at the
// same time, the second one sees the settings of the first. Since holds lock the same row, the
// call needs a permit of the account (writeFor). The balances are not among the written
// columns: only Grant, a hold and the end of a hold write them.
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
