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

// dueEnd returns how the open task ends, and whether its end is due. An accepted
// cancel comes first (D13).
func (s *State) dueEnd(now time.Time) (end ending, due bool) {
	a := s.Last()
	switch {
	case !s.CancelRequestedAt.IsZero():
		return ending{status: mediagate.StatusCancelled}, true
	case !s.FailRequestedAt.IsZero():
		return failed(s.parkFailure()), true
	case s.Unreadable: // only its parking's end is known
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
	case s.waitsForClient() && !now.Before(s.Modal.Until): // D15
		return failed(mediagate.NoModal()), true
	case a.refusedForGood():
		return failed(a.Failure), true
	}
	if at, failure := s.timeout(); !at.IsZero() && !now.Before(at) {
		return failed(failure), true
	}
	return ending{}, false
}

// refusedForGood reports a refusal that no other attempt would mend: one that is about the
// request, and neither about our account there nor about that moment.
func (a *Attempt) refusedForGood() bool {
	f := a.Failure
	return a.State == mediagate.AttemptRejected && f != nil && !f.Retryable &&
		f.Code != mediagate.CodeProviderRefused && f.Code != mediagate.CodeFunds
}

// FailsAt returns when the open task fails if nothing happens; zero while something else
// has to come first.
func (s *State) FailsAt() time.Time {
	at, _ := s.timeout()
	return at
}

// timeout returns when the task fails if nothing happens, and how. It is zero while a
// step, the stored end of a call or the modal timeout has to come first.
func (s *State) timeout() (at time.Time, failure *mediagate.Failure) {
	parked := !s.ParkedAt.IsZero()
	parkEnds := s.ParkedAt.Add(s.Terms.ParkTimeout)
	a := s.Last()
	switch {
	case s.Unreadable && parked:
		return parkEnds, s.parkFailure()
	case s.Unreadable, s.waitsForClient():
		return time.Time{}, nil
	case a != nil && a.State == mediagate.AttemptUnknown && s.QueuedAt.IsZero() && a.AbsentAgainAt.IsZero():
		return s.unknownEnds(a)
	case parked && !s.ParkedAt.Before(s.DeadlineAt) && (a == nil || over(a.State) && a.outcome() == nil):
		// Parked after the deadline, with nothing at a vendor: no attempt may follow any more (D3).
		return s.DeadlineAt, tooLate(neverSent)
	case parked && !s.QueuedAt.IsZero() && s.QueuedAt.Add(s.Terms.QueueTimeout).Before(parkEnds):
		return s.QueuedAt.Add(s.Terms.QueueTimeout), s.parkFailure() // D12
	case parked:
		return parkEnds, s.parkFailure()
	case !s.QueuedAt.IsZero(): // D7
		return s.QueuedAt.Add(s.Terms.QueueTimeout), noRoom()
	case a == nil:
		return s.DeadlineAt, tooLate(neverSent)
	case a.State == mediagate.AttemptIntent, a.succeeded():
		return time.Time{}, nil
	case a.State == mediagate.AttemptAccepted && a.LastAskedAt.Before(s.DeadlineAt):
		return time.Time{}, nil // it is asked for a last time first (D10)
	case !a.AcceptedAt.IsZero():
		return s.DeadlineAt, tooLate(providerTooLate)
	default:
		return s.DeadlineAt, tooLate(neverSent)
	}
}

// unknownEnds is timeout for an unknown attempt (D6). The deadline here is the stored
// one: the parking for an unknown submission does not move it.
func (s *State) unknownEnds(a *Attempt) (time.Time, *mediagate.Failure) {
	switch {
	case a.findable() || !s.failsUnknown(a):
		return s.DeadlineAt.Add(unknownTimeout), unknown()
	case a.bucketUnchecked():
		return time.Time{}, nil
	}
	at, failure := a.UnknownSince.Add(unknownSyncTimeout), unknown()
	if s.DeadlineAt.Before(at) {
		at, failure = s.DeadlineAt, tooLate(providerTooLate)
	}
	if ends := a.CallEnds; a.SenderLost && at.Before(ends) {
		at = ends
	}
	return at, failure
}

// failsUnknown reports that an unknown attempt fails its task after unknownSyncTimeout
// instead of parking it. After a restore all of them park (D17).
func (s *State) failsUnknown(a *Attempt) bool {
	return s.Terms.OnUnknown == mediagate.OnUnknownFail && !s.TailLost && !a.unidentified()
}

// endDue ends the task, if its end is due and no intent holds it up (D5).
func (c *change) endDue() {
	if !c.open() || c.now.Before(c.endWaitsUntil()) {
		return
	}
	if end, due := c.dueEnd(c.now); due {
		c.end(end)
	}
}

// end is the one way in which a task ends: its row, its money, and the first round
// of its callback (D13, D14).
func (c *change) end(end ending) {
	c.Status, c.Failure, c.EndedAt = end.status, public(end.failure), c.now
	c.leaveQueue()
	if c.Failure != nil && c.Failure.Code == mediagate.CodeModalExpired {
		c.Modal.State = mediagate.ModalExpired
	}
	c.ParkedAt, c.ParkReason, c.RetryAt = time.Time{}, "", time.Time{}
	a := c.Last()
	if end.status == mediagate.StatusCompleted {
		c.Progress, c.Results, c.Made = 100, a.Results, a.Outcome.Made
		c.Cost = price.Settle(c.Terms.Charges, price.DeliveredBy(*a.Outcome, a.Results))
		c.Entry = mediagate.EntryPost
	} else {
		c.Entry = mediagate.EntryVoid
	}
	if a != nil {
		c.Sweep = end.status != mediagate.StatusCompleted || a.N > 1 || a.Route.Sync && c.imagesMissing()
		c.abandon(a)
	}
	if c.WebhookState == mediagate.WebhookPending {
		if end.status == mediagate.StatusCancelled {
			c.WebhookState, c.WebhookReason = mediagate.WebhookDropped, "task cancelled"
		} else {
			c.WebhookRound = 1
		}
	}
}

// imagesMissing reports that a completed task has fewer images than were asked for.
func (c *change) imagesMissing() bool {
	made := int64(len(c.Results))
	return slices.ContainsFunc(c.Terms.Charges, func(charge mediagate.Charge) bool {
		return charge.Unit == mediagate.UnitImage && made < charge.Quantity
	})
}

// abandon closes an attempt that its task does not wait for any more. The job may run
// on: it has its slot, and is polled for, until its end is seen, its stop is proven, or
// SlotUntil has passed (D5, D7).
func (c *change) abandon(a *Attempt) {
	switch a.State {
	case mediagate.AttemptIntent, mediagate.AttemptUnknown, mediagate.AttemptAccepted:
	default:
		return
	}
	a.State, a.Trouble = mediagate.AttemptAbandoned, ""
	if a.SlotUntil.IsZero() {
		a.SlotUntil = c.slotEnd(c.now)
	}
}

const (
	providerTooLate = "the provider did not finish in time"
	neverSent       = "the task could not be sent to the provider in time"
)

func tooLate(message string) *mediagate.Failure {
	return &mediagate.Failure{Code: mediagate.CodeGenerationTimeout, Message: message, Retryable: true}
}

func noRoom() *mediagate.Failure {
	return &mediagate.Failure{Code: mediagate.CodeProviderAway, Message: "no provider had room for the task in time", Retryable: true}
}

func unknown() *mediagate.Failure {
	return &mediagate.Failure{
		Code: mediagate.CodeSubmissionUnknown, Message: "it is not known whether the provider took the request", Retryable: true,
	}
}

// parkFailure is the failure of a task whose parking has ended, or that an operator
// failed. The reason of the parking says which.
func (s *State) parkFailure() *mediagate.Failure {
	f := &mediagate.Failure{Code: mediagate.CodeProviderAway, Message: "the provider is not available", Retryable: true}
	switch s.ParkReason {
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
