package storage_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

const lease = 45 * time.Second

func (b *bench) epoch(channel string) int64 {
	b.Helper()
	epoch := must(b.BeginEpoch(b.Context(), channel))
	return epoch
}

// due claims rows of the suite's channel.
func (b *bench) due(epoch int64, token string, limit int) []mediagate.Await {
	b.Helper()
	rows := must(b.ClaimDue(b.Context(), channelName, epoch, token, lease, limit))
	return rows
}

// claim takes due rows under a fresh epoch.
func (b *bench) claim(token string) []mediagate.Await {
	b.Helper()
	return b.due(b.epoch(channelName), token, 100)
}

func (b *bench) store(token string, results ...mediagate.PollResult) (left []mediagate.PollResult) {
	b.Helper()
	left = must(b.StorePolls(b.Context(), channelName, token, results))
	return left
}

// hint hints at an attempt, and says whether that makes a poll due.
func (b *bench) hint(what, id string, n int, want bool) {
	b.Helper()
	due := must(b.Hint(b.Context(), id, n))
	same(b, what, due, want)
}

// ids lists the tasks of rows.
func ids(rows []mediagate.Await) []string {
	out := make([]string, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.TaskID)
	}
	return out
}

// quiet is the result of a poll that found nothing new.
func (b *bench) quiet(id string, in time.Duration) mediagate.PollResult {
	return mediagate.PollResult{TaskID: id, N: 1, NextPollAt: b.now().Add(in), Answered: true}
}

// These are about who asks vendors, and when (D8). What becomes of the answers is
// held against package task by TestMachineFacts.
func TestPollFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
		"a claim carries what a poll needs": func(b *bench) {
			id := b.accepted(b.newPayer(unit(10)), unit(1))
			same(b, "rows", b.claim("c1"), []mediagate.Await{{
				TaskID: id, N: 1, Channel: channelName, Fingerprint: "fp", Model: "alpha-v3", Ref: ref(id), Expected: plan.Expected,
				AcceptedAt: b.now(), NextPollAt: b.now(), Claim: "c1", ClaimedAt: b.now(),
			}})
		},
		"a row that cannot be read keeps no other from being polled": func(b *bench) {
			p := b.newPayer(unit(10))
			broken, other := b.accepted(p, unit(1)), b.accepted(p, unit(1))
			b.noError(b.database().Exec("UPDATE awaits SET ref = '{\"job_id\":7}' WHERE task_id = ?", broken).Error)
			same(b, "polled", ids(b.claim("c1")), []string{other})
			b.store("c1", b.quiet(other, time.Minute))
			b.pass(lease)
			b.noError(b.database().Exec("UPDATE awaits SET ref = '{}' WHERE task_id = ?", broken).Error)
			same(b, "once it is mended", slices.Contains(ids(b.claim("c2")), broken), true)
		},
		"only due rows of the channel are claimed, the longest due first": func(b *bench) {
			p := b.newPayer(unit(10))
			var due []string
			for i := range 4 {
				id := b.submit(p, unit(1))
				b.accept(id, b.now().Add(-time.Duration(i)*time.Second))
				due = append([]string{id}, due...)
			}
			later := b.submit(p, unit(1))
			b.accept(later, b.now().Add(time.Microsecond))
			epoch := b.epoch(channelName)
			same(b, "first three", ids(b.due(epoch, "c", 3)), due[:3])
			same(b, "the rest", ids(b.due(epoch, "d", 3)), due[3:])
			rows := must(b.ClaimDue(b.Context(), "other", b.epoch("other"), "e", lease, 3))
			same(b, "another channel's", len(rows), 0)
			b.pass(time.Microsecond)
			same(b, "due now", ids(b.due(epoch, "f", 3)), []string{later})
		},
		"an old epoch claims nothing": func(b *bench) {
			b.accepted(b.newPayer(unit(10)), unit(1))
			first := b.epoch(channelName)
			second := b.epoch(channelName)
			same(b, "epochs", second, first+1)
			fenced := func(channel string, epoch int64) {
				b.Helper()
				same(b, "code", b.kind(errOf(b.ClaimDue(b.Context(), channel, epoch, "c", lease, 10)), mediagate.KindConflict).Code, "fenced")
			}
			fenced(channelName, first)
			fenced(channelName, second+1)
			fenced("never begun", 1)
			same(b, "rows", len(b.due(second, "c", 10)), 1)
		},
		"a claimed row is free again when the lease ends": func(b *bench) {
			id := b.accepted(b.newPayer(unit(10)), unit(1))
			epoch := b.epoch(channelName)
			same(b, "claimed", ids(b.due(epoch, "c1", 10)), []string{id})
			b.pass(lease - time.Microsecond)
			same(b, "within the lease", len(b.due(epoch, "c2", 10)), 0)
			b.pass(time.Microsecond)
			same(b, "after it", ids(b.due(epoch, "c2", 10)), []string{id})
		},
		"of many claimers at once each row goes to one": func(b *bench) {
			p := b.newPayer(unit(100))
			var all []string
			for range 30 {
				all = append(all, b.accepted(p, unit(1)))
			}
			epoch := b.epoch(channelName)
			var mu sync.Mutex
			var got []string
			b.race(6, func(i int) {
				for range 3 {
					rows := must(b.ClaimDue(b.Context(), channelName, epoch, fmt.Sprint("c", i), lease, 10))
					mu.Lock()
					got = append(got, ids(rows)...)
					mu.Unlock()
				}
			})
			same(b, "claimed", sorted(got), sorted(all))
		},
		"a quiet poll sets the next time, and counts answers that told nothing": func(b *bench) {
			id := b.accepted(b.newPayer(unit(10)), unit(1))
			epoch := b.epoch(channelName)
			b.due(epoch, "c", 10)
			before := b.task(id)
			result := b.quiet(id, 7*time.Second)
			result.Answered, result.Missing = false, 2
			b.store("c", result)
			same(b, "task", b.task(id), before)
			b.pass(7*time.Second - time.Microsecond)
			same(b, "too early", len(b.due(epoch, "d", 10)), 0)
			b.pass(time.Microsecond)
			rows := b.due(epoch, "d", 10)
			same(b, "row", []any{len(rows), rows[0].Missing, rows[0].NextPollAt}, []any{1, 2, b.now()})
			b.store("d", b.quiet(id, time.Second))
			b.pass(time.Second)
			same(b, "missing again", b.due(epoch, "e", 10)[0].Missing, 0)
		},
		"a task that is parked is left to Change once its vendor answers": func(b *bench) {
			id := b.accepted(b.newPayer(unit(10)), unit(1))
			b.claim("c")
			b.change(id, task.Troubled{N: 1, Claim: "c", Reason: mediagate.ParkJobLost})
			same(b, "polled for", b.waiting(), 0)
			b.pass(time.Hour)
			b.change(id, task.Asked{})
			b.claim("d")
			silent, answer := b.quiet(id, 0), b.quiet(id, time.Second)
			silent.Answered = false
			same(b, "no answer", len(b.store("d", silent)), 0)
			same(b, "is it over", b.state(id).Wait.Reason, mediagate.ParkJobLost)
			b.claim("e")
			same(b, "an answer", b.store("e", answer), []mediagate.PollResult{answer})
		},
		"D10 after the deadline what the vendor answers is left to Change": func(b *bench) {
			id := b.accepted(b.newPayer(unit(10)), unit(1))
			b.claim("c")
			b.pass(b.task(id).DeadlineAt.Sub(b.now()) - time.Microsecond)
			same(b, "before", len(b.store("c", b.quiet(id, 0))), 0)
			b.claim("d")
			b.pass(time.Microsecond)
			silent, answer := b.quiet(id, 0), b.quiet(id, time.Second)
			silent.Answered = false
			same(b, "no answer", len(b.store("d", silent)), 0)
			b.claim("e")
			same(b, "an answer", b.store("e", answer), []mediagate.PollResult{answer})
			b.change(id, task.CancelRequested{}, task.StopProven{N: 1}, task.EndDue{})
		},
		"an answer that was asked for during the claim is followed by another at once": func(b *bench) {
			p := b.newPayer(unit(10))
			quiet, loud, ended := b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
			b.claim("c")
			b.pass(time.Second)
			for _, id := range []string{quiet, loud, ended} {
				b.change(id, task.PollRequested{})
			}
			progress := b.quiet(loud, time.Hour)
			progress.Progress = 50
			b.store("c", b.quiet(quiet, time.Hour), progress)
			b.change(ended, task.Progressed{N: 1, Claim: "c", NextAt: b.now().Add(time.Hour)})
			same(b, "due", sorted(ids(b.claim("d"))), sorted([]string{quiet, loud, ended}))
			b.store("d", b.quiet(quiet, time.Hour), b.quiet(loud, time.Hour), b.quiet(ended, time.Hour))
			same(b, "it counts once", len(b.claim("e")), 0)
		},
		"a hint makes the next poll due, at most once a second": func(b *bench) {
			p := b.newPayer(unit(10))
			id, other := b.accepted(p, unit(1)), b.accepted(p, unit(1))
			b.claim("c")
			b.store("c", b.quiet(id, time.Hour), b.quiet(other, time.Hour))
			epoch, none := b.epoch(channelName), []string{}
			polled := func(what string, want ...string) {
				b.Helper()
				rows := b.due(epoch, "d", 10)
				same(b, what, ids(rows), want)
				for _, row := range rows {
					same(b, what+": hinted", row.Hinted, true)
					b.store("d", b.quiet(row.TaskID, time.Hour))
				}
			}
			polled("before", none...)
			b.hint("the first", id, 1, true)
			b.hint("at once again", id, 1, false)
			polled("the first", id)
			b.pass(400 * time.Millisecond)
			b.hint("within the second", id, 1, true)
			b.hint("twice within it", id, 1, false)
			polled("within the second", none...)
			b.pass(599 * time.Millisecond)
			polled("nearly at its end", none...)
			b.pass(time.Millisecond)
			polled("at its end", id)
			b.pass(time.Minute)
			b.hint("later", id, 1, true)
			polled("later", id)
			polled("once", none...)
		},
		"a hint makes no poll later": func(b *bench) {
			p := b.newPayer(unit(10))
			early, late := b.accepted(p, unit(1)), b.accepted(p, unit(1))
			b.claim("c")
			b.store("c", b.quiet(early, time.Second), b.quiet(late, 2*time.Second))
			b.pass(3 * time.Second)
			b.hint("of a row that is due", early, 1, true)
			same(b, "order", ids(b.claim("d")), []string{early, late})
		},
		"a hint during the claim is followed by another poll": func(b *bench) {
			p := b.newPayer(unit(10))
			id, before, risen := b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
			b.hint("before the claim", before, 1, true)
			b.pass(100 * time.Millisecond)
			epoch := b.epoch(channelName)
			b.due(epoch, "c", 10)
			b.pass(100 * time.Millisecond)
			b.hint("during it", id, 1, true)
			b.hint("during it", risen, 1, true)
			same(b, "while it is claimed", len(b.due(epoch, "d", 10)), 0)
			progress := b.quiet(risen, time.Hour)
			progress.Progress = 50
			b.store("c", b.quiet(id, time.Hour), b.quiet(before, time.Hour), progress)
			same(b, "due", sorted(ids(b.due(epoch, "e", 10))), sorted([]string{id, risen}))
		},
		"a hint at what nobody waits for changes nothing": func(b *bench) {
			p := b.newPayer(unit(10))
			ended, open := b.accepted(p, unit(1)), b.accepted(p, unit(1))
			b.change(ended, task.VendorEnded{N: 1, Outcome: failure})
			b.hint("an ended task", ended, 1, false)
			b.hint("no such task", "task_none", 1, false)
			b.hint("no such attempt", open, 2, false)
		},
		"a batch is stored row by row": func(b *bench) {
			p := b.newPayer(unit(100))
			var all []string
			for range 40 {
				all = append(all, b.accepted(p, unit(1)))
			}
			b.claim("c")
			b.change(all[5], task.StopProven{N: 1}) // its row is gone meanwhile
			var results, want []mediagate.PollResult
			for i, id := range all {
				r := b.quiet(id, time.Minute)
				switch i % 4 {
				case 1:
					r.Progress = i
				case 2:
					r.Outcome = &failure
				case 3:
					r.Trouble = mediagate.ParkJobLost
				}
				results = append(results, r)
			}
			slices.Reverse(results)
			for _, r := range results {
				if r.Outcome != nil || r.Trouble != "" {
					want = append(want, r)
				}
			}
			same(b, "left", b.store("c", results...), want)
			for i, id := range all {
				progress := 0
				if i%4 == 1 && i != 5 {
					progress = i
				}
				same(b, "progress", b.task(id).Progress, progress)
			}
			same(b, "claimed still", b.count("SELECT COUNT(*) FROM awaits WHERE claim <> ''"), 20)
			same(b, "of none", len(b.store("c")), 0)
		},
		"the next due time leaves out what is claimed": func(b *bench) {
			next := func(what string, waiting int, at time.Time) {
				b.Helper()
				n, due := must2(b.AwaitStats(b.Context(), channelName))
				same(b, what, []any{n, due}, []any{waiting, at})
			}
			next("none", 0, time.Time{})
			b.accepted(b.newPayer(unit(10)), unit(1))
			next("one", 1, b.now())
			b.claim("c")
			next("claimed", 1, time.Time{})
			b.pass(lease)
			next("its lease is over", 1, b.now().Add(-lease))
		},
		"channels with waiting rows are named": func(b *bench) {
			p := b.newPayer(unit(10))
			b.accepted(p, unit(1))
			b.accepted(p, unit(1))
			names := must(b.AwaitChannels(b.Context()))
			same(b, "channels", names, []string{channelName})
		},
	})
}
