package task

import (
	"time"

	"github.com/mediagate/mediagate"
)

// maxOpenProgress is the most that an unfinished task shows.
const maxOpenProgress = 99

// polled is the attempt, if the claim is still its poller's (D8).
func (c *change) polled(n int, claim string) *Attempt {
	a := c.Attempt(n)
	if a == nil || a.Await == nil || claim == "" || a.Await.Claim != claim || a.Outcome != nil {
		return nil
	}
	return a
}

func (c *change) applyClaimed(e Claimed) {
	if a := c.Attempt(e.N); a != nil && a.Await != nil {
		a.Await.Claim, a.Await.ClaimedAt, a.Await.Again = e.Claim, c.now, false
	}
}

// answered gives the row back after an answer that is no end.
func (c *change) answered(a *Await, next time.Time) {
	if a.Again {
		next = c.now
	}
	*a = Await{NextPollAt: next}
}

func (c *change) applyProgressed(e Progressed) {
	a := c.polled(e.N, e.Claim)
	if a == nil {
		return
	}
	askedAt := a.Await.ClaimedAt
	c.answered(a.Await, e.NextAt)
	if c.current(e.N) == nil {
		return
	}
	c.Progress = max(c.Progress, min(e.Percent, maxOpenProgress))
	if a.State == mediagate.AttemptAccepted && c.Wait.Reason != "" && !c.Unreadable { // the trouble is over (D11)
		a.SlotUntil = time.Time{}
		c.resume()
	}
	c.stillWorks(a, askedAt)
}

// stillWorks ends the wait for a vendor whose job has not ended by the deadline, if the
// vendor was asked after that. Otherwise it is asked again (D10).
func (c *change) stillWorks(a *Attempt, askedAt time.Time) {
	if c.awaited(a.N) == nil || c.Unreadable || !c.late(c.now) {
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

// askLast has the channel ask for the attempt a last time, unless it does so at this moment.
// The task fails with the vendor's answer that the job has not ended, or after lastAnswer
// (D10).
func (c *change) askLast(a *Attempt) {
	c.wait(mediagate.WhyVendor, "", time.Time{})
	if a.Await == nil || a.Await.ClaimedAt.Before(c.DeadlineAt) {
		c.pollNow(a)
	}
}

// pollNow has the channel ask for the attempt now, or once more if it asks at this moment.
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

// record is the one place that stores how a job ended. The first one counts (D9).
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

// awaited is the attempt, if its task waits for its vendor.
func (c *change) awaited(n int) *Attempt {
	a := c.current(n)
	if a == nil || a.State != mediagate.AttemptAccepted || a.Outcome != nil || c.waitsForClient() {
		return nil
	}
	return a
}

// applyVendorWaits begins the wait for modal parameters, once a task. The job has no slot
// meanwhile, since the vendor has not begun with it (D15).
func (c *change) applyVendorWaits(e VendorWaits) {
	a := c.awaited(e.N)
	if a == nil || c.Plan.Modal <= 0 || c.Modal.State != mediagate.ModalNone || c.Unreadable {
		c.applyProgressed(Progressed{N: e.N, Claim: e.Claim, Percent: -1, NextAt: e.NextAt})
		return
	}
	if c.polled(e.N, e.Claim) == nil {
		return
	}
	c.Modal = mediagate.Modal{State: mediagate.ModalWaiting, N: a.N}
	c.wait(mediagate.WhyModal, "", time.Time{})
	a.SlotUntil, a.Trouble, a.Await = c.now, "", nil
}

func (c *change) applyTroubled(e Troubled) {
	a := c.polled(e.N, e.Claim)
	switch {
	case a == nil:
	case c.awaited(e.N) == nil:
		a.Await = nil // of a job that nobody waits for: its slot ends with its time
	case c.Unreadable: // what cannot be read of the attempt would be lost with the trouble
		c.answered(a.Await, c.now.Add(troublePause))
	default:
		c.trouble(a, e.Reason)
	}
}

// trouble ends the polling for an attempt, and parks its task. At the next try the channel
// polls again (D11).
func (c *change) trouble(a *Attempt, reason mediagate.ParkReason) {
	a.Trouble, a.Await = reason, nil
	if a.SlotUntil.IsZero() {
		a.SlotUntil = c.slotEnd(a)
	}
	c.park(reason)
}

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

func (c *change) applyStopProven(e StopProven) {
	a := c.Attempt(e.N)
	if a == nil || a.State != mediagate.AttemptAccepted && a.State != mediagate.AttemptAbandoned {
		return
	}
	c.close(a, mediagate.AttemptEnded)
	a.StopTried = true
}

func (c *change) applySlotExpired(e SlotExpired) {
	if a := c.Attempt(e.N); a != nil && a.State == mediagate.AttemptAbandoned && !c.now.Before(a.SlotUntil) {
		c.close(a, mediagate.AttemptEnded)
	}
}
