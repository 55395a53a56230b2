package storage_test

import (
	"sync/atomic"
	"testing"

	"github.com/mediagate/mediagate"
)

func proof(made, found string) mediagate.AccountProof {
	return mediagate.AccountProof{Made: made, Found: found, Channel: channelName, TaskID: "task_1", N: 1}
}

// D11: which fingerprints are of one vendor account.
func TestProofFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"proofs lead on, both ways": func(b *bench) {
			for _, p := range []mediagate.AccountProof{proof("a", "b"), proof("c", "b"), proof("c", "d"), proof("x", "y"), proof("b", "a")} {
				fresh := must(b.ProveAccount(b.Context(), p))
				same(b, "fresh", fresh, true)
			}
			for _, c := range []struct {
				fingerprint string
				want        []string
			}{
				{"a", []string{"a", "b", "c", "d"}},
				{"d", []string{"a", "b", "c", "d"}},
				{"y", []string{"x", "y"}},
				{"unheard of", []string{"unheard of"}},
			} {
				got := must(b.SameAccount(b.Context(), c.fingerprint))
				same(b, "the account of "+c.fingerprint, got, c.want)
			}
		},
		"a proof is news once": func(b *bench) {
			var news atomic.Int64
			b.race(8, func(int) {
				fresh := must(b.ProveAccount(b.Context(), proof("a", "b")))
				if fresh {
					news.Add(1)
				}
			})
			same(b, "news", news.Load(), 1)
		},
		"the accounts of a channel's rows": func(b *bench) {
			p := b.newPayer(unit(10))
			b.accepted(p, unit(1))
			b.accepted(p, unit(1))
			got := must(b.AwaitAccounts(b.Context(), channelName))
			same(b, "accounts", got, []string{"fp"})
			got = must(b.AwaitAccounts(b.Context(), "another"))
			same(b, "accounts of another channel", len(got), 0)
		},
	})
}
