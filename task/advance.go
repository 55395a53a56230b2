package task

import (
	"time"

	"github.com/mediagate/mediagate"
)

// Kind is a kind of step.
type Kind string

// The kinds of steps. Each but the last two is an activity of the task's run.
const (
	CheckInputs Kind = "check_inputs"
	Submit      Kind = "submit"     // make attempt N: store the intent, call the vendor
	Lookup      Kind = "lookup"     // find out what became of a lost submission: in our bucket, then at the vendor
	Mirror      Kind = "mirror"     // copy the files, which ends the task
	CancelJob   Kind = "cancel_job" // ask the vendor to stop the job
	Settle      Kind = "settle"     // end the task
	Sleep       Kind = "sleep"      // wait until Until, or for a signal
	Done        Kind = "done"       // the task has ended; Round is the callback's round to deliver, if any
)

// SleepReason says what a sleeping task waits for.
type SleepReason string

// The reasons to sleep.
const (
	SleepSource  SleepReason = "source"  // for a source to end (D21)
	SleepVendor  SleepReason = "vendor"  // for the vendor, which works on the job
	SleepCall    SleepReason = "call"    // for the answer of a call that may be under way (D5)
	SleepUnknown SleepReason = "unknown" // for a late report, an operator or the end: the vendor cannot be asked (D6)
	SleepLookup  SleepReason = "lookup"  // until the next lookup (D4)
	SleepSlot    SleepReason = "slot"    // for a slot of a channel (D7)
	SleepPause   SleepReason = "pause"   // until the next try
	SleepParked  SleepReason = "parked"  // until the next try of a stuck step (D12)
	SleepModal   SleepReason = "modal"   // for the client's modal parameters (D15)
)

// Step is what comes next for a task.
type Step struct {
	Kind     Kind        `json:"kind"`
	N        int         `json:"n,omitempty"`        // the attempt that the step is about
	Provider string      `json:"provider,omitempty"` // the provider whose queue the activity goes to
	Until    time.Time   `json:"until,omitzero"`     // for Sleep: when to ask again at the latest
	Why      SleepReason `json:"why,omitempty"`      // for Sleep
	Round    int         `json:"round,omitempty"`    // for Done
}

// Advance returns the next step. Every state has one, and every Sleep ends in the future.
func (s *State) Advance(now time.Time) Step {
	if !s.open() {
		return s.doneStep()
	}
	if _, due := s.findDueEnd(now); due {
		if at := s.callLastsUntil(); now.Before(at) { // D5
			return Step{Kind: Sleep, N: s.lastN(), Until: at, Why: SleepCall}
		}
		if a := s.Last(); a != nil && a.stoppable() {
			return s.attemptStep(CancelJob)
		}
		return Step{Kind: Settle, N: s.lastN()}
	}
	if now.Before(s.Wait.TryAt) && !s.Granted {
		return s.sleepStep(s.Wait.TryAt, s.pauseReason())
	}
	return s.nextStep(now)
}

// nextStep is Advance for an open task whose end is not due, and whose next try is due.
func (s *State) nextStep(now time.Time) Step {
	a := s.Last()
	switch {
	case s.Unreadable:
		return s.sleepStep(now.Add(s.parkRetry(now)), SleepParked)
	case s.needsSources(): // D21
		return s.sleepStep(now.Add(sourcePause), SleepSource)
	case a == nil && len(s.Plan.Inputs) > 0 && !s.Inputs.Over:
		return Step{Kind: CheckInputs}
	case a != nil && a.succeeded():
		return s.attemptStep(Mirror)
	case a == nil || s.Wait.Why == mediagate.WhySlot:
		return s.submitStep()
	}
	switch a.State {
	case mediagate.AttemptIntent:
		switch {
		case !s.isLate(now):
			return s.attemptStep(Submit)
		case now.Before(a.CallEnds): // D5
			return s.sleepStep(a.CallEnds, SleepCall)
		default:
			return s.attemptStep(Lookup)
		}
	case mediagate.AttemptUnknown:
		return s.nextUnknown(a, now)
	case mediagate.AttemptRejected:
		return s.submitStep()
	default:
		return s.nextAccepted(a, now)
	}
}

// nextAccepted is nextStep for a task whose last attempt was accepted, is abandoned or has ended.
func (s *State) nextAccepted(a *Attempt, now time.Time) Step {
	switch {
	case s.waitsForClient(): // D15
		return s.sleepStep(s.Wait.EndsAt, SleepModal)
	case a.State != mediagate.AttemptAccepted && a.stoppable():
		return s.attemptStep(CancelJob) // an operator has ordered another attempt instead
	case a.State != mediagate.AttemptAccepted:
		return s.submitStep()
	case s.Wait.Why == mediagate.WhyParked: // its channel polls again meanwhile (D11)
		return s.sleepStep(s.Wait.EndsAt, SleepParked)
	case s.Wait.Why == mediagate.WhyVendor: // D10
		return s.sleepStep(s.Wait.EndsAt, SleepVendor)
	case s.isLate(now): // the run's next question begins the wait for the last answer
		return s.sleepStep(now.Add(lastAnswer), SleepVendor)
	default:
		return s.sleepStep(s.WaitsUntil(now), SleepVendor)
	}
}

// waitsForClient reports whether the task waits for its client's parameters: the vendor has the
// job, and does not begin before it gets them (D15). It still returns true after the time for the
// parameters is over and the vendor has stopped the job.
func (s *State) waitsForClient() bool {
	a := s.Last()
	if s.Modal.State != mediagate.ModalWaiting || a == nil || a.N != s.Modal.N || a.Outcome != nil {
		return false
	}
	return a.State == mediagate.AttemptAccepted || a.State == mediagate.AttemptEnded
}

// nextUnknown is nextStep for a task whose last attempt is unknown. If the vendor cannot be
// asked, nothing is sent again unless an operator says so (D6).
func (s *State) nextUnknown(a *Attempt, now time.Time) Step {
	switch {
	case !a.AbsentAgainAt.IsZero(): // proven absent (D4)
		return s.attemptStep(Submit)
	case a.findable():
		return s.attemptStep(Lookup)
	case a.bucketUnchecked() && now.Before(a.CallEnds):
		return s.sleepStep(a.CallEnds, SleepCall)
	case a.bucketUnchecked():
		return s.attemptStep(Lookup)
	default:
		return s.sleepStep(s.Wait.EndsAt, SleepUnknown)
	}
}

// bucketUnchecked reports whether a lost sender of a synchronous call may have left files in our
// bucket that no lookup has seen. That is so until a lookup has searched the bucket after CallEnds
// (D6).
func (a *Attempt) bucketUnchecked() bool {
	return a.SenderLost && a.Route.Sync && a.LookedAt.Before(a.CallEnds)
}

// stoppable reports whether the vendor has the job and can stop it, and was not asked to stop it
// yet.
func (a *Attempt) stoppable() bool {
	held := a.State == mediagate.AttemptAccepted || a.State == mediagate.AttemptAbandoned
	return held && a.CanStop && !a.StopTried && a.Outcome == nil && a.Ref.JobID != ""
}

// callLastsUntil returns the time until which the call of the newest attempt may be under way. It
// is zero unless the attempt is an intent. Until that time, a cancel or a fail is only noted, and
// no end that is due is carried out (D5).
func (s *State) callLastsUntil() time.Time {
	if a := s.Last(); a != nil && a.State == mediagate.AttemptIntent {
		return a.CallEnds
	}
	return time.Time{}
}

// submitStep returns the step that makes the attempt after the last one.
func (s *State) submitStep() Step {
	return Step{Kind: Submit, N: s.lastN() + 1, Provider: s.Provider()}
}

// attemptStep returns a step about the last attempt.
func (s *State) attemptStep(kind Kind) Step {
	return Step{Kind: kind, N: s.lastN(), Provider: s.Provider()}
}

// Provider returns the provider of the last attempt, or else that of the first route.
func (s *State) Provider() string {
	if a := s.Last(); a != nil && a.Provider != "" {
		return a.Provider
	}
	if len(s.Plan.Routes) > 0 {
		return s.Plan.Routes[0].Provider
	}
	return ""
}

// sleepStep returns a Sleep that ends at the given time, or when the task fails if that is earlier.
func (s *State) sleepStep(until time.Time, why SleepReason) Step {
	if at, _ := s.failsAt(); !at.IsZero() && at.Before(until) {
		until = at
	}
	return Step{Kind: Sleep, N: s.lastN(), Until: until, Why: why}
}

// pauseReason returns the reason for the sleep that lasts until the next try.
func (s *State) pauseReason() SleepReason {
	switch w := s.Wait; {
	case w.Why == mediagate.WhySource:
		return SleepSource
	case w.Why == mediagate.WhySlot:
		return SleepSlot
	case w.Reason != "" || s.Unreadable:
		return SleepParked
	case w.Why == mediagate.WhyUnknown:
		return SleepLookup
	default:
		return SleepPause
	}
}

// doneStep returns the step of a task that has ended.
func (s *State) doneStep() Step {
	if s.Webhook.State == mediagate.WebhookPending {
		return Step{Kind: Done, Round: s.Webhook.Round}
	}
	return Step{Kind: Done}
}

// Continues reports whether a running step is still needed. The run cancels a step that is not
// needed, and begins no other step before that one has ended (D5).
func (s *State) Continues(step Step) bool {
	switch {
	case !s.open():
		return false
	case step.Kind == Settle || step.Kind == CancelJob:
		return true
	case !s.CancelRequestedAt.IsZero() || !s.FailRequestedAt.IsZero():
		return false
	case step.Kind == Mirror:
		a := s.current(step.N)
		return a != nil && a.Results == nil
	default:
		return step.N == 0 || step.N >= s.lastN()
	}
}

// reroutable reports whether an operator may order another attempt in place of the last one. An
// operator may not if an outcome or a refusal for good has decided how the task ends, or while a
// call is under way, since the call has to end first.
func (s *State) reroutable() bool {
	last := s.Last()
	if last == nil {
		return s.Inputs.Failure == nil
	}
	return last.State != mediagate.AttemptIntent && last.outcome() == nil && !last.refusedForGood()
}

// Actions returns the operators' commands that apply now.
func (s *State) Actions(now time.Time) []string {
	if !s.open() {
		if s.redeliverable() {
			return []string{mediagate.ActionRedeliver}
		}
		return nil
	}
	if !s.CancelRequestedAt.IsZero() || !s.FailRequestedAt.IsZero() {
		return nil // the task is about to end
	}
	actions := []string{mediagate.ActionFail}
	a := s.Last()
	if s.Unreadable || s.waitsForClient() || s.needsSources() {
		return actions
	}
	if step := s.Advance(now); step.Kind == Sleep && step.Why != SleepCall {
		actions = append(actions, mediagate.ActionRetry)
	}
	if s.reroutable() {
		actions = append(actions, mediagate.ActionReroute)
	}
	if a != nil && a.Await != nil {
		actions = append(actions, mediagate.ActionPollNow)
	}
	return actions
}
