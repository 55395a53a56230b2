package storage_test

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage"
)

func TestAccountFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"an account is read as it was made": func(b *bench) {
			made := must(b.CreateAccount(b.Context(), mediagate.Account{Name: "Ada", Group: "gold"}))
			if !strings.HasPrefix(made.ID, "acc_") {
				b.Fatalf("id %q", made.ID)
			}
			read := must(b.Account(b.Context(), made.ID))
			same(b, "account", read, made)
			same(b, "account", read, mediagate.Account{ID: made.ID, Name: "Ada", Group: "gold", CreatedAt: b.now()})
		},
		"an unknown account is not found": func(b *bench) {
			b.kind(errOf(b.Account(b.Context(), "acc_0")), mediagate.KindNotFound)
			b.kind(errOf(b.UpdateAccount(b.Context(), "acc_0", func(*mediagate.Account) error { return nil })), mediagate.KindNotFound)
			b.kind(errOf(b.CreateKey(b.Context(), mediagate.Key{AccountID: "acc_0"}, [32]byte{})), mediagate.KindNotFound)
			b.kind(errOf(b.Grant(b.Context(), "acc_0", 1, "r")), mediagate.KindNotFound)
			b.kind(errOf(b.WebhookSecrets(b.Context(), "acc_0")), mediagate.KindNotFound)
			b.kind(errOf(b.RotateWebhookSecret(b.Context(), "acc_0", false)), mediagate.KindNotFound)
		},
		"an update changes only what it names": func(b *bench) {
			made := must(b.CreateAccount(b.Context(), mediagate.Account{Name: "Ada", Group: "gold"}))
			got := must(b.UpdateAccount(b.Context(), made.ID, func(a *mediagate.Account) error {
				a.Name, a.Rate, a.InFlight, a.EraseInputs, a.Webhook, a.Suspended = "Bea", new(0), new(7), true, "https://a.example.com", true
				return nil
			}))
			want := made
			want.Name, want.Rate, want.InFlight, want.EraseInputs, want.Webhook, want.Suspended = "Bea", new(0), new(7), true, "https://a.example.com", true
			same(b, "account", got, want)
			_, err := b.UpdateAccount(b.Context(), made.ID, func(a *mediagate.Account) error {
				a.Group = ""
				return mediagate.Invalid("group", "no")
			})
			b.kind(err, mediagate.KindInvalid)
			read := must(b.Account(b.Context(), made.ID))
			same(b, "account after a change that was refused", read, want)
		},
		"a key's settings change, and nothing else": func(b *bench) {
			p := b.newPayer(unit(10))
			made := must(b.Key(b.Context(), p.key))
			want := made
			change := func(k *mediagate.Key) error {
				k.Name, k.Group, k.Models, k.AllowIPs, k.Scopes = "new", "gold", []string{"a*"}, []string{"10.0.0.0/8"}, []mediagate.Scope{mediagate.ScopeRead}
				k.ExpiresAt, k.Unlimited, k.Quota = b.now().Add(time.Hour), false, unit(9)
				k.Caps, k.Rate, k.InFlight = mediagate.Caps{Day: new(unit(0)), Week: new(unit(1)), Month: new(unit(2))}, new(0), new(3)
				k.Strict = true
				return nil
			}
			b.noError(change(&want))
			want.CapsUsed = mediagate.Caps{Day: new(unit(0)), Week: new(unit(0)), Month: new(unit(0))}
			got := must(b.UpdateKey(b.Context(), p.key, change))
			same(b, "key", got, want)
			got = must(b.Key(b.Context(), p.key))
			same(b, "key as read", got, want)
			got = b.changeKey(p, func(k *mediagate.Key) { *k = made })
			same(b, "key as it was", got, made)
			_, err := b.UpdateKey(b.Context(), p.key, func(k *mediagate.Key) error {
				k.Name = "never"
				return mediagate.Invalid("name", "no")
			})
			b.kind(err, mediagate.KindInvalid)
			got = must(b.Key(b.Context(), p.key))
			same(b, "key after a change that was refused", got, made)
			b.noError(b.DeleteKey(b.Context(), p.key))
			b.kind(errOf(b.UpdateKey(b.Context(), p.key, change)), mediagate.KindNotFound)
		},
		"a rotated key lives for its grace time and shares its quota": func(b *bench) {
			p := b.newPayerKey(unit(10), mediagate.Key{Name: "n", Quota: unit(9), Rate: new(5), Models: []string{"a"}, Group: "gold"})
			b.submit(p, unit(2))
			old := must(b.Key(b.Context(), p.key))
			secret := mediagate.KeySecret{Hash: [32]byte{7}, Prefix: "mgk_new", LastFour: "last"}
			made := must(b.RotateKey(b.Context(), p.key, secret, time.Hour))
			want := old
			want.ID, want.Prefix, want.LastFour, want.CreatedAt = made.ID, "mgk_new", "last", b.now()
			same(b, "new key", made, want)
			found, _ := must2(b.KeyByHash(b.Context(), secret.Hash))
			same(b, "new key, by its hash", found, want)
			listed, _ := must2(b.Keys(b.Context(), p.account, "", 1))
			same(b, "new key, listed", listed, []mediagate.Key{want})
			old.ExpiresAt, old.SuccessorID = b.now().Add(time.Hour), made.ID
			got := must(b.Key(b.Context(), p.key))
			same(b, "old key", got, old)
			b.kind(errOf(b.RotateKey(b.Context(), p.key, mediagate.KeySecret{Hash: [32]byte{8}}, 0)), mediagate.KindConflict)
			must(b.UpdateKey(b.Context(), made.ID, func(k *mediagate.Key) error {
				k.Name, k.Quota = "m", unit(8)
				return nil
			}))
			got = must(b.Key(b.Context(), p.key))
			same(b, "name of the one, quota of both", []any{got.Name, got.Quota}, []any{"n", unit(8)})
			must(b.RotateKey(b.Context(), made.ID, mediagate.KeySecret{Hash: [32]byte{9}}, 0))
			b.kind(errOf(b.KeyByHash(b.Context(), secret.Hash)), mediagate.KindNotFound)
			b.kind(errOf(b.RotateKey(b.Context(), made.ID, mediagate.KeySecret{Hash: [32]byte{10}}, 0)), mediagate.KindConflict) // it is there, and was rotated
		},
		"lists are newest first and paged": func(b *bench) {
			var ids []string
			for range 3 {
				a := must(b.CreateAccount(b.Context(), mediagate.Account{Name: "x"}))
				ids = append([]string{a.ID}, ids...)
			}
			page, more := must2(b.Accounts(b.Context(), "", "", 2))
			same(b, "first page", []any{page[0].ID, page[1].ID, len(page), more}, []any{ids[0], ids[1], 2, true})
			page, more = must2(b.Accounts(b.Context(), "", ids[1], 2))
			same(b, "second page", []any{page[0].ID, len(page), more}, []any{ids[2], 1, false})
		},
		"accounts are found by their id and by a part of their name": func(b *bench) {
			made := map[string]string{}
			for _, name := range []string{"Acme", "acme 100%", "b_c", "bxc"} {
				made[name] = must(b.CreateAccount(b.Context(), mediagate.Account{Name: name})).ID
			}
			for search, want := range map[string][]string{
				"CME":        {made["acme 100%"], made["Acme"]},
				"0%":         {made["acme 100%"]},
				"b_c":        {made["b_c"]},
				made["Acme"]: {made["Acme"]},
				"none":       nil,
			} {
				found, _ := must2(b.Accounts(b.Context(), search, "", 10))
				var ids []string
				for _, a := range found {
					ids = append(ids, a.ID)
				}
				same(b, search, ids, want)
			}
		},
		"after must name something of the list": func(b *bench) {
			p, q := b.newPayer(unit(1)), b.newPayer(unit(1))
			refused := func(err error) {
				b.Helper()
				same(b, "param", b.kind(err, mediagate.KindInvalid).Param, "after")
			}
			_, _, err := b.Accounts(b.Context(), "", "acc_0", 1)
			refused(err)
			_, _, err = b.Keys(b.Context(), "", "key_0", 1)
			refused(err)
			_, _, err = b.Keys(b.Context(), p.account, q.key, 1)
			refused(err)

			b.noError(b.DeleteKey(b.Context(), q.key))
			keys, _ := must2(b.Keys(b.Context(), "", q.key, 1))
			same(b, "after a deleted key", keys[0].ID, p.key)
		},
		"an entry is its account's only": func(b *bench) {
			p, q := b.newPayer(unit(1)), b.newPayer(unit(1))
			entries, _ := must2(b.Ledger(b.Context(), p.account, "", "", 1))
			got := must(b.Transfer(b.Context(), p.account, entries[0].ID))
			same(b, "entry", got, entries[0])
			b.kind(errOf(b.Transfer(b.Context(), q.account, entries[0].ID)), mediagate.KindNotFound)
			b.kind(errOf(b.Transfer(b.Context(), p.account, "txn_0")), mediagate.KindNotFound)
		},
		"a key is found by its hash while it lives": func(b *bench) {
			p := b.newPayer(0)
			hash := sha256.Sum256([]byte("secret"))
			made := must(b.CreateKey(b.Context(), mediagate.Key{
				AccountID: p.account, Name: "ci", Prefix: "mgk_abc", LastFour: "wxyz", Group: "gold", Quota: unit(5),
				Models: []string{"alpha-*"}, AllowIPs: []string{"10.0.0.0/8"}, ExpiresAt: b.now().Add(time.Hour), Strict: true,
			}, hash))
			account := b.changeAccount(p, func(a *mediagate.Account) { a.Rate = new(7) })
			got, of := must2(b.KeyByHash(b.Context(), hash))
			same(b, "key", got, made)
			same(b, "its account", of, account)
			b.kind(errOf(b.CreateKey(b.Context(), mediagate.Key{AccountID: p.account}, hash)), mediagate.KindConflict)
			b.kind(errOf(b.KeyByHash(b.Context(), sha256.Sum256([]byte("another")))), mediagate.KindNotFound)

			b.pass(time.Hour - time.Microsecond)
			must2(b.KeyByHash(b.Context(), hash))
			b.pass(time.Microsecond)
			b.kind(errOf(b.KeyByHash(b.Context(), hash)), mediagate.KindNotFound)
		},
		"a deleted key is gone from lists and lookups, but its row stays": func(b *bench) {
			p := b.newPayer(0)
			b.noError(b.DeleteKey(b.Context(), p.key))
			b.kind(b.DeleteKey(b.Context(), p.key), mediagate.KindNotFound)
			b.kind(errOf(b.Key(b.Context(), p.key)), mediagate.KindNotFound)
			b.kind(errOf(b.KeyByHash(b.Context(), sha256.Sum256([]byte(p.account)))), mediagate.KindNotFound)
			keys, _ := must2(b.Keys(b.Context(), p.account, "", 10))
			same(b, "listed", len(keys), 0)
			same(b, "rows", b.count("SELECT COUNT(*) FROM keys WHERE id = ?", p.key), 1)
		},
		"the last use never goes back": func(b *bench) {
			p := b.newPayer(0)
			late := b.now().Add(time.Minute)
			b.noError(b.TouchKeys(b.Context(), map[string]time.Time{p.key: late, "key_unknown": late}))
			b.noError(b.TouchKeys(b.Context(), map[string]time.Time{p.key: b.now()}))
			k := must(b.Key(b.Context(), p.key))
			same(b, "last use", k.LastUsedAt, late)
		},
		"a database that is away says so": func(b *bench) {
			b.noError(b.Ping(b.Context()))
			s := b.backend.open(b.T, storage.Config{})
			b.noError(s.Close())
			b.kind(s.Ping(b.Context()), mediagate.KindUnavailable)
			b.kind(errOf(s.TaskByID(b.Context(), "task_0")), mediagate.KindUnavailable)
			b.kind(errOf(s.CreateAccount(b.Context(), mediagate.Account{Name: "x"})), mediagate.KindUnavailable)
		},
		"migrating again changes nothing": func(b *bench) {
			b.noError(b.Migrate(b.Context()))
			b.money(b.newPayer(unit(1)), unit(1), 0, 0)
		},
	})
}

// freshKey is the encryption key after encryptionKey.
var freshKey = []byte("fedcba9876543210fedcba9876543210")

// withKeys opens the store as a process with these encryption keys does.
func (b *bench) withKeys(keys ...[]byte) *storage.Store {
	b.Helper()
	return b.backend.open(b.T, storage.Config{Now: b.clock.read, EncryptionKeys: keys})
}

func TestSecretFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"the first use makes one secret, also for many at once": func(b *bench) {
			p := b.newPayer(0)
			secrets := make([]string, 8)
			b.race(len(secrets), func(i int) {
				got, err := b.WebhookSecrets(b.Context(), p.account)
				if err != nil || len(got) != 1 {
					b.Errorf("got %d secrets, error %v", len(got), err)
					return
				}
				secrets[i] = got[0].Secret.Reveal()
			})
			for _, s := range secrets {
				same(b, "secret", s, secrets[0])
			}
			raw := must(base64.StdEncoding.DecodeString(strings.TrimPrefix(secrets[0], "whsec_")))
			same(b, "secret's length", len(raw), 32)
			if !strings.HasPrefix(secrets[0], "whsec_") {
				b.Fatalf("secret without its prefix")
			}
			same(b, "rows in the clear", b.count("SELECT COUNT(*) FROM webhook_secrets WHERE sealed = ?", raw), 0)
		},
		"a rotated secret signs for 24 hours, and two at most are live": func(b *bench) {
			p := b.newPayer(0)
			first := must(b.WebhookSecrets(b.Context(), p.account))
			second := must(b.RotateWebhookSecret(b.Context(), p.account, false))
			same(b, "live", len(second), 2)
			same(b, "the former", second[1], mediagate.WebhookSecret{Secret: first[0].Secret, ExpiresAt: b.now().Add(24 * time.Hour)})
			if second[0].Secret.Equal(first[0].Secret) || !second[0].ExpiresAt.IsZero() {
				b.Fatalf("the current secret is not new: expires %v", second[0].ExpiresAt)
			}
			b.kind(errOf(b.RotateWebhookSecret(b.Context(), p.account, false)), mediagate.KindConflict)
			b.pass(time.Hour)
			third := must(b.RotateWebhookSecret(b.Context(), p.account, true))
			same(b, "live", len(third), 2)
			same(b, "the former", third[1].Secret, second[0].Secret)

			b.pass(24*time.Hour - time.Microsecond)
			live := must(b.WebhookSecrets(b.Context(), p.account))
			same(b, "live", len(live), 2)
			b.pass(time.Microsecond)
			live = must(b.WebhookSecrets(b.Context(), p.account))
			same(b, "live", len(live), 1)
			same(b, "current", live[0].Secret, third[0].Secret)
			must(b.RotateWebhookSecret(b.Context(), p.account, false))
			for range 2 { // within one moment
				last := must(b.RotateWebhookSecret(b.Context(), p.account, true))
				same(b, "live", len(last), 2)
				same(b, "rows", b.count("SELECT COUNT(*) FROM webhook_secrets"), 2)
			}
		},
		"a secret copied to another account does not open": func(b *bench) {
			p, q := b.newPayer(0), b.newPayer(0)
			for _, account := range []string{p.account, q.account} {
				must(b.WebhookSecrets(b.Context(), account))
			}
			b.noError(b.database().Exec(`UPDATE webhook_secrets SET sealed = (SELECT sealed FROM webhook_secrets WHERE account_id = ?) WHERE account_id = ?`,
				p.account, q.account).Error)
			b.kind(errOf(b.WebhookSecrets(b.Context(), q.account)), mediagate.KindInternal)
		},
		"secrets are sealed anew under the first key, once": func(b *bench) {
			const accounts = 130 // more than are read at once
			want := map[string][]mediagate.WebhookSecret{}
			for range accounts {
				p := b.newPayer(0)
				secrets := must(b.RotateWebhookSecret(b.Context(), p.account, false))
				want[p.account] = secrets
			}
			turned, only := b.withKeys(freshKey, encryptionKey), b.withKeys(freshKey)
			seals := must(turned.WebhookSeals(b.Context()))
			same(b, "seals before", seals, mediagate.Seals{Former: 2 * accounts})
			seals = must(only.WebhookSeals(b.Context()))
			same(b, "lost without the former key", seals.Lost, 2*accounts)
			if len(seals.Errs) == 0 || len(seals.Errs) >= accounts {
				b.Errorf("%d of %d lost secrets are named", len(seals.Errs), seals.Lost)
			}

			resealed, seals := must2(turned.ResealWebhookSecrets(b.Context()))
			same(b, "sealed anew", resealed, 2*accounts)
			same(b, "seals", seals, mediagate.Seals{First: 2 * accounts})
			for account, secrets := range want {
				got := must(only.WebhookSecrets(b.Context(), account))
				same(b, "secrets", got, secrets)
			}
			resealed, seals = must2(turned.ResealWebhookSecrets(b.Context()))
			same(b, "sealed anew again", resealed, 0)
			same(b, "seals", seals, mediagate.Seals{First: 2 * accounts})
		},
		"sealing anew beside rotations and itself loses nothing": func(b *bench) {
			const accounts = 12
			var payers []payer
			for range accounts {
				p := b.newPayer(0)
				must(b.WebhookSecrets(b.Context(), p.account))
				payers = append(payers, p)
			}
			turned := b.withKeys(freshKey, encryptionKey)
			old := b.withKeys(encryptionKey, freshKey) // a process that knows both and was not restarted
			told := make([]string, accounts)
			b.race(accounts+2, func(i int) {
				if i >= accounts {
					if _, seals, err := turned.ResealWebhookSecrets(b.Context()); err != nil || seals.Lost > 0 {
						b.Errorf("seal anew: %+v, %v", seals, err)
					}
					return
				}
				secrets, err := old.RotateWebhookSecret(b.Context(), payers[i].account, true)
				if err != nil || len(secrets) != 2 {
					b.Errorf("rotate: %d secrets, %v", len(secrets), err)
					return
				}
				told[i] = secrets[0].Secret.Reveal()
			})
			must2(turned.ResealWebhookSecrets(b.Context())) // what the old process has made meanwhile
			only := b.withKeys(freshKey)
			for i, p := range payers {
				got := must(only.WebhookSecrets(b.Context(), p.account))
				same(b, "live", len(got), 2)
				same(b, "the secret that the account was told", got[0].Secret.Reveal(), told[i])
			}
		},
		"a secret that no key opens is named, and the others are sealed anew": func(b *bench) {
			p, q := b.newPayer(0), b.newPayer(0)
			for _, account := range []string{p.account, q.account} {
				must(b.WebhookSecrets(b.Context(), account))
			}
			b.noError(b.database().Exec("UPDATE webhook_secrets SET sealed = ? WHERE account_id = ?", []byte("rubbish"), q.account).Error)
			var id string
			b.noError(b.database().Raw("SELECT id FROM webhook_secrets WHERE account_id = ?", q.account).Scan(&id).Error)
			resealed, seals := must2(b.withKeys(freshKey, encryptionKey).ResealWebhookSecrets(b.Context()))
			same(b, "sealed anew", resealed, 1)
			same(b, "lost", seals.Lost, 1)
			_, read := b.WebhookSecrets(b.Context(), q.account)
			for _, err := range append(seals.Errs, read) {
				b.kind(err, mediagate.KindInternal)
				if !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), q.account) {
					b.Errorf("the error does not name the row: %v", err)
				}
			}
			// Once it has expired it signs nothing, and nobody misses its key.
			b.noError(b.database().Exec("UPDATE webhook_secrets SET expires_at = created_at WHERE account_id = ?", q.account).Error)
			seals = must(b.withKeys(freshKey).WebhookSeals(b.Context()))
			same(b, "seals", seals, mediagate.Seals{First: 1})
		},
		"without an encryption key no secret is made": func(b *bench) {
			p := b.newPayer(0)
			bare := b.withKeys()
			b.kind(errOf(bare.WebhookSecrets(b.Context(), p.account)), mediagate.KindInternal)
			same(b, "rows", b.count("SELECT COUNT(*) FROM webhook_secrets"), 0)
		},
	})
}
