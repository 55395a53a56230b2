package storagetest

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
)

const modalTime = 30 * time.Minute

// inpainting is a task that the vendor has taken, and of which it may want to
// hear more.
func (b *bench) inpainting() (id string, p payer) {
	b.Helper()
	p = b.newPayer(unit(10))
	return b.inpaintingOf(p), p
}

func (b *bench) inpaintingOf(p payer) (id string) {
	b.Helper()
	n := b.draft(p, unit(1))
	n.Task.Type, n.Task.Plan.Modal = mediagate.TypeArt, modalTime
	id, _, err := b.Submit(b.Context(), n)
	b.noError(err)
	b.intent(id, 1)
	_, err = b.AcceptAttempt(b.Context(), id, 1, mediagate.Submission{Ref: ref(id)}, b.now())
	b.noError(err)
	return id
}

// modal is such a task whose vendor wants to hear more since this moment.
func (b *bench) modal() (id string, p payer) {
	b.Helper()
	id, p = b.inpainting()
	b.claim("c1")
	ended := b.store("c1", mediagate.PollResult{TaskID: id, N: 1, NextPollAt: b.now().Add(time.Second), Waiting: true, Answered: true})
	same(b, "to be signalled", ids(ended), []string{id})
	return id, p
}

func call(id string, p payer) mediagate.ModalCall {
	return mediagate.ModalCall{AccountID: p.account, TaskID: id, Input: []byte(`{"prompt": "a hat"}`), Path: "/modal"}
}

// waits is what a task shows of its wait.
func waits(t mediagate.Task) []any {
	return []any{t.Status, t.Modal.State, t.Modal.N, t.Modal.Until, string(t.Modal.Input)}
}

var modalTests = map[string]func(*bench){
	"a task whose plan cannot be read keeps no other's poll from being stored": func(b *bench) {
		if b.office == nil {
			return // the activities' double has no columns
		}
		broken, _ := b.inpainting()
		other, _ := b.inpainting()
		third := b.accepted(b.newPayer(unit(10)), unit(1))
		b.noError(b.database().Exec("UPDATE tasks SET plan = '{\"routes\":7}' WHERE id = ?", broken).Error)
		b.claim("c1")
		waiting := func(id string) mediagate.PollResult {
			return mediagate.PollResult{TaskID: id, N: 1, NextPollAt: b.now().Add(time.Minute), Waiting: true, Answered: true}
		}
		ended := b.store("c1", waiting(broken), waiting(other), mediagate.PollResult{TaskID: third, N: 1, Outcome: &mediagate.Outcome{Succeeded: true}})
		same(b, "to be signalled", sorted(ids(ended)), sorted([]string{other, third}))
		b.pass(time.Minute)
		_, rows := b.claim("c2")
		same(b, "asked for again", slices.Contains(ids(rows), broken), true)
	},
	"D10 the time that a task was parked moves its deadline once, whatever it waits for then": func(b *bench) {
		id, _ := b.inpainting()
		deadline := b.task(id).DeadlineAt
		b.noError(b.Park(b.Context(), id, mediagate.ParkProviderAway))
		b.pass(7 * time.Minute)
		b.claim("c1")
		b.store("c1", mediagate.PollResult{TaskID: id, N: 1, NextPollAt: b.now(), Waiting: true, Answered: true})
		t := b.task(id)
		same(b, "task", []any{t.Modal.State, t.ParkedAt, t.ParkReason}, []any{mediagate.ModalWaiting, time.Time{}, mediagate.ParkReason("")})
		same(b, "deadline", t.WaitsUntil(b.now()), deadline.Add(7*time.Minute+modalTime))
	},
	"D15 a vendor that asks for more is polled no more": func(b *bench) {
		id, _ := b.inpainting()
		deadline, version := b.task(id).DeadlineAt, b.task(id).Version
		b.pass(time.Minute)
		left := deadline.Sub(b.now())
		b.claim("c1")
		waiting := mediagate.PollResult{TaskID: id, N: 1, NextPollAt: b.now(), Waiting: true, Answered: true}
		same(b, "to be signalled", ids(b.store("c1", waiting)), []string{id})
		until := b.now().Add(modalTime)
		same(b, "task", waits(b.task(id)), []any{mediagate.StatusProcessing, mediagate.ModalWaiting, 1, until, ""})
		same(b, "version", b.task(id).Version, version+1)
		same(b, "the deadline comes after", b.task(id).DeadlineAt, until.Add(left))
		st := b.story(id)
		same(b, "story", []any{st.ModalUntil, st.ModalExpired, st.State}, []any{until, false, mediagate.AttemptAccepted})

		b.pass(time.Minute) // the signal was lost
		_, rows := b.claim("c2")
		same(b, "signalled again", []any{len(rows), rows[0].Ended}, []any{1, true})
		b.noError(b.DropAwait(b.Context(), id, 1))
		same(b, "rows", b.waiting(), 0)
		b.noError(b.BeginModal(b.Context(), id, 1))
		same(b, "until", b.task(id).Modal.Until, until)
		b.kind(b.RestoreAwait(b.Context(), id, 1, b.now()), mediagate.KindConflict)
		b.noError(b.NoteTrouble(b.Context(), id, 1, mediagate.ParkChannelMissing))
		same(b, "trouble", b.story(id).Trouble, "")
	},
	"D15 a wait is no load of its channel": func(b *bench) {
		id, p := b.modal()
		inFlight, queued, oldest, err := b.ChannelLoad(b.Context(), channelName)
		b.noError(err)
		same(b, "waiting", []any{inFlight, queued, oldest}, []any{0, 0, time.Time{}})
		_, _, err = b.SubmitModal(b.Context(), call(id, p))
		b.noError(err)
		b.pass(time.Minute)
		b.intent(id, 2)
		inFlight, queued, oldest, err = b.ChannelLoad(b.Context(), channelName)
		b.noError(err)
		same(b, "told", []any{inFlight, queued, oldest}, []any{1, 0, b.now()})
	},
	"D15 a wait is noted though the claim was lost at the last moment": func(b *bench) {
		id, _ := b.inpainting()
		b.noError(b.BeginModal(b.Context(), id, 1))
		same(b, "rows", b.waiting(), 0)
		same(b, "state", b.task(id).Modal.State, mediagate.ModalWaiting)
	},
	"D15 who has to hear more": func(b *bench) {
		video := b.accepted(b.newPayer(unit(10)), unit(1))
		b.noError(b.BeginModal(b.Context(), video, 1))
		same(b, "a video", b.task(video).Modal, mediagate.Modal{})
		id, _ := b.inpainting()
		_, err := b.RecordOutcome(b.Context(), id, 1, mediagate.Outcome{Succeeded: true})
		b.noError(err)
		b.noError(b.BeginModal(b.Context(), id, 1))
		same(b, "one with an outcome", b.task(id).Modal, mediagate.Modal{})
		ended, _ := b.inpainting()
		b.settle(mediagate.Settlement{TaskID: ended, N: 1, Status: mediagate.StatusCancelled})
		b.noError(b.BeginModal(b.Context(), ended, 1))
		same(b, "one that has ended", b.task(ended).Modal, mediagate.Modal{})
		b.kind(b.BeginModal(b.Context(), "task_none", 1), mediagate.KindNotFound)
	},
	"D15 the client's word makes the task pending, with time of its own": func(b *bench) {
		id, p := b.modal()
		b.pass(29 * time.Minute)
		started := b.task(id).StartedAt
		command, replayed, err := b.SubmitModal(b.Context(), call(id, p))
		b.noError(err)
		same(b, "replayed", replayed, false)
		same(b, "task", waits(b.task(id)), []any{mediagate.StatusPending, mediagate.ModalSubmitted, 1, b.now().Add(time.Minute), `{"prompt": "a hat"}`})
		same(b, "deadline", b.task(id).DeadlineAt, b.now().Add(plan.Timeout))
		st := b.story(id)
		same(b, "story", []any{st.N, st.State, st.ModalUntil, st.Failure == nil}, []any{1, mediagate.AttemptEnded, time.Time{}, true})
		same(b, "rows", b.waiting(), 0)
		b.pass(11 * time.Second)
		untaken, err := b.UntakenActions(b.Context(), 10*time.Second, mediagate.Action{}, 10)
		b.noError(err)
		same(b, "owed", untaken, []mediagate.Action{command})

		row := b.intent(id, 2)
		_, err = b.AcceptAttempt(b.Context(), id, 2, mediagate.Submission{Ref: ref(id)}, b.now())
		b.noError(err)
		same(b, "second attempt", []any{row.N, b.task(id).Status, b.task(id).StartedAt}, []any{2, mediagate.StatusProcessing, started})
		b.noError(b.BeginModal(b.Context(), id, 2))
		same(b, "asked a second time", b.task(id).Modal.State, mediagate.ModalSubmitted)
		_, _, err = b.SubmitModal(b.Context(), call(id, p))
		b.kind(err, mediagate.KindConflict)
	},
	"D15 a late answer for the job that waited changes nothing": func(b *bench) {
		id, p := b.inpainting()
		_, _ = b.claim("c1")
		b.noError(b.BeginModal(b.Context(), id, 1))
		_, _, err := b.SubmitModal(b.Context(), call(id, p))
		b.noError(err)
		late := b.store("c1", mediagate.PollResult{TaskID: id, N: 1, Outcome: &mediagate.Outcome{Failure: &mediagate.Failure{Code: mediagate.CodeGenerationFailed}}})
		same(b, "signals", len(late), 0)
		st := b.story(id)
		same(b, "story", []any{st.State, st.Failure == nil}, []any{mediagate.AttemptEnded, true})
	},
	"D15 of several calls and the expiry one counts": func(b *bench) {
		for _, over := range []bool{false, true} {
			id, p := b.modal()
			if over {
				b.pass(modalTime)
			}
			var taken atomic.Int64
			b.race(6, func(i int) {
				if i%3 == 2 {
					b.noError(b.ExpireModal(b.Context(), id))
					return
				}
				_, _, err := b.SubmitModal(b.Context(), call(id, p))
				if err == nil {
					taken.Add(1)
				} else {
					b.kind(err, mediagate.KindConflict)
				}
			})
			state := b.task(id).Modal.State
			switch {
			case taken.Load() == 1 && state == mediagate.ModalSubmitted:
			case over && taken.Load() == 0 && state == mediagate.ModalExpired && b.story(id).ModalExpired:
			default:
				b.Errorf("over %t: %d calls were taken, and the task is %s", over, taken.Load(), state)
			}
		}
	},
	"D15 nothing expires early": func(b *bench) {
		id, _ := b.modal()
		b.pass(modalTime - time.Microsecond)
		b.noError(b.ExpireModal(b.Context(), id))
		same(b, "early", b.task(id).Modal.State, mediagate.ModalWaiting)
		b.pass(time.Microsecond)
		b.noError(b.ExpireModal(b.Context(), id))
		same(b, "in time", b.task(id).Modal.State, mediagate.ModalExpired)
		b.kind(b.ExpireModal(b.Context(), "task_none"), mediagate.KindNotFound)
	},
	"D15 whose call is refused": func(b *bench) {
		id, p := b.modal()
		for name, test := range map[string]struct {
			call mediagate.ModalCall
			want mediagate.Kind
		}{
			"someone else's": {call(id, b.newPayer(unit(1))), mediagate.KindNotFound},
			"unknown":        {call("task_none", p), mediagate.KindNotFound},
		} {
			_, _, err := b.SubmitModal(b.Context(), test.call)
			if mediagate.KindOf(err) != test.want {
				b.Errorf("%s: %v", name, err)
			}
		}
		_, err := b.RequestCancel(b.Context(), p.account, id)
		b.noError(err)
		_, _, err = b.SubmitModal(b.Context(), call(id, p))
		b.kind(err, mediagate.KindConflict)
		same(b, "state", b.task(id).Modal.State, mediagate.ModalWaiting)
		running, q := b.inpainting()
		_, _, err = b.SubmitModal(b.Context(), call(running, q))
		b.kind(err, mediagate.KindConflict)
	},
	"D15 nobody gives up a task that waits for its client": func(b *bench) {
		id, _ := b.modal()
		failure := &mediagate.Failure{Code: mediagate.CodeGenerationTimeout, Message: "late"}
		_, won, err := b.Settle(b.Context(), mediagate.Settlement{TaskID: id, N: 1, Status: mediagate.StatusFailed, Failure: failure, WithoutOutcome: true})
		b.noError(err)
		same(b, "ended", won, false)
	},
	"D2 a task that waits for its client is not overdue": func(b *bench) {
		id, _ := b.inpainting()
		b.pass(plan.Timeout - time.Second)
		b.noError(b.BeginModal(b.Context(), id, 1))
		b.pass(modalTime + 29*time.Minute)
		b.rescued("while it may wait")
		b.pass(2 * time.Minute)
		b.rescued("after that", mediagate.Rescue{TaskID: id, Times: 1})
	},
	"D7 a job that waits has no slot": func(b *bench) {
		id, p := b.inpainting()
		slots := mediagate.Slots{Names: []string{channelName}, Limit: 1}
		other := b.submit(p, unit(1))
		same(b, "while it runs", b.try(other, slots), false)
		b.noError(b.BeginModal(b.Context(), id, 1))
		b.noError(b.Park(b.Context(), id, mediagate.ParkInternal))
		b.noError(b.Unpark(b.Context(), id))
		same(b, "while it waits", b.try(other, slots), true)
	},
}

// Of the database alone: the double keeps no idempotency records.
var modalRowTests = map[string]func(*bench){
	"a modal call may be repeated": func(b *bench) {
		id, p := b.modal()
		first := call(id, p)
		first.IdempotencyKey, first.BodySHA256 = "k", [32]byte{1}
		var fresh atomic.Int64
		b.race(4, func(int) {
			_, replayed, err := b.SubmitModal(b.Context(), first)
			b.noError(err)
			if !replayed {
				fresh.Add(1)
			}
		})
		same(b, "taken", fresh.Load(), 1)
		same(b, "commands", b.count("SELECT COUNT(*) FROM actions WHERE task_id = ?", id), 1)
		found, ok, err := b.Replay(b.Context(), p.account, "k", "/modal", first.BodySHA256)
		b.noError(err)
		same(b, "replay", []any{found, ok}, []any{id, true})
		other := first
		other.BodySHA256 = [32]byte{2}
		_, _, err = b.SubmitModal(b.Context(), other)
		b.idempotencyConflict(err)
		late, q := b.inpainting() // not in MODAL: nothing is remembered
		refused := call(late, q)
		refused.IdempotencyKey = "r"
		_, _, err = b.SubmitModal(b.Context(), refused)
		b.kind(err, mediagate.KindConflict)
		_, ok, err = b.Replay(b.Context(), q.account, "r", "/modal", refused.BodySHA256)
		b.noError(err)
		same(b, "remembered", ok, false)
	},
	"a key whose record has expired serves a modal call": func(b *bench) {
		id, p := b.modal()
		first := call(id, p)
		first.IdempotencyKey, first.BodySHA256 = "k", [32]byte{1}
		_, _, err := b.SubmitModal(b.Context(), first)
		b.noError(err)
		b.settle(mediagate.Settlement{TaskID: id, N: 1, Status: mediagate.StatusCancelled})
		b.pass(24*time.Hour + time.Second)
		_, _, err = b.SubmitModal(b.Context(), first)
		b.kind(err, mediagate.KindConflict)
		next := b.inpaintingOf(p)
		b.noError(b.BeginModal(b.Context(), next, 1))
		reused := call(next, p)
		reused.IdempotencyKey, reused.BodySHA256 = "k", [32]byte{2}
		_, replayed, err := b.SubmitModal(b.Context(), reused)
		b.noError(err)
		same(b, "replayed", replayed, false)
		found, ok, err := b.Replay(b.Context(), p.account, "k", "/modal", reused.BodySHA256)
		b.noError(err)
		same(b, "replay", []any{found, ok}, []any{next, true})
	},
}
