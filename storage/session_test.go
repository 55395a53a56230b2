package storage_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// signedIn adds a session of the key, or of the operator without one.
func (b *bench) signedIn(hash byte, key string, life time.Duration) {
	b.Helper()
	b.noError(b.AddSession(b.Context(), mediagate.Session{Hash: [32]byte{hash}, KeyID: key, OperatorHash: [32]byte{99}}, life))
}

// linked adds a link in its place.
func (b *bench) linked(hash byte, key string) {
	b.Helper()
	b.noError(b.AddLink(b.Context(), mediagate.Session{Hash: [32]byte{hash}, KeyID: key, OperatorHash: [32]byte{99}}, time.Hour))
}

func (b *bench) noSession(hash byte) {
	b.Helper()
	b.kind(errOf(b.Session(b.Context(), [32]byte{hash})), mediagate.KindNotFound)
}

func (b *bench) sessions() int {
	b.Helper()
	return b.count("SELECT COUNT(*) FROM sessions")
}

// These are about who is signed in to the console.
func TestSessionFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
		"a session is its key's or the operator's": func(b *bench) {
			p := b.newPayer(0)
			k := must(b.CreateKey(b.Context(), mediagate.Key{AccountID: p.account, Unlimited: true}, [32]byte{7}))
			b.signedIn(1, k.ID, time.Hour)
			b.signedIn(2, "", time.Hour)
			of := mediagate.Session{Hash: [32]byte{1}, KeyID: k.ID, KeyHash: [32]byte{7}, CreatedAt: b.now(), ExpiresAt: b.now().Add(time.Hour)}
			same(b, "the key's", must(b.Session(b.Context(), [32]byte{1})), of)
			of = mediagate.Session{Hash: [32]byte{2}, OperatorHash: [32]byte{99}, CreatedAt: b.now(), ExpiresAt: b.now().Add(time.Hour)}
			same(b, "the operator's", must(b.Session(b.Context(), [32]byte{2})), of)
			of = mediagate.Session{Hash: [32]byte{3}, OperatorHash: [32]byte{98}, Operator: "oidc:ada", Role: mediagate.RoleRead, CreatedAt: b.now(), ExpiresAt: b.now().Add(time.Hour)}
			b.noError(b.AddSession(b.Context(), of, time.Hour))
			same(b, "by OpenID Connect", must(b.Session(b.Context(), [32]byte{3})), of)
			b.noError(b.EndSession(b.Context(), [32]byte{3}))
			b.noSession(3)
			b.kind(b.AddSession(b.Context(), mediagate.Session{Hash: [32]byte{4}, KeyID: "key_none"}, time.Hour), mediagate.KindNotFound)
			b.noError(b.EndSession(b.Context(), [32]byte{1}))
			b.noError(b.EndSession(b.Context(), [32]byte{1}))
			b.noSession(1)
			same(b, "left", b.sessions(), 1)
		},
		"a row that the gateway did not write makes no operator": func(b *bench) {
			ada := mediagate.Session{Hash: [32]byte{1}, OperatorHash: [32]byte{98}, Operator: "oidc:ada", Role: mediagate.RoleRead}
			other := [32]byte{2}
			changed := func(set string, value ...any) {
				b.Helper()
				b.noError(b.AddSession(b.Context(), ada, time.Hour))
				must(b.Session(b.Context(), ada.Hash))
				b.noError(b.database().Exec("UPDATE sessions SET "+set+" WHERE operator = 'oidc:ada'", value...).Error)
				b.noSession(1)
				b.noSession(2)
				b.noError(b.database().Exec("DELETE FROM sessions WHERE NOT once").Error)
			}
			b.noError(b.AddLink(b.Context(), mediagate.Session{Hash: [32]byte{3}, OperatorHash: [32]byte{97}}, 24*time.Hour))
			changed("mac = NULL")
			changed("mac = (SELECT mac FROM sessions WHERE once)")
			changed("role = 'admin'")
			changed("operator = 'oidc:bob'")
			changed("operator = NULL, role = NULL")
			changed("operator_hash = (SELECT operator_hash FROM sessions WHERE once)")
			changed("expires_at = (SELECT expires_at FROM sessions WHERE once)")
			changed("token_hash = ?", other[:])
			b.noError(b.database().Exec("UPDATE sessions SET once = ?", false).Error)
			b.noSession(3)
		},
		"an operator's session holds under each of the encryption keys, a new one is by the first": func(b *bench) {
			turned, only := b.withKeys(freshKey, encryptionKey), b.withKeys(freshKey)
			b.signedIn(1, "", time.Hour)
			b.linked(2, "")
			must(turned.Session(b.Context(), [32]byte{1}))
			b.kind(errOf(only.Session(b.Context(), [32]byte{1})), mediagate.KindNotFound)
			b.kind(only.TakeLink(b.Context(), [32]byte{2}, [32]byte{3}, time.Hour), mediagate.KindNotFound)
			b.noError(turned.TakeLink(b.Context(), [32]byte{2}, [32]byte{3}, time.Hour))
			must(only.Session(b.Context(), [32]byte{3}))
			b.kind(b.withKeys().AddSession(b.Context(), mediagate.Session{Hash: [32]byte{4}}, time.Hour), mediagate.KindInternal)
		},
		"a session ends in time, and its row goes": func(b *bench) {
			p := b.newPayer(0)
			b.signedIn(1, p.key, time.Hour)
			b.signedIn(2, "", 2*time.Hour)
			b.linked(3, p.key)
			b.pass(time.Hour - time.Microsecond)
			same(b, "key", must(b.Session(b.Context(), [32]byte{1})).KeyID, p.key)
			same(b, "removed too early", must(b.RemoveSessions(b.Context())), 0)
			b.pass(time.Microsecond)
			b.noSession(1)
			b.kind(b.TakeLink(b.Context(), [32]byte{3}, [32]byte{4}, time.Hour), mediagate.KindNotFound)
			same(b, "removed", []int{must(b.RemoveSessions(b.Context())), b.sessions()}, []int{2, 1})
		},
		"however many have ended, all their rows go": func(b *bench) {
			p := b.newPayer(0)
			for i := range 501 {
				b.noError(b.AddSession(b.Context(), mediagate.Session{Hash: [32]byte{byte(i), byte(i >> 8)}, KeyID: p.key}, time.Hour))
			}
			b.pass(time.Hour)
			same(b, "removed", []int{must(b.RemoveSessions(b.Context())), b.sessions()}, []int{501, 0})
		},
		"a key's deletion and rotation end its sessions, and no others": func(b *bench) {
			p := b.newPayer(0)
			q := b.secondKey(p)
			all := func() {
				b.signedIn(1, p.key, time.Hour)
				b.linked(2, p.key)
			}
			b.signedIn(3, q.key, time.Hour)
			b.signedIn(4, "", time.Hour)
			gone := func(what string) {
				b.Helper()
				b.noSession(1)
				b.kind(b.TakeLink(b.Context(), [32]byte{2}, [32]byte{5}, time.Hour), mediagate.KindNotFound)
				same(b, "rows after "+what, b.sessions(), 2)
			}
			all()
			rotated := must(b.RotateKey(b.Context(), p.key, mediagate.KeySecret{Hash: [32]byte{8}}, time.Hour))
			gone("a rotation")
			p.key = rotated.ID
			all()
			must(b.RenewKey(b.Context(), q.key, p.key, mediagate.KeySecret{Hash: [32]byte{9}}, time.Hour, func(_, _ mediagate.Key) error { return nil }))
			gone("a rotation by another key")
			all()
			b.noError(b.DeleteKey(b.Context(), p.key))
			gone("a deletion")
		},
		"a link is taken once": func(b *bench) {
			p := b.newPayer(0)
			b.linked(1, p.key)
			b.noSession(1)
			b.noError(b.EndSession(b.Context(), [32]byte{1})) // it is none
			var taken, refused atomic.Int64
			b.race(8, func(i int) {
				switch err := b.TakeLink(b.Context(), [32]byte{1}, [32]byte{2, byte(i)}, 12*time.Hour); {
				case err == nil:
					taken.Add(1)
				case mediagate.Is(err, mediagate.KindNotFound):
					refused.Add(1)
				default:
					b.Errorf("taking a link: %v", err)
				}
			})
			same(b, "taken, refused, rows", []int{int(taken.Load()), int(refused.Load()), b.sessions()}, []int{1, 7, 1})
			b.linked(3, "")
			b.pass(time.Minute)
			b.noError(b.TakeLink(b.Context(), [32]byte{3}, [32]byte{4}, 12*time.Hour))
			same(b, "the operator's", must(b.Session(b.Context(), [32]byte{4})),
				mediagate.Session{Hash: [32]byte{4}, OperatorHash: [32]byte{99}, CreatedAt: b.now(), ExpiresAt: b.now().Add(12 * time.Hour)})
			b.signedIn(5, p.key, time.Hour)
			b.kind(b.TakeLink(b.Context(), [32]byte{5}, [32]byte{6}, time.Hour), mediagate.KindNotFound) // a session is no link
		},
	})
}
