package task

import (
	"time"

	"github.com/mediagate/mediagate"
)

// A restored database has lost the tail of its tasks' lives (D17). A row that was open at
// that time may lack attempts, and the vendor may have their jobs. Only two things prove
// where a task stands: a job that is found, or an operator. That a job is not found proves
// nothing here, since another attempt may have made one, at another channel. So until then
// nothing is sent:
//
//   - An attempt whose job the vendor has is polled for, as ever. No attempt follows it
//     without an operator.
//   - One that is an intent or unknown is looked up for as long as it takes.
//   - Else the attempt that would be next is put back as unknown, without a channel, and
//     looked up in the bucket and at each vendor that can be asked.
//
// Each task gets the time of a new one, so that none ends before somebody has looked.

var errTailLost = conflict("the database was restored, and the task may lack attempts")

// putBack reports that the attempt was lost by the database: nothing is known of it but
// its name.
func (a *Attempt) putBack() bool { return a.Channel == "" }

func (c *change) restored(e Restored) {
	if !c.open() || !c.RestoredAt.Before(e.At) {
		return
	}
	c.RestoredAt, c.TailLost, c.Wake = e.At, true, true
	c.leaveQueue()
	c.unpark()
	switch a := c.Last(); {
	case a == nil || c.Unreadable:
	case a.State == mediagate.AttemptIntent || a.State == mediagate.AttemptUnknown: // its sender is gone
		a.AbsentAt, a.AbsentAgainAt, a.LookedAt = time.Time{}, time.Time{}, time.Time{}
		c.markUnknown(a, true, "the database was restored")
	case a.State == mediagate.AttemptAccepted && c.waitsForClient(): // who may have answered: the vendor says
		c.Modal, c.TailLost = mediagate.Modal{}, false
		a.SlotUntil, a.Await = time.Time{}, &Await{NextPollAt: c.now}
	case a.State == mediagate.AttemptAccepted || a.outcome() != nil: // a trouble from before begins anew, with its slot
		c.TailLost, a.SlotUntil = false, time.Time{}
	}
	c.retryNow()
}

// putBackLost adds, as unknown, an attempt that the row may have lost: the highest one
// that the run has begun, or, where the tail is lost, the one that would be next.
func (c *change) putBackLost(begun int) {
	n := max(begun, c.lastN())
	if next := c.Advance(c.now); c.TailLost && next.Kind == Submit {
		n = max(n, next.N)
	}
	if n == c.lastN() {
		return
	}
	name := Numbered(c.ID, n)
	if n == c.lastN()+1 {
		name, _ = c.NextExternalID()
	}
	c.leaveQueue()
	if a := c.Last(); a != nil {
		c.abandon(a) // what comes of its job is only recorded
	}
	c.Attempts = append(c.Attempts, Attempt{
		N: n, ExternalID: name, State: mediagate.AttemptIntent, SendBefore: c.now, CallEnds: c.now, Sends: 1, CreatedAt: c.now,
	})
	c.markUnknown(c.Last(), false, "the database lost it")
	c.TailLost = false // the doubt is the attempt's
}

// found gives an attempt that was put back its channel, and takes the job on.
func (c *change) found(e Found) {
	a := c.current(e.N)
	if a == nil || a.State != mediagate.AttemptUnknown || !a.putBack() {
		return
	}
	a.Channel, a.Provider, a.Fingerprint, a.Route, a.CanStop = e.Channel, e.Provider, e.Fingerprint, e.Route, e.CanStop
	c.accepted(Accepted{N: e.N, Submission: e.Submission, FirstPollAt: e.FirstPollAt})
}
