package storage

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// maxProblems bounds the report of one rule.
const maxProblems = 100

// CheckLedger proves all rules of the ledger on one snapshot, while it is in use. Each
// problem is a line for people.
func (s *Store) CheckLedger(ctx context.Context) (report mediagate.LedgerReport, err error) {
	err = s.on(ctx).Transaction(func(tx *gorm.DB) error {
		report = mediagate.LedgerReport{Problems: []string{}}
		counted, err := one[struct{ N int }](tx, `SELECT (SELECT COUNT(*) FROM tasks) + (SELECT COUNT(*) FROM speeches)
			+ (SELECT COUNT(*) FROM accounts) + (SELECT COUNT(*) FROM keys)`)
		if err != nil {
			return err
		}
		report.Checked = counted.N
		rules := append(slices.Clone(ledgerRules), s.usageRule())
		found, err := s.broken(tx, rules)
		if err != nil {
			return err
		}
		slices.SortStableFunc(found, func(a, b problemRow) int {
			return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Found, b.Found))
		})
		for _, row := range found {
			problem := fmt.Sprintf(rules[row.Rule].text, row.ID, row.Found.Number(), row.Expected.Number())
			report.Problems = append(report.Problems, problem)
		}
		report.OK = len(found) == 0
		return nil
	}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	return report, dbError(err, "check ledger")
}

// broken asks the rules. Those about accounts share the sums of their entries, so that
// the ledger is added up once.
func (s *Store) broken(tx *gorm.DB, rules []rule) (found []problemRow, err error) {
	var shared []string
	for i, r := range rules {
		query := fmt.Sprintf(`SELECT %d, id, CAST(found AS bigint), CAST(expected AS bigint)
			FROM (SELECT * FROM (%s) AS q ORDER BY id LIMIT %d) AS r`, i, r.query, maxProblems)
		if r.summed {
			shared = append(shared, query)
			continue
		}
		var rows []problemRow
		if err := read(tx, &rows, query); err != nil {
			return nil, err
		}
		found = append(found, rows...)
	}
	var rows []problemRow
	err = read(tx, &rows, "WITH "+s.sums()+" "+strings.Join(shared, " UNION ALL "))
	return append(found, rows...), err
}

// rule is one invariant of the ledger: a query for what breaks it. Each row has an id, what
// was found and what should be; text renders it.
type rule struct {
	query  string
	text   string // verbs for id, found, expected
	summed bool   // asks the tables of sums
}

// ledgerRules are those of the ledger, in the order of reports. Amounts in problems are in the
// currency. s.usageRule is the last one.
var ledgerRules = []rule{
	{
		query: `SELECT t.id, SUM(e.amount) AS found, 0 AS expected
			FROM ledger_transfers t JOIN ledger_entries e ON e.transfer_id = t.id
			GROUP BY t.id HAVING SUM(e.amount) <> 0`,
		text: "transfer %s: its entries sum to %s, not %s",
	},
	{
		// The entry that names what changed hands must be there and agree.
		query: `SELECT t.id, COALESCE(e.amount, 0) AS found, t.amount AS expected FROM ledger_transfers t
			LEFT JOIN ledger_entries e ON e.transfer_id = t.id AND e.bucket =
				CASE t.kind WHEN 'hold' THEN 'held' WHEN 'post' THEN 'spent' ELSE 'available' END
			WHERE e.amount IS NULL OR e.amount <> t.amount`,
		text: "transfer %s: its entry says %s, the transfer %s",
	},
	{
		query: `SELECT t.id, e.amount AS found, t.amount AS expected
			FROM ledger_transfers t JOIN ledger_entries e ON e.transfer_id = t.id
			WHERE e.account_id <> t.account_id OR COALESCE(e.key_id, '') <> COALESCE(t.key_id, '')`,
		text: "transfer %s: an entry of %s belongs to another account or key (transfer of %s)",
	},
	{
		query: `SELECT e.transfer_id AS id, e.amount AS found, 0 AS expected FROM ledger_entries e
			WHERE NOT EXISTS (SELECT 1 FROM ledger_transfers t WHERE t.id = e.transfer_id)`,
		text: "transfer %s has an entry of %s but is gone (%s)",
	},
	cachedAccount("available"), cachedAccount("held"), cachedAccount("spent"),
	cachedKey("held"), cachedKey("spent"),
	{
		summed: true,
		query:  "SELECT id, available AS found, 0 AS expected FROM accounts WHERE available < 0",
		text:   "account %s: available is %s, below %s",
	},
	{
		summed: true,
		query: `SELECT id, held + spent AS found, quota AS expected FROM their_keys
			WHERE NOT unlimited AND held + spent > quota`,
		text: "key %s: held and spent are %s, above its quota of %s",
	},
	{
		summed: true,
		query: differsFrom("accounts", "available + held + spent",
			"SELECT account_id AS whose, SUM(amount) AS amount FROM sums WHERE what = 'granted' GROUP BY account_id"),
		text: "account %s: available, held and spent are %s, but %s was granted",
	},
	keySum("held"), keySum("spent"),
	{
		summed: true,
		query: `SELECT DISTINCT s.account_id AS id, 0 AS found, 0 AS expected FROM sums s
			WHERE NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = s.account_id)`,
		text: "account %s has entries but is gone (%s, %s)",
	},
	{
		summed: true,
		query: differsFrom("accounts", "held",
			"SELECT account_id AS whose, SUM(hold) AS amount FROM open_holds GROUP BY account_id"),
		text: "account %s: held is %s, its open tasks and speeches hold %s",
	},
	held("task", "tasks"),
	{
		query: `SELECT t.id, COUNT(r.id) * 1000000 AS found, 1000000 AS expected FROM tasks t
			LEFT JOIN ledger_transfers r ON r.task_id = t.id AND r.kind IN ('post', 'void')
			WHERE t.status IN ('completed', 'failed', 'cancelled') GROUP BY t.id HAVING COUNT(r.id) <> 1`,
		text: "task %s has ended with %s posts or voids, not %s",
	},
	{
		query: `SELECT t.id, r.amount AS found, t.hold AS expected FROM tasks t
			JOIN ledger_transfers r ON r.task_id = t.id AND r.kind IN ('post', 'void')
			WHERE t.status IN ('pending', 'processing')`,
		text: "task %s has not ended, but %s of its hold of %s is resolved",
	},
	{
		query: `SELECT h.task_id AS id, h.amount AS found, 0 AS expected FROM ledger_transfers h
			WHERE h.kind = 'hold'
				AND NOT EXISTS (SELECT 1 FROM ledger_transfers r
					WHERE r.task_id = h.task_id AND r.kind IN ('post', 'void'))
				AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = h.task_id AND t.status IN ('pending', 'processing'))
				AND NOT EXISTS (SELECT 1 FROM speeches s WHERE s.id = h.task_id AND s.state = 'open')`,
		text: "task %s: %s is held for a task that is not alive (should be %s)",
	},
	{
		query: `SELECT t.id, r.amount AS found, 0 AS expected FROM tasks t
			JOIN ledger_transfers r ON r.task_id = t.id AND r.kind = 'post'
			WHERE t.status IN ('failed', 'cancelled')`,
		text: "task %s did not complete, but %s was charged, not %s",
	},
	{
		query: `SELECT t.id, COALESCE(r.amount, 0) AS found, t.cost AS expected FROM tasks t
			LEFT JOIN ledger_transfers r ON r.task_id = t.id AND r.kind = 'post'
			WHERE t.status = 'completed' AND (r.id IS NULL OR r.amount <> t.cost)`,
		text: "task %s: %s was charged in the ledger, %s by its row",
	},
	{
		query: "SELECT id, cost AS found, 0 AS expected FROM tasks WHERE status <> 'completed' AND cost <> 0",
		text:  "task %s did not complete, but costs %s, not %s",
	},
	{
		query: `SELECT r.task_id AS id, r.amount AS found, COALESCE(h.amount, 0) AS expected FROM ledger_transfers r
			LEFT JOIN ledger_transfers h ON h.task_id = r.task_id AND h.kind = 'hold'
			WHERE r.kind = 'post' AND r.amount > COALESCE(h.amount, -1)
				OR r.kind = 'void' AND r.amount <> COALESCE(h.amount, -1)`,
		text: "task %s: %s was posted or voided of a hold of %s",
	},
	held("speech", "speeches"),
	{
		query: `SELECT s.id, COUNT(r.id) * 1000000 AS found,
				CASE s.state WHEN 'open' THEN 0 ELSE 1000000 END AS expected
			FROM speeches s LEFT JOIN ledger_transfers r ON r.task_id = s.id AND r.kind IN ('post', 'void')
			GROUP BY s.id, s.state HAVING COUNT(r.id) <> CASE s.state WHEN 'open' THEN 0 ELSE 1 END`,
		text: "speech %s has %s posts or voids, by its state %s",
	},
	{
		query: `SELECT s.id, COALESCE(r.amount, 0) AS found, s.cost AS expected FROM speeches s
			LEFT JOIN ledger_transfers r ON r.task_id = s.id AND r.kind = 'post' WHERE COALESCE(r.amount, 0) <> s.cost`,
		text: "speech %s: %s was charged in the ledger, %s by its row",
	},
	keyPeriod(periods[0]), keyPeriod(periods[1]), keyPeriod(periods[2]),
	keysInFlight.rule("their_keys", "in_flight_cap IS NOT NULL"),
	accountsInFlight.rule("accounts", "true"),
}

// differsFrom compares a column of rows with the amounts of others, whose query names the id
// of the row whose they are.
func differsFrom(rows, column, others string) string {
	return "SELECT id, " + column + " AS found, COALESCE(amount, 0) AS expected FROM " + rows +
		" LEFT JOIN (" + others + ") AS others ON whose = id WHERE " + column + " <> COALESCE(amount, 0)"
}

// held compares what rows hold with their holds in the ledger.
func held(what, table string) rule {
	return rule{
		query: "SELECT t.id, COALESCE(h.amount, 0) AS found, t.hold AS expected FROM " + table + ` t
			LEFT JOIN ledger_transfers h ON h.task_id = t.id AND h.kind = 'hold'
			WHERE h.id IS NULL OR h.amount <> t.hold`,
		text: what + " %s: %s is held for it in the ledger, %s by its row",
	}
}

// cachedAccount compares an account's cached balance with its entries.
func cachedAccount(bucket string) rule {
	return rule{
		summed: true,
		query: differsFrom("accounts", bucket,
			`SELECT account_id AS whose, SUM(amount) AS amount FROM sums
				WHERE what = '`+bucket+"' GROUP BY account_id"),
		text: "account %s: " + bucket + " is %s, its entries sum to %s",
	}
}

// cachedKey compares what stands in a shared quota with the entries of all its keys. A
// key that has another's shared quota has nothing in its own row.
func cachedKey(bucket string) rule {
	return rule{
		summed: true,
		query: differsFrom("their_keys", bucket, `SELECT k.quota_key AS whose, SUM(l.amount) AS amount
			FROM sums l JOIN their_keys k ON k.id = l.key_id WHERE l.what = '`+bucket+"' GROUP BY k.quota_key"),
		text: "key %s: " + bucket + " is %s, its entries sum to %s",
	}
}

// keyPeriod compares what counts of a key's cap with the holds that were counted
// to the period: what is held, and of those that have ended what was charged. An
// end that names no day gave nothing back.
func keyPeriod(p period) rule {
	return rule{
		summed: true,
		query: differsFrom("their_keys", p.name+"_used", `SELECT q.id AS whose, SUM(l.amount) AS amount
			FROM sums l JOIN their_keys k ON k.id = l.key_id JOIN their_keys q ON q.id = k.quota_key
			WHERE l.what = 'counted' AND l.day >= q.`+p.name+"_began GROUP BY q.id"),
		text: "key %s: %s counts for its cap of the " + p.name + ", its holds come to %s",
	}
}

// rule compares what rows have counted with their tasks in flight. Keys are many, and of
// those without a limit nobody asks.
func (f inFlight) rule(rows, which string) rule {
	return rule{
		summed: true,
		query: `SELECT id, in_flight * 1000000 AS found, tasks * 1000000 AS expected
			FROM (SELECT id, in_flight, (` + f.tasks + `) AS tasks
				FROM ` + rows + " AS " + f.table + " WHERE " + which + `) AS those
			WHERE in_flight <> tasks`,
		text: f.what + " %s has counted %s tasks in flight, there are %s",
	}
}

// keySum compares an account with its keys, a rotated pair once, deleted ones too.
func keySum(bucket string) rule {
	return rule{
		summed: true,
		query: differsFrom("accounts", bucket,
			"SELECT account_id AS whose, SUM("+bucket+") AS amount FROM their_keys GROUP BY account_id"),
		text: "account %s: " + bucket + " is %s, its keys' sum to %s",
	}
}

// problemRow is a row of a rule's query.
type problemRow struct {
	Rule     int
	ID       string
	Found    mediagate.Micros
	Expected mediagate.Micros
}

// sums are the tables that rules about accounts share: what the ledger adds up to, keys
// with whose shared quota they have, and what is held for what is open. Sums are by buckets of
// entries; besides, there is what was granted, and what is counted in the caps of keys for each
// day by holds and their ends.
func (s *Store) sums() string {
	var began strings.Builder
	for _, p := range periods {
		began.WriteString(", " + p.name + "_used, " + s.microsOf(p.name+"_start") + " AS " + p.name + "_began")
	}
	return `sums AS MATERIALIZED (SELECT account_id, key_id, what, day, SUM(amount) AS amount FROM (
			SELECT account_id, COALESCE(key_id, '') AS key_id, bucket AS what, 0 AS day, amount FROM ledger_entries
			UNION ALL SELECT account_id, '', 'granted', 0, amount FROM ledger_transfers WHERE kind = 'grant'
			UNION ALL SELECT h.account_id, h.key_id, 'counted', ` + s.microsOf("h.counted_day") + `,
					CASE t.kind WHEN 'hold' THEN t.amount WHEN 'post' THEN t.amount - h.amount ELSE -h.amount END
				FROM ledger_transfers t JOIN ledger_transfers h ON h.task_id = t.task_id AND h.kind = 'hold'
				WHERE t.kind <> 'grant' AND t.counted_day IS NOT NULL AND h.counted_day IS NOT NULL
		) AS moves GROUP BY account_id, key_id, what, day),
		their_keys AS (SELECT id, account_id, COALESCE(quota_id, id) AS quota_key, unlimited, quota,
			held, spent, in_flight, in_flight_cap` + began.String() + ` FROM keys),
		open_holds AS (SELECT account_id, hold FROM tasks WHERE status IN ('pending', 'processing')
			UNION ALL SELECT account_id, hold FROM speeches WHERE state = 'open')`
}

// usageRule compares the sums of usage with the ends in the ledger. It names the first
// figure that is off.
func (s *Store) usageRule() rule {
	first := func(then string) string {
		return "CASE " + eachFigure("WHEN SUM(found_@) <> SUM(due_@) THEN "+then, " ") + " END"
	}
	// Counts of tasks are reported as amounts.
	const scale = " * CASE WHEN figure IN ('cost', 'released', 'taken') THEN 1 ELSE 1000000 END"
	return rule{
		query: `SELECT account_id || ', key ' || key_id || ', model ' || model || ', ' || span ||
				' from ' || CAST(begins_at AS text) || ': ' || figure AS id,
				found` + scale + " AS found, expected" + scale + ` AS expected
			FROM (SELECT ` + usageSumKey + ", " + first("'@'") + ` AS figure,
					` + first("SUM(found_@)") + " AS found, " + first("SUM(due_@)") + ` AS expected
				FROM (SELECT ` + usageSumKey + ", " + eachFigure("@ AS found_@, 0 AS due_@", ", ") + ` FROM usage_sums
					UNION ALL SELECT ` + usageSumKey + ", " + eachFigure("0, @", ", ") + `
						FROM (` + s.sumsOf("true") + `) AS ends
				) AS compared GROUP BY ` + usageSumKey + `) AS sums_of
			WHERE figure IS NOT NULL`,
		text: "usage of %s is %s, by the ledger %s",
	}
}
