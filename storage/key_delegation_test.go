package storage_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// give makes a key with that quota at the word of another.
func (b *bench) give(giver string, hash byte, quota mediagate.Micros) (mediagate.Key, error) {
	return b.GiveKey(b.Context(), giver, mediagate.KeySecret{Hash: [32]byte{hash}, Prefix: "mgk_x"}, func(mediagate.Key) (mediagate.Key, error) {
		return mediagate.Key{Name: "given", Quota: quota, Unlimited: quota == 0, Scopes: mediagate.Scopes()}, nil
	})
}

func allowAll(_, _, _ mediagate.Key) (bool, error) { return false, nil }

func (b *bench) quota(key string) mediagate.Micros {
	b.Helper()
	k := must(b.Key(b.Context(), key))
	return k.Quota
}

func TestGiveFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"quota that a key gives is taken from it": func(b *bench) {
			p := b.newPayerKey(unit(100), mediagate.Key{Quota: unit(10)})
			b.submit(p, unit(1))
			ctx := mediagate.WithActor(b.Context(), mediagate.Actor{By: p.key})
			made := must(b.GiveKey(ctx, p.key, mediagate.KeySecret{Hash: [32]byte{1}, Prefix: "mgk_x", LastFour: "last"}, func(giver mediagate.Key) (mediagate.Key, error) {
				same(b, "giver's remainder", giver.Remaining(), unit(9))
				return mediagate.Key{Name: "given", Quota: unit(4), Scopes: []mediagate.Scope{mediagate.ScopeRead}}, nil
			}))
			got, _ := must2(b.KeyByHash(b.Context(), [32]byte{1}))
			same(b, "key", got, made)
			same(b, "its parts", []any{got.AccountID, got.Prefix, got.LastFour, got.CreatedAt, got.Quota}, []any{p.account, "mgk_x", "last", b.now(), unit(4)})
			same(b, "giver's quota", b.quota(p.key), unit(6))
			entries, _ := must2(b.Audit(b.Context(), mediagate.AuditFilter{AccountID: p.account, Limit: 10}))
			same(b, "noted", []any{len(entries), entries[0].Action, entries[1].Action, entries[1].Actor.By, string(entries[1].After)},
				[]any{2, mediagate.AuditCreateKey, mediagate.AuditChangeKey, p.key, `{"quota":"6.00"}`})

			b.kind(errOf(b.give(p.key, 2, unit(5)+1)), mediagate.KindForbidden)
			same(b, "giver's quota, after a refusal", b.quota(p.key), unit(6))
			set := func(quota mediagate.Micros) error {
				_, err := b.ChangeKey(b.Context(), p.key, made.ID, func(_ mediagate.Key, k *mediagate.Key) error {
					k.Quota = quota
					return nil
				}, allowAll)
				return err
			}
			b.noError(set(unit(9)))
			same(b, "quotas, raised", []any{b.quota(made.ID), b.quota(p.key)}, []any{unit(9), unit(1)})
			b.kind(set(unit(9)+1), mediagate.KindForbidden) // what is left is held
			b.noError(set(unit(2)))
			b.noError(b.DeleteKey(b.Context(), made.ID))
			same(b, "quota, after another was lowered and deleted", b.quota(p.key), unit(1))
		},
		"a key pays for all the quota that comes into its hands": func(b *bench) {
			p := b.newPayerKey(unit(100), mediagate.Key{Quota: unit(10)})
			made := must(b.CreateKey(b.Context(), mediagate.Key{AccountID: p.account, Quota: unit(3)}, [32]byte{1}))
			other := made.ID
			b.submit(payer{p.account, other}, unit(2))
			change := func(quota mediagate.Micros, widened bool) error {
				_, err := b.ChangeKey(b.Context(), p.key, other, func(_ mediagate.Key, k *mediagate.Key) error {
					k.Quota = quota
					return nil
				}, func(_, _, _ mediagate.Key) (bool, error) { return widened, nil })
				return err
			}
			b.noError(change(unit(3), true))
			same(b, "quota, after another was widened: what it holds may come back", b.quota(p.key), unit(7))
			renew := func(hash byte) error {
				_, err := b.RenewKey(b.Context(), p.key, other, mediagate.KeySecret{Hash: [32]byte{hash}}, 0, func(_, _ mediagate.Key) error { return nil })
				return err
			}
			b.noError(change(unit(8), false))
			same(b, "quota, after another's was raised", b.quota(p.key), unit(2))
			b.kind(renew(2), mediagate.KindForbidden)
			b.noError(change(unit(2), false))
			b.noError(renew(2))
			same(b, "quota, after another was rotated", b.quota(p.key), unit(0))
			b.kind(change(unit(2), true), mediagate.KindForbidden)
		},
		"keys that share a quota take nothing from each other": func(b *bench) {
			p := b.newPayerKey(unit(100), mediagate.Key{Quota: unit(10)})
			fresh := must(b.RenewKey(b.Context(), p.key, p.key, mediagate.KeySecret{Hash: [32]byte{1}}, time.Hour, func(giver, k mediagate.Key) error {
				same(b, "giver", giver, k)
				return nil
			}))
			var judged []string
			_, err := b.ChangeKey(b.Context(), fresh.ID, p.key, func(_ mediagate.Key, k *mediagate.Key) error {
				k.Quota, k.Name = unit(12), "renamed"
				return nil
			}, func(giver, was, is mediagate.Key) (bool, error) {
				same(b, "judged for", giver.ID, fresh.ID)
				same(b, "quota before and after", []any{was.Quota, is.Quota}, []any{unit(10), unit(12)})
				judged = append(judged, is.ID+" "+is.Name)
				return true, nil
			})
			same(b, "judged", judged, []string{p.key + " renamed", fresh.ID + " " + fresh.Name})
			b.noError(err)
			same(b, "quota", b.quota(fresh.ID), unit(12))
			must(b.give(p.key, 2, unit(5)))
			same(b, "quota of both", []any{b.quota(p.key), b.quota(fresh.ID)}, []any{unit(7), unit(7)})
		},
		"an unlimited key gives of its own accord": func(b *bench) {
			p := b.newPayer(unit(1))
			made := must(b.give(p.key, 1, unit(50)))
			must(b.ChangeKey(b.Context(), p.key, made.ID, func(_ mediagate.Key, k *mediagate.Key) error {
				k.Unlimited = true
				return nil
			}, allowAll))
			must(b.ChangeKey(b.Context(), made.ID, made.ID, func(giver mediagate.Key, k *mediagate.Key) error {
				k.Unlimited, k.Quota = false, unit(3)
				return nil
			}, allowAll))
			same(b, "quota", b.quota(made.ID), unit(3))
		},
		"keys of other accounts are unknown, and givers that ended too": func(b *bench) {
			p, q := b.newPayer(unit(1)), b.newPayer(unit(1))
			never := func(mediagate.Key, *mediagate.Key) error { b.Error("asked"); return nil }
			refuse := func(_, _ mediagate.Key) error { b.Error("asked"); return nil }
			for _, id := range []string{q.key, "key_0"} {
				b.kind(errOf(b.ChangeKey(b.Context(), p.key, id, never, allowAll)), mediagate.KindNotFound)
				b.kind(errOf(b.RenewKey(b.Context(), p.key, id, mediagate.KeySecret{Hash: [32]byte{1}}, 0, refuse)), mediagate.KindNotFound)
			}
			expired := must(b.GiveKey(b.Context(), p.key, mediagate.KeySecret{Hash: [32]byte{3}}, func(mediagate.Key) (mediagate.Key, error) {
				return mediagate.Key{Unlimited: true, ExpiresAt: b.now()}, nil
			}))
			b.noError(b.DeleteKey(b.Context(), q.key))
			for _, giver := range []string{q.key, "key_0", expired.ID} {
				b.kind(errOf(b.give(giver, 4, 0)), mediagate.KindUnauthenticated)
				b.kind(errOf(b.ChangeKey(b.Context(), giver, p.key, never, allowAll)), mediagate.KindUnauthenticated)
			}
		},
		"of many gifts at once as many as there is quota for": func(b *bench) {
			p := b.newPayerKey(unit(100), mediagate.Key{Quota: unit(5)})
			var given atomic.Int64
			b.race(12, func(i int) {
				if _, err := b.give(p.key, byte(i+1), unit(1)); err == nil {
					given.Add(1)
				} else if !mediagate.Is(err, mediagate.KindForbidden) {
					b.Errorf("gift %d: %v", i, err)
				}
			})
			same(b, "given, left", []any{given.Load(), b.quota(p.key)}, []any{int64(5), unit(0)})
		},
		"two keys that change each other both do": func(b *bench) {
			p := b.newPayer(unit(1))
			made := must(b.give(p.key, 1, 0))
			pair := []string{p.key, made.ID}
			b.race(8, func(i int) {
				_, err := b.ChangeKey(b.Context(), pair[i%2], pair[1-i%2], func(_ mediagate.Key, k *mediagate.Key) error {
					k.Rate = new(i)
					return nil
				}, allowAll)
				if err != nil {
					b.Errorf("change %d: %v", i, err)
				}
			})
		},
	})
}
