package task

import (
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog/price"
)

// unknownSyncTimeout is how long an attempt may stay unknown before its task fails, if the model
// says on_unknown: fail and the vendor cannot be asked (D6).
const unknownSyncTimeout = 60 * time.Second

// unknownTimeout is how long after the deadline a task with any other unknown attempt fails (D6).
const unknownTimeout = time.Hour

// ending is how a task ends.
type ending struct {
	status  mediagate.Status
	failure *mediagate.Failure
}

func failedWith(f *mediagate.Failure) ending { return ending{mediagate.StatusFailed, f} }

// findDueEnd returns how the open task ends, and whether that end is due. An accepted cancel
// comes before everything else (D13).
func (s *State) findDueEnd(now time.Time) (end ending, due bool) {
	a := s.Last()
	switch {
	case !s.CancelRequestedAt.IsZero():
		return ending{status: mediagate.StatusCancelled}, true
	case !s.FailRequestedAt.IsZero():
		return failedWith(s.parkFailure()), true
	case s.Unreadable: // the causes below cannot be read: the task ends with its parking
	case s.sourceFailure() != nil:
		return failedWith(s.sourceFailure()), true
	case a == nil && s.Inputs.Failure != nil:
		return failedWith(s.Inputs.Failure), true
	case a == nil:
	case a.outcome() != nil && !a.outcome().Succeeded:
		return failedWith(a.Outcome.Failure), true
	case a.Unusable != nil:
		return failedWith(a.Unusable), true
	case a.succeeded() && a.Results != nil:
		return ending{status: mediagate.StatusCompleted}, true
	case a.succeeded():
	case a.refusedForGood():
		return failedWith(a.Failure), true
	}
	if at, failure := s.failsAt(); !at.IsZero() && !now.Before(at) {
		return failedWith(failure), true
	}
	return ending{}, false
}

// refusedForGood reports whether the vendor refused the request itself, so that no other attempt
// would help. A refusal of our account, or for the moment only, is not for good. If a vendor has
// no such model, that is for good only if no other route is left.
func (a *Attempt) refusedForGood() bool {
	f := a.Failure
	return a.State == mediagate.AttemptRejected && f != nil && !f.Retryable && !a.Elsewhere &&
		f.Code != mediagate.CodeProviderRefused && f.Code != mediagate.CodeFunds
}

// FailsAt returns when the open task fails if nothing happens before. The time is zero while
// something else has to come first: see failsAt.
func (s *State) FailsAt() time.Time {
	at, _ := s.failsAt()
	return at
}

// failsAt returns when and how the task fails if nothing happens before: at the end of its wait, or
// else at its deadline. The time is zero if something else has to come first: the end of a source,
// a search for what a call left behind, the last question to the vendor, or a copy. A call under
// way delays the end as well, see callLastsUntil.
func (s *State) failsAt() (at time.Time, failure *mediagate.Failure) {
	a := s.Last()
	switch {
	case s.Wait.Why == mediagate.WhyUnknown && s.failsIfUnknown() && a.bucketUnchecked():
		return time.Time{}, nil
	case s.Wait.Why == mediagate.WhySource: // it ends with the source
		return time.Time{}, nil
	case !s.Wait.EndsAt.IsZero():
		return s.Wait.EndsAt, s.waitFailure()
	case s.Unreadable:
		return time.Time{}, nil
	case a == nil:
		return s.DeadlineAt, timeoutFailure(neverSent)
	case a.State == mediagate.AttemptIntent, a.succeeded():
		return time.Time{}, nil
	case a.State == mediagate.AttemptAccepted:
		return time.Time{}, nil // before it fails, its vendor is asked one last time (D10)
	default:
		return s.DeadlineAt, timeoutFailure(neverSent)
	}
}

// waitFailure returns the failure of the task if its wait ends.
func (s *State) waitFailure() *mediagate.Failure {
	switch w := s.Wait; {
	case w.Why == mediagate.WhyModal:
		return mediagate.NoModal()
	case w.Why == mediagate.WhyVendor:
		return timeoutFailure(providerTooLate)
	case w.Why == mediagate.WhyUnknown:
		if s.failsIfUnknown() && s.DeadlineAt.Before(w.Since.Add(unknownSyncTimeout)) {
			return timeoutFailure(providerTooLate)
		}
		return unknownFailure()
	case w.Why == mediagate.WhySlot && w.Reason == "":
		return noRoomFailure()
	case !w.Since.Before(s.DeadlineAt) && s.nothingAtVendor():
		return timeoutFailure(neverSent)
	default:
		return s.parkFailure()
	}
}

// nothingAtVendor reports whether the task has nothing at any vendor: neither a job that it waits
// for, nor a result. It is false for a row that cannot be read, since such a row may have either.
func (s *State) nothingAtVendor() bool {
	a := s.Last()
	return !s.Unreadable && (a == nil || mayBeFollowed(a.State) && a.outcome() == nil)
}

// failsIfUnknown reports whether the last attempt, if it is unknown, fails the task after
// unknownSyncTimeout: the model says so, and the vendor cannot be asked. After a restore the task
// parks instead (D17).
func (s *State) failsIfUnknown() bool {
	a := s.Last()
	return s.Plan.OnUnknown == mediagate.OnUnknownFail && a != nil && !a.findable() && !s.TailLost
}

// endIfDue ends the task if its end is due and no call may be under way (D5).
func (c *change) endIfDue() {
	if !c.open() || c.now.Before(c.callLastsUntil()) {
		return
	}
	if end, due := c.findDueEnd(c.now); due {
		c.end(end)
	}
}

// end ends the task. No other function does. It sets the row, the money, and the first round of
// the callback (D13, D14).
func (c *change) end(end ending) {
	c.Status, c.Failure, c.EndedAt = end.status, publicFailure(end.failure), c.now
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

// imagesMissing reports whether a completed task has fewer images than were asked for.
func (c *change) imagesMissing() bool {
	made := int64(len(c.Results))
	return slices.ContainsFunc(c.Charges, func(charge mediagate.Charge) bool {
		return charge.Unit == mediagate.UnitImage && made < charge.Quantity
	})
}

// abandon closes an open attempt that its task no longer waits for.
func (c *change) abandon(a *Attempt) {
	if !mayBeFollowed(a.State) {
		c.close(a, mediagate.AttemptAbandoned)
	}
}

// close closes an attempt.
//
// An abandoned attempt may have a job that runs on. The attempt keeps its slot, and its channel
// polls for the job, until the job has ended or was stopped, or SlotUntil has passed (D5, D7). In
// any other state the slot is free at once, and the polling stops.
func (c *change) close(a *Attempt, state mediagate.AttemptState) {
	a.State, a.Trouble = state, ""
	if state != mediagate.AttemptAbandoned {
		a.EndedAt, a.SlotUntil, a.Await = c.now, time.Time{}, nil
	} else if a.SlotUntil.IsZero() {
		a.SlotUntil = c.slotEnd(a)
	}
}

// slotEnd returns when to free the slot of an attempt if it is not known whether its job runs (D7).
// The time counts from now. While the call may be under way, the time counts from the end of the
// call, since the job may begin as late as that.
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

func timeoutFailure(message string) *mediagate.Failure {
	return &mediagate.Failure{Code: mediagate.CodeGenerationTimeout, Message: message, Retryable: true}
}

func noRoomFailure() *mediagate.Failure {
	return &mediagate.Failure{
		Code: mediagate.CodeProviderAway, Message: "no provider had room for the task in time", Retryable: true,
	}
}

func unknownFailure() *mediagate.Failure {
	return &mediagate.Failure{
		Code:      mediagate.CodeSubmissionUnknown,
		Message:   "it is not known whether the provider took the request",
		Retryable: true,
	}
}

// parkFailure returns the failure of a task whose parking has ended, or which an operator failed.
// The reason of the parking decides which.
func (s *State) parkFailure() *mediagate.Failure {
	f := &mediagate.Failure{Code: mediagate.CodeProviderAway, Message: "the provider is not available", Retryable: true}
	switch s.Wait.Reason {
	case mediagate.ParkCredentials:
		f.Code, f.Message = mediagate.CodeProviderRefused, "the provider refused our account"
	case mediagate.ParkSubmissionUnknown:
		return unknownFailure()
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

// publicFailure hides from clients that our account at the vendor is out of funds.
func publicFailure(f *mediagate.Failure) *mediagate.Failure {
	if f == nil || f.Code != mediagate.CodeFunds {
		return f
	}
	return &mediagate.Failure{Code: mediagate.CodeProviderAway, Message: f.Message, Retryable: true}
}
