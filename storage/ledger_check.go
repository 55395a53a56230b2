package storage

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
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
		counted, err := one[struct{ N int }](tx, "SELECT (SELECT COUNT(*) FROM tasks) + (SELECT COUNT(*) FROM speeches) + (SELECT COUNT(*) FROM accounts) + (SELECT COUNT(*) FROM keys)")
		if err != nil {
			return err
		}
		report.Checked = counted.N
		rules := s.rules()
		found, err := s.broken(tx, rules)
		if err != nil {
			return err
		}
		slices.SortStableFunc(found, func(a, b problemRow) int {
			return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Found, b.Found))
		})
		for _, row := range found {
			report.Problems = append(report.Problems, fmt.Sprintf(rules[row.Rule].text, row.ID, row.Found.Number(), row.Expected.Number()))
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
		query := "SELECT " + strconv.Itoa(i) + " AS rule, id, CAST(found AS bigint) AS found, CAST(expected AS bigint) AS expected FROM (SELECT * FROM (" +
			r.query + ") AS q ORDER BY id LIMIT " + strconv.Itoa(maxProblems) + ") AS r"
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

// rules are those of the ledger, in the order of reports. Amounts in problems are in the
// currency.
func (s *Store) rules() []rule {
	return []rule{
		{
			query: `SELECT t.id, SUM(e.amount) AS found, 0 AS expected FROM ledger_transfers t JOIN ledger_entries e ON e.transfer_id = t.id GROUP BY t.id HAVING SUM(e.amount) <> 0`,
			text:  "transfer %s: its entries sum to %s, not %s",
		},
		{
			// The entry that names what changed hands must be there and agree.
			query: `SELECT t.id, COALESCE(e.amount, 0) AS found, t.amount AS expected FROM ledger_transfers t
		LEFT JOIN ledger_entries e ON e.transfer_id = t.id AND e.bucket =
			CASE t.kind WHEN 'grant' THEN 'available' WHEN 'hold' THEN 'held' WHEN 'post' THEN 'spent' ELSE 'available' END
		WHERE e.amount IS NULL OR e.amount <> t.amount`,
			text: "transfer %s: its entry says %s, the transfer %s",
		},
		{
			query: `SELECT t.id, e.amount AS found, t.amount AS expected FROM ledger_transfers t JOIN ledger_entries e ON e.transfer_id = t.id
		WHERE e.account_id <> t.account_id OR COALESCE(e.key_id, '') <> COALESCE(t.key_id, '')`,
			text: "transfer %s: an entry of %s belongs to another account or key (transfer of %s)",
		},
		{
			query: `SELECT e.transfer_id AS id, e.amount AS found, 0 AS expected FROM ledger_entries e WHERE NOT EXISTS (SELECT 1 FROM ledger_transfers t WHERE t.id = e.transfer_id)`,
			text:  "transfer %s has an entry of %s but is gone (%s)",
		},
		{summed: true, query: cachedAccount("available"), text: "account %s: available is %s, its entries sum to %s"},
		{summed: true, query: cachedAccount("held"), text: "account %s: held is %s, its entries sum to %s"},
		{summed: true, query: cachedAccount("spent"), text: "account %s: spent is %s, its entries sum to %s"},
		{summed: true, query: cachedKey("held"), text: "key %s: held is %s, its entries sum to %s"},
		{summed: true, query: cachedKey("spent"), text: "key %s: spent is %s, its entries sum to %s"},
		{summed: true, query: `SELECT id, available AS found, 0 AS expected FROM accounts WHERE available < 0`, text: "account %s: available is %s, below %s"},
		{
			summed: true,
			query:  `SELECT id, held + spent AS found, quota AS expected FROM their_keys WHERE NOT unlimited AND held + spent > quota`,
			text:   "key %s: held and spent are %s, above its quota of %s",
		},
		{
			summed: true,
			query: `SELECT a.id, a.available + a.held + a.spent AS found, COALESCE(g.amount, 0) AS expected FROM accounts a
		LEFT JOIN (SELECT account_id, SUM(amount) AS amount FROM sums WHERE what = '` + granted + `' GROUP BY account_id) g ON g.account_id = a.id
		WHERE a.available + a.held + a.spent <> COALESCE(g.amount, 0)`,
			text: "account %s: available, held and spent are %s, but %s was granted",
		},
		{summed: true, query: keySum("held"), text: "account %s: held is %s, its keys' sum to %s"},
		{summed: true, query: keySum("spent"), text: "account %s: spent is %s, its keys' sum to %s"},
		{
			summed: true,
			query:  `SELECT DISTINCT s.account_id AS id, 0 AS found, 0 AS expected FROM sums s WHERE NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = s.account_id)`,
			text:   "account %s has entries but is gone (%s, %s)",
		},
		{
			summed: true,
			query: `SELECT a.id, a.held AS found, COALESCE(o.hold, 0) AS expected FROM accounts a
		LEFT JOIN (SELECT account_id, SUM(hold) AS hold FROM open_holds GROUP BY account_id) o ON o.account_id = a.id
		WHERE a.held <> COALESCE(o.hold, 0)`,
			text: "account %s: held is %s, its open tasks and speeches hold %s",
		},
		{
			query: `SELECT t.id, COALESCE(h.amount, 0) AS found, t.hold AS expected FROM tasks t
		LEFT JOIN ledger_transfers h ON h.task_id = t.id AND h.kind = 'hold' WHERE h.id IS NULL OR h.amount <> t.hold`,
			text: "task %s: %s is held for it in the ledger, %s by its row",
		},
		{
			query: `SELECT t.id, COUNT(r.id) * 1000000 AS found, 1000000 AS expected FROM tasks t
		LEFT JOIN ledger_transfers r ON r.task_id = t.id AND r.kind IN ('post', 'void')
		WHERE t.status IN ('completed', 'failed', 'cancelled') GROUP BY t.id HAVING COUNT(r.id) <> 1`,
			text: "task %s has ended with %s posts or voids, not %s",
		},
		{
			query: `SELECT t.id, r.amount AS found, t.hold AS expected FROM tasks t
		JOIN ledger_transfers r ON r.task_id = t.id AND r.kind IN ('post', 'void') WHERE t.status IN ('pending', 'processing')`,
			text: "task %s has not ended, but %s of its hold of %s is resolved",
		},
		{
			query: `SELECT h.task_id AS id, h.amount AS found, 0 AS expected FROM ledger_transfers h
		WHERE h.kind = 'hold'
			AND NOT EXISTS (SELECT 1 FROM ledger_transfers r WHERE r.task_id = h.task_id AND r.kind IN ('post', 'void'))
			AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = h.task_id AND t.status IN ('pending', 'processing'))
			AND NOT EXISTS (SELECT 1 FROM speeches s WHERE s.id = h.task_id AND s.state = 'open')`,
			text: "task %s: %s is held for a task that is not alive (should be %s)",
		},
		{
			query: `SELECT t.id, r.amount AS found, 0 AS expected FROM tasks t JOIN ledger_transfers r ON r.task_id = t.id AND r.kind = 'post'
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
			query: `SELECT id, cost AS found, 0 AS expected FROM tasks WHERE status <> 'completed' AND cost <> 0`,
			text:  "task %s did not complete, but costs %s, not %s",
		},
		{
			query: `SELECT r.task_id AS id, r.amount AS found, COALESCE(h.amount, 0) AS expected FROM ledger_transfers r
		LEFT JOIN ledger_transfers h ON h.task_id = r.task_id AND h.kind = 'hold'
		WHERE (r.kind = 'post' AND r.amount > COALESCE(h.amount, -1)) OR (r.kind = 'void' AND r.amount <> COALESCE(h.amount, -1))`,
			text: "task %s: %s was posted or voided of a hold of %s",
		},
		{
			query: `SELECT s.id, COALESCE(h.amount, 0) AS found, s.hold AS expected FROM speeches s
		LEFT JOIN ledger_transfers h ON h.task_id = s.id AND h.kind = 'hold' WHERE h.id IS NULL OR h.amount <> s.hold`,
			text: "speech %s: %s is held for it in the ledger, %s by its row",
		},
		{
			query: `SELECT s.id, COUNT(r.id) * 1000000 AS found, CASE s.state WHEN 'open' THEN 0 ELSE 1000000 END AS expected FROM speeches s
		LEFT JOIN ledger_transfers r ON r.task_id = s.id AND r.kind IN ('post', 'void')
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
		s.usageRule(),
	}
}

// cachedAccount compares an account's cached balance with its entries.
func cachedAccount(bucket string) string {
	return `SELECT a.id, a.` + bucket + ` AS found, COALESCE(e.amount, 0) AS expected FROM accounts a
		LEFT JOIN (SELECT account_id, SUM(amount) AS amount FROM sums WHERE what = '` + bucket + `' GROUP BY account_id) e ON e.account_id = a.id
		WHERE a.` + bucket + ` <> COALESCE(e.amount, 0)`
}

// cachedKey compares what stands in a shared quota with the entries of all its keys. A
// key that has another's shared quota has nothing in its own row.
func cachedKey(bucket string) string {
	return `SELECT k.id, k.` + bucket + ` AS found, COALESCE(e.amount, 0) AS expected FROM their_keys k
		LEFT JOIN (SELECT o.quota_key, SUM(l.amount) AS amount FROM sums l JOIN their_keys o ON o.id = l.key_id
			WHERE l.what = '` + bucket + `' GROUP BY o.quota_key) e ON e.quota_key = k.id
		WHERE k.` + bucket + ` <> COALESCE(e.amount, 0)`
}

// keyPeriod compares what counts of a key's cap with the holds that were counted
// to the period: what is held, and of those that have ended what was charged. An
// end that names no day gave nothing back.
func keyPeriod(p period) rule {
	return rule{
		summed: true,
		query: `SELECT k.id, k.` + p.name + `_used AS found, COALESCE(c.amount, 0) AS expected FROM their_keys k
		LEFT JOIN (SELECT p.id AS quota_key, SUM(l.amount) AS amount FROM sums l JOIN their_keys o ON o.id = l.key_id JOIN their_keys p ON p.id = o.quota_key
			WHERE l.what = '` + counted + `' AND l.day >= p.` + p.name + `_began GROUP BY p.id) c ON c.quota_key = k.id
		WHERE k.` + p.name + `_used <> COALESCE(c.amount, 0)`,
		text: "key %s: %s counts for its cap of the " + p.name + ", its holds come to %s",
	}
}

// rule compares what rows have counted with their tasks in flight. Keys are many, and of
// those without a limit nobody asks.
func (f inFlight) rule(rows, which string) rule {
	return rule{
		summed: true,
		query: `SELECT id, in_flight * 1000000 AS found, tasks * 1000000 AS expected FROM (
			SELECT id, in_flight, (` + f.tasks + `) AS tasks FROM ` + rows + ` AS ` + f.table + ` WHERE ` + which + `) AS those
		WHERE in_flight <> tasks`,
		text: f.what + " %s has counted %s tasks in flight, there are %s",
	}
}

// keySum compares an account with its keys, a rotated pair once, deleted ones too.
func keySum(bucket string) string {
	return `SELECT a.id, a.` + bucket + ` AS found, COALESCE(k.amount, 0) AS expected FROM accounts a
		LEFT JOIN (SELECT account_id, SUM(` + bucket + `) AS amount FROM their_keys GROUP BY account_id) k ON k.account_id = a.id
		WHERE a.` + bucket + ` <> COALESCE(k.amount, 0)`
}

// problemRow is a row of a rule's query.
type problemRow struct {
	Rule     int
	ID       string
	Found    mediagate.Micros
	Expected mediagate.Micros
}

// What sums are of, besides the buckets of entries: grants, and what holds and their ends
// make of the caps of keys, for each day.
const (
	granted = "granted"
	counted = "counted"
)

// sums are the tables that rules about accounts share: what the ledger adds up to, keys
// with whose shared quota they have, and what is held for what is open.
func (s *Store) sums() string {
	began := make([]string, len(periods))
	for i, p := range periods {
		began[i] = p.name + "_used, " + s.microsOf(p.name+"_start") + " AS " + p.name + "_began"
	}
	return `sums AS MATERIALIZED (SELECT account_id, key_id, what, day, SUM(amount) AS amount FROM (
			SELECT account_id, COALESCE(key_id, '') AS key_id, bucket AS what, 0 AS day, amount FROM ledger_entries
			UNION ALL SELECT account_id, '', '` + granted + `', 0, amount FROM ledger_transfers WHERE kind = 'grant'
			UNION ALL SELECT h.account_id, h.key_id, '` + counted + `', ` + s.microsOf("h.counted_day") + `,
					CASE t.kind WHEN 'hold' THEN t.amount WHEN 'post' THEN t.amount - h.amount ELSE -h.amount END
				FROM ledger_transfers t JOIN ledger_transfers h ON h.task_id = t.task_id AND h.kind = 'hold'
				WHERE t.kind <> 'grant' AND t.counted_day IS NOT NULL AND h.counted_day IS NOT NULL
		) AS moves GROUP BY account_id, key_id, what, day),
		their_keys AS (SELECT id, account_id, COALESCE(quota_id, id) AS quota_key, unlimited, quota, held, spent, in_flight, in_flight_cap, ` + strings.Join(began, ", ") + ` FROM keys),
		open_holds AS (SELECT account_id, hold FROM tasks WHERE status IN ('pending', 'processing') UNION ALL SELECT account_id, hold FROM speeches WHERE state = 'open')`
}

// microsOf is a time as microseconds since 1970.
func (s *Store) microsOf(column string) string {
	if s.lite {
		return column
	}
	return "CAST(EXTRACT(EPOCH FROM " + column + ") * 1000000 AS bigint)"
}

// usageRule compares the sums of usage with the ends in the ledger. It names the first
// figure that is off.
func (s *Store) usageRule() rule {
	var names, found, expected strings.Builder
	stored, due := make([]string, len(figures)), make([]string, len(figures))
	for i, figure := range figures {
		stored[i], due[i] = figure+" AS found_"+figure+", 0 AS due_"+figure, "0, "+figure
		scale := ""
		if i >= 3 { // numbers of tasks; problems are told as amounts
			scale = " * 1000000"
		}
		off := " WHEN SUM(found_" + figure + ") <> SUM(due_" + figure + ") THEN "
		names.WriteString(off + "'" + figure + "'")
		found.WriteString(off + "SUM(found_" + figure + ")" + scale)
		expected.WriteString(off + "SUM(due_" + figure + ")" + scale)
	}
	return rule{
		query: `SELECT account_id || ', key ' || key_id || ', model ' || model || ', ' || span || ' from ' || CAST(begins_at AS text) || ': ' || figure AS id, found, expected FROM (
			SELECT ` + usageSumKey + `, CASE` + names.String() + ` END AS figure, CASE` + found.String() + ` END AS found, CASE` + expected.String() + ` END AS expected FROM (
				SELECT ` + usageSumKey + ", " + strings.Join(stored, ", ") + ` FROM usage_sums
				UNION ALL SELECT ` + usageSumKey + ", " + strings.Join(due, ", ") + ` FROM (` + s.sumsOf("true") + `) AS ends) AS compared
			GROUP BY ` + usageSumKey + `) AS sums_of WHERE figure IS NOT NULL`,
		text: "usage of %s is %s, by the ledger %s",
	}
}
