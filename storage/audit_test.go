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
				a.Rate, a.EraseInputs, a.Suspended = new(5), true, true
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
			entries, more := must2(b.Audit(b.Context(), mediagate.AuditFilter{Limit: 100}))
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
				`create_account  > {"erase_inputs":false,"group":"gold","in_flight":null,"name":"Bea","rate":null,"suspended":false,"unpaid":null,"uploads_per_day":null,"webhook":null}`,
				`change_account {"erase_inputs":false,"rate":null,"suspended":false} > {"erase_inputs":true,"rate":5,"suspended":true}`,
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
		"a reason is noted beside what changed": func(b *bench) {
			actor := someone
			actor.Reason = "the vendor asked for it"
			ctx := mediagate.WithActor(b.Context(), actor)
			for range 2 { // the second changes nothing
				must(b.EnableChannel(ctx, channelName, false))
			}
			entries, _ := must2(b.Audit(b.Context(), mediagate.AuditFilter{Limit: 2}))
			same(b, "entries", len(entries), 1)
			same(b, "what became", string(entries[0].After), `{"enabled":false,"reason":"the vendor asked for it"}`)
			b.noError(b.DeleteKey(ctx, b.newPayer(unit(10)).key))
			entries, _ = must2(b.Audit(b.Context(), mediagate.AuditFilter{Limit: 1}))
			same(b, "of a deletion", string(entries[0].After), `{"reason":"the vendor asked for it"}`)
		},
		"nothing is noted where nothing changes": func(b *bench) {
			p := b.newPayer(unit(10))
			ctx := mediagate.WithActor(b.Context(), someone)
			must(b.UpdateAccount(ctx, p.account, func(*mediagate.Account) error { return nil }))
			must(b.UpdateKey(ctx, p.key, func(*mediagate.Key) error { return nil }))
			must3(b.Grant(ctx, p.account, unit(10), "opening"))
			must(b.EnableChannel(ctx, channelName, true))
			b.kind(errOf(b.Grant(ctx, p.account, -unit(11), "too much")), mediagate.KindConflict)
			entries, _ := must2(b.Audit(b.Context(), mediagate.AuditFilter{Limit: 1}))
			same(b, "entries", len(entries), 0)
		},
		"the audit is listed by account or whole, newest first": func(b *bench) {
			p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
			for i, account := range []string{p.account, q.account, p.account} {
				must3(b.Grant(mediagate.WithActor(b.Context(), someone), account, 1, fmt.Sprint(i)))
			}
			all, more := must2(b.Audit(b.Context(), mediagate.AuditFilter{Limit: 2}))
			same(b, "first page", []any{all[0].AccountID, all[1].AccountID, len(all), more}, []any{p.account, q.account, 2, true})
			rest, more := must2(b.Audit(b.Context(), mediagate.AuditFilter{After: all[1].ID, Limit: 2}))
			same(b, "second page", []any{rest[0].AccountID, len(rest), more}, []any{p.account, 1, false})
			own, _ := must2(b.Audit(b.Context(), mediagate.AuditFilter{AccountID: q.account, Limit: 2}))
			same(b, "own", []any{own[0].ID, len(own)}, []any{all[1].ID, 1})
			for _, after := range []string{"aud_0", all[0].ID} {
				b.kind(errOf(b.Audit(b.Context(), mediagate.AuditFilter{AccountID: q.account, After: after, Limit: 1})), mediagate.KindInvalid)
			}
		},
		"the audit is filtered by every field": func(b *bench) {
			p, began := b.newPayer(unit(10)), b.now()
			ctx := mediagate.WithActor(b.Context(), someone)
			must3(b.Grant(ctx, p.account, 1, "1"))
			b.pass(time.Hour)
			must(b.EnableChannel(mediagate.WithActor(b.Context(), mediagate.Actor{By: p.key}), channelName, false))
			b.pass(time.Hour)
			must3(b.Grant(ctx, p.account, 1, "2"))
			all, _ := must2(b.Audit(b.Context(), mediagate.AuditFilter{Limit: 10}))
			first, second, third := all[2].ID, all[1].ID, all[0].ID
			for name, test := range map[string]struct {
				filter mediagate.AuditFilter
				want   []string
			}{
				"who":        {mediagate.AuditFilter{By: p.key}, []string{second}},
				"action":     {mediagate.AuditFilter{Action: mediagate.AuditGrant}, []string{third, first}},
				"object":     {mediagate.AuditFilter{Object: channelName}, []string{second}},
				"no object":  {mediagate.AuditFilter{Object: "none"}, nil},
				"from":       {mediagate.AuditFilter{From: began.Add(time.Hour)}, []string{third, second}},
				"to":         {mediagate.AuditFilter{To: began.Add(time.Hour)}, []string{first}},
				"from to":    {mediagate.AuditFilter{From: began.Add(time.Minute), To: began.Add(2 * time.Hour)}, []string{second}},
				"all of one": {mediagate.AuditFilter{AccountID: p.account, By: mediagate.AdminOperator, Action: mediagate.AuditGrant, After: third}, []string{first}},
			} {
				test.filter.Limit = 10
				entries, _ := must2(b.Audit(b.Context(), test.filter))
				var ids []string
				for _, e := range entries {
					ids = append(ids, e.ID)
				}
				same(b, name, ids, test.want)
			}
		},
	})
}
