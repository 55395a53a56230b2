package task

import (
	"cmp"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// These values are used if the plan does not say how long, or cannot be read.
const (
	defaultParkTimeout  = 24 * time.Hour
	defaultParkRetry    = 5 * time.Minute
	defaultQueueTimeout = 24 * time.Hour
)

const (
	// troublePause is the least time between two tries to resume the polling for a job whose vendor
	// could not be asked. A channel may take that long to find out that the vendor still cannot be
	// asked.
	troublePause = 2 * time.Minute
	// stepPause is the pause before a step that changed nothing is taken again.
	stepPause = 15 * time.Second
	// maxBucketLookups is how often a lookup tries to search the bucket while the bucket does not
	// answer.
	maxBucketLookups = 5
	// lastAnswer is how long a task waits after its deadline for the vendor's last answer (D10).
	lastAnswer = 10 * time.Minute
)

// lookupPauses are the pauses between the lookups of a lost submission that is parked (D6).
var lookupPauses = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

// parkRetry returns how long a parked step rests, with some jitter.
func (s *State) parkRetry(now time.Time) time.Duration {
	return jitter(now, max(cmp.Or(s.Plan.ParkRetry, defaultParkRetry), time.Second))
}

// wait lets the task wait, with the next try at tryAt. If the task waits already, the new wait
// keeps the beginning of the old one, and the earlier of the two end times (D12). In these cases
// the new wait gets a beginning and an end of its own:
//   - The old wait was a pause, or was for the last answer, or was for an unknown submission of a
//     task that did not show as stuck.
//   - The new wait is for modal parameters.
//   - One of the two waits is for an unknown submission, and the other is not.
//   - The task was stuck, and is now queued at a channel that is merely full: see applyQueued.
func (c *change) wait(why mediagate.WaitWhy, reason mediagate.ParkReason, tryAt time.Time) {
	unknown := why == mediagate.WhyUnknown
	if !c.Wait.StopsClock() || why == mediagate.WhyModal || unknown != (c.Wait.Why == mediagate.WhyUnknown) {
		c.endWait()
		c.Wait.Since = c.now
	}
	ends := c.waitEnds(why)
	if earlier := c.Wait.EndsAt; !earlier.IsZero() && earlier.Before(ends) {
		ends = earlier
	}
	if why != mediagate.WhySlot {
		c.QueuedFor, c.Granted = nil, false
	}
	c.Wait = mediagate.Wait{Why: why, Reason: reason, Since: c.Wait.Since, TryAt: tryAt, EndsAt: ends}
}

// waitEnds returns when a wait that begins now ends.
func (c *change) waitEnds(why mediagate.WaitWhy) time.Time {
	a := c.Last()
	switch {
	case why == mediagate.WhySource:
		return time.Time{}
	case why == mediagate.WhyModal:
		return c.now.Add(c.Plan.Modal)
	case why == mediagate.WhySlot:
		return c.now.Add(cmp.Or(c.Plan.QueueTimeout, defaultQueueTimeout))
	case why == mediagate.WhyVendor:
		return c.now.Add(lastAnswer)
	case why == mediagate.WhyUnknown && !c.failsIfUnknown():
		return c.DeadlineAt.Add(unknownTimeout)
	case why == mediagate.WhyUnknown:
		ends := c.now.Add(unknownSyncTimeout)
		if c.DeadlineAt.Before(ends) {
			ends = c.DeadlineAt
		}
		if a.SenderLost && ends.Before(a.CallEnds) {
			ends = a.CallEnds
		}
		return ends
	case c.isLate(c.now) && c.nothingAtVendor():
		return c.now // no attempt may follow any more (D3)
	default:
		return c.now.Add(cmp.Or(c.Plan.ParkTimeout, defaultParkTimeout))
	}
}

// endWait ends the wait. The deadline moves by the length of the wait (D10).
func (c *change) endWait() {
	c.DeadlineAt = c.WaitsUntil(c.now)
	c.Wait, c.QueuedFor, c.Granted = mediagate.Wait{}, nil, false
}

// pause puts the next try off. A wait goes on meanwhile.
func (c *change) pause(until time.Time) {
	if c.Wait.Why == "" {
		c.Wait.Why, c.Wait.Since = mediagate.WhyPause, c.now
	}
	c.Wait.TryAt = until
}

// tryNow lets the next step begin at once. A wait goes on meanwhile.
func (c *change) tryNow() {
	if c.Wait.Why == mediagate.WhyPause {
		c.Wait = mediagate.Wait{}
	}
	c.Wait.TryAt = time.Time{}
}

// leaveQueue ends the waiting for a slot. A task that was stuck before it was queued stays stuck.
func (c *change) leaveQueue() {
	switch {
	case c.Wait.Why != mediagate.WhySlot:
	case c.Wait.Reason == "":
		c.endWait()
	default:
		c.wait(mediagate.WhyParked, c.Wait.Reason, time.Time{})
	}
}

// park makes the task show as stuck, and sets the time of the next try.
func (c *change) park(reason mediagate.ParkReason) {
	why := mediagate.WhyParked
	if reason == mediagate.ParkSubmissionUnknown {
		why = mediagate.WhyUnknown
	}
	c.wait(why, reason, c.now.Add(c.parkRetry(c.now)))
}

// resume ends the wait after a step has succeeded.
func (c *change) resume() {
	c.endWait()
	if a := c.Last(); a != nil {
		a.Lookups = 0
	}
}

// applyAsked lets the row adopt what the run has seen and the row lacks (D5). Then it does what
// is due by time, except for ending the task, which Settle does. It parks an unreadable task,
// puts back an attempt that the row may have lost (D17), and has the channel poll again after a
// trouble (D11), or one last time (D10).
func (c *change) applyAsked(e Asked) {
	if !c.open() {
		return
	}
	if c.Unreadable {
		if c.Wait.Reason == "" || !c.now.Before(c.Wait.TryAt) {
			c.park(mediagate.ParkInternal)
		}
		return
	}
	c.adopt(e.Seen)
	if !c.open() {
		return
	}
	c.restoreWait()
	c.checkSources()
	c.putBackNext()
	a := c.awaitedAttempt(c.lastN())
	if a == nil {
		return
	}
	if a.Trouble != "" && !c.now.Before(c.Wait.TryAt) { // D11
		a.Trouble, a.Await = "", &Await{NextPollAt: c.now}
		c.pause(c.now.Add(max(c.parkRetry(c.now), troublePause)))
	}
	if c.isLate(c.now) && (c.Wait.Why == "" || c.Wait.Why == mediagate.WhyPause) {
		c.pollLastTime(a)
	}
}

// restoreWait restores a wait that the row has lost: the wait for news of an unknown attempt, or
// for the client's modal parameters. The row loses such a wait only if it could not be read for a
// while, so that the task was parked as unreadable.
func (c *change) restoreWait() {
	a := c.Last()
	switch {
	case c.waitsForClient() && c.Wait.Why != mediagate.WhyModal:
		c.wait(mediagate.WhyModal, "", time.Time{})
	case a == nil || a.State != mediagate.AttemptUnknown || !a.AbsentAgainAt.IsZero():
	case c.Wait.Why != mediagate.WhyUnknown:
		c.endWait()
		c.waitUnknown()
	}
}

// applyStepEnded reacts to the end of a step. What the step achieved came before, as an event of
// its own. If the same step is still the next one, it achieved nothing, and is taken again only
// after a pause. If another step is the next one, the report is late or not needed, and changes
// nothing.
func (c *change) applyStepEnded(e StepEnded) {
	isNext := func() bool {
		next := c.Advance(c.now)
		return next.Kind == e.Step && next.N == e.N
	}
	if !c.open() || !isNext() {
		return
	}
	c.afterStep(e)
	if isNext() {
		c.pause(c.now.Add(stepPause))
		c.Granted = false // the step could not use its slot, and gives it back
	}
}

// afterStep decides what follows a step that is still the next one. A CancelJob counts as tried,
// and a Lookup as one without a result, whether the step failed or not. Most failures of the other
// steps park the task for a reason that tells operators what is wrong. In these cases afterStep
// changes nothing, and applyStepEnded only adds a pause:
//   - One of these other steps succeeded.
//   - A CheckInputs or a Submit failed because our database was away.
//   - A Submit failed, and its call may be under way, or was a moment ago.
//   - A Settle failed.
func (c *change) afterStep(e StepEnded) {
	a := c.Attempt(e.N)
	storage := mediagate.ParkReason(e.Code) == mediagate.ParkStorage
	switch {
	case e.Step == CancelJob:
		a.StopTried = true
	case e.Step == Lookup:
		c.afterLookup(a, e)
	case !e.Failed:
	case e.Step == Mirror:
		c.afterMirror(a, e)
	case e.Step == CheckInputs && storage:
		c.park(mediagate.ParkStorage)
	case e.Kind == mediagate.KindUnavailable: // our database was away: the row says what is next
	case e.Step == CheckInputs:
		c.park(mediagate.ParkInternal)
	case e.Step == Submit && a != nil && c.sentRecently(a): // the next try finds out what became of the call
	case e.Step == Submit:
		c.park(submitParkReason(e))
	}
}

// sentRecently reports whether the attempt is an intent whose call may be under way, or was a
// moment ago.
func (c *change) sentRecently(a *Attempt) bool {
	return a.State == mediagate.AttemptIntent && c.now.Before(a.CallEnds.Add(searchTime))
}

// submitParkReason returns the reason to park a task after its attempt could not be made.
func submitParkReason(e StepEnded) mediagate.ParkReason {
	switch {
	case mediagate.ParkReason(e.Code) == mediagate.ParkChannelMissing, e.Kind == mediagate.KindShutOut:
		return mediagate.ParkReason(e.Code)
	case e.Kind == mediagate.KindInternal:
		return mediagate.ParkInternal
	default:
		return mediagate.ParkProviderAway
	}
}

// afterLookup reacts to a lookup that proved neither that there is a job nor that there is none
// (D4, D6).
func (c *change) afterLookup(a *Attempt, e StepEnded) {
	if a.State == mediagate.AttemptIntent {
		c.markUnknown(a, true, mediagate.SenderLost)
	}
	a.Lookups++
	if !e.Failed || a.Lookups >= maxBucketLookups {
		a.LookedAt = c.now
	}
	if a.findable() {
		c.park(mediagate.ParkSubmissionUnknown)
		c.pause(c.now.Add(lookupPauses[min(a.Lookups, len(lookupPauses))-1]))
	}
}

// afterMirror reacts to a copy that failed (D12).
func (c *change) afterMirror(a *Attempt, e StepEnded) {
	switch {
	case mediagate.ParkReason(e.Code) == mediagate.ParkChannelMissing:
		c.park(mediagate.ParkChannelMissing)
	case e.Kind == mediagate.KindInvalid || e.Kind == mediagate.KindTooLarge: // another try would not help
		a.Unusable = &mediagate.Failure{Code: mediagate.CodeResultUnavailable, Message: e.Reason}
	case mediagate.FailureCode(e.Code) == mediagate.CodeResultUnavailable:
		c.park(mediagate.ParkResult)
	case e.Kind == mediagate.KindUnavailable || e.Kind == mediagate.KindTransient:
		c.park(mediagate.ParkStorage)
	default:
		c.park(mediagate.ParkInternal)
	}
}

// applyBreakerClosed lets the task try again if it is parked for one of the reasons. A task with an
// unknown submission is left out: it waits for news of the submission, and a channel that takes
// jobs again brings none.
func (c *change) applyBreakerClosed(e BreakerClosed) {
	if c.open() && c.Wait.Why != mediagate.WhyUnknown && slices.Contains(e.Reasons, c.Wait.Reason) {
		c.tryNow()
	}
}

// applyChannelGone lets the task try its next step now if it is queued for the channel. That step
// looks for another channel.
func (c *change) applyChannelGone(e ChannelGone) {
	if c.open() && slices.Contains(c.QueuedFor, e.Channel) {
		c.tryNow()
	}
}
