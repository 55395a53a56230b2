package task

import (
	"time"

	"github.com/mediagate/mediagate"
)

// A restored database lacks everything that happened after the backup (D17). A row that was open
// at the time of the backup may lack attempts, and the vendor may have their jobs. Three things can
// settle where such a task stands: its run remembers what came after the backup, a job is found, or
// an operator gives an order. A lookup that finds no job settles nothing, since another attempt may
// have made a job at another channel. Until the question is settled, nothing is sent:
//
//   - If the vendor has the job of the last attempt, its channel polls for it as usual. No attempt
//     follows it without an operator.
//   - If the last attempt is an intent or unknown, it is looked up until its job is found, an
//     operator decides, or the wait ends.
//   - Otherwise the attempt that would be next is put back as unknown, without a channel. It is looked
//     up in the bucket, and at each vendor that can be asked.
//
// Each task gets as much time as a new one has, so that no task fails before its jobs could be
// looked up.

// unidentified reports whether the row knows only the number and the name of the attempt.
func (a *Attempt) unidentified() bool { return a.Channel == "" }

// applyRestored marks the row as one of a restored database. What the row says about waiting is
// out of date, and so are its proofs that the vendor has no job. An attempt that may be under way
// becomes unknown. A job that the vendor has is still polled for.
func (c *change) applyRestored(e Restored) {
	if !c.open() || !c.RestoredAt.Before(e.At) {
		return
	}
	c.RestoredAt, c.TailLost, c.Wake = e.At, true, true
	c.endWait()
	switch a := c.Last(); {
	case a == nil:
	case a.awaitsReport(): // the process that sent it is gone
		a.AbsentAt, a.AbsentAgainAt, a.LookedAt = time.Time{}, time.Time{}, time.Time{}
		c.markUnknown(a, true, "the database was restored")
	case a.State == mediagate.AttemptAccepted && c.waitsForClient(): // the client may have answered since: ask the vendor
		c.Modal, c.TailLost = mediagate.Modal{}, false
		a.SlotUntil, a.Await = time.Time{}, &Await{NextPollAt: c.now}
	case a.State == mediagate.AttemptAccepted || a.outcome() != nil: // the job is known, and holds its slot anew
		c.TailLost, a.SlotUntil = false, time.Time{}
	}
	c.retryNow()
	if c.Unreadable {
		c.park(mediagate.ParkInternal)
	}
}

// putBackNext puts back the attempt that would be next, if the row may lack its last attempts
// (TailLost).
func (c *change) putBackNext() {
	if next := c.Advance(c.now); c.TailLost && next.Kind == Submit {
		c.putBackNumbered(next.N)
	}
}

// putBackNumbered puts attempt n back as unknown, unless the row has it, and reports whether it
// did. Only the number of the attempt is known, and the name that follows from it.
func (c *change) putBackNumbered(n int) (lacked bool) {
	if n <= c.lastN() {
		return false
	}
	name := ExternalID(c.ID, n)
	if n == c.lastN()+1 {
		name, _ = c.NextExternalID()
	}
	a := c.putBack(Sending{N: n, ExternalID: name, SendBefore: c.now, CallEnds: c.now})
	c.markUnknown(a, false, "the database lost it")
	return true
}
