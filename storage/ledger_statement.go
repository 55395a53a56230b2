package storage

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// byBucket selects the changes of a balance by the entries of transfers t.
//
// Each entry changes one bucket. The caller appends the WHERE clause about t, and sumChanges adds
// up the three columns.
const byBucket = `SELECT
		CASE e.bucket WHEN 'available' THEN e.amount ELSE 0 END AS available,
		CASE e.bucket WHEN 'held' THEN e.amount ELSE 0 END AS held,
		CASE e.bucket WHEN 'spent' THEN e.amount ELSE 0 END AS spent
	FROM ledger_transfers t JOIN ledger_entries e ON e.transfer_id = t.id`

// lineRow is a line of a statement.
//
// The columns are those of transferRow, the model, and the changes of available, held and spent,
// in this order (see lines).
type lineRow struct {
	transferRow
	// About is not named Model, because transferRow has a Model: the column of the transfer itself,
	// which a hold lacks.
	About string // the model
	mediagate.Balance
}

// line returns the line without its Total, which Statement fills in.
func (r lineRow) line() mediagate.StatementLine {
	return mediagate.StatementLine{Transfer: r.transfer(), Model: r.About, Change: r.Balance}
}

// lineModel is the expression of a transfer's model: from the end of its hold, else from the open
// task or speech.
//
// The transfer that ends a hold keeps the model even after its task was removed. Only an open hold
// needs the row of its task or speech.
const lineModel = `CASE l.kind WHEN 'grant' THEN '' ELSE COALESCE(
	(SELECT o.model FROM ledger_transfers o WHERE o.task_id = l.task_id AND o.kind IN ('post', 'void')),
	(SELECT t.model FROM tasks t WHERE t.id = l.task_id),
	(SELECT s.model FROM speeches s WHERE s.id = l.task_id), '') END`

// Statement lists the transfers of an account in a span of time, oldest first, with the opening and
// the closing balance. Returns KindNotFound for an unknown account, and KindInvalid when After names
// no transfer of the account, or one before the span.
//
// The opening balance is the present balance minus the changes since the time of the opening. The
// changes are read as few sums, however old the account is.
//
// Example: the account has 70 available now. Since the opening on 1 March, 30 were spent and 50
// were granted. So 50 were available at the opening.
func (s *Store) Statement(ctx context.Context, f mediagate.StatementFilter) (st mediagate.Statement, err error) {
	// The present balance and the changes must be of the same moment, so all reads share one
	// snapshot.
	snapshot := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	err = s.on(ctx).Transaction(func(tx *gorm.DB) error {
		st = mediagate.Statement{}
		account, err := readAccount(tx, f.AccountID)
		if err != nil {
			return err
		}
		began := mediagate.Balance{}
		from, to := bounds(f.From, f.To)
		if f.After != "" {
			last, err := readTransfer(tx, "l.id = ? AND l.account_id = ?", f.After, f.AccountID)
			if err != nil {
				return err
			}
			// The transfer belongs to another account, or lies outside of the statement's span.
			if last == nil || last.At.Before(from) || !last.At.Before(to) {
				return mediagate.Invalid("after", "after must be an id of this statement")
			}
			from = last.At.Time
			// The changes by transfers of the same time, up to the last one.
			began, err = sumChanges(tx, byBucket+" WHERE t.account_id = ? AND t.at = ? AND t.id <= ?",
				last.AccountID, last.At, last.ID)
			if err != nil {
				return err
			}
		}
		// The changes are read from the ledger up to the next full hour, from the sums of hours up to
		// the next full day, and from the sums of days after that.
		hour := ceil(from, time.Hour)
		since, err := sumChanges(tx, changesSince, map[string]any{
			"account": f.AccountID, "from": at(from), "hour": at(hour), "day": at(ceil(hour, day)),
		})
		if err != nil {
			return err
		}
		// since includes the transfers at the time from itself. On a further page, the transfers of that
		// time up to the last one are shown already: began adds them again.
		st.Opening = mediagate.Balance{
			Available: account.Available - since.Available + began.Available,
			Held:      account.Held - since.Held + began.Held,
			Spent:     account.Spent - since.Spent + began.Spent,
		}
		rows, err := s.lines(tx, f, from, to)
		if err != nil {
			return err
		}
		// Each line has the total after it, so the lines continue the opening balance in their order.
		rows, st.HasMore = page(rows, f.Limit)
		st.Lines, st.Closing = convert(rows, lineRow.line), st.Opening
		for i := range st.Lines {
			st.Closing = st.Closing.Plus(st.Lines[i].Change)
			st.Lines[i].Total = st.Closing.Total()
		}
		return nil
	}, snapshot)
	if err != nil {
		return mediagate.Statement{}, dbError(err, "read statement")
	}
	return st, nil
}

// lines reads the transfers of the statement.
//
// The index ledger_account_time serves the inner SELECT, which stops at the limit. The models and
// entries are looked up only for the rows that it returns.
func (s *Store) lines(tx *gorm.DB, f mediagate.StatementFilter, from, to time.Time) (rows []lineRow, err error) {
	// moved is the expression of a transfer's change of a bucket, by the primary key of the entries.
	moved := func(bucket string) string {
		return `, COALESCE((SELECT e.amount FROM ledger_entries e
			WHERE e.transfer_id = l.id AND e.bucket = '` + bucket + "'), 0)"
	}
	list := (&statement{}).say("SELECT ", transferColumns, ", ", lineModel,
		moved(bucketAvailable), moved(bucketHeld), moved(bucketSpent))
	list.with(" FROM (SELECT * FROM ledger_transfers WHERE account_id = ? AND at >= ? AND at < ?",
		f.AccountID, at(from), at(to))
	// Without the holds, each task has one line: its end.
	if f.ByTask {
		list.say(" AND kind <> 'hold'")
	}
	if f.After != "" {
		list.with(" AND (at, id) > (?, ?)", at(from), f.After)
	}
	list.with(" ORDER BY at, id LIMIT ?) AS l ORDER BY l.at, l.id", f.Limit+1)
	return rows, read(tx, &rows, list.text.String(), list.args...)
}

// changesSince selects the changes of an account's balance from a time on: from the ledger for the
// rest of that hour, and from the sums of usage for the hours and days after it. The sums count
// only holds that have ended, so open holds and grants are added. The named parameters are account,
// from, hour and day.
//
// A sum of usage says what was taken for holds in its span, what was released by their ends, and
// the cost. So available changes by released - cost - taken, held by taken - released, and spent
// by cost.
const changesSince = byBucket + ` WHERE t.account_id = @account AND t.at >= @from AND t.at < @hour
	UNION ALL SELECT released - cost - taken, taken - released, cost FROM usage_sums
		WHERE account_id = @account
			AND (span = 'hour' AND begins_at >= @hour AND begins_at < @day OR span = 'day' AND begins_at >= @day)
	UNION ALL SELECT -h.amount, h.amount, 0 FROM tasks t
		JOIN ledger_transfers h ON h.task_id = t.id AND h.kind = 'hold'
		WHERE t.account_id = @account AND t.status IN ('pending', 'processing') AND h.at >= @hour
	UNION ALL SELECT -h.amount, h.amount, 0 FROM speeches s
		JOIN ledger_transfers h ON h.task_id = s.id AND h.kind = 'hold'
		WHERE s.account_id = @account AND s.state = 'open' AND h.at >= @hour
	UNION ALL SELECT amount, 0, 0 FROM ledger_transfers WHERE account_id = @account AND kind = 'grant' AND at >= @hour`

// sumChanges adds up changes of a balance.
//
// The casts are needed because PostgreSQL sums bigint as numeric.
func sumChanges(tx *gorm.DB, changes string, args ...any) (mediagate.Balance, error) {
	sum, err := one[mediagate.Balance](tx, `SELECT CAST(COALESCE(SUM(available), 0) AS bigint),
			CAST(COALESCE(SUM(held), 0) AS bigint), CAST(COALESCE(SUM(spent), 0) AS bigint)
		FROM (`+changes+") AS changes", args...)
	if err != nil {
		return mediagate.Balance{}, err
	}
	return *sum, nil
}
