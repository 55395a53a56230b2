package storage_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

var someone = mediagate.Actor{By: mediagate.AdminOperator, Address: "192.0.2.1", RequestID: "req_1"}

// changes are one of each kind that the audit notes.
func (b *bench) changes(p payer) []func(ctx context.Context) error {
	return []func(ctx context.Context) error{
		func(ctx context.Context) error {
			_, err := b.CreateAccount(ctx, mediagate.Account{Name: "Bea", Group: "gold"})
			return err
		},
		func(ctx context.Context) error {
			_, err := b.UpdateAccount(ctx, p.account, func(a *mediagate.Account) error {
				a.Rate, a.EraseInputs = new(5), true
				return nil
			})
			return err
		},
		func(ctx context.Context) error {
			_, _, _, err := b.Grant(ctx, p.account, -unit(2), "back")
			return err
		},
		func(ctx context.Context) error {
			_, err := b.CreateKey(ctx, mediagate.Key{
				AccountID: p.account, Name: "ci", Quota: unit(5), Models: []string{"a*"}, Caps: mediagate.Caps{Week: new(unit(0))},
			}, [32]byte{1})
			return err
		},
		func(ctx context.Context) error {
			_, err := b.UpdateKey(ctx, p.key, func(k *mediagate.Key) error {
				k.Unlimited, k.Quota, k.Caps.Day, k.Scopes = false, unit(3), new(unit(1)), []mediagate.Scope{mediagate.ScopeRead}
				return nil
			})
			return err
		},
		func(ctx context.Context) error {
			_, err := b.RotateKey(ctx, p.key, mediagate.KeySecret{Hash: [32]byte{2}}, time.Minute)
			return err
		},
		func(ctx context.Context) error { return b.DeleteKey(ctx, p.key) },
		func(ctx context.Context) error {
			_, err := b.RotateWebhookSecret(ctx, p.account, false)
			return err
		},
		func(ctx context.Context) error {
			_, err := b.EnableChannel(ctx, channelName, false)
			return err
		},
	}
}

func TestAuditFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"what somebody changes is noted, as it was and as it became": func(b *bench) {
			p := b.newPayer(unit(10))
			ctx := mediagate.WithActor(b.Context(), someone)
			for _, do := range b.changes(p) {
				b.pass(time.Second)
				b.noError(do(ctx))
			}
			entries, more := must2(b.Audit(b.Context(), "", "", 100))
			slices.Reverse(entries)
			at := b.now().Add(-time.Duration(len(entries)) * time.Second)
			got := make([]string, len(entries))
			for i, e := range entries {
				at = at.Add(time.Second)
				same(b, "when and who", []any{e.At, e.Actor}, []any{at, someone})
				got[i] = fmt.Sprintf("%s %s > %s", e.Action, e.Before, e.After)
			}
			rotated := ""
			b.noError(b.database().Raw("SELECT successor_id FROM keys WHERE id = ?", p.key).Scan(&rotated).Error)
			until := b.now().Add(-3 * time.Second).Add(time.Minute).Unix()
			want := []string{
				`create_account  > {"erase_inputs":false,"group":"gold","in_flight":null,"name":"Bea","rate":null,"unpaid":null,"uploads_per_day":null,"webhook":null}`,
				`change_account {"erase_inputs":false,"rate":null} > {"erase_inputs":true,"rate":5}`,
				`grant  > {"amount":"-2.00","reference":"back"}`,
				`create_key  > {"allow_ips":[],"caps":{"week":"0.00"},"expires_at":null,"group":null,"in_flight":null,"models":["a*"],"name":"ci",` +
					`"quota":"5.00","rate":null,"rotated_to":null,"scopes":["generate","read","manage"],"strict":false,"unlimited":false}`,
				`change_key {"caps":{},"quota":null,"scopes":["generate","read","manage"],"unlimited":true} > {"caps":{"day":"1.00"},"quota":"3.00","scopes":["read"],"unlimited":false}`,
				fmt.Sprintf(`rotate_key {"expires_at":null,"rotated_to":null} > {"expires_at":%d,"rotated_to":%q}`, until, rotated),
				fmt.Sprintf(`delete_key {"allow_ips":[],"caps":{"day":"1.00"},"expires_at":%d,"group":null,"in_flight":null,"models":[],"name":"",`+
					`"quota":"3.00","rate":null,"rotated_to":%q,"scopes":["read"],"strict":false,"unlimited":false} > `, until, rotated),
				fmt.Sprintf(`rotate_webhook_secret  > {"previous_expires_at":%d}`, b.now().Add(-time.Second).Add(24*time.Hour).Unix()),
				`change_channel {"enabled":true} > {"enabled":false}`,
			}
			if diff := cmp.Diff(want, got); diff != "" || more {
				b.Errorf("more %t, changes (-want +got):\n%s", more, diff)
			}
			same(b, "objects", []any{entries[1].Object, entries[4].Object, entries[7].Object, entries[8].Object}, []any{p.account, p.key, p.account, channelName})
			same(b, "accounts", []any{entries[0].AccountID, entries[2].AccountID, entries[8].AccountID}, []any{entries[0].Object, p.account, ""})
		},
		"of a change and its note there is both or neither": func(b *bench) {
			p := b.newPayer(unit(10))
			must(b.WebhookSecrets(b.Context(), p.account))
			b.noError(b.SeenChannel(b.Context(), []string{channelName}))
			b.noError(b.database().Exec("DROP TABLE audit").Error)
			tables := []string{"accounts", "keys", "ledger_transfers", "webhook_secrets", "channels"}
			look := func() (rows []string) {
				for _, table := range tables {
					var lines []map[string]any
					b.noError(b.database().Table(table).Order("1").Find(&lines).Error)
					rows = append(rows, fmt.Sprint(lines))
				}
				return rows
			}
			before := look()
			for i, do := range b.changes(p) {
				if err := do(mediagate.WithActor(b.Context(), someone)); err == nil {
					b.Errorf("change %d was made without a note", i)
				}
			}
			same(b, "rows", look(), before)
			for _, do := range b.changes(p) { // by the gateway itself
				b.noError(do(b.Context()))
			}
		},
		"nothing is noted where nothing changes": func(b *bench) {
			p := b.newPayer(unit(10))
			ctx := mediagate.WithActor(b.Context(), someone)
			must(b.UpdateAccount(ctx, p.account, func(*mediagate.Account) error { return nil }))
			must(b.UpdateKey(ctx, p.key, func(*mediagate.Key) error { return nil }))
			must3(b.Grant(ctx, p.account, unit(10), "opening"))
			must(b.EnableChannel(ctx, channelName, true))
			b.kind(errOf(b.Grant(ctx, p.account, -unit(11), "too much")), mediagate.KindConflict)
			entries, _ := must2(b.Audit(b.Context(), "", "", 1))
			same(b, "entries", len(entries), 0)
		},
		"the audit is listed by account or whole, newest first": func(b *bench) {
			p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
			for i, account := range []string{p.account, q.account, p.account} {
				must3(b.Grant(mediagate.WithActor(b.Context(), someone), account, 1, fmt.Sprint(i)))
			}
			all, more := must2(b.Audit(b.Context(), "", "", 2))
			same(b, "first page", []any{all[0].AccountID, all[1].AccountID, len(all), more}, []any{p.account, q.account, 2, true})
			rest, more := must2(b.Audit(b.Context(), "", all[1].ID, 2))
			same(b, "second page", []any{rest[0].AccountID, len(rest), more}, []any{p.account, 1, false})
			own, _ := must2(b.Audit(b.Context(), q.account, "", 2))
			same(b, "own", []any{own[0].ID, len(own)}, []any{all[1].ID, 1})
			for _, after := range []string{"aud_0", all[0].ID} {
				b.kind(errOf(b.Audit(b.Context(), q.account, after, 1)), mediagate.KindInvalid)
			}
		},
	})
}
