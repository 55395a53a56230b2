package storage_test

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/tasktest"
)

// life is the random life of a task, in memory and in rows. Each event is applied to
// both, and then they must be the same. The rows are changed as the product does it:
// by Change, or by the statement that moves rows in bulk, where there is one.
type life struct {
	*bench
	t    *rapid.T
	w    *tasktest.World
	p    payer
	run  mediagate.Wake // as it was before the event
	told bool           // that the run is done
}

func newLife(b *bench, t *rapid.T) *life {
	l := &life{bench: b, t: t, w: tasktest.New(t)}
	for _, table := range []string{"awaits", "wakes", "queue"} { // of lives before
		l.must(b.database().Exec("DELETE FROM " + table).Error)
	}
	b.setClock(tasktest.Noon)
	l.p = b.newPayer(unit(1))
	l.w.State.Task = b.task(b.submitState(l.p, l.w.State))
	l.w.Observe, l.w.Grant = l.heard, func() bool { return l.w.State.Granted } // see grant
	l.run = l.wake()
	return l
}

func (l *life) live() {
	l.begin()
	for range rapid.IntRange(8, 25).Draw(l.t, "length") {
		switch rapid.SampledFrom([]string{"anything", "poll", "anything", "grants", "slots", "breaker"}).Draw(l.t, "what") {
		case "anything":
			l.w.Live(1)
		case "poll":
			l.w.Poll()
		case "grants":
			l.grant()
		case "breaker":
			l.w.Apply(task.BreakerClosed{Reasons: []mediagate.ParkReason{mediagate.ParkFunds, mediagate.ParkSubmissionUnknown, mediagate.ParkJobLost}})
		case "slots":
			l.w.Wait(rapid.SampledFrom([]time.Duration{0, 3 * time.Minute}).Draw(l.t, "passed"))
			if last := l.w.State.Last(); last != nil {
				l.w.Apply(task.SlotExpired{N: rapid.IntRange(1, last.N).Draw(l.t, "attempt")})
			}
		}
	}
	if !l.w.State.Status.Terminal() {
		l.pass(24 * time.Hour)
		l.change(l.w.State.ID, task.CancelRequested{}, task.EndDue{})
	}
}

// begin begins in one of the states from which rows are moved in bulk.
func (l *life) begin() {
	sent := func(n int) task.Event {
		intent := intentOf(l.w.State.ID, n, l.w.Now)
		intent.Channel = "a"
		return intent
	}
	taken := func(n int) task.Event {
		return task.Accepted{Sending: sent(n).(task.IntentStored).Sending, Submission: mediagate.Submission{Ref: ref(l.w.State.ID)}, FirstPollAt: l.w.Now}
	}
	switch rapid.SampledFrom([]string{"at the vendor", "given up", "queued", "parked", "abandoned", "new"}).Draw(l.t, "begins") {
	case "at the vendor":
		l.w.Apply(sent(1), taken(1))
	case "given up":
		l.w.Apply(sent(1), taken(1), task.RerouteRequested{}, sent(2), taken(2))
	case "abandoned":
		l.w.Apply(sent(1), taken(1), task.CancelRequested{}, task.EndDue{})
	case "queued":
		l.w.Apply(task.Queued{N: 1, Channels: []string{"a", "b"}})
	case "parked":
		step := l.w.State.Advance(l.w.Now)
		l.w.Apply(task.StepEnded{Step: step.Kind, N: step.N, Failed: true, Kind: mediagate.KindShutOut, Code: string(mediagate.ParkFunds)})
	}
}

func (l *life) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// heard applies an event to the rows that was applied in memory, and compares.
func (l *life) heard(_ task.State, e task.Event, effects task.Effects, refused error) {
	l.t.Helper()
	l.setClock(l.w.Now)
	changed, err := l.apply(e)
	if (err == nil) != (refused == nil) || err != nil && !mediagate.Is(err, mediagate.KindConflict) {
		l.t.Fatalf("%T%+v: in memory %v, in the rows %v", e, e, refused, err)
	}
	if err != nil {
		return
	}
	n := 0
	if field := reflect.ValueOf(e).FieldByName("N"); field.IsValid() {
		n = int(field.Int())
	}
	l.compare(fmt.Sprintf("%T%+v", e, e), n)
	l.checkWakes(e, effects)
	if changed == nil {
		if diff := cmp.Diff(task.Effects{Wake: effects.Wake}, effects, cmpopts.EquateEmpty()); diff != "" {
			l.t.Fatalf("%T in bulk has effects:\n%s", e, diff)
		}
		return
	}
	if diff := cmp.Diff(l.w.State.Advance(l.w.Now), changed.Step); diff != "" {
		l.t.Fatalf("after %T%+v the next step (+) is not what it should be (-):\n%s", e, e, diff)
	}
	if diff := cmp.Diff(effects, changed.Effects, cmpopts.EquateEmpty()); diff != "" {
		l.t.Fatalf("effects of %T%+v:\n%s", e, e, diff)
	}
}

// compare holds the rows against the state in memory: the task with its last attempt,
// and attempt n.
func (l *life) compare(after string, n int) {
	l.t.Helper()
	got, err := l.State(l.Context(), l.w.State.ID, n)
	l.must(err)
	want := l.w.State
	want.Attempts = slices.DeleteFunc(slices.Clone(want.Attempts), func(a task.Attempt) bool { return got.Attempt(a.N) == nil })
	for _, s := range []*task.State{&want, &got} {
		if !s.Wait.TryAt.After(l.w.Now) { // which is as good as none: tasks that try now anyway are left out
			s.Wait.TryAt = time.Time{}
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		l.t.Fatalf("after %s the rows (+) are not what they should be (-):\n%s", after, diff)
	}
	if diff := cmp.Diff(l.runsOn(), l.abandoned(l.p)); diff != "" {
		l.t.Fatalf("after %s the jobs of cancelled tasks that may run (+) are not what they should be (-):\n%s", after, diff)
	}
}

// runsOn are the jobs that may run on since the client has cancelled, at what they cost.
func (l *life) runsOn() (jobs mediagate.Abandoned) {
	for _, a := range l.w.State.Attempts {
		if l.w.State.Status == mediagate.StatusCancelled && a.State == mediagate.AttemptAbandoned && a.GivenUpAt.IsZero() {
			jobs.Jobs++
			jobs.Cost += l.w.State.Hold
		}
	}
	return jobs
}

// apply changes the rows. It returns nil where a statement in bulk did.
func (l *life) apply(e task.Event) (*task.Changed, error) {
	ctx, id := l.Context(), l.w.State.ID
	left := true
	var err error
	switch e := e.(type) {
	case task.Claimed:
		err = l.claimed(e)
		left = false
	case task.Progressed:
		left, err = l.polled(e.N, e.Claim, mediagate.PollResult{Progress: e.Percent, NextPollAt: e.NextAt, Answered: true})
	case task.VendorEnded:
		left, err = l.polled(e.N, "nobody", mediagate.PollResult{Outcome: &e.Outcome})
	case task.Troubled:
		left, err = l.polled(e.N, e.Claim, mediagate.PollResult{Trouble: e.Reason})
	case task.VendorWaits:
		left, err = l.polled(e.N, e.Claim, mediagate.PollResult{Waiting: true, Answered: true, NextPollAt: e.NextAt})
	case task.BreakerClosed:
		_, err = l.RetryParked(ctx, mediagate.Parked{Reasons: e.Reasons}, 1000)
		left = false
	case task.SlotExpired:
		if left = !l.onlyExpires(e.N); !left {
			err = l.ExpireSlots(ctx)
		}
	}
	if err != nil || !left {
		return nil, err
	}
	changed, err := l.Change(ctx, id, e)
	return &changed, err
}

// claimed claims the row, as a poller of its channel does that has just begun.
func (l *life) claimed(e task.Claimed) error {
	a := l.w.State.Attempt(e.N)
	epoch, err := l.BeginEpoch(l.Context(), a.Channel)
	if err != nil {
		return err
	}
	var others []int // of the channel, which keep their claims
	for _, o := range l.w.State.Attempts {
		if o.N != e.N && o.Channel == a.Channel && o.Await != nil {
			others = append(others, o.N)
		}
	}
	hide := func(from, to string) {
		for _, n := range others {
			l.must(l.database().Exec("UPDATE awaits SET channel = ? WHERE task_id = ? AND n = ? AND channel = ?", to, l.w.State.ID, n, from).Error)
		}
	}
	hide(a.Channel, "hidden")
	defer hide("hidden", a.Channel)
	rows, err := l.ClaimDue(l.Context(), a.Channel, epoch, e.Claim, lease, 10)
	if err == nil && (len(rows) != 1 || rows[0].TaskID != l.w.State.ID || rows[0].N != e.N) {
		l.t.Fatalf("claimed %+v, want attempt %d of %s", rows, e.N, l.w.State.ID)
	}
	return err
}

// polled stores an answer, and reports what is left to Change.
func (l *life) polled(n int, claim string, r mediagate.PollResult) (left bool, err error) {
	channel := ""
	if a := l.w.State.Attempt(n); a != nil {
		channel = a.Channel
	}
	r.TaskID, r.N = l.w.State.ID, n
	rest, err := l.StorePolls(l.Context(), channel, claim, []mediagate.PollResult{r})
	return len(rest) > 0, err
}

// onlyExpires reports that the slot of no other attempt is over.
func (l *life) onlyExpires(n int) bool {
	return !slices.ContainsFunc(l.w.State.Attempts, func(a task.Attempt) bool {
		return a.N != n && a.State == mediagate.AttemptAbandoned && !l.w.Now.Before(a.SlotUntil)
	})
}

// grant has a poller grant slots of a channel that the task is queued for, or take back
// those that were not used, which changes nothing else of it.
func (l *life) grant() {
	if l.w.State.Wait.Why != mediagate.WhySlot {
		return
	}
	l.w.Wait(rapid.SampledFrom([]time.Duration{0, takeBack}).Draw(l.t, "passed"))
	l.setClock(l.w.Now)
	channel := rapid.SampledFrom(l.w.State.QueuedFor).Draw(l.t, "grants")
	epoch, err := l.BeginEpoch(l.Context(), channel)
	l.must(err)
	got, err := l.GrantSlots(l.Context(), mediagate.Granting{
		Channel: channel, Epoch: epoch, Slots: mediagate.Slots{Names: []string{channel}}, Most: rapid.IntRange(0, 1).Draw(l.t, "most"), TakeBack: takeBack,
	})
	l.must(err)
	rows, err := l.State(l.Context(), l.w.State.ID, 0)
	l.must(err)
	was := l.w.State.Granted
	l.w.State.Granted = rows.Granted
	l.compare("a grant", 0)
	wake := l.wake()
	switch {
	case len(got.Tasks) == 1 && got.Tasks[0] == l.w.State.ID && rows.Granted:
		if wake.At.After(l.w.Now.Add(2 * time.Second)) {
			l.t.Fatalf("a slot is granted, and the run woken at %s", wake.At)
		}
	case len(got.Tasks) > 0 || rows.Granted && !was || wake != l.run:
		l.t.Fatalf("granted %v; granted before %t, now %t; wakes before %+v, now %+v", got, was, rows.Granted, l.run, wake)
	}
	l.run = wake
}

// wake is that of the run; the zero value where there is none.
func (l *life) wake() mediagate.Wake {
	run, _ := l.wakes()
	return run[l.w.State.ID]
}

// checkWakes holds that the run is woken in time for what it has to do next, and
// the callback while it is not delivered.
func (l *life) checkWakes(e task.Event, effects task.Effects) {
	l.t.Helper()
	run, round := l.wakes()
	wake, before, now, s := run[l.w.State.ID], l.run, l.w.Now, &l.w.State
	l.run = wake
	step := s.Advance(now)
	latest := now.Add(2 * time.Second)
	if effects.Copy { // before its poller signals
		latest = now.Add(10 * time.Second)
	}
	_, asked := e.(task.Asked)
	_, began := e.(task.IntentStored)
	asked = asked || began && !before.Asked // the step that the start carried
	_, retried := e.(task.BreakerClosed)    // wakes those too that are to end
	l.told = l.told || asked && step.Kind == task.Done
	wrong := ""
	switch {
	case (wake == mediagate.Wake{}) != l.told:
		wrong = "is there no wake, unless the run is done"
	case l.told:
	case asked && (!wake.Asked || wake.Tries > 0):
		wrong = "has the run asked"
	case asked && step.Kind == task.Sleep:
		if !wake.At.Equal(step.Until.Add(30 * time.Second)) {
			wrong = "does the lease reach to the end of the sleep"
		}
	case asked:
		if left := wake.At.Sub(now); left < 5*time.Minute || left > 10*time.Minute {
			wrong = "does the lease reach beyond the step"
		}
	case effects.Wake && wake.At.After(latest):
		wrong = "is the run woken soon"
	case effects.Copy && wake.At.Before(latest) && wake.At.Before(before.At):
		wrong = "has the poller its time for the copy"
	case effects.Wake && wake.At.After(before.At):
		wrong = "does the run sleep no longer than before"
	case !effects.Wake && wake != before && (!retried || !wake.At.Equal(now)):
		wrong = "has only a change of the next step moved it"
	}
	_, due := round[s.ID]
	if wrong == "" && due != (s.Webhook.Round > 0 && s.Webhook.State == mediagate.WebhookPending) {
		wrong = "is the callback's round due until its end"
	}
	if wrong != "" {
		l.t.Fatalf("after %T%+v at %s, %+v comes next: %s? The wake is %+v, it was %+v; the round's is %+v", e, e, now, step, wrong, wake, before, round[s.ID])
	}
}
