package storagetest

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// What the actors of a storm do.

// change applies events to a task, and holds what is true of every change: a task ends
// once, costs no more than its hold, and has a next step. Commands may be refused.
func (a *actor) change(t *stormTask, events ...task.Event) (task.Changed, bool) {
	changed, err := a.Change(a.Context(), t.id, events...)
	return changed, a.changed(t, changed, err)
}

func (a *actor) changed(t *stormTask, changed task.Changed, err error, kinds ...mediagate.Kind) bool {
	if !a.fine("change", err, append(kinds, mediagate.KindConflict)...) {
		return false
	}
	s, step := changed.State, changed.Step
	if changed.Effects.Entry != "" {
		a.first("the end of %s", t.id)
	}
	if s.Cost > t.hold || (step.Kind == task.Done) != s.Status.Terminal() || step.Kind == task.Sleep && !step.Until.After(changed.At) {
		a.Errorf("%s is %s at a cost of %s, held %s, and the next step is %+v", t.id, s.Status, s.Cost, t.hold, step)
	}
	return true
}

// choose takes any task and reads its state; false where there is none.
func (a *actor) choose() (*stormTask, *task.State, bool) {
	t := a.any()
	if t == nil {
		return nil, nil, false
	}
	s, err := a.State(a.Context(), t.id, 0)
	return t, &s, a.fine("state", err)
}

// attempted is choose for a task that has an attempt: mostly the last one's number,
// and when that was to be sent.
func (a *actor) attempted() (t *stormTask, n int, sendBefore time.Time, ok bool) {
	t, s, ok := a.choose()
	if !ok || s.Last() == nil {
		return nil, 0, time.Time{}, false
	}
	last := s.Last()
	if a.dice.IntN(6) == 0 {
		return t, 1 + a.dice.IntN(last.N), last.SendBefore, true
	}
	return t, last.N, last.SendBefore, true
}

func (a *actor) submit() {
	p := a.payer()
	n := a.draft(p, mediagate.Micros(a.dice.Int64N(int64(unit(3)))))
	n.Task.DeadlineAt = a.now().Add(time.Duration(1+a.dice.IntN(1200)) * time.Second)
	body := "body"
	if a.dice.IntN(3) == 0 {
		n.IdempotencyKey = fmt.Sprint("key-", a.dice.IntN(6))
		body = fmt.Sprint("body-", a.dice.IntN(2))
		n.BodySHA256 = sha256.Sum256([]byte(body))
	}
	id, replayed, err := a.Submit(a.Context(), n)
	if !a.fine("submit", err, mediagate.KindPayment, mediagate.KindRateLimited, mediagate.KindConflict, mediagate.KindUnauthenticated) {
		return
	}
	if replayed == (id == n.Task.ID) {
		a.Errorf("submit of %s: %s, replayed %v", n.Task.ID, id, replayed)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if n.IdempotencyKey != "" {
		slot, reply := p.account+"/"+n.IdempotencyKey, body+"/"+id
		if was, ok := a.replies[slot]; ok && was != reply {
			a.Errorf("the idempotency key %s was answered with %s, and before with %s", slot, reply, was)
		}
		a.replies[slot] = reply
	}
	if !replayed {
		t := &stormTask{id: id, account: p.account, hold: n.Task.Hold}
		a.tasks, a.byID[id] = append(a.tasks, t), t
	}
}

// open stores the intent of a task's next attempt.
func (a *actor) open() {
	if t, s, ok := a.choose(); ok {
		a.openNext(t, s)
	}
}

func (a *actor) openNext(t *stormTask, s *task.State) {
	n, asked, channel := 1, a.now(), a.channel()
	if last := s.Last(); last != nil {
		n = last.N + 1
	}
	intent := intentOf(t.id, n, asked)
	intent.Channel, intent.Route.Sync, intent.CanStop = channel, a.dice.IntN(3) == 0, a.dice.IntN(2) == 0
	intent.ExternalID, _ = s.NextExternalID()
	changed, err := a.OpenIntent(a.Context(), t.id, stormSlots(channel), intent)
	if !a.changed(t, changed, err, mediagate.KindCapacity) {
		return
	}
	a.first("the intent of attempt %d of %s", n, t.id)
	if s := changed.State; s.ParkedAt.IsZero() && s.DeadlineAt.Before(asked) {
		a.Errorf("attempt %d of %s was opened at %v, after the deadline %v", n, t.id, asked, s.DeadlineAt)
	}
}

// stormSlots are those of the storm's channels: one has no limit.
func stormSlots(channel string) mediagate.Slots {
	slots := mediagate.Slots{Names: []string{channel}}
	if channel == "channel-1" {
		slots.Limit = 4
	}
	return slots
}

func (a *actor) queueUp() {
	if t, s, ok := a.choose(); ok {
		n := 1
		if last := s.Last(); last != nil {
			n = last.N + 1
		}
		a.change(t, task.Queued{N: n, Channels: []string{"channel-1", "channel-0"}[:1+a.dice.IntN(2)], Well: a.dice.IntN(2) == 0})
	}
}

// grantSlots is what a channel's poller does, of the newest epoch unless another
// has begun meanwhile.
func (a *actor) grantSlots() {
	channel := a.channel()
	a.mu.Lock()
	newest := a.storm.epochs[channel]
	a.mu.Unlock()
	got, err := a.GrantSlots(a.Context(), mediagate.Granting{
		Channel: channel, Epoch: newest, Slots: stormSlots(channel), Most: 1 + a.dice.IntN(5), TakeBack: time.Duration(1+a.dice.IntN(60)) * time.Second,
	})
	if limit := stormSlots(channel).Limit; a.fine("grant", err, mediagate.KindConflict) && limit > 0 && len(got.Tasks) > limit {
		a.Errorf("%d slots were granted of %d", len(got.Tasks), limit)
	}
}

func (a *actor) outcome() *mediagate.Outcome {
	o := mediagate.Outcome{Succeeded: a.dice.IntN(3) > 0, VendorText: fmt.Sprint(a.dice.Uint64())}
	if !o.Succeeded {
		o.Failure = &mediagate.Failure{Code: mediagate.CodeGenerationFailed, Message: "no"}
	}
	return &o
}

// step asks for a task's next step and takes it, as its run does.
func (a *actor) step() {
	t := a.any()
	if t == nil {
		return
	}
	asked, ok := a.change(t, task.Asked{})
	if !ok {
		return
	}
	s, step := asked.State, asked.Step
	switch step.Kind {
	case task.Submit:
		if s.Attempt(step.N) == nil {
			a.openNext(t, &s)
		} else {
			a.change(t, task.SubmitUnknown{N: step.N, SendBefore: s.Last().SendBefore, SenderLost: true})
		}
	case task.Mirror:
		a.change(t, task.Mirrored{N: step.N, Results: files(t.id)})
	case task.CancelJob:
		if a.dice.IntN(2) == 0 {
			a.change(t, task.StopProven{N: step.N})
		}
	case task.Settle:
		a.change(t, task.EndDue{})
	case task.CheckInputs, task.Lookup, task.Poll, task.Sleep, task.Done:
	}
	if step.Kind != task.Sleep && step.Kind != task.Done {
		a.change(t, task.StepEnded{Step: step.Kind, N: step.N}, task.Asked{})
	}
}

// fail has a task's next step fail, for a reason that parks it.
func (a *actor) fail() {
	if t, s, ok := a.choose(); ok {
		step := s.Advance(a.now())
		reasons := []mediagate.ParkReason{mediagate.ParkProviderAway, mediagate.ParkFunds, mediagate.ParkStorage}
		a.change(t, task.StepEnded{Step: step.Kind, N: step.N, Failed: true, Kind: mediagate.KindShutOut, Code: string(reasons[a.dice.IntN(len(reasons))])})
	}
}

// answer is what a vendor says of a submission.
func (a *actor) answer() {
	t, n, sent, ok := a.attempted()
	if !ok {
		return
	}
	switch a.dice.IntN(8) {
	case 0:
		f := mediagate.Failure{Code: mediagate.CodeProviderAway, Message: "full", Retryable: true}
		a.change(t, task.Refused{N: n, SendBefore: sent, Failure: f, Invalid: a.dice.IntN(3) == 0, Elsewhere: a.dice.IntN(2) == 0, Detail: "full"})
	case 1:
		a.change(t, task.SubmitUnknown{N: n, SendBefore: sent, Detail: "lost", SenderLost: a.dice.IntN(2) == 0})
	case 2:
		o := success(mediagate.Micros(1 + a.dice.Int64N(int64(unit(3)))))
		a.change(t, task.Accepted{N: n, Submission: mediagate.Submission{Outcome: &o}})
	default:
		ref := mediagate.JobRef{JobID: fmt.Sprint("job-", a.dice.Uint64()), ExternalID: t.id}
		a.change(t, task.Accepted{N: n, Submission: mediagate.Submission{Ref: ref}, FirstPollAt: a.now()})
	}
}

// resolve goes all the way of a lost attempt, if nobody comes between.
func (a *actor) resolve() {
	t, n, sent, ok := a.attempted()
	if !ok {
		return
	}
	a.change(t, task.SubmitUnknown{N: n, SendBefore: sent, Detail: "lost"})
	for range 2 {
		a.pass(45 * time.Second) // the call is over by then, and the gap between two lookups
		a.change(t, task.NotFound{N: n, SendBefore: sent, AskedAt: a.now()})
	}
	now := a.now()
	before := now.Add(10*time.Second + time.Duration(a.dice.Int64N(1e6))*time.Microsecond)
	if _, ok := a.change(t, task.Reopened{N: n, Absent: sent, SendBefore: before, CallEnds: now.Add(45 * time.Second)}); ok {
		a.first("the intent of attempt %d of %s after that of %v", n, t.id, sent)
	}
}

// record tells how a job ended. What is on record stays.
func (a *actor) record() {
	t, n, _, ok := a.attempted()
	if !ok {
		return
	}
	o := a.outcome()
	changed, ok := a.change(t, task.VendorEnded{N: n, Outcome: *o})
	if !ok || changed.State.Attempt(n) == nil {
		return
	}
	if got := changed.State.Attempt(n).Outcome; got == nil {
		a.Errorf("attempt %d of %s has no outcome", n, t.id)
	} else if got.VendorText == o.VendorText {
		a.first("the outcome of attempt %d of %s", n, t.id)
	}
}

func (a *actor) mirror() {
	if t, n, _, ok := a.attempted(); ok {
		a.change(t, task.Mirrored{N: n, Results: files(t.id), Keep: a.dice.IntN(2) == 0})
	}
}

// takeOver begins a new run of a channel's polling.
func (a *actor) takeOver() {
	channel := a.channel()
	epoch, err := a.BeginEpoch(a.Context(), channel)
	if !a.fine("begin epoch", err) {
		return
	}
	a.first("epoch %d of %s", epoch, channel)
	a.epochs[channel] = epoch
	a.mu.Lock()
	defer a.mu.Unlock()
	a.storm.epochs[channel] = max(a.storm.epochs[channel], epoch)
}

// poll gives the rows of the last claim back, with what was heard, and claims
// new ones.
func (a *actor) poll() {
	channel := a.channel()
	if held := a.claimed[channel]; len(held) > 0 {
		a.reportPolls(channel, held)
	}
	a.mu.Lock()
	newest := a.storm.epochs[channel]
	a.mu.Unlock()
	epoch := a.epochs[channel]
	if epoch == 0 || a.dice.IntN(3) > 0 {
		epoch = newest
	}
	token := fmt.Sprint("claim-", a.dice.Uint64())
	lease := time.Duration(1+a.dice.IntN(60)) * time.Second
	rows, err := a.ClaimDue(a.Context(), channel, epoch, token, lease, 1+a.dice.IntN(6))
	a.claimed[channel] = rows
	if !a.fine("claim", err, mediagate.KindConflict) {
		return
	}
	if epoch < newest {
		a.Errorf("epoch %d of %s claimed rows after epoch %d had begun", epoch, channel, newest)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range rows {
		row := fmt.Sprint(r.TaskID, "/", r.N)
		mine := stormClaim{token, epoch, r.ClaimedAt, r.ClaimedAt.Add(lease)}
		other, ok := a.claims[row] // perhaps of somebody who came later, and is noted sooner
		if ok && other.epoch == epoch && other.from.Before(mine.until) && mine.from.Before(other.until) {
			a.Errorf("row %s was claimed from %v to %v, and from %v to %v", row, other.from, other.until, mine.from, mine.until)
		}
		if !ok || mine.from.After(other.from) {
			a.claims[row] = mine
		}
	}
}

func (a *actor) reportPolls(channel string, rows []mediagate.Await) {
	results := make([]mediagate.PollResult, 0, len(rows))
	tasks := map[string]*stormTask{}
	a.mu.Lock()
	for _, r := range rows {
		if row := fmt.Sprint(r.TaskID, "/", r.N); a.claims[row].token == r.Claim {
			delete(a.claims, row)
		}
		tasks[r.TaskID] = a.byID[r.TaskID]
		p := mediagate.PollResult{
			TaskID: r.TaskID, N: r.N, Progress: a.dice.IntN(130), Answered: a.dice.IntN(2) == 0,
			NextPollAt: a.now().Add(time.Duration(a.dice.IntN(20)) * time.Second),
		}
		switch a.dice.IntN(6) {
		case 0:
			p.Outcome = a.outcome()
		case 1:
			p.Trouble = mediagate.ParkJobLost
		}
		results = append(results, p)
	}
	a.mu.Unlock()
	claim := rows[0].Claim
	left, err := a.StorePolls(a.Context(), channel, claim, results)
	if !a.fine("store polls", err) {
		return
	}
	for _, p := range left {
		switch t := tasks[p.TaskID]; {
		case t == nil: // its submit is not noted yet
		case p.Outcome != nil:
			a.change(t, task.VendorEnded{N: p.N, Outcome: *p.Outcome})
		case p.Trouble != "":
			a.change(t, task.Troubled{N: p.N, Claim: claim, Reason: p.Trouble})
		default:
			a.change(t, task.Progressed{N: p.N, Claim: claim, Percent: p.Progress, NextAt: p.NextPollAt})
		}
	}
}

func (a *actor) cancel() {
	t := a.any()
	if t == nil {
		return
	}
	row, err := a.RequestCancel(a.Context(), t.account, t.id)
	if !a.fine("cancel", err, mediagate.KindConflict, mediagate.KindNotFound) {
		return
	}
	if row.Status.Terminal() && row.Status != mediagate.StatusCancelled || row.CancelRequestedAt.IsZero() { // it is read once it is stored, and may have ended
		a.Errorf("a cancel of %s was promised: %s, requested %v", t.id, row.Status, row.CancelRequestedAt)
	}
	t.mu.Lock()
	t.promised = true
	t.mu.Unlock()
}

// command is an operator's. A repeated one changes nothing.
func (a *actor) command() {
	t, s, ok := a.choose()
	if !ok {
		return
	}
	commands := map[string]task.Event{
		mediagate.ActionRetry: task.RetryRequested{}, mediagate.ActionReroute: task.RerouteRequested{}, mediagate.ActionPollNow: task.PollRequested{},
		mediagate.ActionFail: task.FailRequested{}, mediagate.ActionRedeliver: task.RedeliverRequested{},
	}
	for _, action := range s.Actions(a.now()) {
		if action == mediagate.ActionFail && a.dice.IntN(4) > 0 {
			continue
		}
		row := mediagate.Action{ID: fmt.Sprint("act_", a.dice.Uint64()), TaskID: t.id, Action: action, By: "someone"}
		for range 2 {
			changed, err := a.Command(a.Context(), row, commands[action])
			a.changed(t, changed, err)
		}
		return
	}
}

// settle ends a task whose end is due.
func (a *actor) settle() {
	if t := a.any(); t != nil {
		a.change(t, task.EndDue{})
	}
}

// complete takes a task that nobody has begun from its first intent to its end.
func (a *actor) complete() {
	if t := a.any(); t != nil {
		a.change(t, made(t.id, mediagate.Micros(1+a.dice.Int64N(int64(unit(3))))).events...)
	}
}

func (a *actor) deliver() {
	t := a.any()
	if t == nil {
		return
	}
	mine := fmt.Sprint(a.dice.Uint64())
	body, err := a.StoreWebhookBody(a.Context(), t.id, []byte(mine))
	if !a.fine("webhook body", err, mediagate.KindNotFound) {
		return
	}
	if string(body) == mine {
		a.first("the callback's body of %s", t.id)
	}
	target, err := a.WebhookTarget(a.Context(), t.id, 1)
	if !a.fine("webhook", err, mediagate.KindNotFound) {
		return
	}
	if string(target.Body) != string(body) {
		a.Errorf("the callback's body of %s is %s, and was %s", t.id, target.Body, body)
	}
	d := mediagate.Delivery{TaskID: t.id, Round: 1 + a.dice.IntN(target.Round), Attempt: 1 + a.dice.IntN(3), At: a.now(), Status: 200}
	states := []mediagate.WebhookState{"", "", mediagate.WebhookDelivered, mediagate.WebhookAbandoned}
	a.fine("deliver", a.RecordDelivery(a.Context(), d, states[a.dice.IntN(len(states))], "because"))
}

// read looks at a task: nothing of it goes back, and once it has ended it
// stays as it was.
func (a *actor) read() {
	t := a.any()
	if t == nil {
		return
	}
	t.mu.Lock()
	progress, version, end := t.progress, t.version, t.end
	t.mu.Unlock()
	row, err := a.TaskByID(a.Context(), t.id)
	if !a.fine("read", err) {
		return
	}
	if row.Progress < progress || row.Version < version {
		a.Errorf("%s went back from progress %d, version %d to %d, %d", t.id, progress, version, row.Progress, row.Version)
	}
	if end != nil && !sameEnd(*end, row) {
		a.Errorf("%s had ended, and changed:\n%+v\n%+v", t.id, *end, row)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress, t.version = max(t.progress, row.Progress), max(t.version, row.Version)
	if row.Status.Terminal() && t.end == nil {
		t.end = &row
	}
}

// sameEnd is that of a task as it was and as it is: what was made goes when it is
// erased.
func sameEnd(a, b mediagate.Task) bool {
	if !b.ErasedAt.IsZero() {
		a.Failure, a.Results, b.Failure, b.Results = nil, nil, nil, nil
	}
	return (a.ErasedAt.IsZero() || !b.ErasedAt.IsZero()) && a.Status == b.Status && a.Cost == b.Cost && a.Progress == b.Progress && a.EndedAt.Equal(b.EndedAt) &&
		a.DeadlineAt.Equal(b.DeadlineAt) && b.ParkedAt.IsZero() &&
		reflect.DeepEqual(a.Failure, b.Failure) && reflect.DeepEqual(a.Results, b.Results)
}

// tend is what housekeeping and closing breakers do.
func (a *actor) tend() {
	ctx := a.Context()
	due, err := a.DueWakes(ctx, 1+a.dice.IntN(20))
	if a.fine("wakes", err) {
		a.fine("put off", a.PutOff(ctx, due, a.dice.IntN(4) > 0))
	}
	a.fine("slots", a.ExpireSlots(ctx))
	_, err = a.RetryParked(ctx, mediagate.Parked{Reasons: []mediagate.ParkReason{mediagate.ParkFunds, mediagate.ParkJobLost, mediagate.ParkProviderAway}, Channel: a.channel()}, 5)
	a.fine("retry", err)
	_, err = a.RetryParked(ctx, mediagate.Parked{Reasons: []mediagate.ParkReason{mediagate.ParkProviderAway}, Provider: "kling"}, 5)
	a.fine("retry", err)
	sweeps, err := a.DueSweeps(ctx, 5)
	a.fine("sweeps", err)
	for _, sweep := range sweeps {
		a.fine("sweep", a.SetSweep(ctx, sweep, sweep.Again))
	}
	_, err = a.AwaitChannels(ctx)
	a.fine("channels", err)
	_, _, _, err = a.ChannelLoad(ctx, a.channel())
	a.fine("load", err)
	if t := a.any(); t != nil {
		_, err = a.Hint(ctx, t.id, 1)
		a.fine("hint", err)
	}
}

// check proves the ledger while all others go on.
func (a *actor) check() {
	report, err := a.CheckLedger(a.Context())
	if a.fine("check", err) && !report.OK {
		a.Errorf("the ledger is broken:\n%s", strings.Join(report.Problems, "\n"))
	}
}

func (a *actor) passTime() { a.pass(time.Duration(a.dice.IntN(20)) * time.Second) }
