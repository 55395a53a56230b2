package workflows_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// checks are what a play must never do, and what it is judged by.
type checks struct {
	violations []string
	stopped    bool           // by force: what follows means nothing
	frozen     mediagate.Task // as it was last seen
	seenAt     time.Time      // then
	sends      []*sending
	lookups    []lookup
	lastPoll   error
	polledAt   time.Time
	signals    int
	settling   time.Time // when the last Settle began,
	settlingOn error     // and what the last poll had said by then
}

// sending is one request that reached the vendor.
type sending struct {
	n          int
	external   string
	at, before time.Time
	fate       string // empty while nobody on our side can know
}

type lookup struct {
	external string
	at       time.Time
	absent   bool
}

// violate notes that a rule was broken.
func (p *play) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.note("!!! %s", text)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.violations = append(p.violations, text)
}

// deadline is that of the task as it counts now: the time that it has been
// parked or queued until now is added (D7, D10), once where it is both.
func (p *play) deadline(t mediagate.Task) time.Time {
	return p.deadlineAt(t, p.env.Now())
}

func (p *play) deadlineAt(t mediagate.Task, now time.Time) time.Time {
	uncounted := time.Duration(0)
	for _, since := range []time.Time{t.ParkedAt, t.QueuedAt} {
		if !since.IsZero() {
			uncounted = max(uncounted, now.Sub(since))
		}
	}
	return t.DeadlineAt.Add(uncounted)
}

// retriedSince reports that an operator has ordered a retry since then, and
// has thereby taken the risk of a second job.
func (p *play) retriedSince(at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.ordered, func(o time.Time) bool { return !o.Before(at) })
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// rounded is more than the database's microseconds take from a time.
const rounded = time.Millisecond

// look compares the row with what it was when it was looked at last.
func (p *play) look() {
	p.mu.Lock()
	t, _ := p.Store.Peek(taskID) // under the lock: whoever looks first must not compare last
	before, last, now, stopped := p.frozen, p.seenAt, p.env.Now(), p.stopped
	p.frozen, p.seenAt = t, now
	most := p.deadlineAt(before, now) // what a parking or a queueing adds, if it goes on
	if len(p.ordered) > 0 && most.Before(now.Add(p.Timeout)) {
		most = now.Add(p.Timeout)
	}
	p.mu.Unlock()
	least, deadline := p.deadlineAt(before, last), p.deadlineAt(t, now)
	if t.Modal.State != before.Modal.State { // it comes after the wait, and what follows has its own time
		own := now.Add(p.Timeout)
		most, least = latest(latest(most, now).Add(t.Plan.Modal), own), earliest(least, own)
	}
	switch {
	case stopped:
	case before.Status.Terminal() && (t.Status != before.Status || t.Cost != before.Cost || !t.EndedAt.Equal(before.EndedAt) ||
		t.Progress != before.Progress || !reflect.DeepEqual(t.Failure, before.Failure) || !reflect.DeepEqual(t.Results, before.Results)):
		p.violate("D13: a row that has ended changed: %+v, was %+v", t, before)
	case t.Progress < before.Progress:
		p.violate("D8: the progress fell from %d to %d", before.Progress, t.Progress)
	case t.Modal.State != before.Modal.State: // a wait moves the deadline behind itself, and its own time follows it
	case t.DeadlineAt.Before(before.DeadlineAt):
		p.violate("D10: the deadline went back from %v to %v", before.DeadlineAt.Sub(start), t.DeadlineAt.Sub(start))
	case !t.Status.Terminal() && (deadline.Before(least.Add(-rounded)) || deadline.After(most.Add(rounded))):
		p.violate("D10: the deadline is %v, where it may be from %v to %v", deadline.Sub(start), least.Sub(start), most.Sub(start))
	case t.Status.Terminal() && slices.ContainsFunc(p.Store.Awaits(), func(w mediagate.Await) bool { return !w.Ended }):
		p.violate("D5: a row waits though the task has ended")
	}
}

// opened judges an intent that was stored, or opened again.
func (p *play) opened(before mediagate.Task, n int) {
	switch late := p.env.Now().Sub(p.deadline(before)); {
	case late > 0:
		p.violate("D3: the intent of attempt %d was stored %v after the deadline", n, late)
	case !before.CancelRequestedAt.IsZero():
		p.violate("D3: the intent of attempt %d was stored after the cancel", n)
	}
}

// reopened judges that an intent was opened again: two lookups must have
// found nothing, far enough apart, after the call could no longer be under way.
func (p *play) reopened(row mediagate.Attempt) {
	s := p.Activities.Settings
	operation, _ := p.Descriptions.Operation(row.Route)
	settled := row.SendBefore.Add(operation.Submit + s.ClockSkew)
	p.mu.Lock()
	var first time.Time
	proven := false
	for _, l := range p.lookups {
		switch {
		case l.external != row.ExternalID || !l.absent || l.at.Before(settled):
		case first.IsZero():
			first = l.at
		case l.at.Sub(first) >= s.AbsentGap-rounded:
			proven = true
		}
	}
	p.mu.Unlock()
	if !proven {
		p.violate("D4: attempt %d is sent again without two lookups that found nothing, %v apart", row.N, s.AbsentGap)
	}
}

// sent judges a request that reaches the vendor.
func (p *play) sent(request mediagate.Job) *sending {
	s := &sending{external: request.ExternalID, at: p.env.Now()}
	rows := p.Store.Attempts(taskID)
	states := map[int]mediagate.AttemptState{}
	for _, a := range rows {
		states[a.N] = a.State
		if a.ExternalID == request.ExternalID {
			s.n, s.before = a.N, a.SendBefore
		}
	}
	p.mu.Lock()
	earlier := slices.Clone(p.sends)
	p.sends = append(p.sends, s)
	p.mu.Unlock()
	t, _ := p.Store.Peek(taskID)
	for _, e := range earlier {
		allowed := p.retriedSince(e.at) || t.Modal.Resumes(s.n) && e.n <= t.Modal.N
		switch {
		case e.n == s.n && e.before.Equal(s.before):
			p.violate("D3: attempt %d was sent twice under one intent", s.n)
		case e.external == s.external: // which the vendor takes once
			e.fate = "proven absent"
		case e.fate == "" && !allowed:
			p.violate("D6: attempt %d was sent while the fate of attempt %d was open", s.n, e.n)
		case e.fate == "accepted" && !allowed:
			p.violate("D3: attempt %d was sent though the vendor took attempt %d", s.n, e.n)
		case states[e.n] != mediagate.AttemptRejected && states[e.n] != mediagate.AttemptEnded:
			p.violate("D3: attempt %d was sent while attempt %d is %s", s.n, e.n, states[e.n])
		}
	}
	if late := s.at.Sub(p.deadline(t)); late > p.Activities.Settings.SendWindow {
		p.violate("D3: attempt %d was sent %v after the deadline", s.n, late)
	}
	return s
}

// answered notes what our side learned of a request.
func (p *play) answered(s *sending, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		s.fate = "accepted"
	case !mediagate.Is(err, mediagate.KindAmbiguous):
		s.fate = "refused"
	}
}

func (p *play) lookedUp(external string, err error) {
	p.note("vendor: lookup of %s: %v", external, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lookups = append(p.lookups, lookup{external, p.env.Now(), mediagate.Is(err, mediagate.KindNotFound)})
}

func (p *play) polled(err error) {
	if err != nil {
		p.note("vendor: poll: %v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastPoll, p.polledAt = err, p.env.Now()
}

// most is how many activities of a task may begin within a minute, besides
// those that a signal asks for.
const most = 30

// busy judges the pace of a task's activities.
func (p *play) busy(name string) {
	p.mu.Lock()
	at := p.env.Now()
	p.starts = append(p.starts, at)
	i, allowed := len(p.starts)-1, most+3*p.signals
	hot := i >= allowed && at.Sub(p.starts[i-allowed]) < time.Minute
	if hot {
		p.starts = nil // once is enough
	}
	p.mu.Unlock()
	if hot {
		p.violate("a hot loop: more than %d activities within a minute, %s now", allowed, name)
		p.stop()
	}
}

// settled judges the end that was written.
func (p *play) settled(before mediagate.Task, rows []mediagate.Attempt, end mediagate.Settlement) {
	t, _ := p.Store.Peek(taskID)
	p.note("settled: %s %+v", t.Status, t.Failure)
	var last mediagate.Attempt
	if len(rows) > 0 {
		last = rows[len(rows)-1]
	}
	p.mu.Lock()
	polledAt, settling, settlingOn := p.polledAt, p.settling, p.settlingOn
	p.mu.Unlock()
	var code mediagate.FailureCode
	if t.Failure != nil {
		code = t.Failure.Code
	}
	succeeded := last.Outcome != nil && last.Outcome.Succeeded
	known := succeeded && last.EndedAt.Before(settling) // when the end was decided on
	switch {
	case t.Status == mediagate.StatusCompleted && !before.CancelRequestedAt.IsZero():
		p.violate("D13: a task completed that was to be cancelled")
	case t.Status == mediagate.StatusCompleted && (!succeeded || len(t.Results) == 0 || last.N != end.N):
		p.violate("a task completed without a result")
	case t.Status != mediagate.StatusCompleted && t.Cost != 0, t.Cost < 0, t.Cost > t.Hold:
		p.violate("a %s task costs %s of a hold of %s", t.Status, t.Cost, t.Hold)
	case code == mediagate.CodeGenerationTimeout && p.env.Now().Before(p.deadline(before)):
		p.violate("D10: failed as late %v before the deadline", p.deadline(before).Sub(p.env.Now()))
	case (code == mediagate.CodeGenerationTimeout || code == mediagate.CodeSubmissionUnknown) && known:
		p.violate("D10: failed as %s though the job's success is on record", code)
	case code == mediagate.CodeGenerationTimeout && last.State == mediagate.AttemptAccepted && polledAt.Before(before.DeadlineAt) &&
		p.env.Now().Before(before.DeadlineAt.Add(10*time.Minute)):
		p.violate("D10: failed as late without having been asked for once more")
	case code == mediagate.CodeGenerationTimeout && last.State == mediagate.AttemptAccepted && settlingOn != nil &&
		mediagate.Is(settlingOn, mediagate.KindNotFound):
		p.violate("D11: failed as late for a job that the vendor does not know, instead of parked")
	}
}

// final judges the play as a whole.
func (p *play) final() {
	if p.stopped {
		return
	}
	t, _ := p.Store.Peek(taskID)
	if n := len(p.Store.Settlements(taskID)); n != 1 {
		p.violate("the task was settled %d times", n)
	}
	made := 0
	for _, j := range p.jobs {
		if !j.stopped {
			made++
		}
	}
	if made > 1 && len(p.ordered) == 0 {
		p.violate("the vendor made %d jobs though nobody ordered a second", made)
	}
	objects := p.Bucket.Objects()
	switch {
	case t.Status == mediagate.StatusCompleted && len(objects) == 0:
		p.violate("the files of a completed task are gone")
	case t.Status != mediagate.StatusCompleted && len(objects) > 0:
		p.violate("D13: files of a %s task are left: %v", t.Status, objects)
	}
	p.finalCallback(t)
}

// finalCallback judges the callback: pending exactly for tasks that ended on their
// own, and the same bytes each time.
func (p *play) finalCallback(t mediagate.Task) {
	bodies := p.Deliverer.Bodies()
	switch {
	case t.Webhook == nil:
		if len(bodies) > 0 {
			p.violate("D14: a callback that nobody asked for")
		}
	case t.Status == mediagate.StatusCancelled:
		if len(bodies) > 0 || t.Webhook.Round != 0 || t.Webhook.State != mediagate.WebhookDropped {
			p.violate("D14: a cancelled task's callback is %+v, sent %d times", *t.Webhook, len(bodies))
		}
	case t.Webhook.Round != 1 || t.Webhook.State == mediagate.WebhookPending || len(bodies) == 0:
		p.violate("D14: the callback of a %s task is %+v, sent %d times", t.Status, *t.Webhook, len(bodies))
	}
	for _, body := range bodies {
		if !bytes.Equal(body, bodies[0]) {
			p.violate("D14: two callbacks differ")
		}
	}
}
