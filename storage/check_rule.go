package storage

import "github.com/mediagate/mediagate"

// thing is what a rule of the ledger is about. Those of transfers, tasks and
// speeches can be asked of a few of them at a time, in one statement each, which
// sees them at one moment. Those of accounts and their keys need what all their
// transfers come to.
type thing string

const (
	aTransfer thing = "transfer"
	aTask     thing = "task"
	aSpeech   thing = "speech"
	anEntry   thing = "entry"
	anAccount thing = "account"
)

// rule is one invariant of the ledger: a query for what breaks it. Each row
// names a thing, what was found and what should be; text renders it. It asks those
// that the statement around it chooses, see chosen and accountTables.
type rule struct {
	about thing
	query string
	text  string // verbs for id, found, expected
	names string // the column that names the thing, where that is not id
}

// The ledger's rules, in the order of reports. Amounts in problems are in the
// currency.
var rules = [...]rule{
	{
		about: aTransfer,
		query: `SELECT t.id, SUM(e.amount) AS found, 0 AS expected FROM those t JOIN ledger_entries e ON e.transfer_id = t.id GROUP BY t.id HAVING SUM(e.amount) <> 0`,
		text:  "transfer %s: its entries sum to %s, not %s",
	},
	{
		// The entry that names what changed hands must be there and agree.
		about: aTransfer,
		query: `SELECT t.id, COALESCE(e.amount, 0) AS found, t.amount AS expected FROM those t
		LEFT JOIN ledger_entries e ON e.transfer_id = t.id AND e.bucket =
			CASE t.kind WHEN 'grant' THEN 'available' WHEN 'hold' THEN 'held' WHEN 'post' THEN 'spent' ELSE 'available' END
		WHERE e.amount IS NULL OR e.amount <> t.amount`,
		text: "transfer %s: its entry says %s, the transfer %s",
	},
	{
		about: aTransfer,
		query: `SELECT t.id, e.amount AS found, t.amount AS expected FROM those t JOIN ledger_entries e ON e.transfer_id = t.id
		WHERE e.account_id <> t.account_id OR COALESCE(e.key_id, '') <> COALESCE(t.key_id, '')`,
		text: "transfer %s: an entry of %s belongs to another account or key (transfer of %s)",
	},
	{
		about: anEntry,
		query: `SELECT e.transfer_id AS id, e.amount AS found, 0 AS expected FROM those e WHERE NOT EXISTS (SELECT 1 FROM ledger_transfers t WHERE t.id = e.transfer_id)`,
		text:  "transfer %s has an entry of %s but is gone (%s)",
	},
	{about: anAccount, query: cachedAccount("available"), text: "account %s: available is %s, its entries sum to %s"},
	{about: anAccount, query: cachedAccount("held"), text: "account %s: held is %s, its entries sum to %s"},
	{about: anAccount, query: cachedAccount("spent"), text: "account %s: spent is %s, its entries sum to %s"},
	{about: anAccount, query: cachedKey("held"), text: "key %s: held is %s, its entries sum to %s"},
	{about: anAccount, query: cachedKey("spent"), text: "key %s: spent is %s, its entries sum to %s"},
	{about: anAccount, query: `SELECT id, available AS found, 0 AS expected FROM these WHERE available < 0`, text: "account %s: available is %s, below %s"},
	{
		about: anAccount,
		query: `SELECT id, held + spent AS found, quota AS expected FROM their_keys WHERE NOT unlimited AND held + spent > quota`,
		text:  "key %s: held and spent are %s, above its quota of %s",
	},
	{
		about: anAccount,
		query: `SELECT a.id, a.available + a.held + a.spent AS found, COALESCE(g.amount, 0) AS expected FROM these a
		LEFT JOIN (SELECT account_id, SUM(amount) AS amount FROM sums WHERE what = '` + granted + `' GROUP BY account_id) g ON g.account_id = a.id
		WHERE a.available + a.held + a.spent <> COALESCE(g.amount, 0)`,
		text: "account %s: available, held and spent are %s, but %s was granted",
	},
	{about: anAccount, query: keySum("held"), text: "account %s: held is %s, its keys' sum to %s"},
	{about: anAccount, query: keySum("spent"), text: "account %s: spent is %s, its keys' sum to %s"},
	{
		about: anAccount,
		query: `SELECT DISTINCT s.account_id AS id, 0 AS found, 0 AS expected FROM sums s WHERE NOT EXISTS (SELECT 1 FROM these a WHERE a.id = s.account_id)`,
		text:  "account %s has entries but is gone (%s, %s)",
	},
	{
		about: anAccount,
		query: `SELECT a.id, a.held AS found, COALESCE(o.hold, 0) AS expected FROM these a
		LEFT JOIN (SELECT account_id, SUM(hold) AS hold FROM open_holds GROUP BY account_id) o ON o.account_id = a.id
		WHERE a.held <> COALESCE(o.hold, 0)`,
		text: "account %s: held is %s, its open tasks and speeches hold %s",
	},
	{
		about: aTask,
		query: `SELECT t.id, COALESCE(h.amount, 0) AS found, t.hold AS expected FROM those t
		LEFT JOIN ledger_transfers h ON h.task_id = t.id AND h.kind = 'hold' WHERE h.id IS NULL OR h.amount <> t.hold`,
		text: "task %s: %s is held for it in the ledger, %s by its row",
	},
	{
		about: aTask,
		query: `SELECT t.id, COUNT(r.id) * 1000000 AS found, 1000000 AS expected FROM those t
		LEFT JOIN ledger_transfers r ON r.task_id = t.id AND r.kind IN ('post', 'void')
		WHERE t.status IN ('completed', 'failed', 'cancelled') GROUP BY t.id HAVING COUNT(r.id) <> 1`,
		text: "task %s has ended with %s posts or voids, not %s",
	},
	{
		about: aTask,
		query: `SELECT t.id, r.amount AS found, t.hold AS expected FROM those t
		JOIN ledger_transfers r ON r.task_id = t.id AND r.kind IN ('post', 'void') WHERE t.status IN ('pending', 'processing')`,
		text: "task %s has not ended, but %s of its hold of %s is resolved",
	},
	{
		about: aTransfer,
		query: `SELECT h.task_id AS id, h.amount AS found, 0 AS expected, h.id AS transfer FROM those h
		WHERE h.kind = 'hold'
			AND NOT EXISTS (SELECT 1 FROM ledger_transfers r WHERE r.task_id = h.task_id AND r.kind IN ('post', 'void'))
			AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = h.task_id AND t.status IN ('pending', 'processing'))
			AND NOT EXISTS (SELECT 1 FROM speeches s WHERE s.id = h.task_id AND s.state = 'open')`,
		text:  "task %s: %s is held for a task that is not alive (should be %s)",
		names: "transfer",
	},
	{
		about: aTask,
		query: `SELECT t.id, r.amount AS found, 0 AS expected FROM those t JOIN ledger_transfers r ON r.task_id = t.id AND r.kind = 'post'
		WHERE t.status IN ('failed', 'cancelled')`,
		text: "task %s did not complete, but %s was charged, not %s",
	},
	{
		about: aTask,
		query: `SELECT t.id, COALESCE(r.amount, 0) AS found, t.cost AS expected FROM those t
		LEFT JOIN ledger_transfers r ON r.task_id = t.id AND r.kind = 'post'
		WHERE t.status = 'completed' AND (r.id IS NULL OR r.amount <> t.cost)`,
		text: "task %s: %s was charged in the ledger, %s by its row",
	},
	{
		about: aTask,
		query: `SELECT id, cost AS found, 0 AS expected FROM those WHERE status <> 'completed' AND cost <> 0`,
		text:  "task %s did not complete, but costs %s, not %s",
	},
	{
		about: aTransfer,
		query: `SELECT r.task_id AS id, r.amount AS found, COALESCE(h.amount, 0) AS expected, r.id AS transfer FROM those r
		LEFT JOIN ledger_transfers h ON h.task_id = r.task_id AND h.kind = 'hold'
		WHERE (r.kind = 'post' AND r.amount > COALESCE(h.amount, -1)) OR (r.kind = 'void' AND r.amount <> COALESCE(h.amount, -1))`,
		text:  "task %s: %s was posted or voided of a hold of %s",
		names: "transfer",
	},
	{
		about: aSpeech,
		query: `SELECT s.id, COALESCE(h.amount, 0) AS found, s.hold AS expected FROM those s
		LEFT JOIN ledger_transfers h ON h.task_id = s.id AND h.kind = 'hold' WHERE h.id IS NULL OR h.amount <> s.hold`,
		text: "speech %s: %s is held for it in the ledger, %s by its row",
	},
	{
		about: aSpeech,
		query: `SELECT s.id, COUNT(r.id) * 1000000 AS found, CASE s.state WHEN 'open' THEN 0 ELSE 1000000 END AS expected FROM those s
		LEFT JOIN ledger_transfers r ON r.task_id = s.id AND r.kind IN ('post', 'void')
		GROUP BY s.id, s.state HAVING COUNT(r.id) <> CASE s.state WHEN 'open' THEN 0 ELSE 1 END`,
		text: "speech %s has %s posts or voids, by its state %s",
	},
	{
		about: aSpeech,
		query: `SELECT s.id, COALESCE(r.amount, 0) AS found, s.cost AS expected FROM those s
		LEFT JOIN ledger_transfers r ON r.task_id = s.id AND r.kind = 'post' WHERE COALESCE(r.amount, 0) <> s.cost`,
		text: "speech %s: %s was charged in the ledger, %s by its row",
	},
	keyPeriod(periods[0]), keyPeriod(periods[1]), keyPeriod(periods[2]),
	keysInFlight.limited("their_keys"), keysInFlight.negative("their_keys"),
	accountsInFlight.limited("these"), accountsInFlight.negative("these"),
}

// Numbers of reports after the last of the rules.
const (
	hourRule = len(rules) + iota
	dayRule
)

// cachedAccount compares an account's cached balance with its entries.
func cachedAccount(bucket string) string {
	return `SELECT a.id, a.` + bucket + ` AS found, COALESCE(e.amount, 0) AS expected FROM these a
		LEFT JOIN (SELECT account_id, SUM(amount) AS amount FROM sums WHERE what = '` + bucket + `' GROUP BY account_id) e ON e.account_id = a.id
		WHERE a.` + bucket + ` <> COALESCE(e.amount, 0)`
}

// cachedKey compares what stands in a purse with the entries of all its keys. A
// key that has another's purse has nothing in its own row.
func cachedKey(bucket string) string {
	return `SELECT k.id, k.` + bucket + ` AS found, COALESCE(e.amount, 0) AS expected FROM their_keys k
		LEFT JOIN (SELECT o.purse, SUM(l.amount) AS amount FROM sums l JOIN their_keys o ON o.id = l.key_id
			WHERE l.what = '` + bucket + `' GROUP BY o.purse) e ON e.purse = k.id
		WHERE k.` + bucket + ` <> COALESCE(e.amount, 0)`
}

// keyPeriod compares what counts of a key's cap with the holds that were counted
// to the period: what is held, and of those that have ended what was charged. An
// end that names no day gave nothing back.
func keyPeriod(p period) rule {
	return rule{
		about: anAccount,
		query: `SELECT k.id, k.` + p.name + `_used AS found, COALESCE(c.amount, 0) AS expected FROM their_keys k
		LEFT JOIN (SELECT p.id AS purse, SUM(l.amount) AS amount FROM sums l JOIN their_keys o ON o.id = l.key_id JOIN their_keys p ON p.id = o.purse
			WHERE l.what = '` + counted + `' AND l.day >= p.` + p.name + `_began GROUP BY p.id) c ON c.purse = k.id
		WHERE k.` + p.name + `_used <> COALESCE(c.amount, 0)`,
		text: "key %s: %s counts for its cap of the " + p.name + ", its holds come to %s",
	}
}

// limited compares what a row has counted with its tasks in flight, where there
// is a limit: without one nobody goes by it.
func (f inFlight) limited(rows string) rule {
	return rule{
		about: anAccount,
		query: `SELECT id, in_flight * 1000000 AS found, tasks * 1000000 AS expected FROM (
			SELECT id, in_flight, (` + f.tasks + `) AS tasks FROM ` + rows + ` AS ` + f.table + ` WHERE in_flight_cap IS NOT NULL) AS limited
		WHERE in_flight <> tasks`,
		text: f.what + " %s has counted %s tasks in flight, there are %s",
	}
}

func (f inFlight) negative(rows string) rule {
	return rule{
		about: anAccount,
		query: `SELECT id, in_flight * 1000000 AS found, 0 AS expected FROM ` + rows + ` WHERE in_flight < 0`,
		text:  f.what + " %s has counted %s tasks in flight, below %s",
	}
}

// keySum compares an account with its keys, a rotated pair once, deleted ones too.
func keySum(bucket string) string {
	return `SELECT a.id, a.` + bucket + ` AS found, COALESCE(k.amount, 0) AS expected FROM these a
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
