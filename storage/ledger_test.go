package storage_test

import (
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mediagate/mediagate"
)

func TestLedgerFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
		"a grant makes money available": func(b *bench) {
			p := b.newPayer(0)
			g, available, created := must3(b.Grant(b.Context(), p.account, unit(12), "invoice 1"))
			same(b, "answer", []any{available, created}, []any{unit(12), true})
			same(b, "transfer", g, mediagate.Transfer{
				ID: g.ID, Kind: mediagate.EntryGrant, AccountID: p.account, Amount: unit(12), Reference: "invoice 1", At: b.now(),
			})
		},
		"the same reference and amount changes nothing": func(b *bench) {
			p := b.newPayer(0)
			first, _, _ := must3(b.Grant(b.Context(), p.account, unit(3), "r"))
			again, available, created := must3(b.Grant(b.Context(), p.account, unit(3), "r"))
			same(b, "grant", again, first)
			same(b, "answer", []any{available, created}, []any{unit(3), false})
			b.kind(errOf(b.Grant(b.Context(), p.account, unit(4), "r")), mediagate.KindConflict)
			other := b.newPayer(0)
			_, _, created = must3(b.Grant(b.Context(), other.account, unit(4), "r"))
			same(b, "created for another account", created, true)
			b.money(p, unit(3), 0, 0)
		},
		"of twenty equal grants at once one counts": func(b *bench) {
			p := b.newPayer(0)
			var created atomic.Int64
			b.race(20, func(int) {
				_, _, made := must3(b.Grant(b.Context(), p.account, unit(1), "r"))
				if made {
					created.Add(1)
				}
			})
			same(b, "created", created.Load(), 1)
			b.money(p, unit(1), 0, 0)
		},
		"no more is taken back than there is, whatever is asked": func(b *bench) {
			p := b.newPayer(unit(10))
			for _, amount := range []mediagate.Micros{math.MinInt64, math.MinInt64 + 1, -math.MaxInt64 / 4} {
				b.kind(errOf(b.Grant(b.Context(), p.account, amount, "r")), mediagate.KindConflict)
			}
			b.money(p, unit(10), 0, 0)
		},
		"zero is no grant": func(b *bench) {
			p := b.newPayer(0)
			b.kind(errOf(b.Grant(b.Context(), p.account, 0, "r")), mediagate.KindInvalid)
		},
		"no number of grants overflows an account": func(b *bench) {
			p := b.newPayer(0)
			most := unit(999_999_999_999)
			var err error
			for i := 0; err == nil && i < 20; i++ {
				_, _, _, err = b.Grant(b.Context(), p.account, most, strings.Repeat("x", i+1))
			}
			b.kind(err, mediagate.KindConflict)
		},
		"the ledger lists what happened, newest first": func(b *bench) {
			p := b.newPayer(unit(10))
			one, two := b.accepted(p, unit(2)), b.accepted(p, unit(3))
			b.settle(completed(one, unit(1)))
			b.settle(failed(two))
			all, more := must2(b.Ledger(b.Context(), p.account, "", "", 10))
			var got []string
			for _, t := range all {
				got = append(got, string(t.Kind)+" "+t.Amount.String()+" "+t.TaskID+t.Reference)
			}
			same(b, "transfers", got, []string{
				"void 3.00 " + two, "post 1.00 " + one, "hold 3.00 " + two, "hold 2.00 " + one, "grant 10.00 opening",
			})
			same(b, "more", more, false)
			of, _ := must2(b.Ledger(b.Context(), p.account, one, "", 10))
			same(b, "of one task", len(of), 2)
			page, more := must2(b.Ledger(b.Context(), p.account, "", all[1].ID, 2))
			same(b, "page", []any{page[0].ID, page[1].ID, len(page), more}, []any{all[2].ID, all[3].ID, 2, true})
		},
	})
}
