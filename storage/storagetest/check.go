package storagetest

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
)

// someTasks are those of an account with one task running, one completed for 1 of
// 2, one failed and one cancelled.
func (b *bench) someTasks() {
	p := b.newPayerKey(unit(20), mediagate.Key{Quota: unit(20)})
	b.accepted(p, unit(2))
	done, lost, gone := b.accepted(p, unit(2)), b.accepted(p, unit(3)), b.submit(p, unit(4))
	b.settle(completed(done, unit(1)))
	b.settle(failed(lost))
	b.settle(cancelled(gone))
}

// someSpeeches are those of an account with one speech open, one posted and one
// voided.
func (b *bench) someSpeeches() {
	p := b.newPayerKey(unit(20), mediagate.Key{Quota: unit(20)})
	b.speak(p, unit(2))
	b.endSpeech(b.speak(p, unit(1)), mediagate.SpeechPosted)
	b.endSpeech(b.speak(p, unit(3)), mediagate.SpeechVoided)
}

// tamperOld breaks a sound ledger that was checked, and expects a whole check to
// say so, and one of what is new where balances show it.
func (b *bench) tamperOld(happen func(*bench), t tampering) {
	b.corrupt = true
	happen(b)
	b.checkLedger()
	b.sound(b.CheckLedgerSince)
	b.spoil(t.statement)
	b.accuses(b.CheckLedger, t.want)
	if t.balances {
		b.accuses(b.CheckLedgerSince, t.want)
	} else if b.database().Name() == "sqlite" { // on PostgreSQL other tests may keep transfers from being closed
		b.sound(b.CheckLedgerSince)
	}
}

// tamperNew breaks what was stored since the last check, and expects the next to
// say so, and all others until it is mended.
func (b *bench) tamperNew(happen func(*bench), t tampering) {
	b.corrupt = true
	b.sound(b.CheckLedgerSince)
	happen(b)
	b.spoil(t.statement)
	for range 2 {
		b.accuses(b.CheckLedgerSince, t.want)
	}
}

// spoil tampers.
func (b *bench) spoil(statement string, args ...any) {
	b.Helper()
	result := b.database().Exec(statement, args...)
	b.noError(result.Error)
	if result.RowsAffected == 0 {
		b.Fatalf("nothing was tampered with by %s", statement)
	}
}

type checking func(ctx context.Context) (mediagate.LedgerReport, error)

func (b *bench) sound(check checking) mediagate.LedgerReport {
	b.Helper()
	report, err := check(b.Context())
	b.noError(err)
	if !report.OK {
		b.Fatalf("the check finds what is not:\n%s", strings.Join(report.Problems, "\n"))
	}
	return report
}

func (b *bench) accuses(check checking, want string) {
	b.Helper()
	report, err := check(b.Context())
	b.noError(err)
	if report.OK || !strings.Contains(strings.Join(report.Problems, "\n"), want) {
		b.Fatalf("want a problem with %q, got:\n%s", want, strings.Join(report.Problems, "\n"))
	}
}

// inSlices is the store with slices of that many rows.
func (b *bench) inSlices(rows int, now func() time.Time) *storage.Store {
	return b.backend.Open(b.T, storage.Config{Now: now, EncryptionKeys: [][]byte{encryptionKey}, CheckRows: rows})
}

var sliceTests = map[string]func(*bench){
	"an empty ledger has nothing new": func(b *bench) {
		same(b, "report", b.sound(b.CheckLedgerSince), mediagate.LedgerReport{OK: true, Problems: []string{}})
	},
	"slices of any size come to the same": func(b *bench) {
		b.corrupt = true
		for range 3 {
			b.someTasks()
			b.someSpeeches()
			b.pass(25 * time.Hour)
		}
		want := b.sound(b.CheckLedger)
		b.spoil("UPDATE tasks SET cost = cost - 1 WHERE status = 'completed'")
		b.spoil("UPDATE usage_sums SET taken = taken + 1")
		broken, err := b.CheckLedger(b.Context())
		b.noError(err)
		for _, rows := range []int{1, 2, 7} {
			store := b.inSlices(rows, b.now)
			found, err := store.CheckLedger(b.Context())
			b.noError(err)
			same(b, "whole", found, broken)
			same(b, "checked", found.Checked, want.Checked)
			found, err = store.CheckLedgerSince(b.Context())
			b.noError(err)
			same(b, "what is new", found.Problems, broken.Problems)
		}
		same(b, "sums left", b.count("SELECT COUNT(*) FROM ledger_check_sums WHERE run <> 'last'"), 0)
	},
	"what is new is little": func(b *bench) {
		b.someTasks()
		b.sound(b.CheckLedgerSince)
		p := b.newPayer(unit(10))
		b.settle(completed(b.accepted(p, unit(2)), unit(1)))
		report := b.sound(b.CheckLedgerSince)
		if whole := b.sound(b.CheckLedger); report.Checked == 0 || whole.Checked != 9 {
			b.Errorf("checked %d of %d", report.Checked, whole.Checked)
		}
	},
	"a task that was open is checked again with its end": func(b *bench) {
		b.corrupt = true
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(2))
		b.sound(b.CheckLedgerSince)
		b.settle(completed(id, unit(1)))
		b.spoil("UPDATE tasks SET cost = 0 WHERE id = ?", id)
		b.accuses(b.CheckLedgerSince, "task "+id+": 1 was charged in the ledger, 0 by its row")
		b.spoil("UPDATE tasks SET cost = ? WHERE id = ?", unit(1), id)
		b.sound(b.CheckLedgerSince)
	},
	"usage that is mended is sound": func(b *bench) {
		b.someTasks()
		b.spoil("UPDATE usage_sums SET cost = cost + 1 WHERE span = 'hour'")
		for range 2 {
			b.accuses(b.CheckLedgerSince, "by the ledger")
		}
		b.spoil("UPDATE usage_sums SET cost = cost - 1 WHERE span = 'hour'")
		b.sound(b.CheckLedgerSince)
	},
	"what was mended with its balances is sound": func(b *bench) {
		b.someTasks()
		b.sound(b.CheckLedgerSince)
		b.spoil("UPDATE ledger_transfers SET amount = amount + 1 WHERE kind = 'grant'")
		b.spoil("UPDATE ledger_entries SET amount = amount + 1 WHERE bucket = 'available' AND amount > 0 AND transfer_id IN (SELECT id FROM ledger_transfers WHERE kind = 'grant')")
		b.spoil("UPDATE ledger_entries SET amount = amount - 1 WHERE bucket = 'issued'")
		b.spoil("UPDATE accounts SET available = available + 1")
		b.sound(b.CheckLedgerSince)
		b.sound(b.CheckLedgerSince)
	},
	"a check that is cut off is gone on with": func(b *bench) {
		b.someTasks()
		b.someSpeeches()
		kept := func() bool {
			return b.count("SELECT COUNT(*) FROM ledger_checks WHERE run = 'last'") == 1 && b.count("SELECT COUNT(*) FROM ledger_check_sums") > 0
		}
		// What was written while an older transaction runs, of any database of the server, is checked once that has ended.
		for tries := 0; !kept() && tries < 1000; tries++ {
			for _, after := range []int{2, 3, 5} {
				ctx, cancel := context.WithCancel(b.Context())
				looks := 0
				store := b.inSlices(1, func() time.Time { // each slice asks for the time
					if looks++; looks == after {
						cancel()
					}
					return b.now()
				})
				if _, err := store.CheckLedgerSince(ctx); err == nil {
					b.Fatal("the check was not cut off")
				}
			}
		}
		if !kept() {
			b.Fatal("nothing was kept")
		}
		b.sound(b.CheckLedgerSince)
	},
	"transfers of before have no position": func(b *bench) {
		b.someTasks()
		b.spoil("UPDATE ledger_transfers SET position = NULL")
		b.someSpeeches()
		b.sound(b.inSlices(2, b.now).CheckLedger)
		b.sound(b.inSlices(2, b.now).CheckLedgerSince)
		b.someTasks()
		b.sound(b.CheckLedgerSince)
	},
	"positions of another cluster mean nothing": func(b *bench) {
		b.someTasks()
		b.sound(b.CheckLedgerSince)
		if b.database().Name() == "sqlite" {
			return // which numbers transfers itself
		}
		b.spoil("UPDATE ledger_transfers SET position = position + 1000000000")
		b.spoil("UPDATE ledger_checks SET position = position + 1000000000, floor = floor + 1000000000, cluster = 'another'")
		b.someTasks()
		b.sound(b.CheckLedger)
		b.sound(b.CheckLedgerSince)
		b.someTasks()
		b.sound(b.CheckLedgerSince)
		same(b, "positions ahead", b.count("SELECT COUNT(*) FROM ledger_transfers WHERE position > 1000000000"), 0)
	},
	"what a crashed check left goes": func(b *bench) {
		b.someTasks()
		b.spoil(`INSERT INTO ledger_checks (run, cluster, floor, position, transfer_id, moved_at) SELECT 'check_1', '', 1, 1, '', created_at FROM accounts`)
		b.spoil("INSERT INTO ledger_check_sums (run, account_id, key_id, what, day, amount) VALUES ('check_1', 'a', '', 'held', 0, 1)")
		b.sound(b.CheckLedger)
		same(b, "runs", b.count("SELECT COUNT(*) FROM ledger_checks"), 1)
		b.pass(25 * time.Hour)
		b.sound(b.CheckLedger)
		same(b, "runs", b.count("SELECT COUNT(*) FROM ledger_checks"), 0)
		same(b, "sums", b.count("SELECT COUNT(*) FROM ledger_check_sums"), 0)
	},
	"checks beside each other and what happens are sound": func(b *bench) {
		payers := []payer{b.newPayer(unit(100)), b.newPayerKey(unit(100), mediagate.Key{Quota: unit(90)})}
		store := b.inSlices(3, b.now)
		var left atomic.Int64
		left.Store(2)
		b.race(5, func(i int) {
			if i < 2 {
				defer left.Add(-1)
				for n := range 12 {
					id := b.submit(payers[(i+n)%2], unit(2))
					b.settle([]end{cancelled(id), made(id, unit(1))}[n%2])
				}
				return
			}
			check := []checking{store.CheckLedgerSince, store.CheckLedgerSince, store.CheckLedger}[i-2]
			for done := false; !done; {
				done = left.Load() == 0
				report, err := check(b.Context())
				if err != nil || !report.OK {
					b.Errorf("the check: %v\n%s", err, strings.Join(slices.Clip(report.Problems), "\n"))
					return
				}
			}
		})
	},
}
