package storage

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// maxProblems bounds the report of one invariant.
const maxProblems = 100

// invariant is one rule of the ledger: a query for what breaks it. Each row
// names a thing, what was found and what should be; text renders it.
type invariant struct {
	query string
	text  string // verbs for id, found, expected
}

// The ledger's invariants. Amounts in problems are in the currency.
var invariants = [...]invariant{
	{
		`SELECT transfer_id AS id, SUM(amount) AS found, 0 AS expected FROM ledger_entries GROUP BY transfer_id HAVING SUM(amount) <> 0`,
		"transfer %s: its entries sum to %s, not %s",
	},
	{
		// The entry that names what changed hands must be there and agree.
		`SELECT t.id, COALESCE(e.amount, 0) AS found, t.amount AS expected FROM ledger_transfers t
		LEFT JOIN ledger_entries e ON e.transfer_id = t.id AND e.bucket =
			CASE t.kind WHEN 'grant' THEN 'available' WHEN 'hold' THEN 'held' WHEN 'post' THEN 'spent' ELSE 'available' END
		WHERE e.amount IS NULL OR e.amount <> t.amount`,
		"transfer %s: its entry says %s, the transfer %s",
	},
	{
		`SELECT t.id, e.amount AS found, t.amount AS expected FROM ledger_entries e JOIN ledger_transfers t ON t.id = e.transfer_id
		WHERE e.account_id <> t.account_id OR COALESCE(e.key_id, '') <> COALESCE(t.key_id, '')`,
		"transfer %s: an entry of %s belongs to another account or key (transfer of %s)",
	},
	{cachedAccount("available"), "account %s: available is %s, its entries sum to %s"},
	{cachedAccount("held"), "account %s: held is %s, its entries sum to %s"},
	{cachedAccount("spent"), "account %s: spent is %s, its entries sum to %s"},
	{cachedKey("held"), "key %s: held is %s, its entries sum to %s"},
	{cachedKey("spent"), "key %s: spent is %s, its entries sum to %s"},
	{`SELECT id, available AS found, 0 AS expected FROM accounts WHERE available < 0`, "account %s: available is %s, below %s"},
	{
		`SELECT id, held + spent AS found, quota AS expected FROM keys WHERE NOT unlimited AND held + spent > quota`,
		"key %s: held and spent are %s, above its quota of %s",
	},
	{
		`SELECT a.id, a.available + a.held + a.spent AS found, COALESCE(g.amount, 0) AS expected FROM accounts a
		LEFT JOIN (SELECT account_id, SUM(amount) AS amount FROM ledger_transfers WHERE kind = 'grant' GROUP BY account_id) g ON g.account_id = a.id
		WHERE a.available + a.held + a.spent <> COALESCE(g.amount, 0)`,
		"account %s: available, held and spent are %s, but %s was granted",
	},
	{keySum("held"), "account %s: held is %s, its keys' sum to %s"},
	{keySum("spent"), "account %s: spent is %s, its keys' sum to %s"},
	{
		`SELECT DISTINCT e.account_id AS id, 0 AS found, 0 AS expected FROM ledger_entries e
		WHERE NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = e.account_id)`,
		"account %s has entries but is gone (%s, %s)",
	},
	{
		`SELECT t.id, COALESCE(h.amount, 0) AS found, t.hold AS expected FROM tasks t
		LEFT JOIN ledger_transfers h ON h.task_id = t.id AND h.kind = 'hold' WHERE h.id IS NULL OR h.amount <> t.hold`,
		"task %s: %s is held for it in the ledger, %s by its row",
	},
	{
		`SELECT t.id, COUNT(r.id) * 1000000 AS found, 1000000 AS expected FROM tasks t
		LEFT JOIN ledger_transfers r ON r.task_id = t.id AND r.kind IN ('post', 'void')
		WHERE t.status IN ('completed', 'failed', 'cancelled') GROUP BY t.id HAVING COUNT(r.id) <> 1`,
		"task %s has ended with %s posts or voids, not %s",
	},
	{
		`SELECT t.id, r.amount AS found, t.hold AS expected FROM tasks t
		JOIN ledger_transfers r ON r.task_id = t.id AND r.kind IN ('post', 'void') WHERE t.status IN ('pending', 'processing')`,
		"task %s has not ended, but %s of its hold of %s is resolved",
	},
	{
		`SELECT h.task_id AS id, h.amount AS found, 0 AS expected FROM ledger_transfers h
		WHERE h.kind = 'hold'
			AND NOT EXISTS (SELECT 1 FROM ledger_transfers r WHERE r.task_id = h.task_id AND r.kind IN ('post', 'void'))
			AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = h.task_id AND t.status IN ('pending', 'processing'))
			AND NOT EXISTS (SELECT 1 FROM speeches s WHERE s.id = h.task_id AND s.state = 'open')`,
		"task %s: %s is held for a task that is not alive (should be %s)",
	},
	{
		`SELECT t.id, r.amount AS found, 0 AS expected FROM tasks t JOIN ledger_transfers r ON r.task_id = t.id AND r.kind = 'post'
		WHERE t.status IN ('failed', 'cancelled')`,
		"task %s did not complete, but %s was charged, not %s",
	},
	{
		`SELECT t.id, COALESCE(r.amount, 0) AS found, t.cost AS expected FROM tasks t
		LEFT JOIN ledger_transfers r ON r.task_id = t.id AND r.kind = 'post'
		WHERE t.status = 'completed' AND (r.id IS NULL OR r.amount <> t.cost)`,
		"task %s: %s was charged in the ledger, %s by its row",
	},
	{
		`SELECT id, cost AS found, 0 AS expected FROM tasks WHERE status <> 'completed' AND cost <> 0`,
		"task %s did not complete, but costs %s, not %s",
	},
	{
		`SELECT r.task_id AS id, r.amount AS found, COALESCE(h.amount, 0) AS expected FROM ledger_transfers r
		LEFT JOIN ledger_transfers h ON h.task_id = r.task_id AND h.kind = 'hold'
		WHERE (r.kind = 'post' AND r.amount > COALESCE(h.amount, -1)) OR (r.kind = 'void' AND r.amount <> COALESCE(h.amount, -1))`,
		"task %s: %s was posted or voided of a hold of %s",
	},
	{
		`SELECT s.id, COALESCE(h.amount, 0) AS found, s.hold AS expected FROM speeches s
		LEFT JOIN ledger_transfers h ON h.task_id = s.id AND h.kind = 'hold' WHERE h.id IS NULL OR h.amount <> s.hold`,
		"speech %s: %s is held for it in the ledger, %s by its row",
	},
	{
		`SELECT s.id, COUNT(r.id) * 1000000 AS found, CASE s.state WHEN 'open' THEN 0 ELSE 1000000 END AS expected FROM speeches s
		LEFT JOIN ledger_transfers r ON r.task_id = s.id AND r.kind IN ('post', 'void')
		GROUP BY s.id, s.state HAVING COUNT(r.id) <> CASE s.state WHEN 'open' THEN 0 ELSE 1 END`,
		"speech %s has %s posts or voids, by its state %s",
	},
	{
		`SELECT s.id, COALESCE(r.amount, 0) AS found, s.cost AS expected FROM speeches s
		LEFT JOIN ledger_transfers r ON r.task_id = s.id AND r.kind = 'post' WHERE COALESCE(r.amount, 0) <> s.cost`,
		"speech %s: %s was charged in the ledger, %s by its row",
	},
	keyPeriod(periods[0]), keyPeriod(periods[1]), keyPeriod(periods[2]),
	keysInFlight.limited(), keysInFlight.negative(),
	accountsInFlight.limited(), accountsInFlight.negative(),
}

// cachedAccount compares an account's cached balance with its entries.
func cachedAccount(bucket string) string {
	return `SELECT a.id, a.` + bucket + ` AS found, COALESCE(e.amount, 0) AS expected FROM accounts a
		LEFT JOIN (SELECT account_id, SUM(amount) AS amount FROM ledger_entries WHERE bucket = '` + bucket + `' GROUP BY account_id) e
			ON e.account_id = a.id
		WHERE a.` + bucket + ` <> COALESCE(e.amount, 0)`
}

// cachedKey compares what stands in a purse with the entries of all its keys. A
// key that has another's purse has nothing in its own row.
func cachedKey(bucket string) string {
	return `SELECT k.id, k.` + bucket + ` AS found, COALESCE(e.amount, 0) AS expected FROM keys k
		LEFT JOIN (SELECT COALESCE(o.purse_id, o.id) AS purse, SUM(l.amount) AS amount FROM ledger_entries l JOIN keys o ON o.id = l.key_id
			WHERE l.bucket = '` + bucket + `' GROUP BY COALESCE(o.purse_id, o.id)) e ON e.purse = k.id
		WHERE k.` + bucket + ` <> COALESCE(e.amount, 0)`
}

// keyPeriod compares what counts of a key's cap with the holds that were counted
// to the period: what is held, and of those that have ended what was charged. An
// end that names no day gave nothing back.
func keyPeriod(p period) invariant {
	return invariant{
		`SELECT k.id, k.` + p.name + `_used AS found, COALESCE(c.amount, 0) AS expected FROM keys k
		LEFT JOIN (SELECT p.id AS purse, SUM(CASE WHEN r.counted_day IS NULL THEN h.amount WHEN r.kind = 'post' THEN r.amount ELSE 0 END) AS amount
			FROM ledger_transfers h JOIN keys o ON o.id = h.key_id JOIN keys p ON p.id = COALESCE(o.purse_id, o.id)
			LEFT JOIN ledger_transfers r ON r.task_id = h.task_id AND r.kind IN ('post', 'void')
			WHERE h.kind = 'hold' AND h.counted_day >= p.` + p.name + `_start GROUP BY p.id) c ON c.purse = k.id
		WHERE k.` + p.name + `_used <> COALESCE(c.amount, 0)`,
		"key %s: %s counts for its cap of the " + p.name + ", its holds come to %s",
	}
}

// limited compares what a row has counted with its tasks in flight, where there
// is a limit: without one nobody goes by it.
func (f inFlight) limited() invariant {
	return invariant{
		`SELECT id, in_flight * 1000000 AS found, tasks * 1000000 AS expected FROM (
			SELECT id, in_flight, (` + f.tasks + `) AS tasks FROM ` + f.table + ` WHERE in_flight_cap IS NOT NULL) AS counted
		WHERE in_flight <> tasks`,
		f.what + " %s has counted %s tasks in flight, there are %s",
	}
}

func (f inFlight) negative() invariant {
	return invariant{
		`SELECT id, in_flight * 1000000 AS found, 0 AS expected FROM ` + f.table + ` WHERE in_flight < 0`,
		f.what + " %s has counted %s tasks in flight, below %s",
	}
}

// keySum compares an account with its keys, a rotated pair once, deleted ones too.
func keySum(bucket string) string {
	return `SELECT a.id, a.` + bucket + ` AS found, COALESCE(k.amount, 0) AS expected FROM accounts a
		LEFT JOIN (SELECT account_id, SUM(` + bucket + `) AS amount FROM keys GROUP BY account_id) k ON k.account_id = a.id
		WHERE a.` + bucket + ` <> COALESCE(k.amount, 0)`
}

type problemRow struct {
	ID       string
	Found    mediagate.Micros
	Expected mediagate.Micros
}

// CheckLedger proves the ledger's invariants on one snapshot of the database,
// while it is in use. Each problem is a line for people.
func (s *Store) CheckLedger(ctx context.Context) (mediagate.LedgerReport, error) {
	report := mediagate.LedgerReport{OK: true, Problems: []string{}}
	snapshot := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	err := s.on(ctx).Transaction(func(tx *gorm.DB) error {
		count, err := one[struct{ N int }](tx, `SELECT (SELECT COUNT(*) FROM accounts) + (SELECT COUNT(*) FROM keys) + (SELECT COUNT(*) FROM tasks) + (SELECT COUNT(*) FROM speeches) AS n`)
		if err != nil {
			return err
		}
		report.Checked = count.N
		for _, rule := range append(invariants[:], s.usageInvariant()) {
			var rows []problemRow
			if err := read(tx, &rows, "SELECT id, CAST(found AS bigint) AS found, CAST(expected AS bigint) AS expected FROM ("+rule.query+") AS broken ORDER BY id LIMIT ?",
				maxProblems); err != nil {
				return err
			}
			for _, row := range rows {
				report.OK = false
				report.Problems = append(report.Problems, fmt.Sprintf(rule.text, row.ID, row.Found.Number(), row.Expected.Number()))
			}
		}
		return nil
	}, snapshot)
	if err != nil {
		return mediagate.LedgerReport{}, dbError(err, "check ledger")
	}
	return report, nil
}
