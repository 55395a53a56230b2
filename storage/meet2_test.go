package storage_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// alter applies events beside others, of which one may have come first.
func (b *bench) alter(id string, kinds []mediagate.Kind, events ...task.Event) (task.Changed, bool) {
	changed, err := b.Change(b.Context(), id, events...)
	for _, kind := range kinds {
		if mediagate.Is(err, kind) {
			return changed, false
		}
	}
	if err != nil {
		b.Errorf("%T: %v", events[0], err)
	}
	return changed, err == nil
}

var conflicts = []mediagate.Kind{mediagate.KindConflict}

// meetingTests are of changes of one task that meet.
func TestMeetingFacts(t *testing.T) {
	t.Parallel()
	provePooled(t, facts{
		"of twenty senders at once one opens": func(b *bench) {
			id := b.submit(b.newPayer(unit(10)), unit(1))
			var opened atomic.Int64
			b.race(20, func(int) {
				if _, ok := b.alter(id, conflicts, intentOf(id, 1, b.now())); ok {
					opened.Add(1)
				}
			})
			same(b, "opened", opened.Load(), 1)
		},
		"of many ends at once one counts": func(b *bench) {
			p := b.newPayer(unit(100))
			for range 8 {
				id := b.accepted(p, unit(4))
				ends := []end{completed(id, unit(1)), failed(id), cancelled(id), completed(id, unit(2)), failed(id), cancelled(id)}
				var ended, promised atomic.Int64
				b.race(len(ends), func(i int) {
					changed, ok := b.alter(id, conflicts, ends[i].events...)
					if changed.Effects.Entry != "" {
						ended.Add(1)
					}
					if ok && ends[i].status == mediagate.StatusCancelled {
						promised.Add(1)
					}
				})
				t := b.task(id)
				same(b, "ends", ended.Load(), 1)
				same(b, "resolutions", b.count("SELECT COUNT(*) FROM ledger_transfers WHERE task_id = ? AND kind <> 'hold'", id), 1)
				same(b, "promised cancels", promised.Load() > 0, t.Status == mediagate.StatusCancelled)
				same(b, "charged", t.Cost > 0, t.Status == mediagate.StatusCompleted)
			}
		},
		"a cancel and an end at once agree (D13)": func(b *bench) {
			p := b.newPayer(unit(100))
			for range 20 {
				id := b.accepted(p, unit(1))
				var promised atomic.Bool
				b.race(2, func(i int) {
					if i == 0 {
						_, err := b.RequestCancel(b.Context(), p.account, id)
						promised.Store(err == nil)
						if err != nil && !mediagate.Is(err, mediagate.KindConflict) {
							b.Errorf("cancel: %v", err)
						}
						return
					}
					b.alter(id, nil, completed(id, unit(1)).events...)
				})
				want := mediagate.StatusCompleted
				if promised.Load() {
					want = mediagate.StatusCancelled
				}
				same(b, "status", []any{b.task(id).Status, b.task(id).CancelRequestedAt.IsZero()}, []any{want, !promised.Load()})
			}
		},
		"of the end of the task and that of its job at once nothing is polled for": func(b *bench) {
			p := b.newPayer(unit(100))
			for range 8 {
				id := b.accepted(p, unit(1))
				b.claim("c")
				progress := b.quiet(id, time.Second)
				progress.Progress = 10
				b.race(5, func(i int) {
					switch i {
					case 4:
						must(b.Hint(b.Context(), id, 1))
					case 0:
						b.alter(id, nil, cancelled(id).events...)
					case 1:
						must(b.StorePolls(b.Context(), channelName, "c", []mediagate.PollResult{progress}))
					case 2:
						b.alter(id, conflicts, task.PollRequested{})
					case 3:
						b.alter(id, nil, task.VendorEnded{N: 1, Outcome: failure})
					}
				})
				same(b, "waiting", b.waiting(), 0)
				same(b, "states", []any{b.task(id).Status, b.attempt(id).State}, []any{mediagate.StatusCancelled, mediagate.AttemptEnded})
			}
		},
		"of a vendor's answer and an end at once the job is on record (D5)": func(b *bench) {
			p := b.newPayer(unit(100))
			for range 8 {
				id := b.submit(p, unit(1))
				intent := b.intent(id)
				b.change(id, task.SubmitUnknown{Sending: intent.Sending})
				b.race(2, func(i int) {
					if i == 0 {
						b.alter(id, nil, task.Accepted{Sending: intentOf(id, 1, b.now()).Sending, Submission: mediagate.Submission{Ref: ref(id)}, FirstPollAt: b.now()})
					} else {
						b.alter(id, nil, cancelled(id).events...)
					}
				})
				a := b.attempt(id)
				same(b, "attempt", []any{a.State, a.Ref, a.Await != nil}, []any{mediagate.AttemptAbandoned, ref(id), true})
			}
		},
		"a grant and an end at once leave nobody in the queue": func(b *bench) {
			p := b.newPayer(unit(100))
			one, two := b.epoch(channelName), b.epoch("kling-b")
			for range 8 {
				id, other := b.queued(p, channelName, "kling-b"), b.queued(p, channelName, "kling-b")
				b.race(5, func(i int) {
					switch i {
					case 0:
						b.alter(id, nil, cancelled(id).events...)
					case 1:
						b.alter(other, conflicts, task.Queued{N: 1, Channels: []string{"kling-b", channelName}})
					case 2:
						b.alter(other, nil, cancelled(other).events...)
					default:
						g := mediagate.Granting{Channel: channelName, Epoch: one, Slots: limited(1), Most: 2, TakeBack: takeBack}
						if i == 4 {
							g.Channel, g.Epoch, g.Slots.Names = "kling-b", two, []string{"kling-b", channelName}
						}
						must(b.GrantSlots(b.Context(), g))
					}
				})
				same(b, "queued", b.count("SELECT COUNT(*) FROM queue"), 0)
			}
		},
		"all that moves tasks in bulk meets what changes one": func(b *bench) {
			p, q := b.newPayer(unit(200)), b.newPayer(unit(200))
			var tasks []string
			for i := range 24 {
				payer := []payer{p, q}[i%2]
				switch i % 4 {
				case 0:
					tasks = append(tasks, b.accepted(payer, unit(1)))
				case 1:
					tasks = append(tasks, b.parked(payer, mediagate.ParkFunds))
				case 2:
					tasks = append(tasks, b.queued(payer, "kling-b", channelName))
				case 3:
					id := b.accepted(payer, unit(1))
					b.settle(cancelled(id)) // its job may run on
					tasks = append(tasks, id)
				}
			}
			b.pass(mediagate.SlotsLost * plan.Expected)
			drafts := make([]mediagate.NewTask, 8*len(tasks))
			for i := range drafts {
				drafts[i] = b.draft([]payer{p, q}[i%2], 1)
				if i%3 == 0 {
					drafts[i].Task.Plan.Source = &mediagate.Source{TaskID: tasks[i%len(tasks)]}
				}
			}
			b.race(10, func(i int) {
				ctx := b.Context()
				for n := range tasks {
					id := tasks[(n*7+i*5)%len(tasks)]
					var err error
					switch i {
					case 0:
						b.alter(id, conflicts, task.RetryRequested{})
						b.alter(id, nil, task.Asked{})
					case 1:
						_, err = b.RetryParked(ctx, mediagate.Parked{Reasons: []mediagate.ParkReason{mediagate.ParkFunds}, Provider: "kling"}, 4)
					case 2:
						if err = b.ExpireSlots(ctx); err == nil && n%6 == 0 {
							_, err = b.BeginEpoch(ctx, channelName)
						}
					case 3:
						err = b.pollOnce(n)
					case 4:
						var due []mediagate.Wake
						if due, err = b.DueWakes(ctx, 5); err == nil {
							err = b.PutOff(ctx, due, n%2 == 0)
						}
					case 5:
						account := []payer{p, q}[(n*7+i*5)%len(tasks)%2].account
						if _, err = b.EraseTask(ctx, account, id); mediagate.Is(err, mediagate.KindConflict) || mediagate.Is(err, mediagate.KindNotFound) {
							err = nil
						}
					case 6:
						if n%2 == 0 {
							b.alter(id, conflicts, task.CancelRequested{}, task.EndDue{})
						} else {
							b.alter(id, nil, task.VendorEnded{N: 1, Outcome: success(1)}, task.Mirrored{N: 1})
						}
					case 7:
						b.alter(id, append(conflicts, mediagate.KindCapacity), task.Queued{N: 1, Channels: []string{channelName, "kling-b"}})
					case 8:
						if _, err = b.OpenIntent(ctx, id, limited(9), intentOf(id, 1, b.now())); mediagate.Is(err, mediagate.KindConflict) || mediagate.Is(err, mediagate.KindCapacity) {
							err = nil
						}
					case 9:
						if _, _, err = b.Submit(ctx, drafts[n*8]); mediagate.Is(err, mediagate.KindNotFound) {
							err = nil // its source is erased
						}
					}
					if err != nil {
						b.Errorf("%d: %v", i, err)
					}
				}
			})
		},
	})
}

// pollOnce grants slots of a channel, claims rows of it, and stores what they found.
func (b *bench) pollOnce(n int) error {
	ctx := b.Context()
	channel := []string{channelName, "kling-b"}[n%2]
	epoch, err := b.BeginEpoch(ctx, channel)
	if err != nil {
		return err
	}
	fenced := func(err error) error {
		if mediagate.Is(err, mediagate.KindConflict) {
			return nil // by another that began its own
		}
		return err
	}
	if _, err := b.GrantSlots(ctx, mediagate.Granting{Channel: channel, Epoch: epoch, Slots: mediagate.Slots{Names: []string{channel}}, Most: 2, TakeBack: time.Hour}); fenced(err) != nil {
		return err
	}
	rows, err := b.ClaimDue(ctx, channel, epoch, channel, lease, 5)
	if fenced(err) != nil || len(rows) == 0 {
		return fenced(err)
	}
	results := make([]mediagate.PollResult, len(rows))
	for i, r := range rows {
		results[i] = mediagate.PollResult{TaskID: r.TaskID, N: r.N, NextPollAt: b.now(), Answered: true, Progress: n}
	}
	_, err = b.StorePolls(ctx, channel, channel, results)
	return err
}
