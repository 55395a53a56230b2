package storage_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
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
	intent := intentOf(id, 1, b.now())
	intent.Channel = channel
	_, err := b.OpenIntent(b.Context(), id, slots, intent)
	if mediagate.Is(err, mediagate.KindCapacity) {
		return false
	}
	b.noError(err)
	return true
}

// refuse ends the first attempt of a task, which frees its slot at once, and the task.
func (b *bench) refuse(id string) {
	b.Helper()
	b.change(id, task.Refused{Sending: b.sending(id), Failure: *failure.Failure}, task.EndDue{})
}

// queued takes a task in and queues it.
func (b *bench) queued(p payer, channels ...string) string {
	b.Helper()
	if len(channels) == 0 {
		channels = []string{channelName}
	}
	id := b.submit(p, unit(1))
	b.pass(time.Microsecond) // each of them has its own time
	b.change(id, task.Queued{N: 1, Channels: channels})
	return id
}

const takeBack = 2 * time.Minute

func (b *bench) grantAt(channel string, epoch int64, slots mediagate.Slots) mediagate.Granted {
	b.Helper()
	got := must(b.GrantSlots(b.Context(), mediagate.Granting{Channel: channel, Epoch: epoch, Slots: slots, Most: 100, TakeBack: takeBack}))
	slices.Sort(got.Tasks)
	if len(got.Tasks) == 0 {
		got.Tasks = nil
	}
	return got
}

func (b *bench) grant(epoch int64, n int) mediagate.Granted {
	b.Helper()
	return b.grantAt(channelName, epoch, limited(n))
}

// load compares what a channel has in flight and queued, and since when.
func (b *bench) load(what string, inFlight, queued int, oldest time.Time) {
	b.Helper()
	gotInFlight, gotQueued, gotOldest := must3(b.ChannelLoad(b.Context(), channelName))
	same(b, what, []any{gotInFlight, gotQueued, gotOldest}, []any{inFlight, queued, oldest})
}

// These are about who has a slot, who waits for one, and whose turn it is (D7).
func TestQueueFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
		"jobs under a former name count": func(b *bench) {
			p := b.newPayer(unit(10))
			one, two := b.submit(p, unit(1)), b.submit(p, unit(1))
			same(b, "opened", b.tryAt(one, "kling-former", mediagate.Slots{}), true)
			same(b, "and another", b.try(two, limited(1)), false)
			same(b, "at another account", b.tryAt(two, "kling-b", mediagate.Slots{Names: []string{"kling-b"}, Limit: 1}), true)
		},
		"a job that runs on, or may run, has its slot for a while": func(b *bench) {
			p := b.newPayer(unit(30))
			taken := func(sent task.Sending) task.Event {
				return task.Accepted{Sending: sent, Submission: mediagate.Submission{Ref: ref("")}, FirstPollAt: b.now()}
			}
			for name, events := range map[string]func(sent task.Sending) []task.Event{
				"abandoned": func(sent task.Sending) []task.Event {
					return []task.Event{taken(sent), task.CancelRequested{}, task.EndDue{}}
				},
				"given up": func(sent task.Sending) []task.Event { return []task.Event{taken(sent), task.RerouteRequested{}} },
				"lost":     func(sent task.Sending) []task.Event { return []task.Event{task.SubmitUnknown{Sending: sent}} },
				"lost to its vendor": func(sent task.Sending) []task.Event {
					return []task.Event{taken(sent), task.Claimed{N: 1, Claim: "c"}, task.Troubled{N: 1, Claim: "c", Reason: mediagate.ParkJobLost}}
				},
			} {
				id, next := b.submit(p, unit(1)), b.submit(p, unit(1))
				same(b, name+": opened", b.try(id, limited(1)), true)
				b.change(id, events(b.sending(id))...)
				b.noError(b.ExpireSlots(b.Context())) // of none, yet
				same(b, name+": while it may run", b.try(next, limited(1)), false)
				if name == "lost" { // the call may be under way
					b.pass(b.sending(id).CallEnds.Sub(b.now()))
				}
				b.pass(mediagate.SlotsLost*plan.Expected - time.Microsecond)
				b.noError(b.ExpireSlots(b.Context()))
				same(b, name+": to the last", b.try(next, limited(1)), false)
				b.pass(time.Microsecond)
				b.noError(b.ExpireSlots(b.Context()))
				same(b, name+": and no longer", b.try(next, limited(1)), true)
				same(b, name+": closed", b.attempt(id).State == mediagate.AttemptEnded, name == "abandoned" || name == "given up")
				b.refuse(next)
			}
		},
		"who queues waits, and is granted a slot": func(b *bench) {
			p := b.newPayer(unit(10))
			runs := b.submit(p, unit(1))
			same(b, "opened", b.try(runs, limited(1)), true)
			id := b.queued(p)
			same(b, "task", b.task(id).Wait.Since, b.now())
			epoch := b.epoch(channelName)
			same(b, "full", b.grant(epoch, 1), mediagate.Granted{InFlight: 1, Waiting: 1})
			b.refuse(runs)
			b.change(id, task.Asked{})
			b.pass(time.Minute)
			before := b.state(id)
			same(b, "free", b.grant(epoch, 1), mediagate.Granted{Tasks: []string{id}, InFlight: 1})
			before.Granted = true
			same(b, "nothing else of the task", b.state(id), before)
			same(b, "its next step", b.change(id).Step.Kind, task.Submit)
			b.wakesIn("its run", id, 2*time.Second)
			same(b, "a grant is a slot", b.try(b.submit(p, unit(1)), limited(1)), false)
			same(b, "used", b.try(id, limited(1)), true)
			same(b, "out of the queue", b.task(id).Wait.Since, time.Time{})
			same(b, "nothing is left", b.grant(epoch, 1), mediagate.Granted{InFlight: 1})
		},
		"nobody overtakes who waits": func(b *bench) {
			p := b.newPayer(unit(10))
			waits := b.queued(p)
			newcomer := b.submit(p, unit(1))
			same(b, "a newcomer, with a slot free", b.try(newcomer, limited(1)), false)
			same(b, "who waits, and nobody else does", b.try(waits, limited(1)), true)
		},
		"accounts have their turns": func(b *bench) {
			epoch := b.epoch(channelName)
			busy, other, late := b.newPayer(unit(100)), b.newPayer(unit(10)), b.newPayer(unit(10))
			var queue []string
			for range 5 {
				queue = append(queue, b.queued(busy))
			}
			one := b.queued(other)
			var order []string
			serve := func() {
				got := b.grant(epoch, 1)
				same(b, "granted", len(got.Tasks), 1)
				same(b, "used", b.try(got.Tasks[0], limited(1)), true)
				b.refuse(got.Tasks[0])
				order = append(order, got.Tasks[0])
			}
			serve()
			serve()
			serve()
			newcomer, again := b.queued(late), b.queued(other)
			for range 5 {
				serve()
			}
			same(b, "order", order, []string{queue[0], one, queue[1], newcomer, again, queue[2], queue[3], queue[4]})
		},
		"slots that were free count as turns": func(b *bench) {
			epoch := b.epoch(channelName)
			p, q := b.newPayer(unit(10)), b.newPayer(unit(10))
			first := b.queued(q)
			same(b, "q", b.try(first, limited(1)), true)
			b.refuse(first)
			runs := b.submit(p, unit(1))
			same(b, "p", b.try(runs, limited(1)), true)
			ofP, ofQ := b.queued(p), b.queued(q)
			b.refuse(runs)
			same(b, "next", b.grant(epoch, 1).Tasks, []string{ofQ})
			same(b, "then", b.grant(epoch, 2).Tasks, []string{ofP})
		},
		"whichever channel frees first grants, and one only": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.queued(p, "kling-b", channelName)
			channels := func(what string, want ...string) {
				b.Helper()
				names := must(b.AwaitChannels(b.Context()))
				same(b, what, names, want)
			}
			channels("queued", channelName, "kling-b")
			other := mediagate.Slots{Names: []string{"kling-b"}, Limit: 1}
			same(b, "granted", b.grantAt("kling-b", b.epoch("kling-b"), other), mediagate.Granted{Tasks: []string{id}, InFlight: 1})
			same(b, "not twice", b.grant(b.epoch(channelName), 1), mediagate.Granted{Waiting: 1})
			same(b, "used elsewhere", b.try(id, limited(1)), true)
			channels("gone everywhere")
			same(b, "the other is free", b.tryAt(b.submit(p, unit(1)), "kling-b", other), true)
		},
		"a channel without a limit grants what waits for it": func(b *bench) {
			p := b.newPayer(unit(10))
			one, two := b.queued(p), b.queued(p)
			free := mediagate.Slots{Names: []string{channelName}}
			same(b, "granted", b.grantAt(channelName, b.epoch(channelName), free), mediagate.Granted{Tasks: []string{one, two}, InFlight: 2})
			same(b, "used", b.try(one, free), true)
		},
		"a grant that nobody uses is taken back": func(b *bench) {
			p := b.newPayer(unit(10))
			one, two := b.queued(p), b.queued(p)
			epoch := b.epoch(channelName)
			same(b, "granted", b.grant(epoch, 1), mediagate.Granted{Tasks: []string{one}, InFlight: 1, Waiting: 1})
			same(b, "once", b.grant(epoch, 1), mediagate.Granted{InFlight: 1, Waiting: 1})
			b.pass(takeBack)
			same(b, "taken back", b.grant(epoch, 1), mediagate.Granted{Tasks: []string{two}, InFlight: 1, Waiting: 1})
			same(b, "granted", []bool{b.state(one).Granted, b.state(two).Granted}, []bool{false, true})
			same(b, "too late", b.try(one, limited(1)), false)
			same(b, "in time", b.try(two, limited(1)), true)
		},
		"an old epoch grants nothing": func(b *bench) {
			b.queued(b.newPayer(unit(10)))
			old := b.epoch(channelName)
			b.epoch(channelName)
			b.kind(errOf(b.GrantSlots(b.Context(), mediagate.Granting{Channel: channelName, Epoch: old, Slots: limited(1), Most: 1, TakeBack: takeBack})), mediagate.KindConflict)
		},
		"who stands in under a former name grants slots of the account": func(b *bench) {
			p := b.newPayer(unit(10))
			runs, waits := b.submit(p, unit(1)), b.queued(p, "kling-former")
			same(b, "opened", b.try(runs, mediagate.Slots{Names: []string{channelName}, Limit: 1}), true)
			epoch := b.epoch("kling-former")
			same(b, "full", b.grantAt("kling-former", epoch, limited(1)), mediagate.Granted{InFlight: 1, Waiting: 1})
			b.refuse(runs)
			same(b, "free", b.grantAt("kling-former", epoch, limited(1)).Tasks, []string{waits})
			same(b, "used under the new name", b.try(waits, limited(1)), true)
		},
		"who queues again keeps its place, and gives back its grant": func(b *bench) {
			p := b.newPayer(unit(10))
			one, two := b.queued(p), b.queued(p)
			epoch := b.epoch(channelName)
			same(b, "granted", b.grant(epoch, 1).Tasks, []string{one})
			since := b.task(one).Wait.Since
			b.pass(time.Second)
			b.change(one, task.Queued{N: 1, Channels: []string{channelName, "kling-b"}})
			same(b, "since", []any{b.task(one).Wait.Since, b.state(one).Granted}, []any{since, false})
			same(b, "its place", b.grant(epoch, 2).Tasks, []string{one, two})
			b.change(one, task.Queued{N: 1, Channels: []string{"kling-b"}})
			rows := must(b.QueuedTasks(b.Context(), channelName, 10))
			same(b, "who is left", rows, []mediagate.Queued{{TaskID: two, N: 1}})
		},
		"the load of a channel": func(b *bench) {
			p := b.newPayer(unit(10))
			b.load("none", 0, 0, time.Time{})
			runs := b.submit(p, unit(1))
			same(b, "opened", b.try(runs, limited(5)), true)
			since := b.now()
			b.pass(time.Minute)
			b.queued(p)
			waits := b.now()
			b.queued(p)
			b.load("load", 1, 2, since)
			b.refuse(runs)
			same(b, "granted", len(b.grant(b.epoch(channelName), 1).Tasks), 1)
			b.load("later", 1, 1, waits)
		},
		"D15 a wait for the client is no load of its channel": func(b *bench) {
			p := b.newPayer(unit(10))
			id := b.modal(p)
			b.load("waiting", 0, 0, time.Time{})
			same(b, "a slot is free", b.try(b.submit(p, unit(1)), limited(1)), true)
			b.change(id, task.ModalGiven{Input: []byte(`{}`)}, intentOf(id, 2, b.now()))
			b.load("given", 2, 0, b.now())
		},
		"of many at once no more than the slots": func(b *bench) {
			var tasks []string
			for range 5 {
				p := b.newPayer(unit(50))
				for range 5 {
					tasks = append(tasks, b.submit(p, unit(1)))
				}
			}
			epoch := b.epoch(channelName)
			b.race(8, func(i int) {
				for _, id := range tasks {
					_, err := b.OpenIntent(b.Context(), id, limited(5), intentOf(id, 1, b.now()))
					if mediagate.Is(err, mediagate.KindCapacity) {
						_, err = b.Change(b.Context(), id, task.Queued{N: 1, Channels: []string{channelName}})
					}
					if err != nil && !mediagate.Is(err, mediagate.KindConflict) {
						b.Errorf("open: %v", err)
					}
					if i%4 > 0 {
						continue
					}
					got, err := b.GrantSlots(b.Context(), mediagate.Granting{Channel: channelName, Epoch: epoch, Slots: limited(5), Most: 10, TakeBack: takeBack})
					if err != nil || got.InFlight > 5 {
						b.Errorf("%d in flight, error %v", got.InFlight, err)
					}
				}
			})
			b.load("in flight, queued", 5, 20, b.now())
		},
	})
}
