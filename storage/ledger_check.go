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
//
// A defect in the code may break a rule for every task. The report stays readable then.
const maxProblems = 100

// CheckLedger checks all rules of the ledger on one snapshot, while the ledger is in use. Each problem
// is a line for people.
//
// The snapshot is one read-only transaction at REPEATABLE READ (ADR 14). At READ COMMITTED each
// statement would see another moment, and a hold between two statements would look like an error.
// Operators and the housekeeping call CheckLedger.
func (s *Store) CheckLedger(ctx context.Context) (report mediagate.LedgerReport, err error) {
	err = s.on(ctx).Transaction(func(tx *gorm.DB) error {
		report = mediagate.LedgerReport{Problems: []string{}}
		if err := s.alone(tx); err != nil {
			return err
		}
		// The number of accounts, keys, tasks and speeches is for the report alone.
		counted, err := one[struct{ N int }](tx, `SELECT (SELECT COUNT(*) FROM tasks) + (SELECT COUNT(*) FROM speeches)
			+ (SELECT COUNT(*) FROM accounts) + (SELECT COUNT(*) FROM keys)`)
		if err != nil {
			return err
		}
		report.Checked = counted.N
		found, texts, err := s.broken(tx, append(slices.Clone(ledgerPasses), s.usagePass()))
		if err != nil {
			return err
		}
		// Summed passes are read after the others. The sort restores the order of the rules.
		slices.SortStableFunc(found, func(a, b problemRow) int {
			return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Found, b.Found))
		})
		for _, row := range found {
			// Amounts are printed in the currency, so a query that compares counts multiplies them by
			// 1000000.
			problem := fmt.Sprintf(texts[row.Rule], row.ID, row.Found.Number(), row.Expected.Number())
			report.Problems = append(report.Problems, problem)
		}
		report.OK = len(found) == 0
		return nil
	}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	return report, dbError(err, "check ledger")
}

// alone makes PostgreSQL run the statements of the transaction in one process, which reads each
// table once: each parallel worker would read the inner side of a merge join again. alone also
// switches jit off, since compiling the statements costs more than it saves, and raises work_mem,
// since the sums of keys and hours need more memory than a client's statements do.
func (s *Store) alone(tx *gorm.DB) error {
	if s.lite {
		return nil
	}
	// The argument true limits each setting to this transaction.
	_, err := exec(tx, `SELECT set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true),
		set_config('work_mem', '64MB', true)`)
	return err
}

// broken finds the rows that break a rule. Rules are numbered in the order of texts. All passes over
// the tables of sums are one statement, so that the ledger is summed once.
func (s *Store) broken(tx *gorm.DB, passes []pass) (found []problemRow, texts []string, err error) {
	// ask runs one statement: the tables as WITH clauses, and the rules of these tables.
	ask := func(tables, selects []string) error {
		var rows []problemRow
		err := read(tx, &rows, "WITH "+strings.Join(tables, ", ")+" "+strings.Join(selects, " UNION ALL "))
		found = append(found, rows...)
		return err
	}
	sharedTables, sharedSelects := []string{s.sums()}, []string{}
	for i, p := range passes {
		table, selects := p.statement(fmt.Sprintf("broken_%d", i), len(texts))
		for _, r := range p.rules {
			texts = append(texts, r.text)
		}
		// A summed pass is collected for the last statement, which all summed passes share.
		if p.summed {
			sharedTables, sharedSelects = append(sharedTables, table), append(sharedSelects, selects...)
			continue
		}
		if err := ask([]string{table}, selects); err != nil {
			return nil, nil, err
		}
	}
	return found, texts, ask(sharedTables, sharedSelects)
}

// pass is a query whose rows, each with an id, are checked once against all of its rules.
//
// Example: one pass joins each transfer with its entries, and three rules check the joined row.
// Three separate queries would join the ledger three times.
type pass struct {
	rows   string
	rules  []rule
	summed bool // reads the tables of sums
}

// rule is an invariant of the ledger: the condition of rows that break it, and the expressions of the
// found and the expected amount. Without a condition, each row of the pass breaks the rule, and the
// pass has the columns found and expected.
type rule struct {
	broken, found, expected string
	text                    string // verbs for id, found, expected
}

// statement returns the table of the rows that break any rule of the pass, and for each rule a query
// of that table. The rules are numbered from first.
//
// MATERIALIZED makes PostgreSQL run the pass once and keep its few broken rows; the rules then
// read only those.
func (p pass) statement(table string, first int) (with string, selects []string) {
	var conditions []string
	for i, r := range p.rules {
		condition := cmp.Or(r.broken, "true")
		conditions = append(conditions, "("+condition+")")
		selects = append(selects, fmt.Sprintf(`SELECT %d, id, CAST(%s AS bigint), CAST(%s AS bigint)
			FROM (SELECT * FROM %s WHERE %s ORDER BY id LIMIT %d) AS r`,
			first+i, cmp.Or(r.found, "found"), cmp.Or(r.expected, "expected"), table, condition, maxProblems))
	}
	with = table + " AS MATERIALIZED (SELECT * FROM (" + p.rows + ") AS q WHERE " + strings.Join(conditions, " OR ") + ")"
	return with, selects
}

// ledgerPasses are the passes over the ledger, in the order of reports; s.usagePass follows them.
// Amounts in problems are in the currency.
var ledgerPasses = []pass{
	{
		// named is the amount of the entry whose bucket the kind of transfer names. The entry must
		// exist and agree with the transfer.
		rows: `SELECT t.id, t.amount, SUM(e.amount) AS total,
				SUM(CASE e.bucket WHEN CASE t.kind WHEN 'hold' THEN 'held' WHEN 'post' THEN 'spent' ELSE 'available' END
					THEN e.amount END) AS named,
				MAX(CASE WHEN e.account_id <> t.account_id OR COALESCE(e.key_id, '') <> COALESCE(t.key_id, '')
					THEN e.amount END) AS foreign_amount
			FROM ledger_transfers t LEFT JOIN ledger_entries e ON e.transfer_id = t.id GROUP BY t.id`,
		rules: []rule{
			{"total <> 0", "total", "0", "transfer %s: its entries sum to %s, not %s"},
			{
				"named IS NULL OR named <> amount", "COALESCE(named, 0)", "amount",
				"transfer %s: its entry says %s, the transfer %s",
			},
			{
				"foreign_amount IS NOT NULL", "foreign_amount", "amount",
				"transfer %s: an entry of %s belongs to another account or key (transfer of %s)",
			},
		},
	},
	{
		// The pass finds entries without a transfer. The foreign key refuses them; the check does not
		// rely on it.
		rows: `SELECT e.transfer_id AS id, e.amount AS found, 0 AS expected FROM ledger_entries e
			WHERE NOT EXISTS (SELECT 1 FROM ledger_transfers t WHERE t.id = e.transfer_id)`,
		rules: []rule{{text: "transfer %s has an entry of %s but is gone (%s)"}},
	},
	// The balances in the rows of accounts and keys are caches of the ledger's sums.
	cachedAccount("available"), cachedAccount("held"), cachedAccount("spent"),
	cachedKey("held"), cachedKey("spent"),
	summed(
		// The tables' constraints refuse overdrafts. The check reads the amounts all the same.
		"SELECT id, available AS found, 0 AS expected FROM accounts WHERE available < 0",
		"account %s: available is %s, below %s",
	),
	summed(
		`SELECT id, held + spent AS found, quota AS expected FROM their_keys
			WHERE NOT unlimited AND held + spent > quota`,
		"key %s: held and spent are %s, above its quota of %s",
	),
	summed(
		// Money is conserved: the three balances are what was granted.
		differsFrom("accounts", "available + held + spent",
			"SELECT account_id AS whose, SUM(amount) AS amount FROM sums WHERE what = 'granted' GROUP BY account_id"),
		"account %s: available, held and spent are %s, but %s was granted",
	),
	// Every hold belongs to a key, so an account's held and spent are the sums of its keys.
	keySum("held"), keySum("spent"),
	summed(
		// The query finds accounts that have entries but no row.
		`SELECT DISTINCT s.account_id AS id, 0 AS found, 0 AS expected FROM sums s
			WHERE NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = s.account_id)`,
		"account %s has entries but is gone (%s, %s)",
	),
	summed(
		differsFrom("accounts", "held",
			// open_holds are the holds in the rows of tasks and speeches, so this compares the ledger with
			// its owners.
			"SELECT account_id AS whose, SUM(hold) AS amount FROM open_holds GROUP BY account_id"),
		"account %s: held is %s, its open tasks and speeches hold %s",
	),
	{
		// The pass joins each task with its hold and its end. The unique indexes of ledger_transfers
		// serve both joins, and find at most one row each. A task without a hold breaks the first rule.
		rows: `SELECT t.id, t.status, t.hold, t.cost, MAX(h.amount) AS held, COUNT(r.id) AS ends, MAX(r.amount) AS resolved,
				MAX(CASE r.kind WHEN 'post' THEN r.amount END) AS posted
			FROM tasks t
			LEFT JOIN ledger_transfers h ON h.task_id = t.id AND h.kind = 'hold'
			LEFT JOIN ledger_transfers r ON r.task_id = t.id AND r.kind IN ('post', 'void')
			GROUP BY t.id`,
		rules: []rule{
			heldFor("task"),
			{
				"status IN ('completed', 'failed', 'cancelled') AND ends <> 1", "ends * 1000000", "1000000",
				"task %s has ended with %s posts or voids, not %s",
			},
			{
				"status IN ('pending', 'processing') AND ends > 0", "resolved", "hold",
				"task %s has not ended, but %s of its hold of %s is resolved",
			},
			{
				"status IN ('failed', 'cancelled') AND posted IS NOT NULL", "posted", "0",
				"task %s did not complete, but %s was charged, not %s",
			},
			{
				"status = 'completed' AND (posted IS NULL OR posted <> cost)", "COALESCE(posted, 0)", "cost",
				"task %s: %s was charged in the ledger, %s by its row",
			},
			{
				"status <> 'completed' AND cost <> 0", "cost", "0",
				"task %s did not complete, but costs %s, not %s",
			},
		},
	},
	{
		// The pass finds holds without an end, whose task or speech is not open or is gone. Their money
		// would stay held for ever.
		rows: `SELECT h.task_id AS id, h.amount AS found, 0 AS expected FROM ledger_transfers h
			WHERE h.kind = 'hold'
				AND NOT EXISTS (SELECT 1 FROM ledger_transfers r
					WHERE r.task_id = h.task_id AND r.kind IN ('post', 'void'))
				AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = h.task_id AND t.status IN ('pending', 'processing'))
				AND NOT EXISTS (SELECT 1 FROM speeches s WHERE s.id = h.task_id AND s.state = 'open')`,
		rules: []rule{{text: "task %s: %s is held for a task that is not alive (should be %s)"}},
	},
	{
		// A post charges at most the hold, and a void returns exactly the hold. An end without a hold
		// compares with -1, so that it always breaks the rule.
		rows: `SELECT r.task_id AS id, r.amount AS found, COALESCE(h.amount, 0) AS expected FROM ledger_transfers r
			LEFT JOIN ledger_transfers h ON h.task_id = r.task_id AND h.kind = 'hold'
			WHERE r.kind = 'post' AND r.amount > COALESCE(h.amount, -1)
				OR r.kind = 'void' AND r.amount <> COALESCE(h.amount, -1)`,
		rules: []rule{{text: "task %s: %s was posted or voided of a hold of %s"}},
	},
	{
		// The pass joins each speech with its hold and its end. An open speech must have no end, and an
		// ended speech exactly one.
		rows: `SELECT s.id, s.hold, s.cost, MAX(h.amount) AS held, COUNT(r.id) AS ends,
				CASE s.state WHEN 'open' THEN 0 ELSE 1 END AS due,
				MAX(CASE r.kind WHEN 'post' THEN r.amount ELSE 0 END) AS posted
			FROM speeches s
			LEFT JOIN ledger_transfers h ON h.task_id = s.id AND h.kind = 'hold'
			LEFT JOIN ledger_transfers r ON r.task_id = s.id AND r.kind IN ('post', 'void')
			GROUP BY s.id`,
		rules: []rule{
			heldFor("speech"),
			{"ends <> due", "ends * 1000000", "due * 1000000", "speech %s has %s posts or voids, by its state %s"},
			{"posted <> cost", "posted", "cost", "speech %s: %s was charged in the ledger, %s by its row"},
		},
	},
	// The counters that bound submits: caps by day, week and month, and tasks in flight.
	keyPeriod(periods[0]), keyPeriod(periods[1]), keyPeriod(periods[2]),
	keysInFlight.pass("their_keys", "in_flight_cap IS NOT NULL"),
	accountsInFlight.pass("accounts", "true"),
}

// summed is a pass of one rule over the tables of sums. The query selects the rows that break it.
func summed(query, text string) pass {
	return pass{rows: query, rules: []rule{{text: text}}, summed: true}
}

// differsFrom selects the rows in which the column differs from the amount in others. The query others
// has two columns: "whose", the id of a row, and "amount".
func differsFrom(rows, column, others string) string {
	return "SELECT id, " + column + " AS found, COALESCE(amount, 0) AS expected FROM " + rows +
		" LEFT JOIN (" + others + ") AS others ON whose = id WHERE " + column + " <> COALESCE(amount, 0)"
}

// heldFor is the rule that a row holds as much as its hold in the ledger.
func heldFor(what string) rule {
	return rule{
		"held IS NULL OR held <> hold", "COALESCE(held, 0)", "hold",
		what + " %s: %s is held for it in the ledger, %s by its row",
	}
}

// cachedAccount is the pass that compares an account's cached balance with its entries.
//
// Only the buckets available, held and spent have a column in accounts; issued is in the ledger
// alone.
func cachedAccount(bucket string) pass {
	return summed(
		differsFrom("accounts", bucket,
			`SELECT account_id AS whose, SUM(amount) AS amount FROM sums
				WHERE what = '`+bucket+"' GROUP BY account_id"),
		"account %s: "+bucket+" is %s, its entries sum to %s",
	)
}

// cachedKey is the pass that compares a shared quota with the entries of all its keys. A key that uses
// the quota of another key has zeros in its own row.
func cachedKey(bucket string) pass {
	return summed(
		differsFrom("their_keys", bucket, `SELECT k.quota_key AS whose, SUM(l.amount) AS amount
			FROM sums l JOIN their_keys k ON k.id = l.key_id WHERE l.what = '`+bucket+"' GROUP BY k.quota_key"),
		"key %s: "+bucket+" is %s, its entries sum to %s",
	)
}

// keyPeriod is the pass that compares the amount that counts for a key's cap with the holds of the
// period. An open hold counts in full, and an ended hold with the amount that was charged. A hold whose
// end names no day counts in full as well.
//
// Example: a key's week began on Monday. The holds counted on Monday or later must sum to
// week_used.
func keyPeriod(p period) pass {
	return summed(
		differsFrom("their_keys", p.name+"_used", `SELECT q.id AS whose, SUM(l.amount) AS amount
			FROM sums l JOIN their_keys k ON k.id = l.key_id JOIN their_keys q ON q.id = k.quota_key
			WHERE l.what = 'counted' AND l.day >= q.`+p.name+"_began GROUP BY q.id"),
		"key %s: %s counts for its cap of the "+p.name+", its holds come to %s",
	)
}

// pass compares the counts in the rows with their tasks in flight. Only keys with a limit are checked,
// since keys are many.
//
// The counts are multiplied by 1000000, because amounts are printed in millionths of the currency.
func (f inFlight) pass(rows, which string) pass {
	return summed(
		`SELECT id, in_flight * 1000000 AS found, tasks * 1000000 AS expected
			FROM (SELECT id, in_flight, (`+f.tasks+`) AS tasks
				FROM `+rows+" AS "+f.table+" WHERE "+which+`) AS those
			WHERE in_flight <> tasks`,
		f.what+" %s has counted %s tasks in flight, there are %s",
	)
}

// keySum is the pass that compares an account with the sum of its keys. The keys of a rotation count
// once, and deleted keys count too.
func keySum(bucket string) pass {
	return summed(
		differsFrom("accounts", bucket,
			"SELECT account_id AS whose, SUM("+bucket+") AS amount FROM their_keys GROUP BY account_id"),
		"account %s: "+bucket+" is %s, its keys' sum to %s",
	)
}

// problemRow is a row of a rule's query.
//
// Found and Expected are amounts, or counts times 1000000. Rule is the number of the rule's text.
type problemRow struct {
	Rule     int
	ID       string
	Found    mediagate.Micros
	Expected mediagate.Micros
}

// sums returns the tables that the rules about accounts share. The table sums has the ledger's sums by
// bucket, the granted amounts, and for each day the amounts that count in the caps of keys. The
// table their_keys has the keys with the ids of their shared quotas, and open_holds the holds of open
// tasks and speeches.
func (s *Store) sums() string {
	var began strings.Builder
	// The beginnings of periods are read as microseconds, so that they compare with the days of sums
	// in both databases.
	for _, p := range periods {
		began.WriteString(", " + p.name + "_used, " + s.microsOf(p.name+"_start") + " AS " + p.name + "_began")
	}
	// The third part of sums gives each hold the amount that counts for caps: the hold while it is
	// open, the cost after a post, zero after a void. It joins each hold with its end by the unique
	// index ledger_one_end.
	return `sums AS MATERIALIZED (
			SELECT account_id, COALESCE(key_id, '') AS key_id, bucket AS what, 0 AS day, SUM(amount) AS amount
				FROM ledger_entries GROUP BY account_id, key_id, bucket
			UNION ALL SELECT account_id, '', 'granted', 0, SUM(amount)
				FROM ledger_transfers WHERE kind = 'grant' GROUP BY account_id
			UNION ALL SELECT account_id, key_id, 'counted', ` + s.microsOf("counted_day") + `, SUM(amount)
				FROM (SELECT h.account_id, h.key_id, h.counted_day,
						CASE WHEN r.counted_day IS NULL THEN h.amount WHEN r.kind = 'post' THEN r.amount ELSE 0 END AS amount
					FROM ledger_transfers h
					LEFT JOIN ledger_transfers r ON r.task_id = h.task_id AND r.kind IN ('post', 'void')
					WHERE h.kind = 'hold' AND h.counted_day IS NOT NULL) AS holds
				GROUP BY account_id, key_id, counted_day),
		their_keys AS (SELECT id, account_id, COALESCE(quota_id, id) AS quota_key, unlimited, quota,
			held, spent, in_flight, in_flight_cap` + began.String() + ` FROM keys),
		open_holds AS (SELECT account_id, hold FROM tasks WHERE status IN ('pending', 'processing')
			UNION ALL SELECT account_id, hold FROM speeches WHERE state = 'open')`
}

// usagePass is the pass that compares the sums of usage with the ends in the ledger. It names the first
// figure that differs.
func (s *Store) usagePass() pass {
	// first is a CASE that picks the first figure whose two sums differ; it is NULL if all agree.
	first := func(then string) string {
		return "CASE " + eachFigure("WHEN SUM(found_@) <> SUM(due_@) THEN "+then, " ") + " END"
	}
	// Counts of tasks are reported as amounts.
	const scale = " * CASE WHEN figure IN ('cost', 'released', 'taken') THEN 1 ELSE 1000000 END"
	return pass{
		// The innermost query lists the stored sums as found, and the sums that the ledger's ends give
		// as due. Grouping both by the key of usage_sums stands for a full join, which SQLite does by
		// reading the inner side once for each row (ADR 14).
		rows: `SELECT account_id || ', key ' || key_id || ', model ' || model || ', ' || span ||
				' from ' || CAST(begins_at AS text) || ': ' || figure AS id,
				found` + scale + " AS found, expected" + scale + ` AS expected
			FROM (SELECT ` + usageSumKey + ", " + first("'@'") + ` AS figure,
					` + first("SUM(found_@)") + " AS found, " + first("SUM(due_@)") + ` AS expected
				FROM (SELECT ` + usageSumKey + ", " + eachFigure("@ AS found_@, 0 AS due_@", ", ") + ` FROM usage_sums
					UNION ALL SELECT ` + usageSumKey + ", " + eachFigure("0, @", ", ") + `
						FROM (` + s.sumsOf("true") + `) AS ends
				) AS compared GROUP BY ` + usageSumKey + `) AS sums_of
			WHERE figure IS NOT NULL`,
		rules: []rule{{text: "usage of %s is %s, by the ledger %s"}},
	}
}
