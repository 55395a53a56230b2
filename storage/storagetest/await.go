package storagetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

const lease = 45 * time.Second

// claim takes due rows under a fresh epoch.
func (b *bench) claim(token string) (epoch int64, rows []mediagate.Await) {
	b.Helper()
	epoch, err := b.BeginEpoch(b.Context(), channelName)
	b.noError(err)
	rows, err = b.ClaimDue(b.Context(), channelName, epoch, token, lease, 100)
	b.noError(err)
	return epoch, rows
}

func (b *bench) store(token string, results ...mediagate.PollResult) []mediagate.Await {
	b.Helper()
	ended, err := b.StorePolls(b.Context(), channelName, token, results)
	b.noError(err)
	return ended
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
	return mediagate.PollResult{TaskID: id, N: 1, NextPollAt: b.now().Add(in)}
}

var awaitTests = map[string]func(*bench){
	"a claim carries what a poll needs": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		_, rows := b.claim("c1")
		same(b, "rows", rows, []mediagate.Await{{
			TaskID: id, N: 1, Channel: channelName, Fingerprint: "fp", Model: "alpha-v3", Ref: ref(id), Expected: plan.Expected,
			AcceptedAt: b.now(), NextPollAt: b.now(), Claim: "c1", ClaimedAt: b.now(),
		}})
	},
	"a row that cannot be read keeps no other from being polled": func(b *bench) {
		if b.office == nil {
			return // the activities' double has no columns
		}
		p := b.newPayer(unit(10))
		broken, ended, other := b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
		b.claim("c1")
		b.store("c1", b.quiet(broken, 0), mediagate.PollResult{TaskID: ended, N: 1, Outcome: &mediagate.Outcome{Succeeded: true}}, b.quiet(other, 0))
		b.noError(b.database().Exec("UPDATE awaits SET ref = '{\"job_id\":7}' WHERE task_id IN (?, ?)", broken, ended).Error)
		b.pass(time.Second)
		_, rows := b.claim("c2")
		same(b, "polled, or signalled, which takes no name of a job", sorted(ids(rows)), sorted([]string{ended, other}))
		b.store("c2", b.quiet(other, time.Minute))
		b.pass(lease)
		b.noError(b.database().Exec("UPDATE awaits SET ref = '{}' WHERE task_id = ?", broken).Error)
		_, rows = b.claim("c3")
		same(b, "once it is mended", slices.Contains(ids(rows), broken), true)
	},
	"rows that are due next can be had now": func(b *bench) {
		p := b.newPayer(unit(10))
		var rows []string
		for range 6 {
			rows = append(rows, b.accepted(p, unit(1)))
		}
		// The third keeps its claim.
		waiting, missing, owed, soon, recent := rows[0], rows[1], rows[3], rows[4], rows[5]
		_, _ = b.claim("c1")
		refused := b.quiet(missing, time.Minute)
		refused.Missing = 1
		ended := b.quiet(owed, time.Minute)
		ended.Outcome = &mediagate.Outcome{Succeeded: true}
		b.store("c1", b.quiet(waiting, 30*time.Second), refused, ended, b.quiet(soon, 10*time.Second), b.quiet(recent, time.Second))
		b.pass(time.Second)
		epoch, again := b.claim("c2") // with the signal, which a new epoch owes at once
		same(b, "claimed again", len(again), 3)
		b.store("c2", b.quiet(recent, time.Second))

		before := b.now().Add(-time.Millisecond)
		advance := func(limit int) int {
			n, err := b.AdvancePolls(b.Context(), channelName, b.now(), before, limit)
			b.noError(err)
			return n
		}
		n, err := b.AdvancePolls(b.Context(), channelName, b.now().Add(29*time.Second), before, 10)
		b.noError(err)
		same(b, "due too late", n, 0)
		same(b, "advanced", advance(1), 1)
		got, err := b.ClaimDue(b.Context(), channelName, epoch, "c3", lease, 10)
		b.noError(err)
		same(b, "the next one", ids(got), []string{soon})
		same(b, "advanced", advance(10), 1)
		got, err = b.ClaimDue(b.Context(), channelName, epoch, "c4", lease, 10)
		b.noError(err)
		same(b, "the one after it", ids(got), []string{waiting})
		same(b, "nothing is left", advance(10), 0)
		n, err = b.AdvancePolls(b.Context(), "other", b.now(), before, 10)
		b.noError(err)
		same(b, "another channel's", n, 0)
	},
	"only due rows of the channel are claimed, the longest due first": func(b *bench) {
		p := b.newPayer(unit(10))
		var due []string
		for i := range 4 {
			id := b.submit(p, unit(1))
			b.intent(id, 1)
			_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now().Add(-time.Duration(i)*time.Second))
			b.noError(err)
			due = append([]string{id}, due...)
		}
		later := b.submit(p, unit(1))
		b.intent(later, 1)
		_, err := b.AcceptAttempt(b.Context(), later, 1, mediagate.Submission{Ref: ref(later)}, b.now().Add(time.Microsecond))
		b.noError(err)

		epoch, err := b.BeginEpoch(b.Context(), channelName)
		b.noError(err)
		rows, err := b.ClaimDue(b.Context(), channelName, epoch, "c", lease, 3)
		b.noError(err)
		same(b, "first three", ids(rows), due[:3])
		rows, err = b.ClaimDue(b.Context(), channelName, epoch, "d", lease, 3)
		b.noError(err)
		same(b, "the rest", ids(rows), due[3:])
		other, err := b.BeginEpoch(b.Context(), "other")
		b.noError(err)
		rows, err = b.ClaimDue(b.Context(), "other", other, "e", lease, 3)
		b.noError(err)
		same(b, "another channel's", len(rows), 0)
		b.pass(time.Microsecond)
		rows, err = b.ClaimDue(b.Context(), channelName, epoch, "f", lease, 3)
		b.noError(err)
		same(b, "due now", ids(rows), []string{later})
	},
	"an old epoch claims nothing (D8)": func(b *bench) {
		p := b.newPayer(unit(10))
		b.accepted(p, unit(1))
		first, err := b.BeginEpoch(b.Context(), channelName)
		b.noError(err)
		second, err := b.BeginEpoch(b.Context(), channelName)
		b.noError(err)
		same(b, "epochs", second, first+1)
		for _, epoch := range []int64{first, second + 1} {
			_, err = b.ClaimDue(b.Context(), channelName, epoch, "c", lease, 10)
			b.kind(err, mediagate.KindConflict)
			var e *mediagate.Error
			if !asError(err, &e) || e.Code != "fenced" {
				b.Fatalf("error %v has no code", err)
			}
		}
		_, err = b.ClaimDue(b.Context(), "never begun", 1, "c", lease, 10)
		b.kind(err, mediagate.KindConflict)
		rows, err := b.ClaimDue(b.Context(), channelName, second, "c", lease, 10)
		b.noError(err)
		same(b, "rows", len(rows), 1)
	},
	"a claimed row is free again when the lease ends": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		epoch, rows := b.claim("c1")
		same(b, "claimed", ids(rows), []string{id})
		b.pass(lease - time.Microsecond)
		rows, err := b.ClaimDue(b.Context(), channelName, epoch, "c2", lease, 10)
		b.noError(err)
		same(b, "within the lease", len(rows), 0)
		b.pass(time.Microsecond)
		rows, err = b.ClaimDue(b.Context(), channelName, epoch, "c2", lease, 10)
		b.noError(err)
		same(b, "after it", ids(rows), []string{id})
	},
	"a new epoch takes rows over, and the former's results are refused": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		b.claim("dead")
		_, rows := b.claim("alive")
		same(b, "taken over", ids(rows), []string{id})
		late := b.quiet(id, time.Hour)
		late.Outcome = &failure
		same(b, "late outcome", len(b.store("dead", late)), 0)
		same(b, "late quiet", len(b.store("dead", b.quiet(id, time.Hour))), 0)
		if a := b.attempt(id, 1); a.Outcome != nil || a.State != mediagate.AttemptAccepted {
			b.Fatalf("a stolen claim wrote: %+v", a)
		}
		mine := b.quiet(id, time.Hour)
		mine.Outcome = &success
		same(b, "own outcome", ids(b.store("alive", mine)), []string{id})
		same(b, "outcome", b.attempt(id, 1).Outcome, &success)
	},
	"of many claimers at once each row goes to one": func(b *bench) {
		p := b.newPayer(unit(100))
		var all []string
		for range 30 {
			all = append(all, b.accepted(p, unit(1)))
		}
		epoch, err := b.BeginEpoch(b.Context(), channelName)
		b.noError(err)
		var mu sync.Mutex
		var got []string
		b.race(6, func(i int) {
			for range 3 {
				rows, err := b.ClaimDue(b.Context(), channelName, epoch, fmt.Sprint("c", i), lease, 10)
				if err != nil {
					b.Errorf("claim: %v", err)
					return
				}
				mu.Lock()
				got = append(got, ids(rows)...)
				mu.Unlock()
			}
		})
		same(b, "claimed", sorted(got), sorted(all))
	},
	"a quiet poll sets the next time": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		epoch, _ := b.claim("c")
		before := b.task(id)
		result := b.quiet(id, 7*time.Second)
		result.Missing = 2
		same(b, "ended", len(b.store("c", result)), 0)
		same(b, "task", b.task(id), before)
		b.pass(7*time.Second - time.Microsecond)
		rows, err := b.ClaimDue(b.Context(), channelName, epoch, "d", lease, 10)
		b.noError(err)
		same(b, "too early", len(rows), 0)
		b.pass(time.Microsecond)
		rows, err = b.ClaimDue(b.Context(), channelName, epoch, "d", lease, 10)
		b.noError(err)
		same(b, "row", []any{len(rows), rows[0].Missing, rows[0].NextPollAt}, []any{1, 2, b.now()})
		b.store("d", b.quiet(id, time.Second))
		b.pass(time.Second)
		rows, err = b.ClaimDue(b.Context(), channelName, epoch, "e", lease, 10)
		b.noError(err)
		same(b, "missing again", rows[0].Missing, 0)
	},
	"progress only grows, and stays below the end": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		for _, step := range []struct {
			found, want int
			version     int64
		}{{0, 0, 2}, {30, 30, 3}, {30, 30, 3}, {20, 30, 3}, {100, 99, 4}, {100, 99, 4}} {
			_, rows := b.claim("c")
			same(b, "claimed", len(rows), 1)
			result := b.quiet(id, 0)
			result.Progress = step.found
			b.store("c", result)
			t := b.task(id)
			same(b, fmt.Sprint("after ", step.found), []any{t.Progress, t.Version}, []any{step.want, step.version})
		}
		_, rows := b.claim("c")
		same(b, "the row's progress", rows[0].Progress, 99)
	},
	"an outcome is stored and its signal owed until taken": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		epoch, _ := b.claim("c")
		result := b.quiet(id, time.Second)
		result.Outcome = &success
		ended := b.store("c", result)
		same(b, "ended", []any{ids(ended), ended[0].N, ended[0].Ended}, []any{[]string{id}, 1, true})
		a := b.attempt(id, 1)
		same(b, "attempt", []any{a.State, a.Outcome, a.EndedAt}, []any{mediagate.AttemptEnded, &success, b.now()})
		same(b, "stored again", len(b.store("c", result)), 0)

		b.pass(30*time.Second - time.Microsecond)
		rows, err := b.ClaimDue(b.Context(), channelName, epoch, "d", lease, 10)
		b.noError(err)
		same(b, "too early", len(rows), 0)
		b.pass(time.Microsecond)
		rows, err = b.ClaimDue(b.Context(), channelName, epoch, "d", lease, 10)
		b.noError(err)
		same(b, "owed", []any{ids(rows), rows[0].Ended}, []any{[]string{id}, true})
		b.pass(lease)
		rows, err = b.ClaimDue(b.Context(), channelName, epoch, "e", lease, 10)
		b.noError(err)
		same(b, "owed again", ids(rows), []string{id})
		other := b.quiet(id, time.Second)
		other.Outcome = &failure
		same(b, "another outcome", len(b.store("e", other)), 0)
		same(b, "outcome", b.attempt(id, 1).Outcome, &success)

		b.noError(b.DropAwait(b.Context(), id, 1))
		b.noError(b.DropAwait(b.Context(), id, 1))
		b.pass(time.Hour)
		rows, err = b.ClaimDue(b.Context(), channelName, epoch, "f", lease, 10)
		b.noError(err)
		same(b, "taken", len(rows), 0)
	},
	"a story tells whether its signal is outstanding": func(b *bench) {
		p := b.newPayer(unit(10))
		ended, troubled, waiting := b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
		outstanding := func(what string, want ...bool) {
			b.Helper()
			same(b, what, []bool{b.story(ended).Outstanding, b.story(troubled).Outstanding, b.story(waiting).Outstanding}, want)
		}
		outstanding("polled for", false, false, false)
		b.claim("c")
		outcome, trouble := b.quiet(ended, time.Second), b.quiet(troubled, time.Second)
		outcome.Outcome, trouble.Trouble = &success, mediagate.ParkJobLost
		b.store("c", outcome, trouble, b.quiet(waiting, time.Hour))
		outstanding("stored", true, true, false)
		for range 3 { // signalled, and not heard
			b.pass(time.Minute)
			_, rows := b.claim(fmt.Sprint("again at ", b.now()))
			same(b, "signalled again", sorted(ids(rows)), sorted([]string{ended, troubled}))
			outstanding("signalled again", true, true, false)
		}
		b.noError(b.DropAwait(b.Context(), ended, b.story(ended).N))
		outstanding("one has heard", false, true, false)
		b.pass(time.Minute)
		_, rows := b.claim("the last")
		same(b, "signalled", ids(rows), []string{troubled})
		b.noError(b.RestoreAwait(b.Context(), troubled, 1, b.now()))
		outstanding("polled for anew", false, false, false)
	},
	// The one who stored an outcome may have died before its signal.
	"a new epoch sends at once what is owed (D8)": func(b *bench) {
		p := b.newPayer(unit(10))
		id, waiting := b.accepted(p, unit(1)), b.accepted(p, unit(1))
		b.claim("dead")
		result := b.quiet(id, time.Second)
		result.Outcome = &success
		b.store("dead", result, b.quiet(waiting, time.Hour))
		_, rows := b.claim("alive")
		same(b, "owed", []any{ids(rows), rows[0].Ended}, []any{[]string{id}, true})
		_, rows = b.claim("the next")
		same(b, "owed again", ids(rows), []string{id})
	},
	"trouble ends the waiting until it is restored": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		b.claim("c")
		result := b.quiet(id, time.Second)
		result.Trouble, result.Missing = mediagate.ParkJobLost, 3
		ended := b.store("c", result)
		same(b, "ended", []any{ids(ended), ended[0].Ended}, []any{[]string{id}, true})
		a := b.attempt(id, 1)
		same(b, "attempt", []any{a.State, a.Trouble}, []any{mediagate.AttemptAccepted, mediagate.ParkJobLost})
		same(b, "story", b.story(id).Trouble, mediagate.ParkJobLost)

		b.noError(b.DropAwait(b.Context(), id, 1))
		b.noError(b.RestoreAwait(b.Context(), id, 1, b.now()))
		same(b, "trouble", b.attempt(id, 1).Trouble, "")
		_, rows := b.claim("d")
		same(b, "row", []any{ids(rows), rows[0].Ended, rows[0].Missing, rows[0].Ref, rows[0].AcceptedAt},
			[]any{[]string{id}, false, 0, ref(id), a.AcceptedAt})
		result = b.quiet(id, time.Second)
		result.Outcome = &success
		same(b, "ended", ids(b.store("d", result)), []string{id})
	},
	"a restored row is unheard until the vendor has answered": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		same(b, "accepted", b.story(id).Unanswered, false)
		b.noError(b.RestoreAwait(b.Context(), id, 1, b.now()))
		same(b, "restored", b.story(id).Unanswered, true)
		b.claim("c")
		b.store("c", b.quiet(id, 0))
		same(b, "after a failed poll", b.story(id).Unanswered, true)
		b.claim("d")
		result := b.quiet(id, 0)
		result.Answered = true
		b.store("d", result)
		same(b, "after an answer", b.story(id).Unanswered, false)
		b.claim("e")
		b.store("e", b.quiet(id, 0))
		same(b, "after the next failure", b.story(id).Unanswered, false)
		b.noError(b.RestoreAwait(b.Context(), id, 1, b.now()))
		same(b, "restored again", b.story(id).Unanswered, true)
		b.claim("f")
		result.Progress = 50
		b.store("f", result)
		same(b, "after progress", b.story(id).Unanswered, false)
	},
	"a trouble is noted, and nothing polled for": func(b *bench) {
		p := b.newPayer(unit(10))
		id, done, gone := b.accepted(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
		b.claim("c")
		b.noError(b.NoteTrouble(b.Context(), id, 1, mediagate.ParkCredentials))
		same(b, "trouble", b.story(id).Trouble, mediagate.ParkCredentials)
		result := b.quiet(id, time.Second)
		result.Outcome = &success
		same(b, "the poll under way", len(b.store("c", result)), 0)
		same(b, "trouble", b.story(id).Trouble, mediagate.ParkCredentials)
		b.noError(b.RestoreAwait(b.Context(), id, 1, b.now()))
		_, rows := b.claim("d")
		same(b, "rows", slices.Contains(ids(rows), id), true)

		_, err := b.RecordOutcome(b.Context(), done, 1, success)
		b.noError(err)
		b.settle(cancelled(gone))
		for _, other := range []string{done, gone} {
			b.noError(b.NoteTrouble(b.Context(), other, 1, mediagate.ParkCredentials))
			same(b, "trouble of one that has ended", b.attempt(other, 1).Trouble, "")
		}
		b.kind(b.NoteTrouble(b.Context(), id, 2, mediagate.ParkCredentials), mediagate.KindNotFound)
	},
	"a row with trouble is restored in its place": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		b.claim("c")
		result := b.quiet(id, time.Second)
		result.Trouble = mediagate.ParkJobLost
		b.store("c", result)
		b.noError(b.RestoreAwait(b.Context(), id, 1, b.now()))
		_, rows := b.claim("d")
		same(b, "row", []any{ids(rows), rows[0].Ended}, []any{[]string{id}, false})
	},
	"only an accepted attempt without outcome is restored": func(b *bench) {
		p := b.newPayer(unit(10))
		intent, done, gone := b.submit(p, unit(1)), b.accepted(p, unit(1)), b.accepted(p, unit(1))
		b.intent(intent, 1)
		_, err := b.RecordOutcome(b.Context(), done, 1, success)
		b.noError(err)
		b.settle(cancelled(gone))
		for _, id := range []string{intent, done, gone} {
			b.kind(b.RestoreAwait(b.Context(), id, 1, b.now()), mediagate.KindConflict)
		}
		b.kind(b.RestoreAwait(b.Context(), done, 2, b.now()), mediagate.KindNotFound)
		same(b, "waiting", b.waiting(), 0)
	},
	"a hint makes a row due, at most once a second": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		b.claim("c")
		b.store("c", b.quiet(id, time.Hour))
		b.noError(b.HintPoll(b.Context(), id))
		_, rows := b.claim("d")
		same(b, "due", ids(rows), []string{id})
		b.pass(time.Microsecond)
		b.store("d", b.quiet(id, time.Hour))
		b.pass(time.Second - 2*time.Microsecond)
		b.noError(b.HintPoll(b.Context(), id))
		_, rows = b.claim("e")
		same(b, "hinted too often", len(rows), 0)
		b.pass(time.Microsecond)
		b.noError(b.HintPoll(b.Context(), id))
		_, rows = b.claim("f")
		same(b, "hinted again", ids(rows), []string{id})
		same(b, "the claim tells of the hint", rows[0].Hinted, true)
		b.noError(b.HintPoll(b.Context(), "task_none"))
	},
	"a hint during a claim makes the row due when it is given back": func(b *bench) {
		p := b.newPayer(unit(10))
		quiet, loud := b.accepted(p, unit(1)), b.accepted(p, unit(1))
		b.claim("c")
		b.pass(time.Second)
		for _, id := range []string{quiet, loud} {
			b.noError(b.HintPoll(b.Context(), id))
		}
		progress := b.quiet(loud, time.Hour)
		progress.Progress = 50
		b.store("c", b.quiet(quiet, time.Hour), progress)
		_, rows := b.claim("d")
		same(b, "due", sorted(ids(rows)), []string{quiet, loud})
		b.store("d", b.quiet(quiet, time.Hour), b.quiet(loud, time.Hour))
		_, rows = b.claim("e")
		same(b, "the hint counts once", len(rows), 0)
	},
	"a batch is stored row by row": func(b *bench) {
		p := b.newPayer(unit(100))
		var all []string
		for range 40 {
			all = append(all, b.accepted(p, unit(1)))
		}
		b.claim("c")
		b.settle(cancelled(all[7])) // its row is gone meanwhile
		var results []mediagate.PollResult
		for i, id := range all {
			r := b.quiet(id, time.Minute)
			switch i % 4 {
			case 1:
				r.Progress = i
			case 2:
				r.Outcome = &success
			case 3:
				r.Trouble = mediagate.ParkJobLost
			}
			results = append(results, r)
		}
		slices.Reverse(results)
		ended := b.store("c", results...)
		var want []string
		for i, id := range all {
			if i%4 >= 2 && i != 7 {
				want = append(want, id)
			}
		}
		same(b, "ended", sorted(ids(ended)), want)
		for i, id := range all {
			if i%4 == 1 {
				same(b, "progress", b.task(id).Progress, i)
			}
		}
		if b.office != nil {
			same(b, "claimed", b.count("SELECT COUNT(*) FROM awaits WHERE claim <> ''"), 0)
		}
		same(b, "gone", b.attempt(all[7], 1).Trouble, "")
		same(b, "of none", len(b.store("c")), 0)
	},
	"of end and poll at once nothing is left waiting": func(b *bench) {
		p := b.newPayer(unit(100))
		for i := range 5 {
			id := b.accepted(p, unit(1))
			token := fmt.Sprint("c", i)
			b.claim(token)
			b.race(3, func(i int) {
				var err error
				switch i {
				case 0:
					_, _, err = b.Settle(b.Context(), cancelled(id))
				case 1:
					r := b.quiet(id, time.Second)
					r.Progress = 10
					_, err = b.StorePolls(b.Context(), channelName, token, []mediagate.PollResult{r})
				case 2:
					err = b.HintPoll(b.Context(), id)
				}
				if err != nil {
					b.Errorf("%d: %v", i, err)
				}
			})
			same(b, "waiting", b.waiting(), 0)
			same(b, "status", b.task(id).Status, mediagate.StatusCancelled)
		}
	},
	"the next due time leaves out what is claimed": func(b *bench) {
		p := b.newPayer(unit(10))
		waiting, next, err := b.AwaitStats(b.Context(), channelName)
		b.noError(err)
		same(b, "none", []any{waiting, next}, []any{0, time.Time{}})
		b.accepted(p, unit(1))
		b.claim("c")
		waiting, next, err = b.AwaitStats(b.Context(), channelName)
		b.noError(err)
		same(b, "claimed", []any{waiting, next}, []any{1, time.Time{}})
		b.pass(lease)
		_, next, err = b.AwaitStats(b.Context(), channelName)
		b.noError(err)
		same(b, "lease over", next, b.now().Add(-lease))
	},
	"channels with waiting rows are named": func(b *bench) {
		p := b.newPayer(unit(10))
		b.accepted(p, unit(1))
		b.accepted(p, unit(1))
		names, err := b.AwaitChannels(b.Context())
		b.noError(err)
		same(b, "channels", names, []string{channelName})
	},
}
