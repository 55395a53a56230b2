package storage_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// used is the usage of an account from a time on.
func (b *bench) usage(f mediagate.UsageFilter) []mediagate.Usage {
	b.Helper()
	if f.Limit == 0 {
		f.Limit = 1000
	}
	rows, more := must2(b.Usage(b.Context(), f))
	same(b, "more", more, false)
	return rows
}

// counts are numbers of tasks that were charged, failed and cancelled.
func counts(completed, failed, cancelled int64) mediagate.UsageTasks {
	return mediagate.UsageTasks{Completed: completed, Failed: failed, Cancelled: cancelled}
}

func TestUsageFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
		"usage tells what was charged and how tasks ended": func(b *bench) {
			p := b.newPayer(unit(100))
			start := b.now()
			done, lost, gone := b.accepted(p, unit(3)), b.accepted(p, unit(2)), b.submit(p, unit(1))
			b.accepted(p, unit(5))
			b.submit(p, unit(4))
			b.settle(completed(done, unit(2)))
			b.settle(failed(lost))
			b.settle(cancelled(gone))
			tasks := mediagate.UsageTasks{Pending: 1, Processing: 1, Completed: 1, Failed: 1, Cancelled: 1}
			same(b, "in one row", b.usage(mediagate.UsageFilter{AccountID: p.account, From: start}), []mediagate.Usage{{Cost: unit(2), Tasks: tasks}})
			same(b, "of all accounts", b.usage(mediagate.UsageFilter{From: start}), []mediagate.Usage{{Cost: unit(2), Tasks: tasks}})
			day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
			same(b, "told apart", b.usage(mediagate.UsageFilter{
				AccountID: p.account, From: start, By: []mediagate.UsageBy{mediagate.ByModel, mediagate.ByKey, mediagate.ByDay, mediagate.ByAccount},
			}), []mediagate.Usage{{Day: day, AccountID: p.account, KeyID: p.key, Model: "alpha-v3", Cost: unit(2), Tasks: tasks}})
			providers := b.usage(mediagate.UsageFilter{AccountID: p.account, From: start, By: []mediagate.UsageBy{mediagate.ByProvider}})
			same(b, "by provider", providers, []mediagate.Usage{
				{Tasks: mediagate.UsageTasks{Pending: 1, Cancelled: 1}},
				{Provider: "kling", Cost: unit(2), Tasks: mediagate.UsageTasks{Processing: 1, Completed: 1, Failed: 1}},
			})
		},
		"nothing used is one row of zeros, or none": func(b *bench) {
			p := b.newPayer(unit(1))
			same(b, "in one row", b.usage(mediagate.UsageFilter{AccountID: p.account, From: b.now()}), []mediagate.Usage{{}})
			same(b, "by model", b.usage(mediagate.UsageFilter{AccountID: p.account, From: b.now(), By: []mediagate.UsageBy{mediagate.ByModel}}), []mediagate.Usage{})
		},
		"speech counts like a task": func(b *bench) {
			p := b.newPayer(unit(10))
			b.endSpeech(b.speak(p, unit(2)), mediagate.SpeechPosted)
			b.endSpeech(b.speak(p, unit(3)), mediagate.SpeechVoided)
			b.speak(p, unit(1))
			want := []mediagate.Usage{{Model: "eta-4o-mini-tts", Cost: unit(2), Tasks: mediagate.UsageTasks{Processing: 1, Completed: 1, Failed: 1}}}
			by := mediagate.UsageFilter{AccountID: p.account, By: []mediagate.UsageBy{mediagate.ByModel}}
			same(b, "usage", b.usage(by), want)
		},
		"a task counts by its submit, then by its end": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.accepted(p, unit(2))
			begin, next := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
			first := mediagate.UsageFilter{AccountID: p.account, From: begin, To: next}
			second := mediagate.UsageFilter{AccountID: p.account, From: next}
			same(b, "while it is open", b.usage(first), []mediagate.Usage{{Tasks: mediagate.UsageTasks{Processing: 1}}})
			b.pass(12 * time.Hour)
			b.settle(completed(id, unit(1)))
			same(b, "where it began", b.usage(first), []mediagate.Usage{{}})
			same(b, "where it ended", b.usage(second), []mediagate.Usage{{Cost: unit(1), Tasks: counts(1, 0, 0)}})
		},
		"rows beyond the limit are told of": func(b *bench) {
			p, other := b.newPayer(unit(10)), b.newPayer(unit(10))
			b.accepted(p, 1)
			b.accepted(other, 1)
			rows, more := must2(b.Usage(b.Context(), mediagate.UsageFilter{By: []mediagate.UsageBy{mediagate.ByAccount}, Limit: 1}))
			same(b, "rows, more", []any{len(rows), more}, []any{1, true})
		},
		"what vendors charged stands beside what we charged": func(b *bench) {
			p := b.newPayer(unit(20))
			done, lost, late := b.accepted(p, unit(2)), b.accepted(p, unit(2)), b.accepted(p, unit(2))
			outcome := func(id string, charge mediagate.VendorCharge) {
				o := success(unit(1))
				o.VendorCharge = &charge
				b.change(id, task.VendorEnded{N: 1, Outcome: o})
			}
			outcome(done, mediagate.VendorCharge{Amount: "2.5", Unit: "unit"})
			outcome(done, mediagate.VendorCharge{Amount: "9", Unit: "unit"}) // the first one counts
			b.settle(completed(done, unit(1)))
			outcome(lost, mediagate.VendorCharge{Amount: "not a number", Unit: "unit"})
			b.settle(failed(lost))
			b.settle(cancelled(late))
			outcome(late, mediagate.VendorCharge{Amount: "0.25", Unit: "USD"}) // the task is over, the job was not
			by := mediagate.UsageFilter{From: b.now().Truncate(time.Hour), By: []mediagate.UsageBy{mediagate.ByModel, mediagate.ByProvider}}
			want := []mediagate.Usage{{
				Model: "alpha-v3", Provider: "kling", Cost: unit(1), Tasks: counts(1, 1, 1),
				VendorCharges: []mediagate.VendorCharge{{Amount: "0.25", Unit: "USD"}, {Amount: "2.5", Unit: "unit"}},
			}}
			same(b, "before it is counted", b.usage(by), want)
			for range 3 {
				must(b.CountVendorCharges(b.Context(), 10))
			}
			same(b, "uncounted", b.count("SELECT COUNT(*) FROM attempts WHERE vendor_uncounted_at IS NOT NULL"), 0)
			same(b, "counted", b.usage(by), want)
			same(b, "in another hour", b.usage(mediagate.UsageFilter{From: b.now().Truncate(time.Hour).Add(time.Hour), By: by.By}), []mediagate.Usage{})
			by.By = []mediagate.UsageBy{mediagate.ByModel}
			same(b, "without providers", b.usage(by)[0].VendorCharges, nil)
		},
		"the charge of a job that ends after its task was erased is kept": func(b *bench) {
			p := b.newPayer(unit(10))
			start, id := b.now().Truncate(time.Hour), b.accepted(p, unit(1))
			b.settle(cancelled(id))
			b.eraseTask(p, id)
			for _, amount := range []string{"2.5", "9"} { // the first one counts
				o := richOutcome()
				o.VendorCharge = mediagate.ChargedBy(amount, "unit")
				b.change(id, task.VendorEnded{N: 1, Outcome: o})
			}
			for range 2 {
				rows := b.usage(mediagate.UsageFilter{AccountID: p.account, From: start, By: []mediagate.UsageBy{mediagate.ByProvider}})
				same(b, "rows", len(rows), 1)
				same(b, "charges", rows[0].VendorCharges, []mediagate.VendorCharge{{Amount: "2.5", Unit: "unit"}})
				must(b.CountVendorCharges(b.Context(), 10))
			}
			same(b, "left", b.holds(secretWord), nil)
		},
		"no charge is cut off without a word": func(b *bench) {
			p := b.newPayer(unit(100))
			start := b.now()
			for _, unit := range []string{"credits", "tokens", "USD"} {
				for _, p := range []payer{p, b.newPayer(1_000_000)} {
					o := mediagate.Outcome{Succeeded: true, VendorCharge: mediagate.ChargedBy("1", unit)}
					b.change(b.accepted(p, 0), task.VendorEnded{N: 1, Outcome: o})
				}
			}
			by := []mediagate.UsageBy{mediagate.ByAccount, mediagate.ByProvider}
			for limit := 1; limit < 8; limit++ {
				rows, more := must2(b.Usage(b.Context(), mediagate.UsageFilter{From: start, By: by, Limit: limit}))
				charges := 0
				for _, row := range rows {
					charges += len(row.VendorCharges)
				}
				if !more && charges < 6 {
					b.Errorf("of 6 charges, %d are told with a limit of %d, as if that were all", charges, limit)
				}
			}
		},
		"a synchronous vendor's charge is kept": func(b *bench) {
			p := b.newPayer(unit(20))
			id, over := b.submit(p, unit(1)), b.submit(p, unit(1))
			charged := func(id, amount string) task.Accepted {
				return task.Accepted{Sending: b.sending(id), Submission: mediagate.Submission{Outcome: &mediagate.Outcome{Succeeded: true, VendorCharge: mediagate.ChargedBy(amount, "tokens")}}}
			}
			b.intent(id)
			b.change(id, charged(id, "1290"))
			b.settle(cancelled(id))
			intent := b.intent(over)
			b.change(over, task.SubmitUnknown{Sending: intent.Sending})
			b.settle(cancelled(over))
			b.change(over, charged(over, "10"))
			rows := b.usage(mediagate.UsageFilter{By: []mediagate.UsageBy{mediagate.ByProvider}})
			same(b, "charges", rows[0].VendorCharges, []mediagate.VendorCharge{{Amount: "1300", Unit: "tokens"}})
		},
	})
}

func TestHistoryFacts(t *testing.T) {
	t.Parallel()
	prove(t, facts{
		"usage and statements add up for any time": func(b *bench) {
			rapid.Check(b.T, func(t *rapid.T) { newHistory(b, t).judge() })
		},
	})
}

// history is what one account did at random, with random pauses, and the moments
// at which something happened.
type history struct {
	*bench
	t       *rapid.T
	p       payer
	moments []time.Time
}

func newHistory(b *bench, t *rapid.T) *history {
	h := &history{bench: b, t: t, p: b.newPayer(unit(50))}
	pauses := []time.Duration{0, time.Microsecond, time.Second, 20 * time.Minute, 50 * time.Minute, 7 * time.Hour, 30 * time.Hour}
	var open, spoken []string
	take := func(list *[]string) string {
		i := rapid.IntRange(0, len(*list)-1).Draw(t, "which")
		id := (*list)[i]
		*list = slices.Delete(*list, i, i+1)
		return id
	}
	for i := range rapid.IntRange(1, 14).Draw(t, "deeds") {
		b.pass(rapid.SampledFrom(pauses).Draw(t, "pause"))
		h.moments = append(h.moments, b.now())
		switch deed := rapid.IntRange(0, 7).Draw(t, "deed"); {
		case deed == 0:
			must3(b.Grant(b.Context(), h.p.account, mediagate.Micros(rapid.Int64Range(1, 9_999_999).Draw(t, "grant")), fmt.Sprint("r", i)))
		case deed == 1:
			spoken = append(spoken, b.speak(h.p, mediagate.Micros(rapid.Int64Range(0, 999_999).Draw(t, "hold"))))
		case deed == 2 && len(spoken) > 0:
			b.endSpeech(take(&spoken), rapid.SampledFrom([]mediagate.SpeechState{mediagate.SpeechPosted, mediagate.SpeechVoided}).Draw(t, "end"))
		case deed > 4 && len(open) > 0:
			id := take(&open)
			hold := b.task(id).Hold
			cost := mediagate.Micros(rapid.Int64Range(min(1, int64(hold)), int64(hold)).Draw(t, "cost"))
			b.settle(rapid.SampledFrom([]end{completed(id, cost), failed(id), cancelled(id)}).Draw(t, "end"))
		default:
			open = append(open, b.accepted(h.p, mediagate.Micros(rapid.Int64Range(0, 3_000_000).Draw(t, "hold"))))
		}
	}
	return h
}

// judge divides all time at random moments, and holds the parts against the
// ledger, the account and each other.
func (h *history) judge() {
	moment := func() time.Time {
		near := rapid.SampledFrom(h.moments).Draw(h.t, "near")
		switch rapid.IntRange(0, 3).Draw(h.t, "cut") {
		case 0:
			return near.Truncate(time.Hour)
		case 1:
			return near.Truncate(24 * time.Hour)
		default:
			return near.Add(time.Duration(rapid.SampledFrom([]int{-3600e6, -1, 0, 1, 1800e6}).Draw(h.t, "off")) * time.Microsecond)
		}
	}
	cuts := []time.Time{time.Unix(0, 0).UTC()}
	for range rapid.IntRange(0, 4).Draw(h.t, "cuts") {
		cuts = append(cuts, moment())
	}
	slices.SortFunc(cuts, time.Time.Compare)
	cuts = append(slices.CompactFunc(cuts, time.Time.Equal), time.Time{}) // the last part is open
	account := must(h.Account(h.Context(), h.p.account))
	transfers, _ := must2(h.Ledger(h.Context(), h.p.account, "", "", 1000))
	var balance mediagate.Balance
	lines := 0
	for i, from := range cuts[:len(cuts)-1] {
		to := cuts[i+1]
		within := func(t time.Time) bool { return !t.Before(from) && (to.IsZero() || t.Before(to)) }
		var cost mediagate.Micros
		var ends int64
		for _, t := range transfers {
			if within(t.At) && (t.Kind == mediagate.EntryPost || t.Kind == mediagate.EntryVoid) {
				ends++
				if t.Kind == mediagate.EntryPost {
					cost += t.Amount
				}
			}
		}
		got := h.usage(mediagate.UsageFilter{AccountID: h.p.account, From: from, To: to})[0]
		if n := got.Tasks.Completed + got.Tasks.Failed + got.Tasks.Cancelled; got.Cost != cost || n != ends {
			h.t.Fatalf("usage from %s to %s: %s for %d ends, by the ledger %s for %d", from, to, got.Cost, n, cost, ends)
		}
		f := mediagate.StatementFilter{AccountID: h.p.account, From: from, To: to, Limit: rapid.IntRange(1, 20).Draw(h.t, "limit")}
		for more := true; more; {
			st := h.stated(f)
			if st.Opening != balance {
				h.t.Fatalf("from %s, after %q: opening %v, the balance before it %v", from, f.After, st.Opening, balance)
			}
			for _, line := range st.Lines {
				if !within(line.At) {
					h.t.Fatalf("a line of %s from %s to %s", line.At, from, to)
				}
				balance = balance.Plus(line.Change)
				f.After = line.ID
			}
			if st.Closing != balance {
				h.t.Fatalf("closing %v, opening and lines %v", st.Closing, balance)
			}
			lines += len(st.Lines)
			more = st.HasMore
		}
	}
	if want := (mediagate.Balance{Available: account.Available, Held: account.Held, Spent: account.Spent}); balance != want || lines != len(transfers) {
		h.t.Fatalf("%d lines of %d lead to %v, the account has %v", lines, len(transfers), balance, want)
	}
	h.checkLedger()
}
