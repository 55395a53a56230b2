package storagetest

import (
	"time"

	"github.com/mediagate/mediagate"
)

// oneOfMany is the first intent of one call of the task's first attempt.
func (b *bench) oneOfMany(taskID string, part int) mediagate.Part {
	return mediagate.Part{TaskID: taskID, N: 1, Part: part, SendBefore: b.now().Add(10 * time.Second)}
}

// openPart wants it to be stored, or not.
func (b *bench) openPart(p mediagate.Part, want bool) {
	b.Helper()
	opened, err := b.OpenPart(b.Context(), p)
	b.noError(err)
	same(b, "opened", opened, want)
}

func (b *bench) parts(taskID string) []mediagate.Part {
	b.Helper()
	parts, err := b.Parts(b.Context(), taskID, 1)
	b.noError(err)
	return parts
}

var partTests = map[string]func(*bench){
	"an intent is stored once, and its end": func(b *bench) {
		id := b.submit(b.newPayer(unit(10)), unit(1))
		b.intent(id, 1)
		same(b, "none", len(b.parts(id)), 0)
		first, second := b.oneOfMany(id, 0), b.oneOfMany(id, 2)
		b.openPart(second, true)
		b.openPart(first, true)
		b.openPart(first, false)
		stored := []mediagate.Part{first, second}
		for i := range stored {
			stored[i].State, stored[i].Sends, stored[i].SendBefore = mediagate.PartIntent, 1, stored[i].SendBefore.Truncate(time.Microsecond)
		}
		same(b, "stored", b.parts(id), stored)

		outcome := mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{{Stored: &mediagate.Result{Key: "k", Size: 3, SHA256: "00"}}}}
		done := stored[0]
		done.State, done.Submission = mediagate.PartDone, &mediagate.Submission{Ref: mediagate.JobRef{JobID: "req-1"}, Outcome: &outcome}
		refused := stored[1]
		refused.State, refused.Failure, refused.Error = mediagate.PartRefused, &mediagate.Failure{Code: mediagate.CodeProviderAway, Retryable: true}, "throttled"
		b.noError(b.EndPart(b.Context(), done))
		b.noError(b.EndPart(b.Context(), refused))
		same(b, "ended", b.parts(id), []mediagate.Part{done, refused})

		late := done
		late.State, late.Submission = mediagate.PartUnknown, nil
		b.noError(b.EndPart(b.Context(), late)) // the first to know counts
		same(b, "still", b.parts(id), []mediagate.Part{done, refused})
	},
	"what was refused for now is sent again under an intent of its own": func(b *bench) {
		id := b.submit(b.newPayer(unit(10)), unit(1))
		b.intent(id, 1)
		p := b.oneOfMany(id, 0)
		b.openPart(p, true)
		end := p
		end.State, end.Failure = mediagate.PartRefused, &mediagate.Failure{Code: mediagate.CodeProviderAway, Retryable: true}
		b.noError(b.EndPart(b.Context(), end))
		b.openPart(p, false) // not its first any more
		b.pass(time.Second)
		again := b.oneOfMany(id, 0)
		again.Sends = 1
		b.openPart(again, true)
		b.openPart(again, false) // of two who saw the refusal, one sends
		b.noError(b.EndPart(b.Context(), end))
		row := b.parts(id)[0]
		same(b, "the late word about the first", []any{row.State, row.Sends, row.Failure}, []any{mediagate.PartIntent, 2, (*mediagate.Failure)(nil)})
	},
	"a vendor's own failure is not sent again": func(b *bench) {
		id := b.submit(b.newPayer(unit(10)), unit(1))
		b.intent(id, 1)
		p := b.oneOfMany(id, 0)
		b.openPart(p, true)
		end := p
		end.State = mediagate.PartRefused
		end.Submission = &mediagate.Submission{Outcome: &mediagate.Outcome{Failure: &mediagate.Failure{Code: mediagate.CodeContentPolicy}}}
		b.noError(b.EndPart(b.Context(), end))
		p.Sends = 1
		b.openPart(p, false)
		same(b, "why", b.parts(id)[0].Refusal().Code, mediagate.CodeContentPolicy)
	},
	"an answer is stored though its sender was given up": func(b *bench) {
		id := b.submit(b.newPayer(unit(10)), unit(1))
		b.intent(id, 1)
		p := b.oneOfMany(id, 0)
		b.openPart(p, true)
		end := p
		end.State, end.Error = mediagate.PartUnknown, "the sender was lost"
		b.noError(b.EndPart(b.Context(), end))
		end.State, end.Error, end.Submission = mediagate.PartDone, "", &mediagate.Submission{}
		b.noError(b.EndPart(b.Context(), end))
		same(b, "state", b.parts(id)[0].State, mediagate.PartDone)
	},
	"nothing is sent for a task that ended, is to be cancelled or is late (D3)": func(b *bench) {
		p := b.newPayer(unit(10))
		ended, wished, unknown, late := b.submit(p, unit(1)), b.submit(p, unit(1)), b.submit(p, unit(1)), b.submit(p, unit(1))
		for _, id := range []string{ended, wished, late} {
			b.intent(id, 1)
		}
		b.lost(unknown)
		b.settle(failed(ended))
		_, err := b.RequestCancel(b.Context(), p.account, wished)
		b.noError(err)
		for _, id := range []string{ended, wished, unknown} {
			_, err := b.OpenPart(b.Context(), b.oneOfMany(id, 0))
			b.kind(err, mediagate.KindConflict)
		}
		b.pass(3 * time.Hour)
		_, err = b.OpenPart(b.Context(), b.oneOfMany(late, 0))
		b.kind(err, mediagate.KindConflict)
		_, err = b.OpenPart(b.Context(), b.oneOfMany("task_none", 0))
		b.kind(err, mediagate.KindNotFound)
		for _, id := range []string{ended, wished, unknown, late} {
			same(b, "stored", len(b.parts(id)), 0)
		}
	},
	"of twenty senders at once one opens a part": func(b *bench) {
		id := b.submit(b.newPayer(unit(10)), unit(1))
		b.intent(id, 1)
		p := b.oneOfMany(id, 0)
		opened := make([]bool, 20)
		b.race(len(opened), func(i int) {
			var err error
			if opened[i], err = b.OpenPart(b.Context(), p); err != nil {
				b.Errorf("open: %v", err)
			}
		})
		n := 0
		for _, o := range opened {
			if o {
				n++
			}
		}
		same(b, "opened", n, 1)
	},
	"files that may come late are looked for (D13)": func(b *bench) {
		p := b.newPayer(unit(10))
		open := func(state mediagate.PartState) string {
			id := b.submit(p, unit(1))
			b.intent(id, 1)
			part := b.oneOfMany(id, 0)
			b.openPart(part, true)
			part.State = state
			b.noError(b.EndPart(b.Context(), part))
			_, err := b.RecordOutcome(b.Context(), id, 1, success)
			b.noError(err)
			b.settle(completed(id, unit(1)))
			return id
		}
		open(mediagate.PartDone)
		lost := open(mediagate.PartUnknown)
		late := b.submit(p, unit(1)) // its lost call reports between the attempt's end and the task's
		b.intent(late, 1)
		part := b.oneOfMany(late, 0)
		b.openPart(part, true)
		_, err := b.AcceptAttempt(b.Context(), late, 1, mediagate.Submission{Outcome: &success}, b.now())
		b.noError(err)
		b.pass(time.Second)
		part.State = mediagate.PartDone
		b.noError(b.EndPart(b.Context(), part))
		b.settle(completed(late, unit(1)))
		sync := b.submit(p, unit(1)) // of a vendor that hands files over before its outcome is on record
		_, _, err = b.OpenAttempt(b.Context(), mediagate.Attempt{
			TaskID: sync, N: 1, Channel: channelName, Provider: "gemini", Route: mediagate.Route{Provider: "gemini", Sync: true}, SendBefore: b.now(),
		}, mediagate.Slots{})
		b.noError(err)
		b.pass(time.Second)
		b.settle(failed(sync))
		b.pass(2*mediagate.CopyLimit + time.Second)
		b.finds("due", []string{lost, late, sync}, func() ([]string, error) { return b.dueSweeps(10) })
	},
}
