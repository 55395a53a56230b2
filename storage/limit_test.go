package storage_test

import (
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// setClock sets the clock, back too.
func (b *bench) setClock(t time.Time) {
	b.clock.mu.Lock()
	defer b.clock.mu.Unlock()
	b.clock.now = t
}

// refused expects a submit to be refused with a message that has the text, and to
// leave nothing.
func (b *bench) refused(p payer, hold mediagate.Micros, kind mediagate.Kind, text string) {
	b.Helper()
	n := b.draft(p, hold)
	if e := b.kind(errOf(b.Submit(b.Context(), n)), kind); !strings.Contains(e.Message, text) {
		b.Fatalf("the message %q lacks %q", e.Message, text)
	}
	b.nothingOf(n.Task.ID)
}

func (b *bench) changeKey(p payer, change func(k *mediagate.Key)) mediagate.Key {
	b.Helper()
	return must(b.UpdateKey(b.Context(), p.key, func(k *mediagate.Key) error {
		change(k)
		return nil
	}))
}

func (b *bench) changeAccount(p payer, change func(a *mediagate.Account)) mediagate.Account {
	b.Helper()
	return must(b.UpdateAccount(b.Context(), p.account, func(a *mediagate.Account) error {
		change(a)
		return nil
	}))
}

// rotate makes a new key of the payer's, both of which live.
func (b *bench) rotate(p payer) payer {
	b.Helper()
	secret := mediagate.KeySecret{Hash: [32]byte([]byte(strings.Repeat(p.key, 2)[:32]))}
	secret.Hash[0] = 'r'
	k := must(b.RotateKey(b.Context(), p.key, secret, 1000*time.Hour))
	return payer{p.account, k.ID}
}

// used is what counts in the key's day, week and month.
func (b *bench) used(p payer) [3]mediagate.Micros {
	b.Helper()
	of := func(column string) mediagate.Micros {
		return mediagate.Micros(b.count("SELECT "+column+" FROM keys WHERE id = (SELECT COALESCE(quota_id, id) FROM keys WHERE id = ?)", p.key))
	}
	return [3]mediagate.Micros{of("day_used"), of("week_used"), of("month_used")}
}

// capsUsed checks that this amount is used of each of the caps that the payer's key has.
func (b *bench) capsUsed(p payer, caps mediagate.Caps, amount mediagate.Micros) {
	b.Helper()
	for _, limit := range []**mediagate.Micros{&caps.Day, &caps.Week, &caps.Month} {
		if *limit != nil {
			*limit = &amount
		}
	}
	same(b, "used caps", must(b.Key(b.Context(), p.key)).CapsUsed, caps)
}

// abandoned are the payer's jobs that nobody waits for.
func (b *bench) abandoned(p payer) mediagate.Abandoned {
	b.Helper()
	a := must(b.Abandoned(b.Context(), p.account))
	return a
}

// inFlight is what the key's shared quota and the account have counted.
func (b *bench) inFlight(p payer) [2]int {
	b.Helper()
	return [2]int{
		b.count("SELECT in_flight FROM keys WHERE id = (SELECT COALESCE(quota_id, id) FROM keys WHERE id = ?)", p.key),
		b.count("SELECT in_flight FROM accounts WHERE id = ?", p.account),
	}
}

// boundary is the end of a period, and a cap of it.
type boundary struct {
	next time.Time // when the next one begins
	caps mediagate.Caps
	text string // of a refusal before it
}

// 2026-03-09 is a Monday, in the middle of a month; 2026-04-01 is a Wednesday.
var boundaries = map[string]boundary{
	"day": {
		time.Date(2026, 3, 11, 0, 0, 0, 0, time.UTC),
		mediagate.Caps{Day: new(unit(3))},
		"the key's cap of the day, 3.00, is not enough: 2.00 is needed, 1.00 is left until 2026-03-11T00:00:00Z",
	},
	"week": {
		time.Date(2026, 3, 9, 0, 0, 0, 0, time.UTC),
		mediagate.Caps{Week: new(unit(3))},
		"the key's cap of the week, 3.00, is not enough: 2.00 is needed, 1.00 is left until 2026-03-09T00:00:00Z",
	},
	"month": {
		time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC),
		mediagate.Caps{Month: new(unit(3))},
		"the key's cap of the month, 3.00, is not enough: 2.00 is needed, 1.00 is left until 2026-04-01T00:00:00Z",
	},
	"month after a February": {
		time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		mediagate.Caps{Month: new(unit(3))},
		"is left until 2026-03-01T00:00:00Z",
	},
	"day at the end of a year": {
		time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		mediagate.Caps{Day: new(unit(3)), Month: new(unit(3))},
		"the key's cap of the day, 3.00, is not enough: 2.00 is needed, 1.00 is left until 2027-01-01T00:00:00Z",
	},
}

func TestLimitFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"a cap begins anew with the next day, week and month": func(b *bench) {
			for name, at := range boundaries {
				b.Log(name)
				b.setClock(at.next.Add(-time.Hour))
				p := b.newPayerKey(unit(100), mediagate.Key{Unlimited: true, Caps: at.caps})
				b.submit(p, unit(2))
				b.setClock(at.next.Add(-time.Microsecond))
				b.refused(p, unit(2), mediagate.KindPayment, at.text)
				b.submit(p, unit(1))
				b.refused(p, 1, mediagate.KindPayment, "is not enough: 0.000001 is needed, 0.00 is left")
				b.submit(p, 0)
				b.capsUsed(p, at.caps, unit(3))
				b.setClock(at.next)
				b.capsUsed(p, at.caps, 0)
				b.refused(p, unit(3)+1, mediagate.KindPayment, "is not enough: 3.000001 is needed, 3.00 is left")
				b.submit(p, unit(3))
				b.refused(p, 1, mediagate.KindPayment, "is not enough: 0.000001 is needed, 0.00 is left")
			}
		},
		"a hold that no account can bear is refused like any other": func(b *bench) {
			p := b.newPayerKey(unit(10), mediagate.Key{Unlimited: true, Caps: mediagate.Caps{Month: new(mediagate.Micros(math.MaxInt64))}})
			free := b.newPayer(unit(10))
			for _, one := range []payer{p, free} {
				b.submit(one, unit(1))
				for _, hold := range []mediagate.Micros{math.MaxInt64 / 4, math.MaxInt64/4 + 1, math.MaxInt64 - 1, math.MaxInt64} {
					b.refused(one, hold, mediagate.KindPayment, "")
					b.kind(b.OpenSpeech(b.Context(), b.newSpeech(one, hold), time.Hour), mediagate.KindPayment)
				}
				b.submit(one, 0)
			}
		},
		"a suspended account begins nothing, and what it has goes on": func(b *bench) {
			p := b.newPayer(unit(10))
			running := b.submit(p, unit(2))
			repeated := b.draft(p, unit(1))
			repeated.IdempotencyKey = "again"
			must2(b.Submit(b.Context(), repeated))
			spoken := b.speak(p, unit(1))
			b.changeAccount(p, func(a *mediagate.Account) { a.Suspended = true })
			for _, hold := range []mediagate.Micros{0, unit(1), unit(100)} {
				b.refused(p, hold, mediagate.KindForbidden, "suspended")
				b.kind(b.OpenSpeech(b.Context(), b.newSpeech(p, hold), time.Hour), mediagate.KindForbidden)
				b.kind(b.CheckHold(b.Context(), p.account, p.key, hold), mediagate.KindForbidden)
			}
			replay := repeated
			replay.Task.ID = b.newTaskID()
			id, replayed := must2(b.Submit(b.Context(), replay))
			same(b, "a repetition", []any{id, replayed}, []any{repeated.Task.ID, true})
			b.endSpeech(spoken, mediagate.SpeechPosted)
			b.settle(made(running, unit(2)))
			b.money(p, unit(6), unit(1), unit(3))
			b.changeAccount(p, func(a *mediagate.Account) { a.Suspended = false })
			b.submit(p, unit(6))
		},
		"jobs of cancelled tasks that may still run count as in flight": func(b *bench) {
			for what, limit := range map[string]func(p payer){
				"account": func(p payer) { b.changeAccount(p, func(a *mediagate.Account) { a.InFlight = new(2) }) },
				"key":     func(p payer) { b.changeKey(p, func(k *mediagate.Key) { k.InFlight = new(2) }) },
			} {
				p := b.newPayer(unit(100))
				limit(p)
				gone := b.accepted(p, unit(3))
				b.settle(cancelled(gone))
				pair := b.rotate(p)
				one := b.submit(pair, unit(1))
				b.refused(p, unit(1), mediagate.KindRateLimited, "the "+what+" may have 2 tasks in flight at a time, and the jobs of 1 cancelled ones may still run")
				same(b, "counted", b.inFlight(p), [2]int{1, 1})
				b.change(gone, task.VendorEnded{N: 1, Outcome: mediagate.Outcome{Failure: &mediagate.Failure{Code: mediagate.CodeInternal, Message: "x"}}})
				b.submit(p, unit(1))
				b.settle(failed(one))
				b.checkLedger()
			}
		},
		"more unpaid than an account may have forbids its submits until the jobs have ended": func(b *bench) {
			p := b.newPayer(unit(100))
			b.changeAccount(p, func(a *mediagate.Account) { a.Unpaid = new(unit(5)) })
			for range 2 {
				b.settle(cancelled(b.accepted(p, unit(3))))
			}
			b.refused(p, 0, mediagate.KindRateLimited, "2 jobs of cancelled tasks may still run and are not paid for; their cost of 6.00 is above the account's unpaid of 5.00")
			f := must(b.Figures(b.Context()))
			same(b, "figures", []any{f.Abandoned, f.Unpaid}, []any{mediagate.Abandoned{Jobs: 2, Cost: unit(6)}, 1})
			b.pass(24 * time.Hour)
			b.noError(b.ExpireSlots(b.Context()))
			b.submit(p, 0)
		},
		"a job that an operator gave up is not its client's, whatever becomes of its task": func(b *bench) {
			p := b.newPayer(unit(100))
			b.changeAccount(p, func(a *mediagate.Account) { a.InFlight, a.Unpaid = new(2), new(unit(3)) })
			id := b.accepted(p, unit(3))
			b.change(id, task.RerouteRequested{})
			b.change(id, intentOf(id, 2, b.now()), task.Accepted{Sending: intentOf(id, 2, b.now()).Sending, Submission: mediagate.Submission{Ref: ref(id + "b")}, FirstPollAt: b.now()})
			same(b, "while it is open", b.abandoned(p), mediagate.Abandoned{})
			b.settle(cancelled(id))
			same(b, "once it is cancelled", b.abandoned(p), mediagate.Abandoned{Jobs: 1, Cost: unit(3)})
			f := must(b.Figures(b.Context()))
			same(b, "figures", []any{f.Abandoned, f.Unpaid}, []any{mediagate.Abandoned{Jobs: 1, Cost: unit(3)}, 0})
			b.submit(p, unit(1))
			b.refused(p, unit(1), mediagate.KindRateLimited, "and the jobs of 1 cancelled ones may still run")
			b.checkLedger()
		},
		"those who submit and cancel at once get no more than their unpaid, and one job each": func(b *bench) {
			const clients = 8
			p := b.newPayer(unit(1000))
			b.changeAccount(p, func(a *mediagate.Account) { a.Unpaid = new(unit(5)) })
			b.race(clients, func(int) {
				for range 20 {
					id, _, err := b.Submit(b.Context(), b.draft(p, unit(2)))
					if mediagate.Is(err, mediagate.KindRateLimited) {
						return
					}
					b.noError(err)
					b.accept(id, b.now())
					b.settle(cancelled(id))
				}
				b.Error("nothing was refused")
			})
			if got := b.abandoned(p).Jobs; got < 3 || got > 2+clients {
				b.Errorf("the vendor may work on %d jobs, want 3 to %d", got, 2+clients)
			}
			b.checkLedger()
		},
		"a key has no more tasks in flight than it may": func(b *bench) {
			p := b.newPayerKey(unit(100), mediagate.Key{Unlimited: true, InFlight: new(2)})
			b.submit(p, unit(1))
			b.accepted(p, unit(1))
			b.refused(p, unit(1), mediagate.KindRateLimited, "too many requests: the key may have 2 tasks in flight at a time")
			e := b.kind(errOf(b.Submit(b.Context(), b.draft(p, unit(1)))), mediagate.KindRateLimited)
			same(b, "code, whether to wait helps", []any{e.Code, e.RetryAfter > 0}, []any{"rate_limited", true})
			b.changeKey(p, func(k *mediagate.Key) { k.InFlight = new(0) })
			same(b, "to wait helps not", b.kind(errOf(b.Submit(b.Context(), b.draft(p, unit(1)))), mediagate.KindRateLimited).RetryAfter, 0)
		},
		"a quota is not set below what is used": func(b *bench) {
			p := b.newPayerKey(unit(10), mediagate.Key{Quota: unit(10)})
			b.submit(p, unit(3))
			b.kind(errOf(b.UpdateKey(b.Context(), p.key, func(k *mediagate.Key) error {
				k.Quota = unit(3) - 1
				return nil
			})), mediagate.KindInvalid)
			same(b, "what remains", b.changeKey(p, func(k *mediagate.Key) { k.Quota = unit(3) }).Remaining(), 0)
		},
		"a key's quota counts what is held and what is spent": func(b *bench) {
			p := b.newPayerKey(unit(100), mediagate.Key{Quota: unit(5)})
			b.settle(completed(b.accepted(p, unit(3)), unit(2)))
			b.submit(p, unit(3))
			b.refused(p, 1, mediagate.KindPayment, "the key's quota")
		},
		"a clock that jumps gives no allowance twice": func(b *bench) {
			today := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
			b.setClock(today)
			p := b.newPayerKey(unit(100), mediagate.Key{Unlimited: true, Caps: mediagate.Caps{Day: new(unit(3))}})
			b.submit(p, unit(3))
			b.setClock(today.AddDate(0, 0, 1))
			ahead := b.submit(p, unit(2))
			b.setClock(today) // which has been used up, and goes on as the day that was counted last
			b.refused(p, unit(2), mediagate.KindPayment, "1.00 is left until 2026-03-12T00:00:00Z")
			b.submit(p, unit(1))
			b.setClock(today.AddDate(0, 0, 1))
			b.refused(p, 1, mediagate.KindPayment, "cap of the day")
			b.setClock(today)
			b.settle(failed(ahead)) // given back to the day to which it was counted
			same(b, "used", b.used(p)[0], unit(1))
			b.setClock(today.AddDate(0, 0, 2))
			b.submit(p, unit(3))
			b.refused(p, 1, mediagate.KindPayment, "cap of the day")
		},
		"of what is short the first is named": func(b *bench) {
			p := b.newPayerKey(unit(2), mediagate.Key{
				Quota: unit(4), InFlight: new(0), Caps: mediagate.Caps{Day: new(unit(3)), Week: new(unit(2)), Month: new(unit(1))},
			})
			b.changeAccount(p, func(a *mediagate.Account) { a.InFlight = new(0) })
			b.refused(p, unit(4)+1, mediagate.KindPayment, "the key's quota is not enough: 4.000001 is needed, 4.00 is left")
			for _, want := range []string{"cap of the day", "cap of the week", "cap of the month"} {
				b.refused(p, unit(4), mediagate.KindPayment, want)
				b.changeKey(p, func(k *mediagate.Key) {
					switch {
					case k.Caps.Day != nil:
						k.Caps.Day = nil
					case k.Caps.Week != nil:
						k.Caps.Week = nil
					default:
						k.Caps.Month = nil
					}
				})
			}
			b.refused(p, unit(2)+1, mediagate.KindPayment, "insufficient balance: 2.000001 is needed, 2.00 is left")
			b.refused(p, unit(1), mediagate.KindRateLimited, "the key may have no task in flight: its in_flight is 0")
			b.changeKey(p, func(k *mediagate.Key) { k.InFlight = nil })
			b.refused(p, unit(1), mediagate.KindRateLimited, "the account may have no task in flight: its in_flight is 0")
			b.noError(b.DeleteKey(b.Context(), p.key))
			b.refused(p, unit(5), mediagate.KindUnauthenticated, "no longer valid")
		},
		"of two hundred submits at once twenty count: balance": func(b *bench) {
			b.twenty(b.newPayer(unit(20)), mediagate.KindPayment)
		},
		"of two hundred submits at once twenty count: quota": func(b *bench) {
			b.twenty(b.newPayerKey(unit(1000), mediagate.Key{Quota: unit(20)}), mediagate.KindPayment)
		},
		"of two hundred submits at once twenty count: cap": func(b *bench) {
			caps := mediagate.Caps{Week: new(unit(20))}
			b.twenty(b.newPayerKey(unit(1000), mediagate.Key{Unlimited: true, Caps: caps}), mediagate.KindPayment)
		},
		"of two hundred submits at once twenty count: tasks in flight of the key": func(b *bench) {
			b.twenty(b.newPayerKey(unit(1000), mediagate.Key{Unlimited: true, InFlight: new(20)}), mediagate.KindRateLimited)
		},
		"of two hundred submits at once twenty count: tasks in flight of the account": func(b *bench) {
			p := b.newPayer(unit(1000))
			b.changeAccount(p, func(a *mediagate.Account) { a.InFlight = new(20) })
			b.twenty(p, mediagate.KindRateLimited)
		},
	})
}

// twenty submits two hundred tasks of 1 at once, of which twenty may be.
func (b *bench) twenty(p payer, kind mediagate.Kind) {
	b.Helper()
	drafts := make([]mediagate.NewTask, 200)
	for i := range drafts {
		drafts[i] = b.draft(p, unit(1))
	}
	before, _, _ := b.balance(p.account)
	var stored, refused atomic.Int64
	b.race(len(drafts), func(i int) {
		switch _, _, err := b.Submit(b.Context(), drafts[i]); {
		case err == nil:
			stored.Add(1)
		case mediagate.Is(err, kind):
			refused.Add(1)
		default:
			b.Errorf("submit: %v", err)
		}
	})
	same(b, "stored, refused", []int64{stored.Load(), refused.Load()}, []int64{20, 180})
	same(b, "tasks", b.count("SELECT COUNT(*) FROM tasks"), 20)
	b.money(p, before-unit(20), unit(20), 0)
	same(b, "in flight", b.inFlight(p), [2]int{20, 20})
	same(b, "used", b.used(p), [3]mediagate.Micros{unit(20), unit(20), unit(20)})
}
