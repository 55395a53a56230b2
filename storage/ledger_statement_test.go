package storage_test

import (
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

func (b *bench) stated(f mediagate.StatementFilter) mediagate.Statement {
	b.Helper()
	st := must(b.Statement(b.Context(), f))
	return st
}

func TestStatementFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
		"a statement leads from a balance to a balance": func(b *bench) {
			p := b.newPayer(unit(10))
			done, gone := b.accepted(p, unit(3)), b.submit(p, unit(2))
			b.pass(time.Minute)
			b.settle(completed(done, unit(1)))
			b.settle(cancelled(gone))
			must3(b.Grant(b.Context(), p.account, -unit(1), "back"))
			st := b.stated(mediagate.StatementFilter{AccountID: p.account, From: b.now(), Limit: 10})
			same(b, "opening", st.Opening, mediagate.Balance{Available: unit(5), Held: unit(5)})
			same(b, "closing", st.Closing, mediagate.Balance{Available: unit(8), Spent: unit(1)})
			type line struct {
				Kind, Task, Model, Reference string
				Change                       mediagate.Balance
			}
			var got []line
			for _, l := range st.Lines {
				got = append(got, line{string(l.Kind), l.TaskID, l.Model, l.Reference, l.Change})
			}
			same(b, "lines", got, []line{
				{"post", done, "alpha-v3", "", mediagate.Balance{Available: unit(2), Held: -unit(3), Spent: unit(1)}},
				{"void", gone, "alpha-v3", "", mediagate.Balance{Available: unit(2), Held: -unit(2)}},
				{"grant", "", "", "back", mediagate.Balance{Available: -unit(1)}},
			})
		},
		"by task, each task has a line and what the account has after it": func(b *bench) {
			p := b.newPayer(unit(10))
			done, gone := b.accepted(p, unit(3)), b.submit(p, unit(2))
			b.pass(time.Minute)
			b.submit(p, unit(1))
			b.settle(completed(done, unit(1)))
			b.settle(cancelled(gone))
			st := b.stated(mediagate.StatementFilter{AccountID: p.account, From: b.now(), Limit: 10, ByTask: true})
			var got []any
			for _, l := range st.Lines {
				got = append(got, string(l.Kind), l.TaskID, l.Change.Total(), l.Total)
			}
			same(b, "lines", got, []any{"post", done, -unit(1), unit(9), "void", gone, unit(0), unit(9)})
			same(b, "totals", []mediagate.Micros{st.Opening.Total(), st.Closing.Total(), st.Closing.Spent}, []mediagate.Micros{unit(10), unit(9), unit(1)})
		},
		"a statement is of one account that is there": func(b *bench) {
			p, other := b.newPayer(unit(1)), b.newPayer(unit(1))
			b.kind(errOf(b.Statement(b.Context(), mediagate.StatementFilter{AccountID: "acc_none", Limit: 10})), mediagate.KindNotFound)
			theirs := b.stated(mediagate.StatementFilter{AccountID: other.account, Limit: 10})
			b.kind(errOf(b.Statement(b.Context(), mediagate.StatementFilter{AccountID: p.account, Limit: 10, After: theirs.Lines[0].ID})), mediagate.KindInvalid)
			b.kind(errOf(b.Statement(b.Context(), mediagate.StatementFilter{AccountID: other.account, From: b.now().Add(time.Second), Limit: 10, After: theirs.Lines[0].ID})), mediagate.KindInvalid)
			b.kind(errOf(b.Statement(b.Context(), mediagate.StatementFilter{
				AccountID: other.account, To: b.now().Add(-time.Second), Limit: 10, After: theirs.Lines[0].ID,
			})), mediagate.KindInvalid)
		},
	})
}
