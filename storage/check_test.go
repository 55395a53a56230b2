package storage_test

import (
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
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

// tamper breaks a sound ledger, and expects the check to say so.
func (b *bench) tamper(happen func(*bench), t tampering) {
	b.corrupt = true
	happen(b)
	b.checkLedger()
	b.spoil(t.statement)
	report := must(b.CheckLedger(b.Context()))
	if report.OK || !strings.Contains(strings.Join(report.Problems, "\n"), t.want) {
		b.Fatalf("want a problem with %q, got:\n%s", t.want, strings.Join(report.Problems, "\n"))
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

func TestCheckFacts(t *testing.T) {
	t.Parallel()
	prove(t, withTampering(facts{
		"an empty ledger is sound": func(b *bench) {
			report := must(b.CheckLedger(b.Context()))
			same(b, "report", report, mediagate.LedgerReport{OK: true, Problems: []string{}})
		},
		"the report counts what it looked at": func(b *bench) {
			p := b.newPayer(unit(10))
			b.submit(p, unit(1))
			b.speak(p, unit(1))
			report := must(b.CheckLedger(b.Context()))
			same(b, "checked", report.Checked, 4)
		},
		"the check lists so many problems for each rule": func(b *bench) {
			b.corrupt = true
			for range 102 {
				b.newPayer(unit(1))
			}
			b.spoil("UPDATE accounts SET spent = 1")
			report := must(b.CheckLedger(b.Context()))
			same(b, "ok, checked, problems", []any{report.OK, report.Checked, len(report.Problems)}, []any{false, 204, 300}) // of three rules
		},
	}))
}
