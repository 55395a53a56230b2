package storage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

const eventLease = time.Minute

// endpoint makes an endpoint of the payer's account that receives those events.
func (b *bench) endpoint(p payer, events ...mediagate.EventType) string {
	b.Helper()
	e := mediagate.Endpoint{AccountID: p.account, URL: "https://hooks.example.com/a", Events: events, Enabled: true}
	if slices.Contains(events, mediagate.EventBalanceLow) {
		e.BalanceLow = new(unit(50))
	}
	created, _ := must2(b.CreateEndpoint(b.Context(), e))
	return created.ID
}

// updateEndpoint changes an endpoint.
func (b *bench) updateEndpoint(p payer, id string, change func(e *mediagate.Endpoint)) mediagate.Endpoint {
	b.Helper()
	return must(b.UpdateEndpoint(b.Context(), p.account, id, func(e *mediagate.Endpoint) error {
		change(e)
		return nil
	}))
}

// told are the deliveries of an endpoint, newest first.
func (b *bench) told(id string) []mediagate.EndpointDelivery {
	b.Helper()
	deliveries, more := must2(b.EndpointDeliveries(b.Context(), id, "", "", 100))
	same(b, "more", more, false)
	return deliveries
}

// types are those of the events that an endpoint received, in their order.
func (b *bench) types(id string) []mediagate.EventType {
	b.Helper()
	types := []mediagate.EventType{}
	for _, d := range slices.Backward(b.told(id)) {
		types = append(types, d.Type)
	}
	return types
}

// claimEvents gives an endpoint its turn.
func (b *bench) claimEvents(id string) mediagate.EndpointTurn {
	b.Helper()
	return must(b.ClaimDeliveries(b.Context(), id, 10, eventLease))
}

// attemptAt claims the one delivery that is due and records what its endpoint answered.
func (b *bench) attemptAt(id string, status int, next time.Duration) mediagate.EndpointDelivery {
	b.Helper()
	turn := b.claimEvents(id)
	if len(turn.Deliveries) != 1 {
		b.Fatalf("%d deliveries are due", len(turn.Deliveries))
	}
	r := mediagate.EndpointResult{
		EndpointID: id, URL: turn.Endpoint.URL, EventID: turn.Deliveries[0].EventID, Claim: turn.Claim, Delivered: status/100 == 2,
		Attempt: mediagate.EndpointAttempt{
			At: b.now(), Status: status, Answer: "a\u2028b", Headers: map[string]string{"Webhook-Id": "x"}, Duration: 3 * time.Millisecond,
		},
	}
	if next > 0 {
		r.NextAt = b.now().Add(next)
	}
	b.noError(b.RecordEndpointAttempt(b.Context(), r))
	return b.told(id)[0]
}

func TestEndpointFacts(t *testing.T) {
	t.Parallel()
	all := mediagate.EventTypes()
	prove(t, facts{
		"an endpoint is read as it was made and changed, by its account only": func(b *bench) {
			p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
			made, secret := must2(b.CreateEndpoint(b.Context(), mediagate.Endpoint{
				AccountID: p.account, URL: "https://hooks.example.com", Events: all, Enabled: true, Description: "é", BalanceLow: new(unit(3)),
			}))
			if !strings.HasPrefix(secret.Reveal(), "whsec_") {
				b.Errorf("secret %q", secret.Reveal())
			}
			same(b, "read", must(b.Endpoint(b.Context(), p.account, made.ID)), made)
			b.pass(time.Hour)
			changed := b.updateEndpoint(p, made.ID, func(e *mediagate.Endpoint) {
				e.URL, e.Events, e.Description, e.BalanceLow, e.Enabled = "https://b.example.com", all[:1], "", nil, false
			})
			want := made
			want.URL, want.Events, want.Description, want.BalanceLow, want.Enabled = "https://b.example.com", all[:1], "", nil, false
			want.DisabledAt, want.DisabledReason = b.now(), mediagate.DisabledByOwner
			same(b, "changed", changed, want)
			same(b, "read again", must(b.Endpoint(b.Context(), p.account, made.ID)), want)
			want.Enabled, want.DisabledAt, want.DisabledReason = true, time.Time{}, ""
			same(b, "enabled", b.updateEndpoint(p, made.ID, func(e *mediagate.Endpoint) { e.Enabled = true }), want)

			keep := func(*mediagate.Endpoint) error { return nil }
			for _, account := range []string{q.account, "acc_0"} {
				b.kind(errOf(b.Endpoint(b.Context(), account, made.ID)), mediagate.KindNotFound)
				b.kind(errOf(b.UpdateEndpoint(b.Context(), account, made.ID, keep)), mediagate.KindNotFound)
				b.kind(b.DeleteEndpoint(b.Context(), account, made.ID), mediagate.KindNotFound)
				b.kind(errOf(b.RotateEndpointSecret(b.Context(), account, made.ID, true)), mediagate.KindNotFound)
				b.kind(errOf(b.SendTest(b.Context(), account, made.ID)), mediagate.KindNotFound)
				b.kind(errOf(b.Redeliver(b.Context(), account, made.ID, "evt_0")), mediagate.KindNotFound)
			}
			b.kind(errOf(b.CreateEndpoint(b.Context(), mediagate.Endpoint{AccountID: "acc_0"})), mediagate.KindNotFound)
			b.kind(errOf(b.Redeliver(b.Context(), p.account, made.ID, "evt_0")), mediagate.KindNotFound)
		},
		"an account has at most ten, also when many are made at once": func(b *bench) {
			p := b.newPayer(unit(10))
			var made, refused atomic.Int32
			b.race(14, func(int) {
				_, _, err := b.CreateEndpoint(b.Context(), mediagate.Endpoint{AccountID: p.account, URL: "https://a.example.com", Events: all, BalanceLow: new(unit(1))})
				if mediagate.Is(err, mediagate.KindConflict) {
					refused.Add(1)
					return
				}
				b.noError(err)
				made.Add(1)
			})
			same(b, "made and refused", []int32{made.Load(), refused.Load()}, []int32{10, 4})
			list, more := must2(b.Endpoints(b.Context(), p.account, "", 9))
			same(b, "more than nine", more, true)
			rest, more := must2(b.Endpoints(b.Context(), p.account, list[8].ID, 9))
			same(b, "the last page", []any{len(rest), more}, []any{1, false})
			b.kind(errOf(b.Endpoints(b.Context(), p.account, "ep_0", 9)), mediagate.KindInvalid)
			b.noError(b.DeleteEndpoint(b.Context(), p.account, rest[0].ID))
			b.endpoint(p, all[0])
		},
		"each endpoint has secrets of its own, beside those of the account": func(b *bench) {
			p := b.newPayer(unit(10))
			own := must(b.WebhookSecrets(b.Context(), p.account))
			_, first := must2(b.CreateEndpoint(b.Context(), mediagate.Endpoint{AccountID: p.account, Events: all[:1], Enabled: true}))
			id := b.endpoint(p, all[0])
			must(b.SendTest(b.Context(), p.account, id))
			before := b.claimEvents(id).Secrets
			if len(own) != 1 || len(before) != 1 || before[0].Secret.Equal(own[0].Secret) || before[0].Secret.Equal(first) {
				b.Errorf("secrets %d and %d, or one that is shared", len(own), len(before))
			}
			rotated := must(b.RotateEndpointSecret(b.Context(), p.account, id, false))
			same(b, "the one before", rotated[1].Secret.Reveal(), before[0].Secret.Reveal())
			b.kind(errOf(b.RotateEndpointSecret(b.Context(), p.account, id, false)), mediagate.KindConflict)
			b.pass(eventLease)
			same(b, "what signs", len(b.claimEvents(id).Secrets), 2)
			again := must(b.WebhookSecrets(b.Context(), p.account))
			same(b, "the account's", again[0].Secret.Reveal(), own[0].Secret.Reveal())
			same(b, "sealed", must(b.WebhookSeals(b.Context())).First, 4)
			b.noError(b.DeleteEndpoint(b.Context(), p.account, id))
			same(b, "sealed, without the endpoint", must(b.WebhookSeals(b.Context())).First, 2)
		},
		"each end is told to each endpoint that wants it, once": func(b *bench) {
			p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
			every := b.endpoint(p, all...)
			failures, foreign, off := b.endpoint(p, mediagate.EventTaskFailed), b.endpoint(q, all...), b.endpoint(p, all...)
			b.updateEndpoint(p, off, func(e *mediagate.Endpoint) { e.Enabled = false })
			done, broken, gone := b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
			b.settle(completed(done, unit(1)))
			b.pass(time.Second)
			b.settle(failed(broken))
			b.pass(time.Second)
			b.settle(cancelled(gone))
			b.change(gone, task.Asked{Seen: task.Seen{Sending: task.Sending{N: 1}}})
			same(b, "all", b.types(every), []mediagate.EventType{mediagate.EventTaskCompleted, mediagate.EventTaskFailed, mediagate.EventTaskCancelled})
			same(b, "failures", b.told(failures), []mediagate.EndpointDelivery{{
				EventID: mediagate.TaskEventID(broken), EndpointID: failures, Type: mediagate.EventTaskFailed, TaskID: broken,
				State: mediagate.EndpointPending, CreatedAt: b.now().Add(-time.Second), NextAt: b.now().Add(-time.Second),
			}})
			same(b, "another account's, and one that is disabled", len(b.told(foreign))+len(b.told(off)), 0)
		},
		"a claim ends, and what is recorded under it then changes nothing": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.endpoint(p, all[0])
			same(b, "due", len(must(b.DueEndpoints(b.Context(), nil, 9))), 0)
			must(b.SendTest(b.Context(), p.account, id))
			same(b, "due", must(b.DueEndpoints(b.Context(), nil, 9)), []string{id})
			same(b, "due beside busy ones", len(must(b.DueEndpoints(b.Context(), []string{id}, 9))), 0)
			first := b.claimEvents(id)
			same(b, "due again", len(must(b.DueEndpoints(b.Context(), nil, 9)))+len(b.claimEvents(id).Deliveries), 0)
			b.pass(eventLease)
			second := b.claimEvents(id)
			same(b, "claimed again", second.Deliveries[0].EventID, first.Deliveries[0].EventID)
			record := func(turn mediagate.EndpointTurn) {
				b.Helper()
				b.noError(b.RecordEndpointAttempt(b.Context(), mediagate.EndpointResult{
					EndpointID: id, EventID: turn.Deliveries[0].EventID, Claim: turn.Claim, Delivered: true, Attempt: mediagate.EndpointAttempt{At: b.now()},
				}))
			}
			record(first)
			same(b, "after the first claim", b.told(id)[0].State, mediagate.EndpointPending)
			b.noError(b.ReleaseDelivery(b.Context(), id, first.Deliveries[0].EventID, first.Claim, b.now()))
			same(b, "still claimed", len(b.claimEvents(id).Deliveries), 0)
			record(second)
			record(second)
			d := b.told(id)[0]
			same(b, "after the second", []any{d.State, d.Attempts, d.NextAt}, []any{mediagate.EndpointDelivered, 1, time.Time{}})
			b.kind(errOf(b.StoreEndpointBody(b.Context(), id, "evt_0", []byte("x"))), mediagate.KindNotFound)
		},
		"a claim that is given back is due at its time": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.endpoint(p, all[0])
			must(b.SendTest(b.Context(), p.account, id))
			turn := b.claimEvents(id)
			b.noError(b.ReleaseDelivery(b.Context(), id, turn.Deliveries[0].EventID, turn.Claim, b.now().Add(time.Second)))
			same(b, "due", len(b.claimEvents(id).Deliveries), 0)
			b.pass(time.Second)
			same(b, "due", len(b.claimEvents(id).Deliveries), 1)
		},
		"endpoints take turns": func(b *bench) {
			p := b.newPayer(unit(10))
			ids := []string{b.endpoint(p, all[0]), b.endpoint(p, all[0]), b.endpoint(p, all[0])}
			for _, id := range ids {
				must(b.SendTest(b.Context(), p.account, id))
				must(b.SendTest(b.Context(), p.account, id))
			}
			same(b, "at first", must(b.DueEndpoints(b.Context(), nil, 9)), ids)
			b.pass(time.Second)
			must(b.ClaimDeliveries(b.Context(), ids[0], 1, eventLease))
			same(b, "after a turn of the first", must(b.DueEndpoints(b.Context(), nil, 2)), ids[1:])
			same(b, "and then", must(b.DueEndpoints(b.Context(), nil, 9)), []string{ids[1], ids[2], ids[0]})
		},
		"an attempt is shown, and its endpoint fails until one succeeds": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.endpoint(p, all[0])
			must(b.SendTest(b.Context(), p.account, id))
			began := b.now()
			d := b.attemptAt(id, 503, time.Minute)
			same(b, "the delivery", []any{d.State, d.Attempts, d.NextAt}, []any{mediagate.EndpointPending, 1, began.Add(time.Minute)})
			same(b, "the attempt", d.Last, mediagate.EndpointAttempt{
				At: began, Status: 503, Answer: "a\u2028b", Headers: map[string]string{"Webhook-Id": "x"}, Duration: 3 * time.Millisecond,
			})
			same(b, "figures", must(b.Figures(b.Context())).Endpoints, mediagate.EndpointFigures{Pending: 1, DueAt: began.Add(time.Minute)})
			since := func() time.Time { return must(b.Endpoint(b.Context(), p.account, id)).FailingSince }
			same(b, "failing since", since(), began)
			b.pass(time.Minute)
			b.attemptAt(id, 404, time.Minute)
			same(b, "failing since", since(), began)
			b.pass(time.Minute)
			same(b, "delivered", b.attemptAt(id, 200, 0).State, mediagate.EndpointDelivered)
			same(b, "failing since", since(), time.Time{})
			must(b.SendTest(b.Context(), p.account, id))
			same(b, "the last attempt", b.attemptAt(id, 500, 0).State, mediagate.EndpointFailed)
		},
		"a 410 disables the endpoint, and five days of failures": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.endpoint(p, all[0])
			read := func() mediagate.Endpoint { return must(b.Endpoint(b.Context(), p.account, id)) }
			must(b.SendTest(b.Context(), p.account, id))
			began := b.now()
			d := b.attemptAt(id, http.StatusGone, time.Minute)
			same(b, "the delivery", []any{d.State, d.Last.Status, d.NextAt}, []any{mediagate.EndpointFailed, http.StatusGone, time.Time{}})
			e := read()
			same(b, "disabled", []any{e.Enabled, e.DisabledAt, e.DisabledReason}, []any{false, b.now(), mediagate.DisabledGone})
			b.kind(errOf(b.SendTest(b.Context(), p.account, id)), mediagate.KindConflict)
			b.kind(errOf(b.Redeliver(b.Context(), p.account, id, d.EventID)), mediagate.KindConflict)
			b.updateEndpoint(p, id, func(e *mediagate.Endpoint) { e.Enabled = true })
			same(b, "failing since", read().FailingSince, time.Time{})

			must(b.Redeliver(b.Context(), p.account, id, d.EventID))
			b.attemptAt(id, 500, mediagate.EndpointPatience-time.Microsecond)
			b.pass(mediagate.EndpointPatience - time.Microsecond)
			b.attemptAt(id, 500, time.Microsecond)
			same(b, "before five days", read().Enabled, true)
			b.pass(time.Microsecond)
			same(b, "the delivery", b.attemptAt(id, 500, time.Minute).State, mediagate.EndpointFailed)
			e = read()
			same(b, "disabled", []any{e.Enabled, e.FailingSince, e.DisabledAt, e.DisabledReason}, []any{false, began, b.now(), mediagate.DisabledFailing})
			same(b, "due", len(must(b.DueEndpoints(b.Context(), nil, 9)))+len(b.claimEvents(id).Deliveries), 0)
		},
		"an answer of an earlier address says nothing of the new one, which begins without failures": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.endpoint(p, all[0])
			read := func() mediagate.Endpoint { return must(b.Endpoint(b.Context(), p.account, id)) }
			must(b.SendTest(b.Context(), p.account, id))
			b.attemptAt(id, 500, time.Second)
			b.pass(mediagate.EndpointPatience)
			turn := b.claimEvents(id)
			b.updateEndpoint(p, id, func(e *mediagate.Endpoint) { e.URL = "https://hooks.example.com/new" })
			same(b, "failing since", read().FailingSince, time.Time{})
			b.noError(b.RecordEndpointAttempt(b.Context(), mediagate.EndpointResult{
				EndpointID: id, URL: turn.Endpoint.URL, EventID: turn.Deliveries[0].EventID, Claim: turn.Claim, NextAt: b.now(),
				Attempt: mediagate.EndpointAttempt{At: b.now(), Status: http.StatusGone},
			}))
			same(b, "enabled after a late 410", read().Enabled, true)
			b.attemptAt(id, 503, time.Second)
			same(b, "enabled after its first failure", read().Enabled, true)
		},
		"a long backlog of a disabled endpoint ends in slices": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.endpoint(p, all[0])
			b.noError(b.database().Exec(`INSERT INTO endpoint_deliveries (event_id, endpoint_id, type, body, state, created_at, next_at)
				WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
				SELECT 'evt_' || i, e.id, 'test', NULL, 'pending', e.created_at, e.created_at FROM n, endpoints e`).Error)
			pending := func() int { return b.count("SELECT COUNT(*) FROM endpoint_deliveries WHERE state = 'pending'") }
			b.updateEndpoint(p, id, func(e *mediagate.Endpoint) { e.Enabled = false })
			same(b, "pending at once", pending(), 1500)
			b.noError(b.FailDisabled(b.Context()))
			same(b, "pending in the end", pending(), 0)
		},
		"a redelivery begins again, with fresh links after a day": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.endpoint(p, all[0])
			done := b.accepted(p, unit(1))
			b.settle(completed(done, unit(1)))
			event := mediagate.TaskEventID(done)
			same(b, "body", string(must(b.StoreEndpointBody(b.Context(), id, event, []byte("first")))), "first")
			same(b, "body", string(must(b.StoreEndpointBody(b.Context(), id, event, []byte("second")))), "first")
			b.kind(errOf(b.Redeliver(b.Context(), p.account, id, event)), mediagate.KindConflict)
			b.attemptAt(id, 200, 0)
			b.pass(24 * time.Hour)
			again := must(b.Redeliver(b.Context(), p.account, id, event))
			same(b, "again", []any{again.State, again.Attempts, again.NextAt, string(again.Body)}, []any{mediagate.EndpointPending, 0, b.now(), "first"})
			b.attemptAt(id, 200, 0)
			b.pass(time.Microsecond)
			again = must(b.Redeliver(b.Context(), p.account, id, event))
			same(b, "the body after a day", len(again.Body), 0)
		},
		"deliveries are listed newest first, by pages and by state": func(b *bench) {
			p := b.newPayer(unit(10))
			id, other := b.endpoint(p, all[0]), b.endpoint(p, all[0])
			var want []string
			for range 3 {
				want = append([]string{must(b.SendTest(b.Context(), p.account, id)).EventID}, want...)
				b.pass(time.Second)
			}
			turn := must(b.ClaimDeliveries(b.Context(), id, 1, eventLease))
			b.noError(b.RecordEndpointAttempt(b.Context(), mediagate.EndpointResult{EndpointID: id, EventID: turn.Deliveries[0].EventID, Claim: turn.Claim, Delivered: true}))
			list := func(state mediagate.EndpointState, after string, limit int) (ids []string, more bool) {
				b.Helper()
				deliveries, more := must2(b.EndpointDeliveries(b.Context(), id, state, after, limit))
				for _, d := range deliveries {
					ids = append(ids, d.EventID)
				}
				return ids, more
			}
			page := func(what string, state mediagate.EndpointState, after string, limit int, want []string, wantMore bool) {
				b.Helper()
				ids, more := list(state, after, limit)
				same(b, what, []any{ids, more}, []any{want, wantMore})
			}
			page("all", "", "", 3, want, false)
			page("first page", "", "", 2, want[:2], true)
			page("second page", "", want[1], 2, want[2:], false)
			page("pending", mediagate.EndpointPending, "", 9, want[:2], false)
			page("delivered", mediagate.EndpointDelivered, "", 9, want[2:], false)
			page("failed", mediagate.EndpointFailed, "", 9, nil, false)
			strange := must(b.SendTest(b.Context(), p.account, other)).EventID
			b.kind(errOf(b.EndpointDeliveries(b.Context(), id, "", strange, 9)), mediagate.KindInvalid)
		},
		"an erased task is told of no more": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.endpoint(p, all...)
			done, other := b.accepted(p, unit(1)), b.accepted(p, unit(1))
			b.settle(completed(done, unit(1)))
			b.settle(completed(other, unit(1)))
			b.eraseTask(p, done)
			same(b, "told", b.told(id)[0].TaskID, other)
		},
		"deliveries go after their time, but not while they are pending": func(b *bench) {
			p := b.newPayer(unit(10))
			id, removed := b.endpoint(p, all[0]), b.endpoint(p, all[0])
			done := b.resting(completed(b.accepted(p, unit(1)), unit(1)))
			b.attemptAt(id, 200, 0)
			must(b.SendTest(b.Context(), p.account, id))
			b.spoil("DELETE FROM endpoints WHERE id = ?", removed) // beside the end of a task that leaves a row
			b.pass(aDay)
			young := must(b.SendTest(b.Context(), p.account, id)).EventID
			same(b, "removed too early", b.remove(mediagate.RemoveEndpointDeliveries, aDay), 0)
			b.pass(time.Microsecond)
			same(b, "removed", b.remove(mediagate.RemoveEndpointDeliveries, aDay), 2)
			same(b, "left", []int{len(b.told(id)), b.count("SELECT COUNT(*) FROM endpoint_deliveries WHERE event_id = ?", young)}, []int{2, 1})
			last := b.resting(completed(b.accepted(p, unit(1)), unit(1)))
			b.pass(100 * aDay)
			b.remove(mediagate.RemoveTasks, 90*aDay)
			same(b, "tasks", []bool{b.has(done), b.has(last)}, []bool{false, false})
			same(b, "told", len(b.told(id)), 2)
		},
	})
}

// data reads what an event says.
func data(b *bench, d mediagate.EndpointDelivery) map[string]any {
	b.Helper()
	var body struct {
		Type      mediagate.EventType `json:"type"`
		Timestamp time.Time           `json:"timestamp"`
		Data      map[string]any      `json:"data"`
	}
	b.noError(json.Unmarshal(d.Body, &body))
	same(b, "type and time", []any{body.Type, body.Timestamp}, []any{d.Type, d.CreatedAt.Truncate(time.Millisecond)})
	return body.Data
}

func TestCrossingFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"a balance that falls below the bound is told once, and again after it has risen": func(b *bench) {
			p := b.newPayer(unit(60))
			id := b.endpoint(p, mediagate.EventBalanceLow) // below 50
			count := func(what string, want int) {
				b.Helper()
				b.noError(b.NoteCrossings(b.Context()))
				b.noError(b.NoteCrossings(b.Context()))
				same(b, what, len(b.told(id)), want)
			}
			count("at first", 0)
			first := b.submit(p, unit(10))
			count("at the bound", 0)
			b.submit(p, unit(1))
			count("below", 1)
			same(b, "data", data(b, b.told(id)[0]), map[string]any{"account": p.account, "available": "49.00", "balance_low": "50.00"})
			b.submit(p, unit(1))
			count("further below", 1)
			b.settle(failed(first))
			count("above", 1)
			b.submit(p, unit(10))
			count("below again", 2)
		},
		"what was crossed before an endpoint watches is not told": func(b *bench) {
			p := b.newPayer(unit(40))
			id := b.endpoint(p, mediagate.EventBalanceLow)
			low := func(n int64) {
				b.Helper()
				b.updateEndpoint(p, id, func(e *mediagate.Endpoint) { e.BalanceLow = new(unit(n)) })
				b.noError(b.NoteCrossings(b.Context()))
			}
			low(50)
			low(30)
			same(b, "told", len(b.told(id)), 0)
			b.submit(p, unit(11))
			b.updateEndpoint(p, id, func(e *mediagate.Endpoint) { e.Description = "beside the pass" })
			low(30)
			same(b, "told", len(b.told(id)), 1)
			b.updateEndpoint(p, id, func(e *mediagate.Endpoint) { e.Enabled = false })
			must3(b.Grant(b.Context(), p.account, unit(20), "more"))
			b.noError(b.NoteCrossings(b.Context()))
			b.submit(p, unit(30))
			b.updateEndpoint(p, id, func(e *mediagate.Endpoint) { e.Enabled = true })
			low(30)
			same(b, "told after it was disabled", len(b.told(id)), 1)
		},
		"a key is told of at 80 and 100 percent of its quota, once a crossing": func(b *bench) {
			p := b.newPayerKey(unit(100), mediagate.Key{Name: "ci", Quota: unit(10)})
			id, other := b.endpoint(p, mediagate.EventKeyQuotaLow), b.endpoint(p, mediagate.EventKeyQuotaLow)
			percents := func(what string, want ...float64) {
				b.Helper()
				b.noError(b.NoteCrossings(b.Context()))
				b.noError(b.NoteCrossings(b.Context()))
				var got []float64
				for _, d := range slices.Backward(b.told(id)) {
					got = append(got, data(b, d)["percent"].(float64))
				}
				same(b, what, got, want)
				same(b, "the other endpoint", len(b.told(other)), len(want))
				b.pass(time.Second)
			}
			b.submit(p, unit(8)-1)
			percents("below")
			last := b.submit(p, 1)
			percents("at 80", 80)
			same(b, "data", data(b, b.told(id)[0]), map[string]any{
				"key": p.key, "name": "ci", "limit": "quota", "percent": 80., "amount": "10.00", "used": "8.00", "resets_at": nil,
			})
			b.submit(p, unit(2))
			percents("at 100", 80, 100)
			b.settle(failed(last))
			percents("below 100", 80, 100)
			b.submit(p, 1)
			percents("at 100 again", 80, 100, 100)
		},
		"what passes both bounds at once is told twice": func(b *bench) {
			p := b.newPayerKey(unit(100), mediagate.Key{Quota: unit(10)})
			id := b.endpoint(p, mediagate.EventKeyQuotaLow)
			b.submit(p, unit(10))
			b.noError(b.NoteCrossings(b.Context()))
			same(b, "told", len(b.told(id)), 2)
		},
		"a cap is told of once in a period, also when a hold is given back": func(b *bench) {
			p := b.newPayerKey(unit(100), mediagate.Key{Unlimited: true, Caps: mediagate.Caps{Day: new(unit(10))}})
			id := b.endpoint(p, mediagate.EventKeyQuotaLow)
			first := b.submit(p, unit(8))
			b.noError(b.NoteCrossings(b.Context()))
			b.settle(failed(first))
			b.noError(b.NoteCrossings(b.Context()))
			b.submit(p, unit(8))
			b.noError(b.NoteCrossings(b.Context()))
			same(b, "at 80 twice on one day", len(b.told(id)), 1)
		},
		"a cap is told of once in each of its periods": func(b *bench) {
			p := b.newPayerKey(unit(100), mediagate.Key{Unlimited: true, Caps: mediagate.Caps{Day: new(unit(10)), Week: new(unit(0))}})
			id := b.endpoint(p, mediagate.EventKeyQuotaLow)
			b.noError(b.NoteCrossings(b.Context()))
			same(b, "without use", len(b.told(id)), 0)
			b.changeKey(p, func(k *mediagate.Key) { k.Caps.Week = new(unit(100)) })
			for day := 1; day <= 2; day++ {
				b.submit(p, unit(9))
				b.noError(b.NoteCrossings(b.Context()))
				b.noError(b.NoteCrossings(b.Context()))
				same(b, fmt.Sprintf("on day %d", day), len(b.told(id)), day)
				midnight := b.now().Truncate(aDay).Add(aDay)
				same(b, "data", data(b, b.told(id)[0]), map[string]any{
					"key": p.key, "name": "", "limit": "day", "percent": 80., "amount": "10.00", "used": "9.00", "resets_at": float64(midnight.Unix()),
				})
				b.pass(aDay) // without a pass in between
			}
		},
		"a rotated key is told of by its new id, and a deleted one not": func(b *bench) {
			p := b.newPayerKey(unit(100), mediagate.Key{Quota: unit(10)})
			id := b.endpoint(p, mediagate.EventKeyQuotaLow)
			b.submit(p, unit(8))
			next := must(b.RotateKey(b.Context(), p.key, mediagate.KeySecret{Hash: [32]byte{1}}, time.Hour))
			b.noError(b.NoteCrossings(b.Context()))
			same(b, "key", data(b, b.told(id)[0])["key"], any(next.ID))
			b.submit(payer{p.account, next.ID}, unit(2))
			b.noError(b.DeleteKey(b.Context(), next.ID))
			b.noError(b.DeleteKey(b.Context(), p.key))
			b.noError(b.NoteCrossings(b.Context()))
			same(b, "told", len(b.told(id)), 1)
		},
		"keys that had used much before an endpoint watches are not told of": func(b *bench) {
			p := b.newPayerKey(unit(100), mediagate.Key{Quota: unit(10)})
			b.submit(p, unit(9))
			id := b.endpoint(p, mediagate.EventKeyQuotaLow)
			b.noError(b.NoteCrossings(b.Context()))
			same(b, "told", len(b.told(id)), 0)
			b.submit(p, unit(1))
			later := b.endpoint(p, mediagate.EventKeyQuotaLow) // beside one that watches
			b.noError(b.NoteCrossings(b.Context()))
			same(b, "told", []int{len(b.told(id)), len(b.told(later))}, []int{1, 1})
		},
		"passes side by side tell once": func(b *bench) {
			p := b.newPayerKey(unit(60), mediagate.Key{Quota: unit(11)})
			id := b.endpoint(p, mediagate.EventKeyQuotaLow, mediagate.EventBalanceLow)
			b.submit(p, unit(11))
			b.race(6, func(int) { b.noError(b.NoteCrossings(b.Context())) })
			types := b.types(id)
			slices.Sort(types)
			same(b, "told", types, []mediagate.EventType{mediagate.EventBalanceLow, mediagate.EventKeyQuotaLow, mediagate.EventKeyQuotaLow})
		},
	})
}
