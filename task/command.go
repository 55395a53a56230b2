package task

import (
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// CommandOf returns the event of an operator's command, or nil for an unknown action. The event
// names no step, so it applies to whatever step the task is at. Only a reroute uses the channel.
func CommandOf(action, channel string) Event {
	switch action {
	case mediagate.ActionRetry:
		return RetryRequested{}
	case mediagate.ActionReroute:
		return RerouteRequested{Channel: channel}
	case mediagate.ActionFail:
		return FailRequested{}
	case mediagate.ActionPollNow:
		return PollRequested{}
	case mediagate.ActionRedeliver:
		return RedeliverRequested{}
	default:
		return nil
	}
}

// SkipReason says why a command does not apply to a task. A job for many tasks skips such a task.
type SkipReason string

// The reasons to skip a task.
const (
	SkipEnded      SkipReason = "ended"            // the task has ended
	SkipEnding     SkipReason = "ending"           // a cancel or a fail was requested
	SkipOpen       SkipReason = "open"             // a redeliver needs a task that has ended
	SkipNoCallback SkipReason = "no_callback"      // no callback can be sent again
	SkipUnreadable SkipReason = "unreadable"       // a document of the task cannot be decoded
	SkipClient     SkipReason = "waits_for_client" // the task waits for modal parameters
	SkipSource     SkipReason = "waits_for_source" // the task waits for the tasks whose files it uses
	SkipNotPolled  SkipReason = "not_polled"       // no channel polls for the task's job
	SkipAtWork     SkipReason = "at_work"          // a step or a call is at work, and has to end first
	SkipDecided    SkipReason = "decided"          // an outcome or a refusal decides how the task ends
	SkipChannel    SkipReason = "channel"          // the channel of the reroute does not serve the model
)

// SkipReason returns why an operator's command does not apply now, or "" if it does. [State.Actions]
// decides whether it applies. SkipReason never returns SkipChannel, since a state does not know the
// channels.
func (s *State) SkipReason(action string, now time.Time) SkipReason {
	a := s.Last()
	switch {
	case slices.Contains(s.Actions(now), action):
		return ""
	case action == mediagate.ActionRedeliver && s.open():
		return SkipOpen
	case action == mediagate.ActionRedeliver:
		return SkipNoCallback
	case !s.open():
		return SkipEnded
	case !s.CancelRequestedAt.IsZero() || !s.FailRequestedAt.IsZero():
		return SkipEnding
	case s.Unreadable:
		return SkipUnreadable
	case s.waitsForClient():
		return SkipClient
	case s.needsSources():
		return SkipSource
	case action == mediagate.ActionPollNow:
		return SkipNotPolled
	case action == mediagate.ActionReroute && (a == nil || a.State != mediagate.AttemptIntent):
		return SkipDecided
	default:
		return SkipAtWork
	}
}

// applyCancelRequested notes the cancel. The next step then ends the task, after the call that
// may be under way.
func (c *change) applyCancelRequested() error {
	if !c.open() {
		return conflict("the task has ended")
	}
	if c.CancelRequestedAt.IsZero() {
		c.CancelRequestedAt = c.now
	}
	return nil
}

// applyFailRequested notes the fail. After an accepted cancel it is refused, since the task ends
// as cancelled.
func (c *change) applyFailRequested() error {
	if !c.open() || !c.CancelRequestedAt.IsZero() {
		return c.notOffered(mediagate.ActionFail)
	}
	if c.FailRequestedAt.IsZero() {
		c.FailRequestedAt = c.now
	}
	return nil
}

// sleepsOn reports whether the next step is still the sleep during which a command was given. If it
// is not, the command comes late or twice, and does nothing. It returns true for a command
// that names no step.
func (c *change) sleepsOn(step Step) bool {
	if step.Kind == "" {
		return true
	}
	now := c.Advance(c.now)
	return now.Kind == step.Kind && now.N == step.N && now.Why == step.Why
}

func (c *change) offers(action string) bool { return slices.Contains(c.Actions(c.now), action) }

// applyRetryRequested has the task try its step now. An unknown attempt is given up if its vendor
// cannot be asked, or if the row knows only its number and name. Any other attempt stays, and the
// pauses between its lookups begin anew.
func (c *change) applyRetryRequested(e RetryRequested) error {
	if !c.sleepsOn(e.For) {
		return nil
	}
	if !c.offers(mediagate.ActionRetry) {
		return c.notOffered(mediagate.ActionRetry)
	}
	c.TailLost = false // the operator takes the risk
	if a := c.Last(); a != nil {
		unknown := a.State == mediagate.AttemptUnknown && a.AbsentAgainAt.IsZero()
		if unknown && (!a.findable() || a.unidentified()) {
			c.stopWaitingFor(a)
		} else {
			a.Lookups = 0
		}
	}
	if c.Wait.Why == mediagate.WhyUnknown {
		c.endWait()
		c.waitUnknown()
	}
	c.retryNow()
	return nil
}

// applyRerouteRequested gives up the last attempt, and lets the next one go to the named channel.
func (c *change) applyRerouteRequested(e RerouteRequested) error {
	if !c.sleepsOn(e.For) {
		return nil
	}
	if !c.offers(mediagate.ActionReroute) {
		return c.notOffered(mediagate.ActionReroute)
	}
	c.TailLost = false
	if a := c.Last(); a != nil {
		c.stopWaitingFor(a)
	}
	c.endWait()
	c.RerouteTo = e.Channel
	c.retryNow()
	return nil
}

// stopWaitingFor closes an attempt on an operator's command, so that another may follow. If its
// job succeeds later, that is only recorded (D9).
func (c *change) stopWaitingFor(a *Attempt) {
	if a.State == mediagate.AttemptRejected || a.State == mediagate.AttemptEnded {
		return
	}
	c.abandon(a)
	a.GivenUpAt, a.Error = c.now, "given up"
	c.endWait()
}

// retryNow has the next step tried at once, and gives the task as much time as a new one has
// (D10). It never moves the deadline to an earlier time.
func (c *change) retryNow() {
	c.tryNow()
	if c.Wait.Why == mediagate.WhyVendor {
		c.endWait()
	}
	c.Refusals = 0
	moved := c.WaitsUntil(c.now).Sub(c.DeadlineAt)
	if deadline := c.now.Add(c.Plan.Timeout - moved); deadline.After(c.DeadlineAt) {
		c.DeadlineAt = deadline
	}
	if c.Wait.Why == mediagate.WhyUnknown { // the end of this wait depends on the deadline
		c.Wait.EndsAt = c.waitEnds(c.Wait.Why)
	}
}

// applyPollRequested has the channel poll for the last attempt now.
func (c *change) applyPollRequested() error {
	if !c.offers(mediagate.ActionPollNow) {
		return c.notOffered(mediagate.ActionPollNow)
	}
	c.pollNow(c.Last())
	return nil
}

// applyModalGiven stores the client's parameters. The next attempt takes them to the vendor, and
// continues the same job (D15).
func (c *change) applyModalGiven(e ModalGiven) error {
	a := c.Attempt(c.Modal.N)
	ending := !c.CancelRequestedAt.IsZero() || !c.FailRequestedAt.IsZero() || !c.now.Before(c.Wait.EndsAt)
	if !c.open() || c.Unreadable || c.Wait.Why != mediagate.WhyModal || a == nil || ending {
		return conflict("the task does not wait for modal parameters")
	}
	c.Modal.State, c.Modal.Input = mediagate.ModalSubmitted, e.Input
	c.endWait()
	c.Status, c.DeadlineAt = mediagate.StatusPending, c.now.Add(c.Plan.Timeout)
	if a.Outcome == nil {
		c.close(a, mediagate.AttemptEnded)
	}
	return nil
}

// redeliverable reports whether the task has a callback that can be sent again.
func (s *State) redeliverable() bool {
	sent := s.Webhook.State != "" && s.Webhook.State != mediagate.WebhookDropped
	return !s.open() && s.ErasedAt.IsZero() && s.Webhook.Round > 0 && sent
}

// applyRedeliverRequested begins the next round of the callback.
func (c *change) applyRedeliverRequested() error {
	if !c.redeliverable() {
		return c.notOffered(mediagate.ActionRedeliver)
	}
	c.Webhook.Round++
	c.Webhook.State, c.Webhook.Reason = mediagate.WebhookPending, ""
	return nil
}

// applyDelivered notes how a round ended. Only the latest round counts, and a delivered callback
// stays delivered (D14).
func (c *change) applyDelivered(e Delivered) {
	open := c.Webhook.State != "" && c.Webhook.State != mediagate.WebhookDelivered
	if open && e.State != "" && e.Round == c.Webhook.Round {
		c.Webhook.State, c.Webhook.Reason = e.State, e.Reason
	}
}
