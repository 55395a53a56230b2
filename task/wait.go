package task

import (
	"time"

	"github.com/mediagate/mediagate"
)

// maxOpenProgress is the highest progress that an unfinished task shows.
const maxOpenProgress = 99

// claimedAttempt returns the attempt if the poller still holds its claim, and nil otherwise (D8).
func (c *change) claimedAttempt(n int, claim string) *Attempt {
	a := c.Attempt(n)
	if a == nil || a.Await == nil || claim == "" || a.Await.Claim != claim || a.Outcome != nil {
		return nil
	}
	return a
}

// applyClaimed gives the attempt's row to a poller. A poll that was requested before is covered
// by the one that the poller is about to make.
func (c *change) applyClaimed(e Claimed) {
	if a := c.Attempt(e.N); a != nil && a.Await != nil {
		a.Await.Claim, a.Await.ClaimedAt, a.Await.Again = e.Claim, c.now, false
	}
}

// scheduleNextPoll gives the row back after an answer that is not an end.
func (c *change) scheduleNextPoll(a *Await, next time.Time) {
	if a.Again {
		next = c.now
	}
	*a = Await{NextPollAt: next}
}

// applyProgressed stores the progress and schedules the next poll. If the task is parked because
// the vendor could not be asked for the job, any answer ends the parking.
func (c *change) applyProgressed(e Progressed) {
	a := c.claimedAttempt(e.N, e.Claim)
	if a == nil {
		return
	}
	askedAt := a.Await.ClaimedAt
	c.scheduleNextPoll(a.Await, e.NextAt)
	if c.current(e.N) == nil {
		return
	}
	c.Progress = max(c.Progress, min(e.Percent, maxOpenProgress))
	if a.State == mediagate.AttemptAccepted && c.Wait.Reason != "" && !c.Unreadable { // the trouble is over (D11)
		a.SlotUntil = time.Time{}
		c.resume()
	}
	c.checkLastAnswer(a, askedAt)
}

// checkLastAnswer handles an answer that comes after the deadline and says that the job still runs.
// If the vendor was asked after the deadline, the task's wait for the vendor ends now, and the task
// fails. Otherwise the vendor is asked once more (D10).
func (c *change) checkLastAnswer(a *Attempt, askedAt time.Time) {
	if c.awaitedAttempt(a.N) == nil || c.Unreadable || !c.isLate(c.now) {
		return
	}
	if c.Wait.Why != mediagate.WhyVendor {
		c.wait(mediagate.WhyVendor, "", time.Time{})
	}
	if askedAt.Before(c.DeadlineAt) {
		c.pollNow(a)
	} else {
		c.Wait.EndsAt = c.now
	}
}

// pollLastTime has the channel poll for the attempt one last time, unless a poller that claimed it
// after the deadline is polling already. The task then fails as soon as the vendor answers that the
// job has not ended, or after lastAnswer (D10).
func (c *change) pollLastTime(a *Attempt) {
	c.wait(mediagate.WhyVendor, "", time.Time{})
	if a.Await == nil || a.Await.ClaimedAt.Before(c.DeadlineAt) {
		c.pollNow(a)
	}
}

// pollNow has the channel poll for the attempt now, or once more if it is polling right now.
func (c *change) pollNow(a *Attempt) {
	switch {
	case a.Await == nil:
		a.Await = &Await{NextPollAt: c.now}
	case a.Await.Claim != "":
		a.Await.Again = true
	case c.now.Before(a.Await.NextPollAt):
		a.Await.NextPollAt = c.now
	}
}

// applyVendorEnded stores how the job ended. If the task waits for the job, its next step is the
// copy, or the end.
func (c *change) applyVendorEnded(e VendorEnded) {
	a := c.Attempt(e.N)
	if a == nil || a.Outcome != nil {
		return
	}
	wanted := c.current(e.N) == a && a.State == mediagate.AttemptAccepted
	c.record(a, e.Outcome)
	if wanted {
		c.endWait()
		c.Copy = e.MayCopy && c.Advance(c.now).Kind == Mirror
	} else {
		c.Sweep = true
	}
}

// record stores how a job ended. No other function does. The first outcome counts (D9).
func (c *change) record(a *Attempt, o mediagate.Outcome) {
	a.Outcome = &o
	c.close(a, mediagate.AttemptEnded)
	if o.VendorCharge != nil {
		if c.Charged == nil {
			c.Charged = map[int]*mediagate.VendorCharge{}
		}
		c.Charged[a.N] = o.VendorCharge
	}
}

// awaitedAttempt returns attempt n if its task waits for the vendor to finish it, and nil
// otherwise.
func (c *change) awaitedAttempt(n int) *Attempt {
	a := c.current(n)
	if a == nil || a.State != mediagate.AttemptAccepted || a.Outcome != nil || c.waitsForClient() {
		return nil
	}
	return a
}

// applyVendorWaits begins the wait for modal parameters, at most once a task. The job takes no
// slot during that wait, since the vendor has not begun the job (D15).
func (c *change) applyVendorWaits(e VendorWaits) {
	a := c.awaitedAttempt(e.N)
	if a == nil || c.Plan.Modal <= 0 || c.Modal.State != mediagate.ModalNone || c.Unreadable {
		c.applyProgressed(Progressed{N: e.N, Claim: e.Claim, Percent: -1, NextAt: e.NextAt})
		return
	}
	if c.claimedAttempt(e.N, e.Claim) == nil {
		return
	}
	c.Modal = mediagate.Modal{State: mediagate.ModalWaiting, N: a.N}
	c.wait(mediagate.WhyModal, "", time.Time{})
	a.SlotUntil, a.Trouble, a.Await = c.now, "", nil
}

// applyTroubled stops the polling for a job, since its vendor cannot be asked. A task that waits
// for the job parks. If the task cannot be read, the polling goes on.
func (c *change) applyTroubled(e Troubled) {
	a := c.claimedAttempt(e.N, e.Claim)
	switch {
	case a == nil:
	case c.awaitedAttempt(e.N) == nil:
		a.Await = nil // the task does not wait for this job: its slot ends at SlotUntil
	case c.Unreadable: // storing the trouble would destroy what cannot be read of the attempt
		c.scheduleNextPoll(a.Await, c.now.Add(troublePause))
	default:
		a.Trouble, a.Await = e.Reason, nil // at the next try the channel polls again (D11)
		if a.SlotUntil.IsZero() {
			a.SlotUntil = c.slotEnd(a)
		}
		c.park(e.Reason)
	}
}

// applyMirrored stores the copied files, which ends the task. If the task does not wait for them
// any more, they are swept.
func (c *change) applyMirrored(e Mirrored) {
	a := c.current(e.N)
	if a == nil || !a.succeeded() {
		c.Sweep = true
		return
	}
	if a.Results == nil {
		a.Results = e.Results
		if a.Results == nil {
			a.Results = []mediagate.Result{}
		}
	}
	if !e.Keep {
		c.endIfDue()
	}
}

// applyStopProven frees the slot of a job that the vendor has stopped.
func (c *change) applyStopProven(e StopProven) {
	a := c.Attempt(e.N)
	if a == nil || a.State != mediagate.AttemptAccepted && a.State != mediagate.AttemptAbandoned {
		return
	}
	c.close(a, mediagate.AttemptEnded)
	a.StopTried = true
}

// applySlotExpired frees the slot of an abandoned job whose time is over.
func (c *change) applySlotExpired(e SlotExpired) {
	if a := c.Attempt(e.N); a != nil && a.State == mediagate.AttemptAbandoned && !c.now.Before(a.SlotUntil) {
		c.close(a, mediagate.AttemptEnded)
	}
}
