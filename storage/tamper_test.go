package storage_test

import "maps"

// tamperTests are the corruptions that CheckLedger must find, each beginning
// from a sound ledger.
var tamperTests = map[string]tampering{
	"an entry's amount":                          {"UPDATE ledger_entries SET amount = amount + 1 WHERE bucket = 'spent'", "its entries sum to 0.000001, not 0"},
	"an entry that is gone":                      {"DELETE FROM ledger_entries WHERE bucket = 'issued'", "its entries sum to 20, not 0"},
	"all entries of a transfer gone":             {"DELETE FROM ledger_entries WHERE transfer_id = (SELECT id FROM ledger_transfers WHERE kind = 'post')", "its entry says 0, the transfer 1"},
	"a transfer's amount":                        {"UPDATE ledger_transfers SET amount = amount + 1000000 WHERE kind = 'grant'", "available, held and spent are 20, but 21 was granted"},
	"an entry of another key":                    {"UPDATE ledger_entries SET key_id = 'key_other' WHERE bucket = 'spent'", "belongs to another account or key"},
	"an account's available":                     {"UPDATE accounts SET available = available + 1", "available is 17.000001, its entries sum to 17"},
	"an account's held":                          {"UPDATE accounts SET held = held + 1", "held is 2.000001, its keys' sum to 2"},
	"an account's spent":                         {"UPDATE accounts SET spent = 0", "spent is 0, its entries sum to 1"},
	"a key's held":                               {"UPDATE keys SET held = 0", "held is 0, its entries sum to 2"},
	"a key's spent":                              {"UPDATE keys SET spent = spent + 1", "spent is 1.000001, its entries sum to 1"},
	"what counts in a day":                       {"UPDATE keys SET day_used = day_used + 1", "3.000001 counts for its cap of the day, its holds come to 3"},
	"what counts in a week":                      {"UPDATE keys SET week_used = 0", "0 counts for its cap of the week, its holds come to 3"},
	"what was given back to a month":             {"UPDATE ledger_transfers SET counted_day = NULL WHERE kind = 'void' AND amount = 4000000", "3 counts for its cap of the month, its holds come to 7"},
	"a key's tasks in flight":                    {"UPDATE keys SET in_flight = in_flight + 1, in_flight_cap = 9", "has counted 2 tasks in flight, there are 1"},
	"an account's tasks in flight":               {"UPDATE accounts SET in_flight = 0", "has counted 0 tasks in flight, there are 1"},
	"a key that is gone":                         {"DELETE FROM keys", "held is 2, its keys' sum to 0"},
	"a hold that a task's row contradicts":       {"UPDATE tasks SET hold = hold + 1 WHERE status = 'processing'", "2 is held for it in the ledger, 2.000001 by its row"},
	"a terminal task whose hold is not resolved": {"UPDATE tasks SET status = 'cancelled', ended_at = created_at WHERE status = 'processing'", "has ended with 0 posts or voids, not 1"},
	"a hold for a task that is not alive": {
		statement: "UPDATE ledger_transfers SET task_id = 'task_none' WHERE kind = 'hold' AND amount = 2000000 AND NOT EXISTS (" +
			"SELECT 1 FROM ledger_transfers r WHERE r.kind <> 'hold' AND r.task_id = ledger_transfers.task_id)",
		want: "task task_none: 2 is held for a task that is not alive",
	},
	"an open task that is resolved":      {"UPDATE tasks SET status = 'processing', progress = 0, cost = 0, ended_at = NULL WHERE status = 'completed'", "has not ended, but 1 of its hold of 2 is resolved"},
	"a failed task that was charged":     {"UPDATE ledger_transfers SET kind = 'post' WHERE kind = 'void' AND amount = 3000000", "did not complete, but 3 was charged, not 0"},
	"a completed task with another cost": {"UPDATE tasks SET cost = cost + 1 WHERE status = 'completed'", "1 was charged in the ledger, 1.000001 by its row"},
	"a void of less than the hold":       {"UPDATE ledger_transfers SET amount = 1 WHERE kind = 'void' AND amount = 3000000", "0.000001 was posted or voided of a hold of 3"},
}

// usageTampering are the corruptions of what was counted, of the same account.
var usageTampering = map[string]tampering{
	"a cost that was not charged":   {"UPDATE usage_sums SET cost = cost + 1 WHERE span = 'day'", ": cost is 1.000001, by the ledger 1"},
	"a task that was counted twice": {"UPDATE usage_sums SET failed = failed + 1 WHERE span = 'hour'", ": failed is 2, by the ledger 1"},
	"a hold that was not counted":   {"UPDATE usage_sums SET taken = 0", ": taken is 0, by the ledger"},
	"sums that are gone":            {"DELETE FROM usage_sums WHERE span = 'day'", ": cost is 0, by the ledger 1"},
	"sums of another model":         {"UPDATE usage_sums SET model = 'theta'", "model theta, "},
}

// speechTampering are the corruptions of speeches, of which there is one that
// is open for 2, one posted for 1 and one voided of 3.
var speechTampering = map[string]tampering{
	"a hold that a speech's row contradicts":     {"UPDATE speeches SET hold = hold + 1 WHERE state = 'open'", "2 is held for it in the ledger, 2.000001 by its row"},
	"a speech that has ended with its hold open": {"UPDATE speeches SET state = 'voided', ended_at = created_at WHERE state = 'open'", "has 0 posts or voids, by its state 1"},
	"a hold of a speech that has ended":          {"UPDATE speeches SET state = 'voided', ended_at = created_at WHERE state = 'open'", "2 is held for a task that is not alive"},
	"an open speech that is resolved":            {"UPDATE speeches SET state = 'open', cost = 0, ended_at = NULL WHERE state = 'posted'", "has 1 posts or voids, by its state 0"},
	"a voided speech that was charged":           {"UPDATE ledger_transfers SET kind = 'post' WHERE kind = 'void'", "3 was charged in the ledger, 0 by its row"},
	"a posted speech with another cost":          {"UPDATE speeches SET cost = cost - 1 WHERE state = 'posted'", "1 was charged in the ledger, 0.999999 by its row"},
	"a speech that is gone":                      {"DELETE FROM speeches WHERE state = 'open'", "2 is held for a task that is not alive"},
}

// tampering is one way to break the ledger by SQL.
type tampering struct {
	statement string
	want      string // part of the problem's line
}

// withTampering adds a test for each corruption.
func withTampering(f facts) facts {
	all := maps.Clone(f)
	add := func(tamperings map[string]tampering, happen func(*bench)) {
		for name, t := range tamperings {
			all["the check finds "+name] = func(b *bench) { b.tamper(happen, t) }
		}
	}
	add(tamperTests, (*bench).someTasks)
	add(usageTampering, (*bench).someTasks)
	add(speechTampering, (*bench).someSpeeches)
	return all
}
