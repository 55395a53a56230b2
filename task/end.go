package task

import (
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog/price"
)

// unknownSyncTimeout is how long an attempt is unknown before its task fails, where
// the model says on_unknown: fail and the vendor cannot be asked (D6).
const unknownSyncTimeout = 60 * time.Second

// unknownTimeout is how long after the deadline any other unknown attempt is given up
// (D6).
const unknownTimeout = time.Hour

// ending is how a task ends.
type ending struct {
	status  mediagate.Status
	failure *mediagate.Failure
}

func failed(f *mediagate.Failure) ending { return ending{mediagate.StatusFailed, f} }

// findDueEnd returns how the open task ends, and whether its end is due. An accepted
// cancel comes first (D13).
func (s *State) findDueEnd(now time.Time) (end ending, due bool) {
	a := s.Last()
	switch {
	case !s.CancelRequestedAt.IsZero():
		return ending{status: mediagate.StatusCancelled}, true
	case !s.FailRequestedAt.IsZero():
		return failed(s.parkFailure()), true
	case s.Unreadable: // only its parking's end is known
	case s.sourceFailure() != nil:
		return failed(s.sourceFailure()), true
	case a == nil && s.Inputs.Failure != nil:
		return failed(s.Inputs.Failure), true
	case a == nil:
	case a.outcome() != nil && !a.outcome().Succeeded:
		return failed(a.Outcome.Failure), true
	case a.Unusable != nil:
		return failed(a.Unusable), true
	case a.succeeded() && a.Results != nil:
		return ending{status: mediagate.StatusCompleted}, true
	case a.succeeded():
	case a.refusedForGood():
		return failed(a.Failure), true
	}
	if at, failure := s.failsAt(); !at.IsZero() && !now.Before(at) {
		return failed(failure), true
	}
	return ending{}, false
}

// refusedForGood reports a refusal that no other attempt would mend: one that is about the
// request, and neither about our account there nor about that moment. A vendor that has no
// such model refuses for good where no other route is left.
func (a *Attempt) refusedForGood() bool {
	f := a.Failure
	return a.State == mediagate.AttemptRejected && f != nil && !f.Retryable && !a.Elsewhere &&
		f.Code != mediagate.CodeProviderRefused && f.Code != mediagate.CodeFunds
}

// FailsAt returns when the open task fails if nothing happens; zero while something else
// has to come first.
func (s *State) FailsAt() time.Time {
	at, _ := s.failsAt()
	return at
}

// failsAt returns when the task fails if nothing happens, and how: at the end of its wait,
// or else at its deadline. It is zero if a step comes first: a search for what a call left,
// the last question to the vendor, a copy. A call under way holds the end up as well, see
// callLastsUntil.
func (s *State) failsAt() (at time.Time, failure *mediagate.Failure) {
	a := s.Last()
	switch {
	case s.Wait.Why == mediagate.WhyUnknown && s.failsUnknown(a) && a.bucketUnchecked():
		return time.Time{}, nil
	case s.Wait.Why == mediagate.WhySource: // its end is that of the source
		return time.Time{}, nil
	case !s.Wait.EndsAt.IsZero():
		return s.Wait.EndsAt, s.waitFailure()
	case s.Unreadable:
		return time.Time{}, nil
	case a == nil:
		return s.DeadlineAt, tooLate(neverSent)
	case a.State == mediagate.AttemptIntent, a.succeeded():
		return time.Time{}, nil
	case a.State == mediagate.AttemptAccepted:
		return time.Time{}, nil // its vendor is asked a last time first (D10)
	default:
		return s.DeadlineAt, tooLate(neverSent)
	}
}

// waitFailure is how the task fails at the end of its wait.
func (s *State) waitFailure() *mediagate.Failure {
	switch w := s.Wait; {
	case w.Why == mediagate.WhyModal:
		return mediagate.NoModal()
	case w.Why == mediagate.WhyVendor:
		return tooLate(providerTooLate)
	case w.Why == mediagate.WhyUnknown:
		if s.failsUnknown(s.Last()) && s.DeadlineAt.Before(w.Since.Add(unknownSyncTimeout)) {
			return tooLate(providerTooLate)
		}
		return unknown()
	case w.Why == mediagate.WhySlot && w.Reason == "":
		return noRoom()
	case !w.Since.Before(s.DeadlineAt) && s.nothingAtVendor():
		return tooLate(neverSent)
	default:
		return s.parkFailure()
	}
}

// nothingAtVendor reports that the task waits for no job, and that none has been made for
// it. Of a row that cannot be read it is not known.
func (s *State) nothingAtVendor() bool {
	a := s.Last()
	return !s.Unreadable && (a == nil || mayBeFollowed(a.State) && a.outcome() == nil)
}

// failsUnknown reports that an unknown attempt fails its task after unknownSyncTimeout,
// since the model says so and the vendor cannot be asked. After a restore the task parks
// instead (D17).
func (s *State) failsUnknown(a *Attempt) bool {
	return s.Plan.OnUnknown == mediagate.OnUnknownFail && a != nil && !a.findable() && !s.TailLost
}

// endIfDue ends the task, if its end is due and no intent holds it up (D5).
func (c *change) endIfDue() {
	if !c.open() || c.now.Before(c.callLastsUntil()) {
		return
	}
	if end, due := c.findDueEnd(c.now); due {
		c.end(end)
	}
}

// end is the one way in which a task ends: its row, its money, and the first round
// of its callback (D13, D14).
func (c *change) end(end ending) {
	c.Status, c.Failure, c.EndedAt = end.status, public(end.failure), c.now
	c.endWait()
	if c.Failure != nil && c.Failure.Code == mediagate.CodeModalExpired {
		c.Modal.State = mediagate.ModalExpired
	}
	a := c.Last()
	if end.status == mediagate.StatusCompleted {
		c.Progress, c.Results, c.Made = 100, a.Results, a.Outcome.Made
		c.Cost = price.Settle(c.Charges, price.DeliveredBy(*a.Outcome, a.Results))
		c.Entry = mediagate.EntryPost
	} else {
		c.Entry = mediagate.EntryVoid
	}
	if a != nil {
		c.Sweep = end.status != mediagate.StatusCompleted || a.N > 1 || a.Route.Sync && c.imagesMissing()
		c.abandon(a)
	}
	if c.Webhook.State == mediagate.WebhookPending {
		if end.status == mediagate.StatusCancelled {
			c.Webhook.State, c.Webhook.Reason = mediagate.WebhookDropped, "task cancelled"
		} else {
			c.Webhook.Round = 1
		}
	}
}

// imagesMissing reports that a completed task has fewer images than were asked for.
func (c *change) imagesMissing() bool {
	made := int64(len(c.Results))
	return slices.ContainsFunc(c.Charges, func(charge mediagate.Charge) bool {
		return charge.Unit == mediagate.UnitImage && made < charge.Quantity
	})
}

// abandon closes an attempt that its task does not wait for any more, if it is open.
func (c *change) abandon(a *Attempt) {
	if !mayBeFollowed(a.State) {
		c.close(a, mediagate.AttemptAbandoned)
	}
}

// close closes an attempt. If it is abandoned, its job may run on: it has its slot, and is
// polled for, until its end is seen, its stop is proven, or SlotUntil has passed (D5, D7).
// Otherwise its slot is free, and its channel does not poll for it any more.
func (c *change) close(a *Attempt, state mediagate.AttemptState) {
	a.State, a.Trouble = state, ""
	if state != mediagate.AttemptAbandoned {
		a.EndedAt, a.SlotUntil, a.Await = c.now, time.Time{}, nil
	} else if a.SlotUntil.IsZero() {
		a.SlotUntil = c.slotEnd(a)
	}
}

// slotEnd returns when to free the slot of an attempt of which it is not known, from now on,
// whether its job runs (D7). While the call may be under way the job may not have begun.
func (c *change) slotEnd(a *Attempt) time.Time {
	begun := c.now
	if a.Ref.JobID == "" && a.CallEnds.After(begun) {
		begun = a.CallEnds
	}
	return begun.Add(mediagate.SlotsLost * c.Plan.Expected)
}

const (
	providerTooLate = "the provider did not finish in time"
	neverSent       = "the task could not be sent to the provider in time"
)

func tooLate(message string) *mediagate.Failure {
	return &mediagate.Failure{Code: mediagate.CodeGenerationTimeout, Message: message, Retryable: true}
}

func noRoom() *mediagate.Failure {
	return &mediagate.Failure{
		Code: mediagate.CodeProviderAway, Message: "no provider had room for the task in time", Retryable: true,
	}
}

func unknown() *mediagate.Failure {
	return &mediagate.Failure{
		Code:      mediagate.CodeSubmissionUnknown,
		Message:   "it is not known whether the provider took the request",
		Retryable: true,
	}
}

// parkFailure is the failure of a task whose parking has ended, or that an operator
// failed. The reason of the parking says which.
func (s *State) parkFailure() *mediagate.Failure {
	f := &mediagate.Failure{Code: mediagate.CodeProviderAway, Message: "the provider is not available", Retryable: true}
	switch s.Wait.Reason {
	case mediagate.ParkCredentials:
		f.Code, f.Message = mediagate.CodeProviderRefused, "the provider refused our account"
	case mediagate.ParkSubmissionUnknown:
		return unknown()
	case mediagate.ParkResult, mediagate.ParkStorage:
		f.Code, f.Message = mediagate.CodeResultUnavailable, "the result could not be fetched and stored"
	case mediagate.ParkInternal:
		f.Code, f.Message = mediagate.CodeInternal, "an internal error ended the task"
	case "":
		f.Code, f.Message = mediagate.CodeInternal, "the task was ended by an operator"
	case mediagate.ParkProviderAway, mediagate.ParkFunds, mediagate.ParkChannelMissing, mediagate.ParkJobLost:
	}
	return f
}

// public hides from clients that our account at the vendor is out of funds.
func public(f *mediagate.Failure) *mediagate.Failure {
	if f == nil || f.Code != mediagate.CodeFunds {
		return f
	}
	return &mediagate.Failure{Code: mediagate.CodeProviderAway, Message: f.Message, Retryable: true}
}
