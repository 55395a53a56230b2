package task

import (
	"slices"

	"github.com/mediagate/mediagate"
)

// partTries is how often a call is made that the vendor refuses for now.
const partTries = 3

// DueParts returns the calls of the attempt that are to be made now: those that were
// not made yet, and those that the vendor refused for now, with how often each was
// made. It returns none once the vendor refuses all for now: the attempt is then
// refused, and the next one comes after a pause.
func (a *Attempt) DueParts() []Part {
	var due []Part
	waiting := 0
	for i := range a.Route.Parts {
		at := slices.IndexFunc(a.Parts, func(p Part) bool { return p.Part == i })
		switch {
		case at < 0:
			due = append(due, Part{Part: i})
		case a.Parts[at].retryable():
			waiting++
			if a.Parts[at].Sends < partTries {
				due = append(due, Part{Part: i, Sends: a.Parts[at].Sends})
			}
		}
	}
	if waiting == a.Route.Parts {
		return nil
	}
	return due
}

// retryable reports that the same call may succeed later.
func (p *Part) retryable() bool {
	return p.State == mediagate.PartRefused && p.Submission == nil && p.Failure != nil && p.Failure.Retryable
}

func (a *Attempt) part(i int) *Part {
	at := slices.IndexFunc(a.Parts, func(p Part) bool { return p.Part == i })
	if at < 0 {
		return nil
	}
	return &a.Parts[at]
}

func (c *change) partIntent(e PartIntent) error {
	a := c.current(e.N)
	switch {
	case a == nil || a.State != mediagate.AttemptIntent:
		return conflict("attempt %d is not open", e.N)
	case !c.CancelRequestedAt.IsZero() || !c.FailRequestedAt.IsZero() || c.late(c.now):
		return conflict("nobody waits for the task any more")
	case c.Unreadable:
		return conflict("the task cannot be read")
	case c.TailLost:
		return errTailLost
	}
	p := a.part(e.Part)
	switch {
	case p == nil && e.Sends == 0:
		a.Parts = append(a.Parts, Part{Part: e.Part, State: mediagate.PartIntent, SendBefore: e.SendBefore, CallEnds: e.CallEnds, Sends: 1})
		slices.SortFunc(a.Parts, func(x, y Part) int { return x.Part - y.Part })
	case p != nil && p.State == mediagate.PartRefused && p.Submission == nil && p.Sends == e.Sends:
		p.State, p.SendBefore, p.CallEnds, p.Sends, p.Failure, p.Error = mediagate.PartIntent, e.SendBefore, e.CallEnds, e.Sends+1, nil, ""
	default:
		return conflict("call %d of attempt %d is somebody else's", e.Part, e.N)
	}
	return nil
}

func (c *change) partEnded(e PartEnded) {
	a := c.Attempt(e.N)
	if a == nil {
		return
	}
	p := a.part(e.Part.Part)
	if p == nil || p.State != mediagate.PartIntent && p.State != mediagate.PartUnknown || !p.SendBefore.Equal(e.Part.SendBefore) {
		return
	}
	p.State, p.Submission, p.Failure, p.Error = e.Part.State, e.Part.Submission, e.Part.Failure, e.Part.Error
}

// partsOver closes the attempt by its parts. The attempt is unknown while a call may be
// under way. It is unknown too if a call was lost and the refusals of the others would
// lead to another attempt, which would make the lost call's file twice (D6). Of an
// attempt that the task does not wait for any more, it records what the calls came to.
func (c *change) partsOver(e PartsOver) {
	a := c.Attempt(e.N)
	if a == nil || a.Outcome != nil || len(a.Parts) == 0 && a.State == mediagate.AttemptAbandoned || c.Unreadable && c.open() {
		return
	}
	switch a.State {
	case mediagate.AttemptIntent, mediagate.AttemptUnknown, mediagate.AttemptAbandoned:
	default:
		return
	}
	var done, refused []Part
	open, underWay := 0, false
	for _, p := range a.Parts {
		switch p.State {
		case mediagate.PartDone:
			done = append(done, p)
		case mediagate.PartRefused:
			refused = append(refused, p)
		case mediagate.PartIntent, mediagate.PartUnknown:
			open++
			underWay = underWay || c.now.Before(p.CallEnds) && (p.State == mediagate.PartIntent || slices.Contains(e.SendersLost, p.Part))
		}
	}
	why := mainRefusal(refused)
	a.Elsewhere = e.Elsewhere
	switch {
	case underWay:
		c.partsUnknown(a, true)
	case len(done) > 0:
		c.accept(a, joined(a, done), c.now)
	case len(a.Parts) == 0:
		c.reject(a, mediagate.Failure{Code: mediagate.CodeProviderAway, Message: "the provider is not available", Retryable: true})
	case why == nil || open > 0 && why.hasSuccessor():
		c.partsUnknown(a, false)
	case why.Submission == nil && a.State == mediagate.AttemptAbandoned:
		a.State, a.EndedAt = mediagate.AttemptEnded, c.now // the slot is free
	case why.Submission == nil:
		c.reject(a, why.refusal())
	default:
		failed := *why.Submission
		outcome := *failed.Outcome
		outcome.VendorCharge, failed.Outcome = charged(a), &outcome
		c.accept(a, failed, c.now)
	}
}

// charged is what the vendor charged for all calls of the attempt that it answered, also
// for those that made nothing.
func charged(a *Attempt) (sum *mediagate.VendorCharge) {
	for _, p := range a.Parts {
		if p.Submission != nil && p.Submission.Outcome != nil {
			sum = sum.Plus(p.Submission.Outcome.VendorCharge)
		}
	}
	return sum
}

func (c *change) partsUnknown(a *Attempt, senderLost bool) {
	if a.State == mediagate.AttemptIntent {
		c.markUnknown(a, senderLost, "calls were lost")
	}
}

// refusal is why the vendor made nothing of a refused part.
func (p *Part) refusal() mediagate.Failure {
	switch {
	case p.Failure != nil:
		return *p.Failure
	case p.Submission != nil && p.Submission.Outcome != nil && p.Submission.Outcome.Failure != nil:
		return *p.Submission.Outcome.Failure
	default:
		return mediagate.Failure{Code: mediagate.CodeGenerationFailed, Message: "the provider made no file"}
	}
}

// hasSuccessor reports that another attempt would follow the refusal, at once or after
// a parking.
func (p *Part) hasSuccessor() bool {
	code := p.refusal().Code
	return p.retryable() || p.Submission == nil && (code == mediagate.CodeProviderRefused || code == mediagate.CodeFunds)
}

// joined is the answer of the calls that succeeded: their files, by the numbers of
// the calls.
func joined(a *Attempt, done []Part) mediagate.Submission {
	all := mediagate.Outcome{Succeeded: true, VendorCharge: charged(a)}
	for _, p := range done {
		one := p.Submission.Outcome
		for _, m := range one.Media {
			m.Index = p.Part
			all.Media = append(all.Media, m)
		}
		all.Seconds += one.Seconds
	}
	ref := done[0].Submission.Ref
	ref.ExternalID = a.ExternalID
	return mediagate.Submission{Ref: ref, Outcome: &all}
}

// refusalRank orders the reasons of refused calls: first what the client can mend, then
// the vendor's failures, then our account at the vendor.
var refusalRank = []mediagate.FailureCode{
	mediagate.CodeContentPolicy, mediagate.CodeInvalidParameters, mediagate.CodeImageProcessing, mediagate.CodeGenerationFailed,
	mediagate.CodeResultUnavailable, mediagate.CodeProviderRefused, mediagate.CodeFunds,
}

// mainRefusal returns the refused call whose reason ranks first; nil without any.
func mainRefusal(refused []Part) *Part {
	if len(refused) == 0 {
		return nil
	}
	rank := func(p Part) int {
		at := slices.Index(refusalRank, p.refusal().Code)
		if at < 0 {
			at = len(refusalRank)
		}
		if p.retryable() { // what may pass says least
			at += len(refusalRank) + 1
		}
		return at
	}
	best := slices.MinFunc(refused, func(x, y Part) int { return rank(x) - rank(y) })
	return &best
}
