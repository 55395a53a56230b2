package storage

import (
	"context"
	"database/sql"
	"time"

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
	Webhook     string
}

// TableName tells GORM.
func (accountRow) TableName() string { return "accounts" }

func (r accountRow) account() mediagate.Account {
	return mediagate.Account{
		ID: r.ID, Name: r.Name, Group: r.GroupName,
		Available: r.Available, Held: r.Held, Spent: r.Spent, CreatedAt: r.CreatedAt.Time,
		EraseInputs: r.EraseInputs, Webhook: r.Webhook, AccountLimits: r.limits(),
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
	r.Name, r.GroupName, r.EraseInputs, r.Webhook = a.Name, a.Group, a.EraseInputs, a.Webhook
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
// group, limits, webhook, and whether its inputs are erased. change may be
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
		settings := []string{"name", "group_name", "rate", "in_flight_cap", "unpaid_cap", "uploads_cap", "erase_inputs", "webhook"}
		if err := tx.Model(&accountRow{}).Where("id = ?", id).Select(settings).Updates(row).Error; err != nil {
			return err
		}
		return s.note(ctx, tx, deed{action: mediagate.AuditChangeAccount, object: id, account: id, before: before, after: row.facts()})
	})
	return a, err
}

// balanceRow is by how much a balance changed.
type balanceRow struct {
	Available mediagate.Micros
	Held      mediagate.Micros
	Spent     mediagate.Micros
}

// byBucket adds up the entries of transfers.
const byBucket = `CASE e.bucket WHEN 'available' THEN e.amount ELSE 0 END AS available,
	CASE e.bucket WHEN 'held' THEN e.amount ELSE 0 END AS held, CASE e.bucket WHEN 'spent' THEN e.amount ELSE 0 END AS spent`

// lineRow is a line of a statement as it is read.
type lineRow struct {
	transferRow
	Model     string
	Available mediagate.Micros
	Held      mediagate.Micros
	Spent     mediagate.Micros
}

func (r lineRow) line() mediagate.StatementLine {
	return mediagate.StatementLine{Transfer: r.transfer(), Model: r.Model, Change: mediagate.Balance{Available: r.Available, Held: r.Held, Spent: r.Spent}}
}

// lineModel is the model that a transfer l was about: of the end of its hold, or
// of what is not over yet.
const lineModel = `CASE l.kind WHEN 'grant' THEN '' ELSE COALESCE(
	(SELECT o.model FROM ledger_transfers o WHERE o.task_id = l.task_id AND o.kind IN ('post', 'void')),
	(SELECT t.model FROM tasks t WHERE t.id = l.task_id), (SELECT s.model FROM speeches s WHERE s.id = l.task_id), '') END`

// Statement tells what moved an account's balance, oldest first, from a balance
// to a balance. Returns KindNotFound for an unknown account, and KindInvalid when
// After is no transfer of its.
//
// A balance of the past is what the account has now, less what came since: few
// sums, however long the account is there.
func (s *Store) Statement(ctx context.Context, f mediagate.StatementFilter) (st mediagate.Statement, err error) {
	snapshot := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	err = s.on(ctx).Transaction(func(tx *gorm.DB) error {
		st = mediagate.Statement{}
		account, err := readAccount(tx, f.AccountID)
		if err != nil {
			return err
		}
		began := balanceRow{}
		from, to := bounds(f.From, f.To)
		if f.After != "" {
			last, err := take[transferRow](tx.Where("id = ? AND account_id = ?", f.After, f.AccountID))
			if err != nil {
				return err
			}
			if last == nil || last.At.Before(from) {
				return mediagate.Invalid("after", "after must be an id of this statement")
			}
			from = last.At.Time
			if began, err = s.until(tx, *last); err != nil {
				return err
			}
		}
		since, err := s.since(tx, f.AccountID, from)
		if err != nil {
			return err
		}
		st.Opening = mediagate.Balance{
			Available: account.Available - since.Available + began.Available,
			Held:      account.Held - since.Held + began.Held,
			Spent:     account.Spent - since.Spent + began.Spent,
		}
		rows, err := s.lines(tx, f, from, to)
		if err != nil {
			return err
		}
		rows, st.HasMore = page(rows, f.Limit)
		st.Lines, st.Closing = convert(rows, lineRow.line), st.Opening
		for _, line := range st.Lines {
			st.Closing = st.Closing.Plus(line.Change)
		}
		return nil
	}, snapshot)
	if err != nil {
		return mediagate.Statement{}, dbError(err, "read statement")
	}
	return st, nil
}

// lines are the transfers of the statement.
func (s *Store) lines(tx *gorm.DB, f mediagate.StatementFilter, from, to time.Time) (rows []lineRow, err error) {
	moved := func(bucket string) string {
		return "COALESCE((SELECT e.amount FROM ledger_entries e WHERE e.transfer_id = l.id AND e.bucket = '" + bucket + "'), 0)"
	}
	query := "SELECT " + columnsOf[transferRow]().of("l") + ", " + lineModel + ", " + moved("available") + ", " + moved("held") + ", " + moved("spent") + `
		FROM (SELECT * FROM ledger_transfers WHERE account_id = ? AND at >= ? AND at < ?`
	args := []any{f.AccountID, at(from), at(to)}
	if f.After != "" {
		query, args = query+" AND (at, id) > (?, ?)", append(args, at(from), f.After)
	}
	query += " ORDER BY at, id LIMIT ?) AS l ORDER BY l.at, l.id"
	return rows, read(tx, &rows, query, append(args, f.Limit+1)...)
}

// until is by how much the transfers at the time of the last one, up to it,
// changed the balance.
func (s *Store) until(tx *gorm.DB, last transferRow) (balanceRow, error) {
	return change(tx, "SELECT "+byBucket+` FROM ledger_transfers t JOIN ledger_entries e ON e.transfer_id = t.id
		WHERE t.account_id = ? AND t.at = ? AND t.id <= ?`, last.AccountID, last.At, last.ID)
}

// since is by how much the balance changed from a time on: by the ledger itself in
// what is left of that hour, and by the sums of the hours and days after it. Those
// know of holds that have ended; the others are looked up.
func (s *Store) since(tx *gorm.DB, accountID string, from time.Time) (balanceRow, error) {
	hour, day := at(ceil(from.UTC(), time.Hour)), at(ceil(ceil(from.UTC(), time.Hour), day))
	return change(tx, "SELECT "+byBucket+` FROM ledger_transfers t JOIN ledger_entries e ON e.transfer_id = t.id
			WHERE t.account_id = ? AND t.at >= ? AND t.at < ?
		UNION ALL SELECT released - cost - taken, taken - released, cost FROM usage_sums
			WHERE account_id = ? AND (span = 'hour' AND begins_at >= ? AND begins_at < ? OR span = 'day' AND begins_at >= ?)
		UNION ALL SELECT -h.amount, h.amount, 0 FROM tasks t JOIN ledger_transfers h ON h.task_id = t.id AND h.kind = 'hold'
			WHERE t.account_id = ? AND t.status IN ('pending', 'processing') AND h.at >= ?
		UNION ALL SELECT -h.amount, h.amount, 0 FROM speeches s JOIN ledger_transfers h ON h.task_id = s.id AND h.kind = 'hold'
			WHERE s.account_id = ? AND s.state = 'open' AND h.at >= ?
		UNION ALL SELECT amount, 0, 0 FROM ledger_transfers WHERE account_id = ? AND kind = 'grant' AND at >= ?`,
		accountID, at(from), hour,
		accountID, hour, day, day,
		accountID, hour,
		accountID, hour,
		accountID, hour)
}

// change sums changes.
func change(tx *gorm.DB, changes string, args ...any) (balanceRow, error) {
	row, err := one[balanceRow](tx, `SELECT CAST(COALESCE(SUM(available), 0) AS bigint), CAST(COALESCE(SUM(held), 0) AS bigint),
		CAST(COALESCE(SUM(spent), 0) AS bigint) FROM (`+changes+`) AS changes`, args...)
	if err != nil {
		return balanceRow{}, err
	}
	return *row, nil
}
