package task

import (
	"cmp"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// Of plans that do not say how long, or that cannot be read.
const (
	defaultParkTimeout  = 24 * time.Hour
	defaultParkRetry    = 5 * time.Minute
	defaultQueueTimeout = 24 * time.Hour
)

const (
	// troublePause is the least between two tries of polling after a trouble. A channel
	// takes so long to find that the trouble is still there.
	troublePause = 2 * time.Minute
	// stepPause is the pause before a step that changed nothing is taken again.
	stepPause = 15 * time.Second
	// maxBucketLookups is how often the bucket is asked for the files of a lost sender
	// while it does not answer.
	maxBucketLookups = 5
	// lastAnswer is how long a task waits after its deadline for the vendor's last answer
	// (D10).
	lastAnswer = 10 * time.Minute
)

// lookupPauses are the pauses between the lookups of a parked, lost submission (D6).
var lookupPauses = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

// parkRetry is how long a parked step rests, spread a little.
func (s *State) parkRetry(now time.Time) time.Duration {
	return jitter(now, max(cmp.Or(s.Plan.ParkRetry, defaultParkRetry), time.Second))
}

// wait has the task wait, until tryAt for its next try. If the task waits already, the new
// wait keeps the begin of the old one, and the earlier of both ends (D12). It begins anew
//   - after a pause, after the wait for the last answer, and after one for an unknown
//     submission that does not show as stuck;
//   - where it is for modal parameters;
//   - where it is for an unknown submission and the old one was not, or the other way round.
//
// A task that queues without trouble after a trouble begins anew as well: see queued.
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

// waitEnds is when a wait that begins now ends.
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
	case why == mediagate.WhyUnknown && !c.failsUnknown(a):
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
	case c.late(c.now) && c.nothingAtVendor():
		return c.now // no attempt may follow any more (D3)
	default:
		return c.now.Add(cmp.Or(c.Plan.ParkTimeout, defaultParkTimeout))
	}
}

// endWait ends the wait. Its time moves the deadline (D10).
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

// leaveQueue ends the waiting for a slot. A task that was queued because it is stuck stays
// stuck.
func (c *change) leaveQueue() {
	switch {
	case c.Wait.Why != mediagate.WhySlot:
	case c.Wait.Reason == "":
		c.endWait()
	default:
		c.wait(mediagate.WhyParked, c.Wait.Reason, time.Time{})
	}
}

// park makes the task visible as stuck, and sets the next try.
func (c *change) park(reason mediagate.ParkReason) {
	why := mediagate.WhyParked
	if reason == mediagate.ParkSubmissionUnknown {
		why = mediagate.WhyUnknown
	}
	c.wait(why, reason, c.now.Add(c.parkRetry(c.now)))
}

// resume ends the wait, after a step succeeded.
func (c *change) resume() {
	c.endWait()
	if a := c.Last(); a != nil {
		a.Lookups = 0
	}
}

// applyAsked takes over what the run has seen and the row lacks (D5), and does what is due by
// time, except to end the task: Settle does that. It parks an unreadable task, puts back an
// attempt that the row may have lost (D17), and has the channel poll again after a trouble
// (D11), or a last time (D10).
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
	c.takeOver(e.Seen)
	if !c.open() {
		return
	}
	c.mendWait()
	c.askSources()
	c.putBackNext()
	if a := c.Last(); a != nil && a.Trouble != "" && c.awaited(a.N) != nil && !c.now.Before(c.Wait.TryAt) { // D11
		a.Trouble, a.Await = "", &Await{NextPollAt: c.now}
		c.pause(c.now.Add(max(c.parkRetry(c.now), troublePause)))
	}
	if a := c.awaited(c.lastN()); a != nil && c.late(c.now) && (c.Wait.Why == "" || c.Wait.Why == mediagate.WhyPause) {
		c.askLast(a)
	}
}

// mendWait gives a task that is unknown, or waits for its client, its own wait again. Such
// a task has another wait only if its row could not be read for a while, and parked.
func (c *change) mendWait() {
	a := c.Last()
	switch {
	case c.waitsForClient() && c.Wait.Why != mediagate.WhyModal:
		c.wait(mediagate.WhyModal, "", time.Time{})
	case a == nil || a.State != mediagate.AttemptUnknown || !a.AbsentAgainAt.IsZero():
	case c.Wait.Why != mediagate.WhyUnknown:
		c.endWait()
		c.waitUnknown(a)
	}
}

// applyStepEnded reacts to how a step ended. What the step achieved came before, as an
// event of its own. If it is still the next step, it achieved nothing, and is taken
// again only after a pause. If it is not, the report is late or not needed.
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
		c.Granted = false // a slot that the step could not use is given back
	}
}

func (c *change) afterStep(e StepEnded) {
	a := c.Attempt(e.N)
	storage := mediagate.ParkReason(e.Code) == mediagate.ParkStorage
	switch {
	case e.Step == CancelJob:
		a.StopTried = true
	case e.Step == Lookup:
		c.lookupEnded(a, e)
	case !e.Failed:
	case e.Step == Mirror:
		c.mirrorEnded(a, e)
	case e.Step == CheckInputs && storage:
		c.park(mediagate.ParkStorage)
	case e.Kind == mediagate.KindUnavailable: // our database was away: the row decides
	case e.Step == CheckInputs:
		c.park(mediagate.ParkInternal)
	case e.Step == Submit && a != nil && c.sentJustNow(a): // the next try finds out what became of it
	case e.Step == Submit:
		c.park(submitTrouble(e))
	}
}

// sentJustNow reports an intent whose call may be under way, or was a moment ago.
func (c *change) sentJustNow(a *Attempt) bool {
	return a.State == mediagate.AttemptIntent && c.now.Before(a.CallEnds.Add(searchTime))
}

// submitTrouble is the reason for which a task parks whose attempt could not be made.
func submitTrouble(e StepEnded) mediagate.ParkReason {
	switch {
	case mediagate.ParkReason(e.Code) == mediagate.ParkChannelMissing, e.Kind == mediagate.KindShutOut:
		return mediagate.ParkReason(e.Code)
	case e.Kind == mediagate.KindInternal:
		return mediagate.ParkInternal
	default:
		return mediagate.ParkProviderAway
	}
}

// lookupEnded reacts to a lookup that found neither a job nor its absence (D4, D6).
func (c *change) lookupEnded(a *Attempt, e StepEnded) {
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

// mirrorEnded reacts to a copy that failed (D12).
func (c *change) mirrorEnded(a *Attempt, e StepEnded) {
	switch {
	case mediagate.ParkReason(e.Code) == mediagate.ParkChannelMissing:
		c.park(mediagate.ParkChannelMissing)
	case e.Kind == mediagate.KindInvalid || e.Kind == mediagate.KindTooLarge: // no repetition would mend them
		a.Unusable = &mediagate.Failure{Code: mediagate.CodeResultUnavailable, Message: e.Reason}
	case mediagate.FailureCode(e.Code) == mediagate.CodeResultUnavailable:
		c.park(mediagate.ParkResult)
	case e.Kind == mediagate.KindUnavailable || e.Kind == mediagate.KindTransient:
		c.park(mediagate.ParkStorage)
	default:
		c.park(mediagate.ParkInternal)
	}
}

func (c *change) applyBreakerClosed(e BreakerClosed) {
	if c.open() && c.Wait.Why != mediagate.WhyUnknown && slices.Contains(e.Reasons, c.Wait.Reason) {
		c.tryNow()
	}
}

func (c *change) applyChannelGone(e ChannelGone) {
	if c.open() && slices.Contains(c.QueuedFor, e.Channel) {
		c.tryNow()
	}
}
