package task

import (
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	// maxRefusals is how many attempts in a row a vendor that is full or away gets
	// before the task parks.
	maxRefusals = 6
	// longestPause is the longest between two of those.
	longestPause = 30 * time.Second
	// queuePause is how often a queued task looks for a slot by itself: channels may
	// have been added since.
	queuePause = time.Hour
	// absentGap is between the two lookups that prove absence (D4).
	absentGap = 30 * time.Second
)

func (c *change) applyInputsChecked(e InputsChecked) {
	if c.open() && len(c.Attempts) == 0 {
		c.Inputs = c.Inputs.With(e.Check)
		c.resume()
	}
}

// maySend returns nil if something may be sent for the task now, or else a conflict (D3).
func (c *change) maySend() error {
	switch {
	case !c.open():
		return conflict("the task has ended")
	case !c.CancelRequestedAt.IsZero() || !c.FailRequestedAt.IsZero():
		return conflict("the task is to end")
	case c.Unreadable:
		return conflict("the task cannot be read")
	case c.TailLost:
		return errTailLost
	case c.late(c.now):
		return conflict("nobody waits for the task any more")
	}
	return nil
}

// mayOpen returns nil if attempt n may be made now, or else a conflict.
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

// mayBeFollowed reports that another attempt may follow one in that state: the vendor
// provably has no job, or the job was given up.
func mayBeFollowed(state mediagate.AttemptState) bool {
	return state == mediagate.AttemptRejected || state == mediagate.AttemptEnded || state == mediagate.AttemptAbandoned
}

func (c *change) applyIntentStored(e IntentStored) error {
	if err := c.mayOpen(e.N); err != nil {
		return err
	}
	if id, kept := c.NextExternalID(); e.ExternalID != id && c.Modal.State != mediagate.ModalSubmitted {
		return conflict("attempt %d goes by the name %s", e.N, id)
	} else if a := c.Last(); kept && !e.at(a.Channel) { // D4
		return conflict("attempt %d stays at the channel %s", e.N, a.Channel)
	} else if !kept && c.RerouteTo != "" && !e.at(c.RerouteTo) && c.Modal.State != mediagate.ModalSubmitted {
		return conflict("attempt %d goes to the channel %s", e.N, c.RerouteTo)
	}
	c.leaveQueue()
	c.tryNow()
	c.RerouteTo = ""
	a := Attempt{TaskID: c.ID, State: mediagate.AttemptIntent, CreatedAt: c.now}
	a.identify(e.Sending)
	c.Attempts = append(c.Attempts, a)
	c.outlast(a.CallEnds)
	if e.Route.Sync { // the vendor works while the call lasts
		c.begin()
	}
	return nil
}

// at reports that the attempt is made at the channel of that name.
func (e IntentStored) at(channel string) bool {
	return e.Channel == channel || slices.Contains(e.Former, channel)
}

// begin makes a pending task processing. StartedAt stays that of the first time.
func (c *change) begin() {
	if c.Status != mediagate.StatusPending {
		return
	}
	c.Status = mediagate.StatusProcessing
	if c.StartedAt.IsZero() {
		c.StartedAt = c.now
	}
}

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
	c.outlast(a.CallEnds)
	return nil
}

// searchTime is how long after the end of a call a wait lasts at least, so that what became
// of the call can be found out.
const searchTime = time.Minute

// outlast has a wait with an end last until the call is over and was searched for.
func (c *change) outlast(callEnds time.Time) {
	if ends := callEnds.Add(searchTime); !c.Wait.EndsAt.IsZero() && c.Wait.EndsAt.Before(ends) {
		c.Wait.EndsAt = ends
	}
}

// reopen makes an unknown attempt an intent again. What was found out of its earlier
// sendings does not count for the new one.
func (a *Attempt) reopen() {
	a.State, a.Error = mediagate.AttemptIntent, ""
	a.SenderLost, a.Lookups, a.LookedAt = false, 0, time.Time{}
	a.AbsentAt, a.AbsentAgainAt, a.SlotUntil = time.Time{}, time.Time{}, time.Time{}
}

func (c *change) applyQueued(e Queued) error {
	if err := c.mayOpen(e.N); err != nil {
		return err
	}
	reason := c.Wait.Reason
	switch {
	case e.OnlyFull && reason != "": // the queue is a wait of its own
		c.endWait()
		reason = ""
	case e.Refused != "" && c.Wait.Why != mediagate.WhySlot:
		reason = e.Refused
	}
	c.wait(mediagate.WhySlot, reason, c.now.Add(jitter(c.now, queuePause)))
	c.QueuedFor, c.Granted = e.Channels, false
	return nil
}

func (c *change) applyModelRetired(e ModelRetired) error {
	if err := c.mayOpen(e.N); err != nil {
		return err
	}
	c.end(failed(mediagate.ModelRetired()))
	return nil
}

func (c *change) applyAccepted(e Accepted) {
	a, ref := c.attemptOf(e.Sending), e.Submission.Ref
	switch {
	case a == nil || a.Ref.JobID != "" && ref.JobID != "" && a.Ref.JobID != ref.JobID:
		c.noteStray(e.Sending, ref)
	case a.Ref.JobID == "" && a.Outcome == nil:
		c.accept(a, e.Submission, e.FirstPollAt)
	case a.State == mediagate.AttemptAbandoned && a.stoppable(): // the report is repeated: its stop may be lost
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
	if !wanted { // D5: the job is recorded, and stopped where that can be
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

func (c *change) applyRefused(e Refused) {
	a := c.attemptOf(e.Sending)
	if a == nil || !a.SendBefore.Equal(e.SendBefore) || a.Ref.JobID != "" || a.Outcome != nil {
		return
	}
	// The vendor may have the job of an earlier sending, and call its name "taken" in
	// words that the adapter does not know (D4).
	doubted := e.Invalid && c.sentEarlier(a) && a.AbsentAgainAt.IsZero()
	switch a.State {
	case mediagate.AttemptIntent, mediagate.AttemptUnknown:
	case mediagate.AttemptAbandoned:
		if !doubted { // the slot is free
			c.close(a, mediagate.AttemptEnded)
			a.Error = e.Detail
		}
		return
	default:
		return
	}
	if doubted {
		c.markUnknown(a, false, e.Detail)
		a.Refusal = &e.Failure
		return
	}
	a.Elsewhere, a.Error = e.Elsewhere, e.Detail
	c.reject(a, e.Failure)
}

// reject closes an attempt that provably made no job. The next attempt follows at once
// at another channel, after a pause, or after a parking; none follows a refusal for
// good.
func (c *change) reject(a *Attempt, f mediagate.Failure) {
	c.close(a, mediagate.AttemptRejected)
	a.Failure, a.SenderLost = &f, false
	if c.current(a.N) != a {
		return
	}
	if c.Wait.Why == mediagate.WhyUnknown { // it is known now
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

func (c *change) applySubmitUnknown(e SubmitUnknown) {
	if a := c.attemptOf(e.Sending); a != nil && a.State == mediagate.AttemptIntent && a.SendBefore.Equal(e.SendBefore) {
		c.markUnknown(a, e.SenderLost, e.Detail)
	}
}

// markUnknown makes an attempt unknown (D4, D6). The wait before is over. The task is
// stuck at once if the vendor cannot be asked and the model does not fail it.
func (c *change) markUnknown(a *Attempt, senderLost bool, detail string) {
	a.State, a.SenderLost, a.Error = mediagate.AttemptUnknown, senderLost, detail
	a.Lookups, a.SlotUntil = 0, c.slotEnd(a)
	if c.current(a.N) == a {
		c.endWait()
		c.waitUnknown(a)
	}
}

// waitUnknown begins the wait for what became of the last attempt.
func (c *change) waitUnknown(a *Attempt) {
	reason := mediagate.ParkReason("")
	if !a.findable() && !c.failsUnknown(a) {
		reason = mediagate.ParkSubmissionUnknown
	}
	c.wait(mediagate.WhyUnknown, reason, time.Time{})
}

func (c *change) applyNotFound(e NotFound) {
	a := c.Attempt(e.N)
	if a == nil || a.State != mediagate.AttemptUnknown || !a.AbsentAgainAt.IsZero() {
		return
	}
	if !a.SendBefore.Equal(e.SendBefore) { // of another sending: it proves nothing
		return
	}
	if c.TailLost || a.unidentified() {
		return // another attempt may have the job (D17)
	}
	switch again := a.AbsentAt.Add(absentGap); {
	case e.AskedAt.Before(a.CallEnds): // the call could be under way
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

// jitter lengthens a pause by up to a fifth, so that tasks do not retry all at once.
func jitter(now time.Time, d time.Duration) time.Duration {
	return d + d*time.Duration(now.UnixMicro()%200)/1000
}
