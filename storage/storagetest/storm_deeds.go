package storagetest

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// What the actors of a storm do.

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
		t := &stormTask{id: id, account: p.account, hold: n.Task.Hold, sent: map[int][]time.Time{}}
		a.tasks, a.byID[id] = append(a.tasks, t), t
	}
}

func (a *actor) open() {
	t, n := a.any(), a.number()
	if t == nil {
		return
	}
	before, asked := a.now().Add(10*time.Second), a.now()
	route := plan.Routes[0]
	route.Sync = a.dice.IntN(3) == 0
	channel := a.channel()
	_, opened, err := a.OpenAttempt(a.Context(), mediagate.Attempt{
		TaskID: t.id, N: n, Channel: channel, Provider: "kling", Fingerprint: "fp", Route: route,
		ExternalID: fmt.Sprintf("%s-%d", t.id, n), SendBefore: before,
	}, stormSlots(channel))
	if !a.fine("open", err, mediagate.KindConflict, mediagate.KindCapacity) || !opened {
		return
	}
	a.first("the intent of attempt %d of %s", n, t.id)
	t.mu.Lock()
	t.sent[n] = append(t.sent[n], before)
	t.mu.Unlock()
	row, err := a.TaskByID(a.Context(), t.id)
	if a.fine("read", err) && row.ParkedAt.IsZero() && row.DeadlineAt.Before(asked) {
		a.Errorf("attempt %d of %s was opened at %v, after the deadline %v", n, t.id, asked, row.DeadlineAt)
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
	t, n := a.any(), a.number()
	if t == nil {
		return
	}
	channels := []string{"channel-1", "channel-0"}[:1+a.dice.IntN(2)]
	a.fine("queue", a.Queue(a.Context(), t.id, n, channels), mediagate.KindConflict)
}

// grantSlots is what a channel's poller does, of the newest epoch unless another
// has begun meanwhile.
func (a *actor) grantSlots() {
	channel := a.channel()
	_, queued, _, err := a.ChannelLoad(a.Context(), channel)
	if !a.fine("load", err) {
		return
	}
	a.mu.Lock()
	newest := a.storm.epochs[channel]
	a.mu.Unlock()
	before := time.Minute
	if queued > 20 {
		before = time.Second
	}
	got, err := a.GrantSlots(a.Context(), mediagate.Granting{
		Channel: channel, Epoch: newest, Slots: stormSlots(channel), Most: 1 + a.dice.IntN(5), TakeBack: before, Again: time.Second,
	})
	if a.fine("grant", err, mediagate.KindConflict) && len(got.Signals) > got.InFlight {
		a.Errorf("%d are told of slots, and %d have one", len(got.Signals), got.InFlight)
	}
}

// intent is the time before which an intent of the attempt was to be sent:
// mostly of the newest.
func (a *actor) intent(t *stormTask, n int) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	sent := t.sent[n]
	switch {
	case len(sent) == 0:
		return a.now()
	case a.dice.IntN(4) == 0:
		return sent[a.dice.IntN(len(sent))]
	default:
		return sent[len(sent)-1]
	}
}

func (a *actor) outcome() *mediagate.Outcome {
	o := mediagate.Outcome{Succeeded: a.dice.IntN(3) > 0, VendorText: fmt.Sprint(a.dice.Uint64())}
	if !o.Succeeded {
		o.Failure = &mediagate.Failure{Code: mediagate.CodeGenerationFailed, Message: "no"}
	}
	return &o
}

func (a *actor) accept() {
	t, n := a.any(), a.number()
	if t == nil {
		return
	}
	sub := mediagate.Submission{Ref: mediagate.JobRef{JobID: fmt.Sprint("job-", a.dice.Uint64()), ExternalID: t.id}}
	if a.dice.IntN(4) == 0 {
		sub.Outcome = a.outcome()
	}
	_, err := a.AcceptAttempt(a.Context(), t.id, n, sub, a.now())
	a.fine("accept", err, mediagate.KindConflict, mediagate.KindNotFound)
}

func (a *actor) reject() {
	if t, n := a.any(), a.number(); t != nil {
		f := mediagate.Failure{Code: mediagate.CodeProviderAway, Message: "full", Retryable: true}
		a.fine("reject", a.RejectAttempt(a.Context(), t.id, n, a.intent(t, n), f, "full"))
	}
}

func (a *actor) markUnknown() {
	if t, n := a.any(), a.number(); t != nil {
		a.fine("lose", a.MarkUnknown(a.Context(), t.id, n, a.intent(t, n), "lost"))
	}
}

func (a *actor) lookUp() {
	if t, n := a.any(), a.number(); t != nil {
		_, _, err := a.NoteAbsent(a.Context(), t.id, n, a.intent(t, n), a.now(), absentGap)
		a.fine("look up", err, mediagate.KindConflict, mediagate.KindNotFound)
	}
}

func (a *actor) reopen() {
	if t, n := a.any(), a.number(); t != nil {
		a.reopenIntent(t, n)
	}
}

func (a *actor) reopenIntent(t *stormTask, n int) {
	lost, before := a.intent(t, n), a.now().Add(10*time.Second+time.Duration(a.dice.Int64N(1e6))*time.Microsecond)
	t.mu.Lock()
	stale := len(t.sent[n]) > 0 && !t.sent[n][len(t.sent[n])-1].Equal(lost)
	t.mu.Unlock()
	reopened, err := a.ReopenIntent(a.Context(), t.id, n, lost, before)
	if !a.fine("reopen", err) || !reopened {
		return
	}
	if stale {
		a.Errorf("the intent of attempt %d of %s was opened again by proof of an older one", n, t.id)
	}
	a.first("the intent of attempt %d of %s after that of %v", n, t.id, lost)
	t.mu.Lock()
	t.sent[n] = append(t.sent[n], before)
	t.mu.Unlock()
}

// resolve goes all the way of a lost attempt, if nobody comes between.
func (a *actor) resolve() {
	t, n := a.any(), 1
	if t == nil {
		return
	}
	lost := a.intent(t, n)
	refusal := mediagate.Failure{Code: mediagate.CodeInvalidParameters, Message: "no"}
	if a.dice.IntN(4) > 0 {
		a.fine("lose", a.MarkUnknown(a.Context(), t.id, n, lost, "lost"))
	} else {
		a.fine("doubt", a.DoubtRefusal(a.Context(), t.id, n, lost, refusal, "no"))
	}
	for range 2 {
		_, _, err := a.NoteAbsent(a.Context(), t.id, n, lost, a.now(), absentGap)
		a.fine("look up", err, mediagate.KindConflict, mediagate.KindNotFound)
		a.pass(absentGap)
	}
	a.reopenIntent(t, n)
}

func (a *actor) giveUp() {
	if t, n := a.any(), a.number(); t != nil {
		a.fine("give up", a.GiveUpAttempt(a.Context(), t.id, n, "given up"))
	}
}

func (a *actor) record() {
	t, n := a.any(), a.number()
	if t == nil {
		return
	}
	won, err := a.RecordOutcome(a.Context(), t.id, n, *a.outcome())
	if a.fine("record", err, mediagate.KindNotFound) && won {
		a.first("the outcome of attempt %d of %s", n, t.id)
	}
}

func (a *actor) mirror() {
	if t, n := a.any(), a.number(); t != nil {
		a.fine("mirror", a.StoreMirrored(a.Context(), t.id, n, completed(t.id, 0).Results), mediagate.KindNotFound)
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
	since := maps.Clone(a.restored)
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
		mine := stormClaim{token, epoch, r.ClaimedAt, r.ClaimedAt.Add(lease), since[row].times}
		other, ok := a.claims[row] // perhaps of somebody who came later, and is noted sooner
		if ok && other.epoch == epoch && other.from.Before(mine.until) && mine.from.Before(other.until) &&
			other.since == mine.since && a.restored[row] == (restoring{times: mine.since}) {
			a.Errorf("row %s was claimed from %v to %v, and from %v to %v", row, other.from, other.until, mine.from, mine.until)
		}
		if !ok || mine.from.After(other.from) {
			a.claims[row] = mine
		}
	}
}

func (a *actor) reportPolls(channel string, rows []mediagate.Await) {
	results := make([]mediagate.PollResult, 0, len(rows))
	a.mu.Lock()
	for _, r := range rows {
		if row := fmt.Sprint(r.TaskID, "/", r.N); a.claims[row].token == r.Claim {
			delete(a.claims, row)
		}
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
	ended, err := a.StorePolls(a.Context(), channel, rows[0].Claim, results)
	if !a.fine("store polls", err) {
		return
	}
	for _, row := range ended {
		i := slices.IndexFunc(results, func(p mediagate.PollResult) bool { return p.TaskID == row.TaskID && p.N == row.N })
		if i < 0 {
			a.Errorf("attempt %d of %s ended by a claim that did not name it", row.N, row.TaskID)
		}
	}
}

func (a *actor) parkOrUnpark() {
	t := a.any()
	if t == nil {
		return
	}
	if a.dice.IntN(2) == 0 {
		a.fine("unpark", a.Unpark(a.Context(), t.id))
		return
	}
	reasons := []mediagate.ParkReason{mediagate.ParkProviderAway, mediagate.ParkSubmissionUnknown, mediagate.ParkStorage}
	a.fine("park", a.Park(a.Context(), t.id, reasons[a.dice.IntN(len(reasons))]))
}

// trouble meets an attempt, or is over.
func (a *actor) trouble() {
	t, n := a.any(), a.number()
	if t == nil {
		return
	}
	switch a.dice.IntN(4) {
	case 0:
		a.fine("note trouble", a.NoteTrouble(a.Context(), t.id, n, mediagate.ParkCredentials), mediagate.KindNotFound)
	case 1:
		a.fine("drop await", a.DropAwait(a.Context(), t.id, n))
	case 2:
		a.fine("hint", a.HintPoll(a.Context(), t.id))
	default:
		row := fmt.Sprint(t.id, "/", n)
		note := func(times, underWay int) {
			a.mu.Lock()
			defer a.mu.Unlock()
			r := a.restored[row]
			a.restored[row] = restoring{r.times + times, r.underWay + underWay}
		}
		note(0, 1)
		a.fine("restore await", a.RestoreAwait(a.Context(), t.id, n, a.now()), mediagate.KindConflict, mediagate.KindNotFound)
		note(1, -1)
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
	if row.Status.Terminal() || row.CancelRequestedAt.IsZero() {
		a.Errorf("a cancel of %s was promised: %s, requested %v", t.id, row.Status, row.CancelRequestedAt)
	}
	t.mu.Lock()
	t.promised = true
	t.mu.Unlock()
}

func (a *actor) settle() {
	t := a.any()
	if t == nil {
		return
	}
	end := []mediagate.Settlement{failed(t.id), cancelled(t.id), completed(t.id, 0), completed(t.id, 0)}[a.dice.IntN(4)]
	if end.Status == mediagate.StatusCompleted {
		end.Cost = mediagate.Micros(a.dice.Int64N(int64(t.hold) + 2)) // may be too much
	}
	end.RunUntold = a.dice.IntN(4) == 0
	a.end(t, end)
}

func (a *actor) end(t *stormTask, end mediagate.Settlement) {
	end.WithoutInputs = end.WebhookBody
	story, won, err := a.Settle(a.Context(), end)
	switch {
	case end.Cost > t.hold && err == nil && won && story.Status == mediagate.StatusCompleted:
		a.Errorf("%s was charged %s of a hold of %s", t.id, end.Cost, t.hold)
	case end.Cost > t.hold:
		a.fine("settle for too much", err, mediagate.KindInternal)
	case a.fine("settle", err) && !story.Status.Terminal():
		a.Errorf("%s is %s after its end", t.id, story.Status)
	case err == nil && won:
		a.first("the end of %s", t.id)
	}
}

func (a *actor) command() {
	t := a.any()
	if t == nil {
		return
	}
	a.mu.Lock()
	known := slices.Clone(a.actions)
	a.mu.Unlock()
	if len(known) > 0 && a.dice.IntN(2) == 0 {
		id := known[max(0, len(known)-1-a.dice.IntN(4))]
		taken, err := a.TakeAction(a.Context(), id, fmt.Sprint("taker-", a.dice.Uint64()))
		if a.fine("take", err) && taken {
			a.first("the command %s", id)
		}
		return
	}
	row, err := a.RecordAction(a.Context(), mediagate.Action{TaskID: t.id, Action: mediagate.ActionRetry, By: "someone"})
	if a.fine("command", err) {
		a.mu.Lock()
		a.actions = append(a.actions, row.ID)
		a.mu.Unlock()
	}
}

func (a *actor) deliver() {
	t := a.any()
	if t == nil {
		return
	}
	d := mediagate.Delivery{TaskID: t.id, Round: 1, Attempt: 1 + a.dice.IntN(3), At: a.now(), Status: 200}
	states := []mediagate.WebhookState{"", "", mediagate.WebhookDelivered, mediagate.WebhookAbandoned}
	if target, err := a.WebhookTarget(a.Context(), t.id, 1); a.fine("webhook", err, mediagate.KindNotFound) && len(target.Body) > 0 {
		a.fine("deliver", a.RecordDelivery(a.Context(), d, states[a.dice.IntN(len(states))], "because"))
	}
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

// reconcile asks as the reconciler does.
func (a *actor) reconcile() {
	ctx := a.Context()
	unseen, _, err := a.UnseenTasks(ctx, 10*time.Second, "", 50)
	a.fine("unseen", err)
	open, err := a.OpenTasks(ctx, a.now().Add(-time.Minute), mediagate.Look{}, 50)
	a.fine("open", err)
	looked := idsOf(unseen)
	for _, look := range open {
		looked = append(looked, look.TaskID)
	}
	a.fine("mark", a.MarkChecked(ctx, looked, a.dice.IntN(2) == 0))
	_, _, err = a.StaleCancels(ctx, 10*time.Second, "", 50)
	a.fine("cancels", err)
	_, err = a.UntakenActions(ctx, 10*time.Second, mediagate.Action{}, 50)
	a.fine("actions", err)
	_, err = a.PendingWebhooks(ctx, time.Minute, 10*time.Minute, 50)
	a.fine("webhooks", err)
	_, err = a.StuckWebhooks(ctx, 10*time.Minute, 50)
	a.fine("stuck webhooks", err)
	_, err = a.ClaimOverdue(ctx, mediagate.Overdue{
		Grace: 30 * time.Minute, ParkTimeout: time.Hour, UnknownTimeout: time.Hour, Again: 10 * time.Minute,
	}, 50)
	a.fine("overdue", err)
	_, err = a.AwaitChannels(ctx)
	a.fine("channels", err)
}

// check proves the ledger while all others go on.
func (a *actor) check() {
	report, err := a.CheckLedger(a.Context())
	if a.fine("check", err) && !report.OK {
		a.Errorf("the ledger is broken:\n%s", strings.Join(report.Problems, "\n"))
	}
}

func (a *actor) passTime() { a.pass(time.Duration(a.dice.IntN(20)) * time.Second) }
