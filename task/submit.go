package task

import (
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	// maxRefusals is how many attempts in a row a vendor may refuse, because it is full or away,
	// before the task parks.
	maxRefusals = 6
	// longestPause bounds the pause between two such attempts.
	longestPause = 30 * time.Second
	// queuePause is how often a queued task looks for a slot by itself, since channels may have
	// been added.
	queuePause = time.Hour
	// absentGap is the least time between the two lookups that prove that there is no job (D4).
	absentGap = 30 * time.Second
)

// applyInputsChecked notes what was found about the client's files. A bad file ends the task, see
// findDueEnd.
func (c *change) applyInputsChecked(e InputsChecked) {
	if c.open() && len(c.Attempts) == 0 {
		c.Inputs = c.Inputs.With(e.Check)
		c.resume()
	}
}

// maySend returns nil if something may be sent for the task now, or else a conflict that says why
// not (D3).
func (c *change) maySend() error {
	switch {
	case !c.open():
		return conflict("the task has ended")
	case !c.CancelRequestedAt.IsZero() || !c.FailRequestedAt.IsZero():
		return conflict("the task is to end")
	case c.Unreadable:
		return conflict("the task cannot be read")
	case c.TailLost:
		return conflict("the database was restored, and the task may lack attempts")
	case c.isLate(c.now):
		return conflict("the deadline of the task has passed")
	}
	return nil
}

// mayOpen returns nil if attempt n may be made now, or else a conflict that says why not.
func (c *change) mayOpen(n int) error {
	if err := c.maySend(); err != nil {
		return err
	}
	a := c.Last()
	switch {
	case n != c.lastN()+1:
		return conflict("the next attempt is %d, not %d", c.lastN()+1, n)
	case a != nil && a.outcome() != nil:
		return conflict("attempt %d has an outcome", a.N)
	case a != nil && !mayBeFollowed(a.State):
		return conflict("attempt %d is %s", a.N, a.State)
	case c.Modal.State == mediagate.ModalWaiting:
		return conflict("the task waits for its client")
	case c.LacksSources():
		return conflict("the task waits for its sources")
	}
	return nil
}

// mayBeFollowed reports whether another attempt may follow one in that state: it is proven that
// the vendor has no job, or the task no longer waits for the job.
func mayBeFollowed(state mediagate.AttemptState) bool {
	return state == mediagate.AttemptRejected || state == mediagate.AttemptEnded || state == mediagate.AttemptAbandoned
}

// applyIntentStored begins an attempt. The name of the attempt, and the channel if it is fixed,
// must be those that the task expects: a run that acts on an old snapshot is refused here.
func (c *change) applyIntentStored(e IntentStored) error {
	if err := c.mayOpen(e.N); err != nil {
		return err
	}
	if id, kept := c.NextExternalID(); e.ExternalID != id && c.Modal.State != mediagate.ModalSubmitted {
		return conflict("attempt %d goes by the name %s", e.N, id)
	} else if a := c.Last(); kept && !e.isAt(a.Channel) { // D4
		return conflict("attempt %d stays at the channel %s", e.N, a.Channel)
	} else if !kept && c.RerouteTo != "" && !e.isAt(c.RerouteTo) && c.Modal.State != mediagate.ModalSubmitted {
		return conflict("attempt %d goes to the channel %s", e.N, c.RerouteTo)
	}
	c.leaveQueue()
	c.tryNow()
	c.RerouteTo = ""
	a := Attempt{TaskID: c.ID, State: mediagate.AttemptIntent, CreatedAt: c.now}
	a.identify(e.Sending)
	c.Attempts = append(c.Attempts, a)
	c.extendWait(a.CallEnds)
	if e.Route.Sync { // the vendor works while the call lasts
		c.begin()
	}
	return nil
}

// isAt reports whether the attempt is made at the channel that has that name, or once had it.
func (e IntentStored) isAt(channel string) bool {
	return e.Channel == channel || slices.Contains(e.Former, channel)
}

// begin sets the status of a pending task to processing. StartedAt keeps the time of the first
// change.
func (c *change) begin() {
	if c.Status != mediagate.StatusPending {
		return
	}
	c.Status = mediagate.StatusProcessing
	if c.StartedAt.IsZero() {
		c.StartedAt = c.now
	}
}

// applyReopened turns an attempt back into an intent, with the times of its next sending. It is
// proven that the vendor has no job of the attempt.
func (c *change) applyReopened(e Reopened) error {
	if err := c.maySend(); err != nil {
		return err
	}
	a := c.current(e.N)
	switch {
	case a == nil:
		return conflict("attempt %d is not open", e.N)
	case a.State != mediagate.AttemptUnknown, a.AbsentAgainAt.IsZero(), a.Refusal != nil, // D4
		!a.SendBefore.Equal(e.Absent):
		return conflict("it is not proven that attempt %d made no job", e.N)
	}
	a.SendBefore, a.CallEnds, a.Sends = e.SendBefore, e.CallEnds, a.Sends+1
	a.reopen()
	c.extendWait(a.CallEnds)
	return nil
}

// searchTime is how long a wait lasts at least after the end of a call, so that there is time to
// find out what became of the call.
const searchTime = time.Minute

// extendWait moves the end of the wait, if it has one, to at least searchTime after the end of the
// call.
func (c *change) extendWait(callEnds time.Time) {
	if ends := callEnds.Add(searchTime); !c.Wait.EndsAt.IsZero() && c.Wait.EndsAt.Before(ends) {
		c.Wait.EndsAt = ends
	}
}

// reopen makes an unknown attempt an intent again. What was found out about its earlier sendings
// does not count for the new one.
func (a *Attempt) reopen() {
	a.State, a.Error = mediagate.AttemptIntent, ""
	a.SenderLost, a.Lookups, a.LookedAt = false, 0, time.Time{}
	a.AbsentAt, a.AbsentAgainAt, a.SlotUntil = time.Time{}, time.Time{}, time.Time{}
}

// applyQueued lets the task wait for a slot. A task that was stuck before stays stuck while it is
// queued, unless a channel is merely full.
func (c *change) applyQueued(e Queued) error {
	if err := c.mayOpen(e.N); err != nil {
		return err
	}
	reason := c.Wait.Reason
	switch {
	case e.OnlyFull && reason != "": // the task is no longer stuck, so a new wait begins
		c.endWait()
		reason = ""
	case e.Refused != "" && c.Wait.Why != mediagate.WhySlot:
		reason = e.Refused
	}
	c.wait(mediagate.WhySlot, reason, c.now.Add(jitter(c.now, queuePause)))
	c.QueuedFor, c.Granted = e.Channels, false
	return nil
}

// applyModelRetired ends the task instead of opening attempt N.
func (c *change) applyModelRetired(e ModelRetired) error {
	if err := c.mayOpen(e.N); err != nil {
		return err
	}
	c.end(failedWith(mediagate.ModelRetired()))
	return nil
}

// applyAccepted gives the attempt its job. If the attempt has another job already, or is not the
// one that the report names, the vendor has made one job too many, and is asked to stop it.
func (c *change) applyAccepted(e Accepted) {
	a, ref := c.attemptOf(e.Sending), e.Submission.Ref
	switch {
	case a == nil || a.Ref.JobID != "" && ref.JobID != "" && a.Ref.JobID != ref.JobID:
		c.recordStray(e.Sending, ref)
	case a.Ref.JobID == "" && a.Outcome == nil:
		c.accept(a, e.Submission, e.FirstPollAt)
	case a.State == mediagate.AttemptAbandoned && a.stoppable(): // a repeated report: the first stop may be lost
		c.Stop = append(c.Stop, a.N)
	}
}

// accept gives the attempt its job, or the outcome of a synchronous call.
func (c *change) accept(a *Attempt, s mediagate.Submission, firstPollAt time.Time) {
	wanted := c.current(a.N) == a && (a.awaitsReport() || a.State == mediagate.AttemptRejected)
	a.Ref, a.AcceptedAt, a.Error, a.SenderLost, a.Failure = s.Ref, c.now, "", false, nil
	if s.Outcome != nil {
		c.record(a, *s.Outcome)
	} else {
		a.State, a.SlotUntil, a.EndedAt = mediagate.AttemptAccepted, time.Time{}, time.Time{}
		a.Await = &Await{NextPollAt: firstPollAt}
	}
	if !wanted { // D5: the job is recorded, and stopped if the vendor can do that
		if s.Outcome == nil {
			c.abandon(a)
			c.Stop = append(c.Stop, a.N)
		}
		c.Sweep = true
		return
	}
	c.Refusals, c.TailLost = 0, false
	c.begin()
	c.resume()
}

// applyRefused rejects the attempt, unless the refusal is about an earlier sending, or comes
// after the job was found. A disputed refusal only makes the attempt unknown.
func (c *change) applyRefused(e Refused) {
	a := c.attemptOf(e.Sending)
	if a == nil || !a.SendBefore.Equal(e.SendBefore) || a.Ref.JobID != "" || a.Outcome != nil {
		return
	}
	// The vendor may have the job of an earlier sending, and refuse this one because the name is
	// taken. The adapter may not recognise that from the vendor's words. Such a refusal is
	// disputed until two lookups find no job (D4).
	disputed := e.Invalid && c.sentEarlier(a) && a.AbsentAgainAt.IsZero()
	switch a.State {
	case mediagate.AttemptIntent, mediagate.AttemptUnknown:
	case mediagate.AttemptAbandoned:
		if !disputed { // the slot is free
			c.close(a, mediagate.AttemptEnded)
			a.Error = e.Detail
		}
		return
	default:
		return
	}
	if disputed {
		c.markUnknown(a, false, e.Detail)
		a.Refusal = &e.Failure
		return
	}
	a.Elsewhere, a.Error = e.Elsewhere, e.Detail
	c.reject(a, e.Failure)
}

// reject closes an attempt that provably made no job. After a refusal for good no other attempt
// follows. Otherwise the next one follows at once at another channel, after a pause, or after a
// parking.
func (c *change) reject(a *Attempt, f mediagate.Failure) {
	c.close(a, mediagate.AttemptRejected)
	a.Failure, a.SenderLost = &f, false
	if c.current(a.N) != a {
		return
	}
	if c.Wait.Why == mediagate.WhyUnknown { // the wait was for news, and this is the news
		c.endWait()
	}
	switch {
	case a.refusedForGood():
	case a.Elsewhere:
		c.tryNow() // the next channel follows at once
	case f.Code == mediagate.CodeProviderRefused:
		c.park(mediagate.ParkCredentials)
	case f.Code == mediagate.CodeFunds:
		c.park(mediagate.ParkFunds)
	default:
		c.Refusals++
		if c.Refusals >= maxRefusals {
			c.park(mediagate.ParkProviderAway)
			return
		}
		c.pause(c.now.Add(min(time.Second<<c.Refusals, longestPause)))
	}
}

// applySubmitUnknown makes the attempt unknown, unless it was sent again since.
func (c *change) applySubmitUnknown(e SubmitUnknown) {
	if a := c.attemptOf(e.Sending); a != nil && a.State == mediagate.AttemptIntent && a.SendBefore.Equal(e.SendBefore) {
		c.markUnknown(a, e.SenderLost, e.Detail)
	}
}

// markUnknown makes an attempt unknown, and begins a new wait (D4, D6). The task shows as stuck at
// once if the vendor cannot be asked and the model does not say on_unknown: fail.
func (c *change) markUnknown(a *Attempt, senderLost bool, detail string) {
	a.State, a.SenderLost, a.Error = mediagate.AttemptUnknown, senderLost, detail
	a.Lookups, a.SlotUntil = 0, c.slotEnd(a)
	if c.current(a.N) == a {
		c.endWait()
		c.waitUnknown()
	}
}

// waitUnknown begins the wait for news about the last attempt.
func (c *change) waitUnknown() {
	reason := mediagate.ParkReason("")
	if !c.Last().findable() && !c.failsIfUnknown() {
		reason = mediagate.ParkSubmissionUnknown
	}
	c.wait(mediagate.WhyUnknown, reason, time.Time{})
}

// applyNotFound counts a lookup that found no job. The second such lookup, at least absentGap after
// the first, proves that there is no job. Then the attempt is sent again; or the attempt is
// rejected, if the vendor had refused its last sending.
func (c *change) applyNotFound(e NotFound) {
	a := c.Attempt(e.N)
	if a == nil || a.State != mediagate.AttemptUnknown || !a.AbsentAgainAt.IsZero() {
		return
	}
	if !a.SendBefore.Equal(e.SendBefore) { // the lookup was for another sending
		return
	}
	if c.TailLost || a.unidentified() {
		return // another attempt may have the job (D17)
	}
	switch again := a.AbsentAt.Add(absentGap); {
	case e.AskedAt.Before(a.CallEnds): // the call may have been under way
		c.pause(a.CallEnds)
	case a.AbsentAt.IsZero():
		a.AbsentAt = c.now
		c.pause(c.now.Add(absentGap))
	case e.AskedAt.Before(again):
		c.pause(again)
	default:
		a.AbsentAgainAt = c.now
		c.resume()
		if a.Refusal != nil {
			c.reject(a, *a.Refusal)
		}
	}
}

// jitter lengthens a pause by up to a fifth, so that tasks do not all retry at the same time.
func jitter(now time.Time, d time.Duration) time.Duration {
	return d + d*time.Duration(now.UnixMicro()%200)/1000
}
