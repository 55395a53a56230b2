package task

import (
	"time"

	"github.com/mediagate/mediagate"
)

// Kind is a kind of step.
type Kind string

// The steps. Each but the last two is an activity of the task's run.
const (
	CheckInputs Kind = "check_inputs"
	Submit      Kind = "submit"     // store the intent of attempt N and send it; of one that is stored: find out
	Lookup      Kind = "lookup"     // find out what became of a lost submission: in our bucket, then at the vendor
	Mirror      Kind = "mirror"     // copy the files, which ends the task
	CancelJob   Kind = "cancel_job" // ask the vendor to stop the job
	Settle      Kind = "settle"     // end the task
	Sleep       Kind = "sleep"      // until Until, or a signal
	Done        Kind = "done"       // nothing is left; Round names the callback's round to deliver, if any
)

// SleepReason says what a sleeping task waits for.
type SleepReason string

// The reasons to sleep.
const (
	SleepSource  SleepReason = "source"  // a source has not ended (D21)
	SleepVendor  SleepReason = "vendor"  // the vendor works
	SleepCall    SleepReason = "call"    // a submission may be under way, and its answer counts (D5)
	SleepUnknown SleepReason = "unknown" // the vendor may have the job, and cannot be asked (D6)
	SleepLookup  SleepReason = "lookup"  // before the next lookup (D4)
	SleepSlot    SleepReason = "slot"    // no channel has a slot free (D7)
	SleepPause   SleepReason = "pause"   // before the next try
	SleepParked  SleepReason = "parked"  // before the next try of a stuck step (D12)
	SleepModal   SleepReason = "modal"   // for the client's modal parameters (D15)
)

// Step is what comes next.
type Step struct {
	Kind     Kind        `json:"kind"`
	N        int         `json:"n,omitempty"`        // of which attempt
	Provider string      `json:"provider,omitempty"` // whose queue it goes to
	Until    time.Time   `json:"until,omitzero"`     // of Sleep: ask again then at the latest
	Why      SleepReason `json:"why,omitempty"`      // of Sleep
	Round    int         `json:"round,omitempty"`    // of Done
}

// Advance returns the next step. Each state has one, and each Sleep ends in the
// future.
func (s *State) Advance(now time.Time) Step {
	if !s.open() {
		return s.done()
	}
	if _, due := s.findDueEnd(now); due {
		if at := s.callLastsUntil(); now.Before(at) { // D5
			return Step{Kind: Sleep, N: s.lastN(), Until: at, Why: SleepCall}
		}
		if a := s.Last(); a != nil && a.stoppable() {
			return s.step(CancelJob, a)
		}
		return Step{Kind: Settle, N: s.lastN()}
	}
	if now.Before(s.Wait.TryAt) && !s.Granted {
		return s.sleep(s.Wait.TryAt, s.pauseReason())
	}
	return s.next(now)
}

// next is Advance for an open task whose end is not due, and that may try its next step.
func (s *State) next(now time.Time) Step {
	a := s.Last()
	switch {
	case s.Unreadable:
		return s.sleep(now.Add(s.parkRetry(now)), SleepParked)
	case s.needsSources(): // D21
		return s.sleep(now.Add(sourcePause), SleepSource)
	case a == nil && len(s.Plan.Inputs) > 0 && !s.Inputs.Over:
		return Step{Kind: CheckInputs}
	case a != nil && a.succeeded():
		return s.step(Mirror, a)
	case a == nil || s.Wait.Why == mediagate.WhySlot:
		return s.submit()
	}
	switch a.State {
	case mediagate.AttemptIntent:
		switch {
		case !s.late(now):
			return s.step(Submit, a)
		case now.Before(a.CallEnds): // D5
			return s.sleep(a.CallEnds, SleepCall)
		default:
			return s.step(Lookup, a)
		}
	case mediagate.AttemptUnknown:
		return s.resolve(a, now)
	case mediagate.AttemptRejected:
		return s.submit()
	default:
		return s.await(a, now)
	}
}

// await is next for an attempt that the vendor took.
func (s *State) await(a *Attempt, now time.Time) Step {
	switch {
	case s.waitsForClient(): // D15
		return s.sleep(s.Wait.EndsAt, SleepModal)
	case a.State != mediagate.AttemptAccepted && a.stoppable():
		return s.step(CancelJob, a) // given up for another
	case a.State != mediagate.AttemptAccepted:
		return s.submit()
	case s.Wait.Why == mediagate.WhyParked: // its channel asks again (D11)
		return s.sleep(s.Wait.EndsAt, SleepParked)
	case s.Wait.Why == mediagate.WhyVendor: // D10
		return s.sleep(s.Wait.EndsAt, SleepVendor)
	case s.late(now): // the next question of the run begins that wait
		return s.sleep(now.Add(lastAnswer), SleepVendor)
	default:
		return s.sleep(s.WaitsUntil(now), SleepVendor)
	}
}

// waitsForClient reports that the task waits for its client: the vendor has the job and
// does not begin with it (D15). It still does when the vendor has stopped the job at
// the end of that time.
func (s *State) waitsForClient() bool {
	a := s.Last()
	if s.Modal.State != mediagate.ModalWaiting || a == nil || a.N != s.Modal.N || a.Outcome != nil {
		return false
	}
	return a.State == mediagate.AttemptAccepted || a.State == mediagate.AttemptEnded
}

// resolve is next for an unknown attempt. Where the vendor cannot be asked, nothing is
// sent again without an operator (D6).
func (s *State) resolve(a *Attempt, now time.Time) Step {
	switch {
	case !a.AbsentAgainAt.IsZero(): // proven absent (D4)
		return s.step(Submit, a)
	case a.findable():
		return s.step(Lookup, a)
	case a.bucketUnchecked() && now.Before(a.CallEnds):
		return s.sleep(a.CallEnds, SleepCall)
	case a.bucketUnchecked():
		return s.step(Lookup, a)
	default:
		return s.sleep(s.Wait.EndsAt, SleepUnknown)
	}
}

// bucketUnchecked reports that a lost sender of a synchronous call may have left files
// in our bucket: no lookup has been made there since its call must be over (D6).
func (a *Attempt) bucketUnchecked() bool {
	return a.SenderLost && a.Route.Sync && a.LookedAt.Before(a.CallEnds)
}

// stoppable reports that the vendor has the job, can stop it, and was not asked to.
func (a *Attempt) stoppable() bool {
	held := a.State == mediagate.AttemptAccepted || a.State == mediagate.AttemptAbandoned
	return held && a.CanStop && !a.StopTried && a.Outcome == nil && a.Ref.JobID != ""
}

// callLastsUntil is the time before which cancel and fail are only noted, and
// nothing else ends the task: the newest attempt is an intent, and its call may be
// under way. Zero where there is none (D5).
func (s *State) callLastsUntil() time.Time {
	if a := s.Last(); a != nil && a.State == mediagate.AttemptIntent {
		return a.CallEnds
	}
	return time.Time{}
}

// submit is the step that makes the attempt after the last one.
func (s *State) submit() Step {
	return Step{Kind: Submit, N: s.lastN() + 1, Provider: s.Provider()}
}

// step is a step on an attempt.
func (s *State) step(kind Kind, a *Attempt) Step {
	return Step{Kind: kind, N: a.N, Provider: s.Provider()}
}

// Provider is that of the last attempt, or else of the first route.
func (s *State) Provider() string {
	if a := s.Last(); a != nil && a.Provider != "" {
		return a.Provider
	}
	if len(s.Plan.Routes) > 0 {
		return s.Plan.Routes[0].Provider
	}
	return ""
}

// sleep waits until then, or until the task's timeout if that is earlier.
func (s *State) sleep(until time.Time, why SleepReason) Step {
	if at, _ := s.failsAt(); !at.IsZero() && at.Before(until) {
		until = at
	}
	return Step{Kind: Sleep, N: s.lastN(), Until: until, Why: why}
}

// pauseReason is what a task sleeps on before its next try.
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

func (s *State) done() Step {
	if s.Webhook.State == mediagate.WebhookPending {
		return Step{Kind: Done, Round: s.Webhook.Round}
	}
	return Step{Kind: Done}
}

// Continues reports whether a running step is still needed. One that is not is
// cancelled, and its run begins no other step before it has ended (D5).
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

// reroutable reports that another attempt may follow the last one, if there is one: its
// fate is not that of the task.
func (s *State) reroutable(last *Attempt) bool {
	if last == nil {
		return s.Inputs.Failure == nil
	}
	return last.State != mediagate.AttemptIntent && last.Outcome == nil && !last.refusedForGood()
}

// Actions are the operators' commands that apply now.
func (s *State) Actions(now time.Time) []string {
	if !s.open() {
		if s.redeliverable() {
			return []string{mediagate.ActionRedeliver}
		}
		return nil
	}
	if !s.CancelRequestedAt.IsZero() || !s.FailRequestedAt.IsZero() {
		return nil // it ends
	}
	actions := []string{mediagate.ActionFail}
	a := s.Last()
	if s.Unreadable || s.waitsForClient() || s.needsSources() {
		return actions
	}
	if step := s.Advance(now); step.Kind == Sleep && step.Why != SleepCall {
		actions = append(actions, mediagate.ActionRetry)
	}
	if s.reroutable(a) {
		actions = append(actions, mediagate.ActionReroute)
	}
	if a != nil && a.Await != nil {
		actions = append(actions, mediagate.ActionPollNow)
	}
	return actions
}
