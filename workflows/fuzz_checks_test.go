package workflows_test

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// checks is what a play needs to find a broken rule.
type checks struct {
	violations []string
	frozen     task.State // the task when it was seen last
	sends      []*sending
	ordered    []time.Time // retries and reroutes, by which an operator allows a second job
	starts     []time.Time // the beginnings of steps and questions
	signals    int
}

// sending is one request that reached the vendor.
type sending struct {
	n              int
	external       string
	at, before     time.Time
	open, accepted bool // as far as the gateway can know
}

// violate notes that a rule was broken.
func (p *play) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.note("!!! %s", text)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.violations = append(p.violations, text)
}

// checkTask compares the task with its state at the last check.
func (p *play) checkTask() {
	p.mu.Lock()
	now, before := p.peek(), p.frozen // under the lock: the first reader must not be the last to compare
	p.frozen = now
	p.mu.Unlock()
	same := now.Status == before.Status && now.Cost == before.Cost && now.EndedAt.Equal(before.EndedAt) &&
		now.Progress == before.Progress &&
		reflect.DeepEqual(now.Failure, before.Failure) && reflect.DeepEqual(now.Results, before.Results)
	switch {
	case before.ID == "":
	case before.Status.Terminal() && !same:
		p.violate("D13: a task that has ended changed: %+v, was %+v", now, before)
	case now.Progress < before.Progress:
		p.violate("D8: the progress fell from %d to %d", before.Progress, now.Progress)
	case now.Status == mediagate.StatusCompleted && !before.CancelRequestedAt.IsZero() && !same:
		p.violate("D13: a task completed that was to be cancelled")
	}
}

// sent checks a request that reaches the vendor against the earlier ones.
func (p *play) sent(request mediagate.Job) *sending {
	s, st := &sending{external: request.ExternalID, at: p.env.Now(), open: true}, p.peek()
	for _, a := range st.Attempts {
		if a.ExternalID == request.ExternalID {
			s.n, s.before = a.N, a.SendBefore
		}
	}
	p.mu.Lock()
	earlier, ordered := slices.Clone(p.sends), slices.Clone(p.ordered)
	p.sends = append(p.sends, s)
	p.mu.Unlock()
	for _, e := range earlier {
		leave := slices.ContainsFunc(ordered, func(o time.Time) bool { return !o.Before(e.at) }) ||
			st.Modal.Resumes(s.n) && e.n <= st.Modal.N
		switch {
		case e.n == s.n && e.before.Equal(s.before):
			p.violate("D3: attempt %d was sent twice under one intent", s.n)
		case e.external != s.external && e.open && !leave: // the vendor takes each name once
			p.violate("D6: attempt %d was sent while it was open what became of attempt %d", s.n, e.n)
		case e.external != s.external && e.accepted && !leave:
			p.violate("D3: attempt %d was sent though the vendor took attempt %d", s.n, e.n)
		}
	}
	return s
}

// most is how many steps and questions of a task may begin within a minute, apart from those that
// signals cause.
const most = 60

// pace checks that the run does not loop without a pause.
func (p *play) pace() {
	p.mu.Lock()
	p.starts = append(p.starts, p.env.Now())
	i, allowed := len(p.starts)-1, most+3*p.signals
	hot := i >= allowed && p.starts[i].Sub(p.starts[i-allowed]) < time.Minute
	p.mu.Unlock()
	if hot {
		p.violate("a hot loop: more than %d steps within a minute", allowed)
		p.stop()
	}
}

// final checks the play as a whole.
func (p *play) final() {
	st, end := p.peek(), p.Store.End(taskID)
	entry := mediagate.EntryVoid
	if st.Status == mediagate.StatusCompleted {
		entry = mediagate.EntryPost
	}
	if end.Times != 1 || end.Entry != entry || end.Cost != st.Cost || st.Cost > st.Hold ||
		entry == mediagate.EntryVoid && st.Cost != 0 {
		p.violate("a %s task costs %s, and its hold was resolved so: %+v", st.Status, st.Cost, end)
	}
	made := slices.DeleteFunc(p.jobs, func(j *job) bool { return j.stopped })
	if len(made) > 1 && len(p.ordered) == 0 {
		p.violate("the vendor made %d jobs though nobody ordered a second", len(made))
	}
	if files := len(p.Bucket.Objects()); (files > 0) != (st.Status == mediagate.StatusCompleted) {
		p.violate("D13: a %s task has %d files", st.Status, files)
	}
	if wakes := p.see().wakes; len(wakes) > 0 {
		p.violate("D2: wakes are left: %+v", wakes)
	}
	bodies, sent := p.Deliverer.Bodies(), p.Callback && st.Status != mediagate.StatusCancelled
	if len(p.Lapses) > 0 { // the database does not know what was sent before
		return
	}
	if sent != (len(bodies) > 0) || sent != (st.Webhook.Round == 1) || st.Webhook.State == mediagate.WebhookPending {
		p.violate(
			"D14: the callback of a %s task is %q in round %d, sent %d times", st.Status, st.Webhook.State, st.Webhook.Round,
			len(bodies),
		)
	}
	if slices.ContainsFunc(bodies, func(b []byte) bool { return !bytes.Equal(b, bodies[0]) }) {
		p.violate("D14: two callbacks differ")
	}
}

// processDied is the value of the panics that stand for the death of a process.
const processDied = "the process died"

var errDatabaseAway = mediagate.Errorf(mediagate.KindUnavailable, "the database is away")

// fault returns what a call to the database meets before it does anything.
func (p *play) fault(method string) error {
	how := p.slipped(method)
	switch {
	case how == "before" || how != "" && (method == "TaskByID" || method == "Attempt"): // reading has no effect
		p.note("%s is lost before it took effect", method)
	case during(p.Away, p.elapsed()) == "":
		return nil
	case method == "Change":
		p.env.RegisterDelayedCallback(func() {}, time.Second) // so that time passes for a caller that tries again
	}
	return errDatabaseAway
}

// lose loses the answer of a call that took effect.
func (p *play) lose(ctx context.Context, method string) error {
	p.changes.Add(1)
	p.checkTask()
	p.mu.Lock()
	how := p.slip(method)
	p.mu.Unlock()
	switch {
	case how == "" || how == "before":
		return nil
	case how == "dead" && ctx.Value(gentle{}) == nil:
		p.note("the process dies after %s", method)
		panic(processDied)
	default:
		p.note("the answer of %s is lost", method)
		return errDatabaseAway
	}
}

// slipped counts a call of the method, and says what goes wrong with it.
func (p *play) slipped(method string) string {
	p.nth(method)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slip(method)
}

func (p *play) slip(method string) string {
	for _, l := range p.Lost {
		if l.Method == method && l.Nth == p.calls[method] {
			return l.What
		}
	}
	return ""
}

// nth counts the calls of a method.
func (p *play) nth(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[method]++
	return p.calls[method]
}
