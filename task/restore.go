package task

import (
	"time"

	"github.com/mediagate/mediagate"
)

// A restored database has lost the tail of its tasks' lives (D17). A row that was open at
// that time may lack attempts, and the vendor may have their jobs. Only three things prove
// where a task stands: what its run has seen, a job that is found, or an operator. That a
// job is not found proves nothing here, since another attempt may have made one, at another
// channel. So until then nothing is sent:
//
//   - An attempt whose job the vendor has is polled for, as ever. No attempt follows it
//     without an operator.
//   - One that is an intent or unknown is looked up for as long as it takes.
//   - Else the attempt that would be next is put back as unknown, without a channel, and
//     looked up in the bucket and at each vendor that can be asked.
//
// Each task gets the time of a new one, so that none ends before somebody has looked.

var errTailLost = conflict("the database was restored, and the task may lack attempts")

// unidentified reports that the row has nothing of the attempt but its number and its name.
func (a *Attempt) unidentified() bool { return a.Channel == "" }

func (c *change) applyRestored(e Restored) {
	if !c.open() || !c.RestoredAt.Before(e.At) {
		return
	}
	c.RestoredAt, c.TailLost, c.Wake = e.At, true, true
	c.endWait()
	switch a := c.Last(); {
	case a == nil:
	case a.awaitsReport(): // its sender is gone
		a.AbsentAt, a.AbsentAgainAt, a.LookedAt = time.Time{}, time.Time{}, time.Time{}
		c.markUnknown(a, true, "the database was restored")
	case a.State == mediagate.AttemptAccepted && c.waitsForClient(): // who may have answered: the vendor says
		c.Modal, c.TailLost = mediagate.Modal{}, false
		a.SlotUntil, a.Await = time.Time{}, &Await{NextPollAt: c.now}
	case a.State == mediagate.AttemptAccepted || a.outcome() != nil: // a trouble from before begins anew, with its slot
		c.TailLost, a.SlotUntil = false, time.Time{}
	}
	c.retryNow()
	if c.Unreadable {
		c.park(mediagate.ParkInternal)
	}
}

// putBackNext puts back the attempt that would be next where the tail is lost.
func (c *change) putBackNext() {
	if next := c.Advance(c.now); c.TailLost && next.Kind == Submit {
		c.putBackNumbered(next.N)
	}
}

// putBackNumbered puts attempt n back as unknown, unless the row has it, and says whether
// it did. Nothing is known of the attempt but its number, and its name by the rule.
func (c *change) putBackNumbered(n int) (lacked bool) {
	if n <= c.lastN() {
		return false
	}
	name := Numbered(c.ID, n)
	if n == c.lastN()+1 {
		name, _ = c.NextExternalID()
	}
	a := c.putBack(Sending{N: n, ExternalID: name, SendBefore: c.now, CallEnds: c.now})
	c.markUnknown(a, false, "the database lost it")
	return true
}
