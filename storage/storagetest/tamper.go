package storagetest

import "maps"

// tamperTests are the corruptions that CheckLedger must find, each beginning
// from a sound ledger.
var tamperTests = map[string]tampering{
	"an entry's amount": {
		statement: "UPDATE ledger_entries SET amount = amount + 1 WHERE bucket = 'spent'",
		want:      "its entries sum to 0.000001, not 0",
	},
	"an entry that is gone": {
		statement: "DELETE FROM ledger_entries WHERE bucket = 'issued'",
		want:      "its entries sum to 20, not 0",
	},
	"all entries of a transfer gone": {
		statement: "DELETE FROM ledger_entries WHERE transfer_id = (SELECT id FROM ledger_transfers WHERE kind = 'post')",
		want:      "its entry says 0, the transfer 1",
	},
	"a transfer's amount": {
		statement: "UPDATE ledger_transfers SET amount = amount + 1000000 WHERE kind = 'grant'",
		want:      "available, held and spent are 20, but 21 was granted",
	},
	"an entry of another key": {
		statement: "UPDATE ledger_entries SET key_id = 'key_other' WHERE bucket = 'spent'",
		want:      "belongs to another account or key",
	},
	"an account's available": {
		statement: "UPDATE accounts SET available = available + 1",
		want:      "available is 17.000001, its entries sum to 17",
	},
	"an account's held": {
		statement: "UPDATE accounts SET held = held + 1",
		want:      "held is 2.000001, its keys' sum to 2",
	},
	"an account's spent": {
		statement: "UPDATE accounts SET spent = 0",
		want:      "spent is 0, its entries sum to 1",
	},
	"a key's held": {
		statement: "UPDATE keys SET held = 0",
		want:      "held is 0, its entries sum to 2",
	},
	"a key's spent": {
		statement: "UPDATE keys SET spent = spent + 1",
		want:      "spent is 1.000001, its entries sum to 1",
	},
	"what counts in a day": {
		statement: "UPDATE keys SET day_used = day_used + 1",
		want:      "3.000001 counts for its cap of the day, its holds come to 3",
	},
	"what counts in a week": {
		statement: "UPDATE keys SET week_used = 0",
		want:      "0 counts for its cap of the week, its holds come to 3",
	},
	"what was given back to a month": {
		statement: "UPDATE ledger_transfers SET counted_day = NULL WHERE kind = 'void' AND amount = 4000000",
		want:      "3 counts for its cap of the month, its holds come to 7",
	},
	"a key's tasks in flight": {
		statement: "UPDATE keys SET in_flight = in_flight + 1, in_flight_cap = 9",
		want:      "has counted 2 tasks in flight, there are 1",
	},
	"an account's tasks in flight": {
		statement: "UPDATE accounts SET in_flight = 0",
		want:      "has counted 0 tasks in flight, there are 1",
	},
	"a key that is gone": {
		statement: "DELETE FROM keys",
		want:      "held is 2, its keys' sum to 0",
	},
	"a hold that a task's row contradicts": {
		statement: "UPDATE tasks SET hold = hold + 1 WHERE status = 'processing'",
		want:      "2 is held for it in the ledger, 2.000001 by its row",
	},
	"a terminal task whose hold is not resolved": {
		statement: "UPDATE tasks SET status = 'cancelled', ended_at = created_at WHERE status = 'processing'",
		want:      "has ended with 0 posts or voids, not 1",
	},
	"a hold for a task that is not alive": {
		statement: "UPDATE ledger_transfers SET task_id = 'task_none' WHERE kind = 'hold' AND amount = 2000000 AND NOT EXISTS (" +
			"SELECT 1 FROM ledger_transfers r WHERE r.kind <> 'hold' AND r.task_id = ledger_transfers.task_id)",
		want: "task task_none: 2 is held for a task that is not alive",
	},
	"an open task that is resolved": {
		statement: "UPDATE tasks SET status = 'processing', progress = 0, cost = 0, ended_at = NULL WHERE status = 'completed'",
		want:      "has not ended, but 1 of its hold of 2 is resolved",
	},
	"a failed task that was charged": {
		statement: "UPDATE ledger_transfers SET kind = 'post' WHERE kind = 'void' AND amount = 3000000",
		want:      "did not complete, but 3 was charged, not 0",
	},
	"a completed task with another cost": {
		statement: "UPDATE tasks SET cost = cost + 1 WHERE status = 'completed'",
		want:      "1 was charged in the ledger, 1.000001 by its row",
	},
	"a void of less than the hold": {
		statement: "UPDATE ledger_transfers SET amount = 1 WHERE kind = 'void' AND amount = 3000000",
		want:      "0.000001 was posted or voided of a hold of 3",
	},
}

// usageTampering are the corruptions of what was counted, of the same account.
var usageTampering = map[string]tampering{
	"a cost that was not charged": {
		statement: "UPDATE usage_sums SET cost = cost + 1 WHERE span = 'day'",
		want:      ": cost is 1.000001, by the ledger 1",
	},
	"a task that was counted twice": {
		statement: "UPDATE usage_sums SET failed = failed + 1 WHERE span = 'hour'",
		want:      ": failed is 2, by the ledger 1",
	},
	"a hold that was not counted": {
		statement: "UPDATE usage_sums SET taken = 0",
		want:      ": taken is 0, by the ledger",
	},
	"sums that are gone": {
		statement: "DELETE FROM usage_sums WHERE span = 'day'",
		want:      ": cost is 0, by the ledger 1",
	},
	"sums of another model": {
		statement: "UPDATE usage_sums SET model = 'theta'",
		want:      "model theta, ",
	},
}

// speechTampering are the corruptions of speeches, of which there is one that
// is open for 2, one posted for 1 and one voided of 3.
var speechTampering = map[string]tampering{
	"a hold that a speech's row contradicts": {
		statement: "UPDATE speeches SET hold = hold + 1 WHERE state = 'open'",
		want:      "2 is held for it in the ledger, 2.000001 by its row",
	},
	"a speech that has ended with its hold open": {
		statement: "UPDATE speeches SET state = 'voided', ended_at = created_at WHERE state = 'open'",
		want:      "has 0 posts or voids, by its state 1",
	},
	"a hold of a speech that has ended": {
		statement: "UPDATE speeches SET state = 'voided', ended_at = created_at WHERE state = 'open'",
		want:      "2 is held for a task that is not alive",
	},
	"an open speech that is resolved": {
		statement: "UPDATE speeches SET state = 'open', cost = 0, ended_at = NULL WHERE state = 'posted'",
		want:      "has 1 posts or voids, by its state 0",
	},
	"a voided speech that was charged": {
		statement: "UPDATE ledger_transfers SET kind = 'post' WHERE kind = 'void'",
		want:      "3 was charged in the ledger, 0 by its row",
	},
	"a posted speech with another cost": {
		statement: "UPDATE speeches SET cost = cost - 1 WHERE state = 'posted'",
		want:      "1 was charged in the ledger, 0.999999 by its row",
	},
	"a speech that is gone": {
		statement: "DELETE FROM speeches WHERE state = 'open'",
		want:      "2 is held for a task that is not alive",
	},
}

// tampering is one way to break the ledger by SQL.
type tampering struct {
	statement string
	want      string // part of the problem's line
}

// withTampering adds a test for each corruption.
func withTampering(tests map[string]func(*bench)) map[string]func(*bench) {
	all := maps.Clone(tests)
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
