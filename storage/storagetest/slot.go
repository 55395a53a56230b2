package storagetest

import (
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// limited are the slots of the suite's channel.
func limited(n int) mediagate.Slots {
	return mediagate.Slots{Names: []string{channelName, "kling-former"}, Limit: n}
}

// try opens the first attempt of a task, or tells that no slot is free.
func (b *bench) try(id string, slots mediagate.Slots) bool {
	b.Helper()
	return b.tryAt(id, channelName, slots)
}

func (b *bench) tryAt(id, channel string, slots mediagate.Slots) bool {
	b.Helper()
	_, opened, err := b.OpenAttempt(b.Context(), mediagate.Attempt{
		TaskID: id, N: 1, Channel: channel, Provider: "kling", Fingerprint: "fp", Route: plan.Routes[0], ExternalID: id,
		SendBefore: b.now().Add(10 * time.Second),
	}, slots)
	if mediagate.Is(err, mediagate.KindCapacity) {
		return false
	}
	b.noError(err)
	return opened
}

// queued takes a task in and queues it.
func (b *bench) queued(p payer, channels ...string) string {
	b.Helper()
	if len(channels) == 0 {
		channels = []string{channelName}
	}
	id := b.submit(p, unit(1))
	b.pass(time.Microsecond) // each of them has its own time
	b.noError(b.Queue(b.Context(), id, 1, channels))
	return id
}

func (b *bench) epoch(channel string) int64 {
	b.Helper()
	epoch, err := b.BeginEpoch(b.Context(), channel)
	b.noError(err)
	return epoch
}

const (
	takeBack = 2 * time.Minute
	again    = 30 * time.Second
)

func (b *bench) grantAt(channel string, epoch int64, slots mediagate.Slots) mediagate.Granted {
	b.Helper()
	got, err := b.GrantSlots(b.Context(), mediagate.Granting{
		Channel: channel, Epoch: epoch, Slots: slots, Most: 100, TakeBack: takeBack, Again: again,
	})
	b.noError(err)
	slices.SortFunc(got.Signals, func(x, y mediagate.Queued) int {
		if x.TaskID < y.TaskID {
			return -1
		}
		return 1
	})
	return got
}

func (b *bench) grant(epoch int64, n int) mediagate.Granted {
	b.Helper()
	return b.grantAt(channelName, epoch, limited(n))
}

// first are the tasks, for their first attempts.
func first(tasks ...string) []mediagate.Queued {
	var rows []mediagate.Queued
	for _, id := range tasks {
		rows = append(rows, mediagate.Queued{TaskID: id, N: 1})
	}
	return rows
}

var slotTests = map[string]func(*bench){
	"no more jobs than slots (D7)": func(b *bench) {
		p := b.newPayer(unit(10))
		one, two, three := b.submit(p, unit(1)), b.submit(p, unit(1)), b.submit(p, unit(1))
		same(b, "opened", []bool{b.try(one, limited(2)), b.try(two, limited(2)), b.try(three, limited(2))}, []bool{true, true, false})
		_, err := b.Attempt(b.Context(), three, 1)
		b.kind(err, mediagate.KindNotFound)
		b.noError(b.RejectAttempt(b.Context(), one, 1, b.attempt(one, 1).SendBefore, mediagate.Failure{Code: mediagate.CodeProviderAway}, ""))
		same(b, "after a refusal", b.try(three, limited(2)), true)
	},
	"what an older worker left in the queue": func(b *bench) {
		if b.office == nil {
			return // what has no tables was written by no older worker
		}
		p := b.newPayer(unit(10))
		epoch := b.epoch(channelName)
		over, made, granted, waits := b.queued(p), b.queued(p), b.queued(p), b.queued(p)
		story, err := b.Story(b.Context(), waits)
		b.noError(err)
		same(b, "queued for", story.QueuedFor, []string{channelName})
		behind := func(id string, write func()) { // as one that knows no queue
			var queued []map[string]any
			b.noError(b.database().Raw("SELECT * FROM queue WHERE task_id = ?", id).Scan(&queued).Error)
			write()
			for _, row := range queued {
				b.noError(b.database().Table("queue").Create(row).Error)
			}
			b.noError(b.database().Exec("UPDATE tasks SET queued_at = created_at WHERE id = ? AND status = 'pending'", id).Error)
		}
		behind(over, func() { b.settle(cancelled(over)) })
		behind(made, func() { b.try(made, mediagate.Slots{}) })
		got := b.grant(epoch, 2)
		same(b, "granted", got.Signals, first(granted))
		same(b, "waits", got.Waiting, 1)
		behind(granted, func() { b.try(granted, mediagate.Slots{}) })
		b.pass(again)
		b.noError(b.RejectAttempt(b.Context(), made, 1, b.attempt(made, 1).SendBefore, mediagate.Failure{Code: mediagate.CodeProviderAway}, ""))
		same(b, "granted when the slots are true again", b.grant(epoch, 2).Signals, first(waits))
		for _, id := range []string{made, granted} {
			st, err := b.Story(b.Context(), id)
			b.noError(err)
			same(b, "queued", st.QueuedAt.IsZero() && !st.Granted, true)
		}
	},
	"jobs under a former name count": func(b *bench) {
		p := b.newPayer(unit(10))
		one, two := b.submit(p, unit(1)), b.submit(p, unit(1))
		same(b, "opened", b.tryAt(one, "kling-former", mediagate.Slots{}), true)
		same(b, "and another", b.try(two, limited(1)), false)
		same(b, "at another account", b.tryAt(two, "kling-b", mediagate.Slots{Names: []string{"kling-b"}, Limit: 1}), true)
	},
	"each end frees the slot": func(b *bench) {
		p := b.newPayer(unit(30))
		last := ""
		for name, end := range map[string]func(id string){
			"outcome": func(id string) {
				_, err := b.RecordOutcome(b.Context(), id, 1, failure)
				b.noError(err)
			},
			"synchronous": func(id string) {
				_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Outcome: &success}, time.Time{})
				b.noError(err)
			},
			"settled": func(id string) { b.settle(failed(id)) },
			"poll": func(id string) {
				_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
				b.noError(err)
				b.claim("c")
				b.store("c", mediagate.PollResult{TaskID: id, N: 1, Outcome: &success})
			},
		} {
			id := b.submit(p, unit(1))
			if !b.try(id, limited(1)) {
				b.Fatalf("no slot after the last end: %s", last)
			}
			last = name
			other := b.submit(p, unit(1))
			same(b, "while it runs", b.try(other, limited(1)), false)
			end(id)
		}
		same(b, "after "+last, b.try(b.submit(p, unit(1)), limited(1)), true)
	},
	"a job in doubt has its slot for a while": func(b *bench) {
		p := b.newPayer(unit(10))
		lost, troubled, next := b.submit(p, unit(1)), b.submit(p, unit(1)), b.submit(p, unit(1))
		same(b, "opened", []bool{b.try(lost, limited(2)), b.try(troubled, limited(2))}, []bool{true, true})
		b.noError(b.MarkUnknown(b.Context(), lost, 1, b.attempt(lost, 1).SendBefore, "lost"))
		_, err := b.AcceptAttempt(b.Context(), troubled, 1, mediagate.Submission{Ref: ref(troubled)}, b.now())
		b.noError(err)
		b.noError(b.NoteTrouble(b.Context(), troubled, 1, mediagate.ParkJobLost))
		b.pass(mediagate.SlotsLost*plan.Expected - time.Microsecond)
		same(b, "within the time", b.try(next, limited(2)), false)
		b.noError(b.RestoreAwait(b.Context(), troubled, 1, b.now())) // tried again: that proves nothing
		b.pass(time.Microsecond)
		same(b, "after it", []bool{b.try(next, limited(2)), b.try(b.submit(p, unit(1)), limited(2))}, []bool{true, true})
		_, err = b.AcceptAttempt(b.Context(), lost, 1, mediagate.Submission{Ref: ref(lost)}, b.now())
		b.noError(err)
		inFlight, _, _, err := b.ChannelLoad(b.Context(), channelName)
		b.noError(err)
		same(b, "found after all", inFlight, 3)
	},
	"trouble that a poll finds lets the slot go as well": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		b.claim("c")
		b.store("c", mediagate.PollResult{TaskID: id, N: 1, Trouble: mediagate.ParkJobLost})
		next := b.submit(p, unit(1))
		same(b, "at once", b.try(next, limited(1)), false)
		b.pass(mediagate.SlotsLost * plan.Expected)
		same(b, "later", b.try(next, limited(1)), true)
	},
	"a job that is seen again has its slot until it ends": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		b.noError(b.NoteTrouble(b.Context(), id, 1, mediagate.ParkCredentials))
		b.noError(b.Park(b.Context(), id, mediagate.ParkCredentials))
		b.noError(b.RestoreAwait(b.Context(), id, 1, b.now()))
		b.claim("c")
		b.store("c", mediagate.PollResult{TaskID: id, N: 1, NextPollAt: b.now().Add(time.Minute), Answered: true})
		b.noError(b.Unpark(b.Context(), id))
		b.pass(mediagate.SlotsLost * plan.Expected)
		same(b, "while it runs", b.try(b.submit(p, unit(1)), limited(1)), false)
	},
	"a job that runs on keeps its slot for a while": func(b *bench) {
		p := b.newPayer(unit(20))
		for name, test := range map[string]struct {
			end   func(id string)
			holds bool
		}{
			"accepted, cancelled": {func(id string) {
				_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
				b.noError(err)
				b.settle(cancelled(id))
			}, true},
			"accepted, failed": {func(id string) {
				_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
				b.noError(err)
				b.settle(failed(id))
			}, true},
			"unknown": {func(id string) {
				b.noError(b.MarkUnknown(b.Context(), id, 1, b.attempt(id, 1).SendBefore, ""))
				b.settle(failed(id))
			}, true},
			"accepted after the end": {func(id string) {
				b.settle(cancelled(id))
				_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
				b.noError(err)
			}, true},
			"accepted after the end, with its outcome": {func(id string) {
				b.settle(cancelled(id))
				_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id), Outcome: &success}, b.now())
				b.noError(err)
			}, false},
			"stopped, then settled": {func(id string) {
				_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
				b.noError(err)
				b.noError(b.ReleaseSlot(b.Context(), id, 1))
				b.settle(cancelled(id))
			}, false},
			"settled, then stopped": {func(id string) {
				_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
				b.noError(err)
				b.settle(cancelled(id))
				b.noError(b.ReleaseSlot(b.Context(), id, 1))
			}, false},
			"settled, then its end is told": {func(id string) {
				_, err := b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
				b.noError(err)
				b.settle(cancelled(id))
				_, err = b.RecordOutcome(b.Context(), id, 1, failure)
				b.noError(err)
			}, false},
			"never sent": {func(id string) { b.settle(cancelled(id)) }, false},
		} {
			id := b.submit(p, unit(1))
			if !b.try(id, limited(1)) {
				b.Fatalf("no slot before %s", name)
			}
			test.end(id)
			b.noError(b.EndSlots(b.Context())) // of none, yet
			next := b.submit(p, unit(1))
			same(b, name, b.try(next, limited(1)), !test.holds)
			if test.holds {
				b.pass(mediagate.SlotsLost*plan.Expected - time.Microsecond)
				b.noError(b.EndSlots(b.Context()))
				same(b, name+": to the last", b.try(next, limited(1)), false)
				b.pass(time.Microsecond)
				b.noError(b.EndSlots(b.Context()))
				same(b, name+": and no longer", b.try(next, limited(1)), true)
			}
			same(b, name+": state", b.attempt(id, 1).State, mediagate.AttemptEnded)
			same(b, name+": ended", b.attempt(id, 1).EndedAt.IsZero(), false)
			b.settle(failed(next))
		}
	},
	"a slot that is released has no other effect": func(b *bench) {
		p := b.newPayer(unit(10))
		id := b.accepted(p, unit(1))
		b.noError(b.ReleaseSlot(b.Context(), id, 1))
		same(b, "state", b.attempt(id, 1).State, mediagate.AttemptAccepted)
		b.claim("c")
		b.store("c", mediagate.PollResult{TaskID: id, N: 1, Outcome: &success})
		ended := b.attempt(id, 1).EndedAt
		b.pass(time.Second)
		b.noError(b.ReleaseSlot(b.Context(), id, 1))
		same(b, "of a job that has ended", b.attempt(id, 1).EndedAt, ended)
	},
}
