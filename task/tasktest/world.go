// Package tasktest plays random lives of tasks: a vendor that keeps its own books, a
// run that loses its way, and everybody who may interfere. The promises are checked
// after each event. Its tests are those of task, and of whoever stores what task
// decides. It may import the module root and task.
package tasktest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/story"
)

// World is a task, a vendor that keeps its own books, and everybody who may
// interfere. What is told of the vendor is always true, if late; all else is at
// random. After each event the promises are checked.
type World struct {
	State task.State
	Now   time.Time
	// MayBeUnreadable lets the task's documents be damaged and mended.
	MayBeUnreadable bool
	// Grant tells whether a slot that the task is queued for is granted to it now: that
	// is a fact of other rows, and no event; nil: always.
	Grant func() bool
	// Observe is called for each event that was applied or refused, with the task before
	// it; may be nil.
	Observe func(before task.State, e task.Event, effects task.Effects, err error)

	t      *rapid.T
	stop   bool
	find   bool
	sync   bool
	full   int      // per cent of submits that find no slot
	vendor []string // what it does with a sending, one as likely as another

	jobs    map[string]bool // at the vendor, by channel and name, and by sending where it takes a name twice
	twice   bool
	late    []landing // sendings that arrive later
	excuses int       // jobs beyond the first that somebody has answered for

	backedUp bool // after each event
	lapses   bool // the database loses its last seconds now and then
	backups  []backup

	past      []task.Event // to be told again
	steps     []task.Step  // that the run slept on or took
	claims    int
	seen      task.Seen // by the run
	heartbeat task.Seen // of a sender that died, until the step is tried again
	entries   int
	promised  bool
	ended     *task.State
	endsAs    mediagate.Status // as its run has seen it end, which is to be so again
}

// backup is the task as a backup of the database has it.
type backup struct {
	at       time.Time
	state    task.State
	entries  int
	promised bool
	ended    *task.State
}

// landing is a sending that reaches the vendor at a time of its own, before its
// call must be over.
type landing struct {
	at  time.Time
	key string
}

// Noon is when tasks begin.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(t time.Time) string { return t.Sub(Noon).String() }

// New is a world with a task that has just been submitted.
func New(t *rapid.T) *World {
	w := &World{t: t, Now: Noon, jobs: map[string]bool{}, full: 20}
	w.vendor = []string{"accepts", "accepts", "accepts", "refuses", "refuses for now", "late", "lost", "died", "died after"}
	w.sync = rapid.Bool().Draw(t, "sync")
	w.find, w.stop = rapid.Bool().Draw(t, "find"), rapid.Bool().Draw(t, "stop")
	plan := mediagate.Plan{
		Routes:   []mediagate.Route{{Provider: "kling"}},
		Expected: time.Minute, Timeout: 2 * time.Hour, ParkTimeout: 24 * time.Hour, ParkRetry: 5 * time.Minute, QueueTimeout: 24 * time.Hour,
	}
	if rapid.Bool().Draw(t, "inputs") {
		plan.Inputs = []mediagate.Input{{Field: "image_urls[0]"}}
	}
	plan.OnUnknown = rapid.SampledFrom([]string{mediagate.OnUnknownFail, mediagate.OnUnknownPark}).Draw(t, "unknown")
	if rapid.Bool().Draw(t, "modal") {
		plan.Modal = 30 * time.Minute
	}
	w.State = task.State{Task: mediagate.Task{
		ID: "task_1", Status: mediagate.StatusPending, Version: 1, DeadlineAt: Noon.Add(2 * time.Hour), Plan: plan, Hold: 500_000,
		Charges: []mediagate.Charge{{Item: "video", Unit: mediagate.UnitSecond, Quantity: 5, UnitPrice: 100_000}},
	}}
	w.State.Webhook.State = rapid.SampledFrom([]mediagate.WebhookState{"", mediagate.WebhookPending, mediagate.WebhookDropped}).Draw(t, "webhook")
	return w
}

// UseSources has the task use a file of each of two tasks that still run, or of none.
func (w *World) UseSources() {
	if !w.chance("uses sources", 30) {
		return
	}
	w.State.SourceTasks = map[string]mediagate.Task{}
	for i, id := range []string{"task_a", "task_b"} {
		w.State.Sources = append(w.State.Sources, mediagate.TaskFile{Field: fmt.Sprintf("image_urls[%d]", i), TaskID: id, N: 1})
		w.State.SourceTasks[id] = mediagate.Task{ID: id, Status: mediagate.StatusProcessing}
	}
	if err := w.State.Begin(w.Now); err != nil {
		w.t.Fatal(err)
	}
}

// endSource ends one of the sources that still run, well or badly.
func (w *World) endSource() {
	open := w.State.OpenSources()
	if len(open) == 0 {
		return
	}
	source := mediagate.Task{ID: open[0], EndedAt: w.Now}
	source.Status = rapid.SampledFrom([]mediagate.Status{
		mediagate.StatusCompleted, mediagate.StatusCompleted, mediagate.StatusCompleted, mediagate.StatusFailed, mediagate.StatusCancelled,
	}).Draw(w.t, "source ends")
	if w.chance("with a file", 90) {
		source.Results = []mediagate.Result{{Key: "results/" + source.ID}}
	}
	w.State.SourceTasks = maps.Clone(w.State.SourceTasks)
	w.State.SourceTasks[source.ID] = source
}

func (w *World) chance(what string, percent int) bool {
	return rapid.IntRange(0, 99).Draw(w.t, what) < percent
}

// apply applies an event and holds the promises.
func (w *World) apply(e task.Event) error {
	w.t.Helper()
	before := clone(w.State)
	effects, err := w.State.Apply(e, w.Now)
	if w.Observe != nil {
		w.Observe(before, e, effects, err)
	}
	if err != nil {
		if !mediagate.Is(err, mediagate.KindConflict) {
			w.t.Fatalf("%T: %s", e, err)
		}
		if diff := cmp.Diff(before, w.State, cmpopts.EquateEmpty()); diff != "" {
			w.t.Fatalf("%T was refused, and changed the task:\n%s", e, diff)
		}
		return err
	}
	w.past = append(w.past, e)
	w.check(before, e, effects)
	if w.backedUp {
		w.backups = append(w.backups, backup{w.Now, clone(w.State), w.entries, w.promised, w.ended})
	}
	return nil
}

func (w *World) check(before task.State, e task.Event, effects task.Effects) {
	w.t.Helper()
	s := &w.State
	fail := func(format string, args ...any) {
		w.t.Helper()
		w.t.Fatalf("after %T%+v at %s: %s", e, e, at(w.Now), fmt.Sprintf(format, args...))
	}
	if effects.Entry != "" {
		w.entries++
	}
	switch {
	case s.Status.Terminal() != (w.entries == 1):
		fail("%s with %d entries in the ledger", s.Status, w.entries)
	case effects.Entry == mediagate.EntryPost && s.Status != mediagate.StatusCompleted, effects.Entry == mediagate.EntryVoid && s.Status == mediagate.StatusCompleted:
		fail("%s for %s", effects.Entry, s.Status)
	case s.Cost < 0 || s.Cost > s.Hold || s.Cost > 0 && s.Status != mediagate.StatusCompleted:
		fail("%s costs %s of %s", s.Status, s.Cost, s.Hold)
	case s.Progress < before.Progress || (s.Progress == 100) != (s.Status == mediagate.StatusCompleted):
		fail("progress %d after %d, %s", s.Progress, before.Progress, s.Status)
	case s.Version < before.Version || s.Version > before.Version+1:
		fail("version %d after %d", s.Version, before.Version)
	case w.endsAs != "" && s.Status.Terminal() && s.Status != w.endsAs && (!w.promised || s.Status != mediagate.StatusCancelled):
		fail("ended as %s, and was seen as %s", s.Status, w.endsAs)
	case w.promised && s.Status == mediagate.StatusCompleted:
		fail("completed after a promised cancel")
	case (s.Failure != nil) != (s.Status == mediagate.StatusFailed):
		fail("%s with failure %v", s.Status, s.Failure)
	case effects.Copy && (!effects.Wake || s.Advance(w.Now).Kind != task.Mirror):
		fail("a poller copies, and the next step is %s", s.Advance(w.Now).Kind)
	}
	if w.ended != nil && (s.Status != w.ended.Status || s.Cost != w.ended.Cost || len(s.Results) != len(w.ended.Results) || s.Failure != w.ended.Failure) {
		fail("an end changed")
	}
	if s.Status.Terminal() && w.ended == nil {
		end := clone(*s)
		w.ended = &end
	}
	for i, a := range s.Attempts {
		if a.N != i+1 && a.Channel != "" && a.N <= i {
			fail("attempt %d at position %d", a.N, i)
		}
		open := a.State == mediagate.AttemptIntent || a.State == mediagate.AttemptUnknown || a.State == mediagate.AttemptAccepted
		if open && (i != len(s.Attempts)-1 || s.Status.Terminal()) {
			fail("attempt %d is %s", a.N, a.State)
		}
		if a.Await != nil && a.State != mediagate.AttemptAccepted && a.State != mediagate.AttemptAbandoned {
			fail("attempt %d is %s, and polled for", a.N, a.State)
		}
		if (a.State == mediagate.AttemptUnknown || a.State == mediagate.AttemptAbandoned) && a.SlotUntil.IsZero() {
			fail("attempt %d is %s, and has its slot for ever", a.N, a.State)
		}
	}
	w.CheckStep(fail)
}

// CheckStep holds that the task has a next step, and each sleep an end.
func (w *World) CheckStep(fail func(string, ...any)) {
	step := w.State.Advance(w.Now)
	switch step.Kind {
	case task.Sleep:
		if !step.Until.After(w.Now) {
			fail("sleeps until %s, which is past: %s", at(step.Until), step.Why)
		}
		if step.Why == "" {
			fail("sleeps on nothing")
		}
	case task.Done:
		if !w.State.Status.Terminal() {
			fail("done, and %s", w.State.Status)
		}
	case task.CheckInputs, task.Submit, task.Lookup, task.Mirror, task.CancelJob, task.Settle:
		if w.State.Status.Terminal() {
			fail("%s of a task that has ended", step.Kind)
		}
	default:
		fail("no such step: %q", step.Kind)
	}
	e := story.Explain(&w.State, step, w.Now)
	if e.Doing() == "" || e.Word() == "" || (e.Then() == "") != w.State.Status.Terminal() {
		fail("%s is explained by %q, %q, %q", step.Kind, e.Word(), e.Doing(), e.Then())
	}
	w.checkActions(e.Actions, fail)
}

// checkActions holds that the commands which are offered apply, and no others do.
func (w *World) checkActions(offered []string, fail func(string, ...any)) {
	for action, event := range map[string]task.Event{
		mediagate.ActionRetry: task.RetryRequested{}, mediagate.ActionReroute: task.RerouteRequested{}, mediagate.ActionFail: task.FailRequested{},
		mediagate.ActionPollNow: task.PollRequested{}, mediagate.ActionRedeliver: task.RedeliverRequested{},
	} {
		state := clone(w.State)
		_, err := state.Apply(event, w.Now)
		applies := slices.Contains(offered, action)
		if action == mediagate.ActionFail && !w.State.FailRequestedAt.IsZero() && !w.State.Status.Terminal() {
			continue // repeated, it changes nothing
		}
		if applies && err != nil {
			fail("%s is offered: %v", action, err)
		}
		if !applies && err == nil {
			fail("%s is not offered, and is taken", action)
		}
	}
}

// clone is a copy of what events change in place.
func clone(s task.State) task.State {
	s.Attempts = slices.Clone(s.Attempts)
	for i := range s.Attempts {
		a := &s.Attempts[i]
		if a.Await != nil {
			await := *a.Await
			a.Await = &await
		}
	}
	return s
}

// Wait lets time pass, and sendings land.
func (w *World) Wait(d time.Duration) {
	w.Now = w.Now.Add(d)
	w.late = slices.DeleteFunc(w.late, func(l landing) bool {
		if l.at.After(w.Now) {
			return false
		}
		w.jobs[l.key] = true
		return true
	})
}

func (w *World) key(a *task.Attempt) string {
	if w.twice {
		return fmt.Sprintf("%s %s, sent before %s", a.Channel, a.ExternalID, at(a.SendBefore))
	}
	return a.Channel + " " + a.ExternalID
}

// found returns at which channel the vendor has a job by the attempt's name; empty: at
// none. An attempt without a channel may have been made at any.
func (w *World) found(a *task.Attempt) (channel string) {
	for _, job := range slices.Sorted(maps.Keys(w.jobs)) {
		at, name, _ := strings.Cut(job, " ")
		name, _, _ = strings.Cut(name, ",")
		if name == a.ExternalID && (a.Channel == "" || a.Channel == at) {
			return at
		}
	}
	return ""
}

// sent plays a sending of the last attempt: what the vendor does with it, and
// whether its answer arrives.
func (w *World) sent() {
	a := w.State.Last()
	name, sending, callEnds := w.key(a), a.Sending, a.CallEnds
	answer := rapid.SampledFrom(w.vendor).Draw(w.t, "vendor")
	if w.jobs[name] { // it takes no name twice
		answer = "refuses"
	}
	w.mayLapse()
	switch answer {
	case "accepts":
		w.jobs[name] = true
		w.accept(sending)
	case "refuses":
		_ = w.apply(task.Refused{Sending: sending, Failure: mediagate.Failure{Code: mediagate.CodeInvalidParameters}, Invalid: true})
	case "refuses for now":
		code := rapid.SampledFrom([]mediagate.FailureCode{
			mediagate.CodeProviderAway, mediagate.CodeFunds, mediagate.CodeProviderRefused, mediagate.CodeModelRetired,
		}).Draw(w.t, "code")
		_ = w.apply(task.Refused{
			Sending: sending, Elsewhere: w.chance("elsewhere", 30),
			Failure: mediagate.Failure{Code: code, Retryable: code == mediagate.CodeProviderAway},
		})
	case "late":
		wait := callEnds.Sub(w.Now)
		w.late = append(w.late, landing{at: w.Now.Add(wait * time.Duration(rapid.IntRange(1, 10).Draw(w.t, "tenths")) / 10), key: name})
		_ = w.apply(task.SubmitUnknown{Sending: sending})
	case "lost":
		if w.chance("made", 50) {
			w.jobs[name] = true
		}
		_ = w.apply(task.SubmitUnknown{Sending: sending, SenderLost: w.chance("sender lost", 50)})
	case "died after":
		w.jobs[name] = true
		w.heartbeat = task.Seen{Sending: sending}
	case "died": // before it sent anything
		w.heartbeat = task.Seen{Sending: sending}
	}
}

func (w *World) accept(sending task.Sending) {
	_ = w.apply(task.Accepted{Sending: sending, Submission: w.submission(sending.N), FirstPollAt: w.Now.Add(time.Second)})
}

func (w *World) submission(n int) mediagate.Submission {
	s := mediagate.Submission{Ref: mediagate.JobRef{JobID: fmt.Sprint("job", n)}}
	if w.sync {
		s.Outcome = w.Outcome()
	}
	return s
}

// Outcome is an end of a job, good or bad.
func (w *World) Outcome() *mediagate.Outcome {
	if w.chance("job fails", 30) {
		return &mediagate.Outcome{Failure: &mediagate.Failure{Code: mediagate.CodeGenerationFailed}}
	}
	return &mediagate.Outcome{Succeeded: true, Seconds: float64(rapid.IntRange(0, 9).Draw(w.t, "seconds"))}
}

// ask is the run's question. The answer is what it remembers.
func (w *World) ask(seen task.Seen) {
	if err := w.apply(task.Asked{Seen: seen}); err != nil {
		w.t.Fatal(err)
	}
	w.remember()
}

// remember has the run hear how the task stands.
func (w *World) remember() {
	if seen := w.State.Seen(); seen.N >= w.seen.N {
		w.seen = seen
	}
	w.promised = w.promised || w.seen.Cancelled
}

// step takes the next step as the run does, well or badly.
func (w *World) step() {
	if w.heartbeat.N > 0 { // the step is tried again
		w.ask(w.heartbeat)
		w.heartbeat = task.Seen{}
	}
	w.ask(w.seen)
	step := w.State.Advance(w.Now)
	w.steps = append(w.steps, step)
	if step.Kind == task.Sleep && step.Why == task.SleepSource && w.chance("a source ends", 70) {
		w.endSource()
		return
	}
	if step.Kind == task.Sleep {
		w.Wait(step.Until.Sub(w.Now))
		return
	}
	if step.Kind == task.Done {
		return
	}
	if w.chance("fails", 20) && step.Kind != task.Settle {
		w.fails(step)
		return
	}
	switch step.Kind {
	case task.CheckInputs:
		j := mediagate.InputCheck{Over: true}
		if w.chance("bad input", 10) {
			j.Failure = &mediagate.Failure{Code: mediagate.CodeImageProcessing}
		}
		_ = w.apply(task.InputsChecked{Check: j})
	case task.Submit:
		if err := w.submit(step); err != nil {
			w.t.Fatalf("%s %d is the next step, and refused: %s", step.Kind, step.N, err)
		}
	case task.Lookup:
		w.lookUp(step)
	case task.Mirror:
		_ = w.apply(task.Mirrored{N: step.N, Results: []mediagate.Result{{Key: "k", Duration: 5}}})
	case task.CancelJob:
		if w.chance("stops", 50) {
			_ = w.apply(task.StopProven{N: step.N})
		}
	case task.Settle:
		_ = w.apply(task.EndDue{})
		return
	case task.Sleep, task.Done:
	}
	_ = w.apply(task.StepEnded{Step: step.Kind, N: step.N})
	w.notTwice(step)
	w.remember()
}

// notTwice holds that no step is answered twice without a pause.
func (w *World) notTwice(step task.Step) {
	if next := w.State.Advance(w.Now); next.Kind == step.Kind && next.N == step.N {
		w.t.Fatalf("%s %d again at once", next.Kind, next.N)
	}
}

func (w *World) fails(step task.Step) {
	kind := rapid.SampledFrom([]mediagate.Kind{
		mediagate.KindInternal, mediagate.KindUnavailable, mediagate.KindTransient, mediagate.KindShutOut, mediagate.KindUnreached,
		mediagate.KindInvalid, mediagate.KindNotFound, mediagate.KindGone, mediagate.KindCredentials,
	}).Draw(w.t, "kind")
	code := ""
	switch kind {
	case mediagate.KindShutOut:
		code = string(rapid.SampledFrom([]mediagate.ParkReason{mediagate.ParkProviderAway, mediagate.ParkFunds}).Draw(w.t, "why"))
	case mediagate.KindUnreached:
		code = string(mediagate.ParkChannelMissing)
	case mediagate.KindNotFound:
		code = string(mediagate.ParkJobLost)
	case mediagate.KindGone:
		code = string(mediagate.CodeResultUnavailable)
	default:
	}
	_ = w.apply(task.StepEnded{Step: step.Kind, N: step.N, Failed: true, Kind: kind, Code: code, Reason: "r"})
	w.notTwice(step)
}

// submit makes the attempt, or sends it again. An error is the task's refusal.
func (w *World) submit(step task.Step) error {
	a := w.State.Attempt(step.N)
	switch {
	case a == nil && w.chance("full", w.full):
		queued := task.Queued{N: step.N, Channels: []string{"a", "b"}, OnlyFull: w.chance("well", 50)}
		if !queued.OnlyFull && w.chance("refused", 30) {
			queued.Refused = mediagate.ParkCredentials
		}
		return w.apply(queued)
	case a == nil && w.chance("model retired", 3):
		return w.apply(task.ModelRetired{N: step.N})
	case a == nil:
		id, kept := w.State.NextExternalID()
		channel := rapid.SampledFrom([]string{"a", "b"}).Draw(w.t, "channel")
		if w.State.RerouteTo != "" {
			channel = w.State.RerouteTo
		}
		if kept {
			channel = w.State.Last().Channel
		}
		modal := w.State.Modal.State == mediagate.ModalSubmitted
		if modal {
			channel = w.State.Attempt(w.State.Modal.N).Channel
		}
		err := w.apply(task.IntentStored{Sending: w.sending(step.N, channel, id)})
		if err == nil {
			if modal {
				w.excuses++ // it is the same job
			}
			w.sent()
		}
		return err
	case a.State == mediagate.AttemptIntent: // whoever stored it is gone
		return w.apply(task.SubmitUnknown{Sending: a.Sending, SenderLost: true})
	case a.State == mediagate.AttemptUnknown:
		err := w.apply(task.Reopened{N: a.N, Absent: a.SendBefore, SendBefore: w.Now.Add(10 * time.Second), CallEnds: w.Now.Add(45 * time.Second)})
		if err == nil {
			w.sent()
		}
		return err
	}
	return nil
}

func (w *World) lookUp(step task.Step) {
	a := w.State.Attempt(step.N)
	switch {
	case a.State == mediagate.AttemptIntent:
		_ = w.apply(task.SubmitUnknown{Sending: a.Sending, SenderLost: true})
	case !w.find:
	case w.found(a) == "":
		_ = w.apply(task.NotFound{N: a.N, SendBefore: a.SendBefore, AskedAt: w.Now})
	case a.Channel == "":
		w.accept(w.sending(a.N, w.found(a), a.ExternalID))
	default:
		w.accept(a.Sending)
	}
}

// sending is one that is made now.
func (w *World) sending(n int, channel, name string) task.Sending {
	return task.Sending{
		N: n, Channel: channel, Provider: "kling", Route: mediagate.Route{Provider: "kling", Sync: w.sync, Find: w.find}, CanStop: w.stop,
		ExternalID: name, SendBefore: w.Now.Add(10 * time.Second), CallEnds: w.Now.Add(45 * time.Second), Sends: 1,
	}
}

// Poll is a poller of the channel, with its own claim of rows that are due, or a stale
// one.
func (w *World) Poll() {
	for i := range w.State.Attempts {
		a := &w.State.Attempts[i]
		if a.Await == nil {
			continue
		}
		n := a.N
		w.Wait(max(0, a.Await.NextPollAt.Sub(w.Now)))
		w.claims++
		claim := fmt.Sprint("c", w.claims)
		_ = w.apply(task.Claimed{N: n, Claim: claim})
		if w.chance("stale", 20) {
			claim = "c0"
		}
		switch rapid.SampledFrom([]string{"runs", "runs", "ends", "trouble", "waits"}).Draw(w.t, "report") {
		case "runs":
			_ = w.apply(task.Progressed{N: n, Claim: claim, Percent: rapid.SampledFrom([]int{60, 30, -1, 0, 99, 100, 120}).Draw(w.t, "percent"), NextAt: w.Now.Add(time.Second)})
		case "ends":
			_ = w.apply(task.VendorEnded{N: n, Outcome: *w.Outcome(), MayCopy: w.chance("copy", 50)})
		case "trouble":
			_ = w.apply(task.Troubled{N: n, Claim: claim, Reason: rapid.SampledFrom([]mediagate.ParkReason{
				mediagate.ParkCredentials, mediagate.ParkJobLost, mediagate.ParkChannelMissing,
			}).Draw(w.t, "reason")})
		case "waits":
			_ = w.apply(task.VendorWaits{N: n, Claim: claim, NextAt: w.Now.Add(time.Second)})
		}
	}
}

// wish is a client or an operator, who may mean a step of long ago.
func (w *World) wish() {
	var meant task.Step
	if len(w.steps) > 0 && w.chance("meant", 50) {
		meant = rapid.SampledFrom(w.steps).Draw(w.t, "step")
	}
	last := w.State.Last()
	switch rapid.SampledFrom([]string{"cancel", "fail", "retry", "retry", "reroute", "poll", "redeliver", "modal", "delivered", "breaker", "channel gone", "slot", "expired", "unreadable", "restored"}).Draw(w.t, "wish") {
	case "cancel":
		if w.apply(task.CancelRequested{}) == nil {
			w.promised = true
		}
	case "fail":
		_ = w.apply(task.FailRequested{})
	case "retry", "reroute":
		state, doubted := mediagate.AttemptState(""), w.State.TailLost
		if last != nil {
			state = last.State
		}
		ends := w.State.Advance(w.Now).Kind == task.Settle
		var e task.Event = task.RetryRequested{For: meant}
		if w.chance("reroute", 30) {
			e = task.RerouteRequested{For: meant, Channel: "b"}
		}
		if w.apply(e) != nil {
			return
		}
		if doubted && !w.State.TailLost || last != nil && (state != w.State.Last().State || ends && w.State.Advance(w.Now).Kind != task.Settle) {
			w.excuses++ // an operator took the risk, or has another made of a job that was stopped
		}
	case "poll":
		w.Wait(time.Microsecond) // rows tell by their times whether it came after a claim
		_ = w.apply(task.PollRequested{})
	case "redeliver":
		_ = w.apply(task.RedeliverRequested{})
	case "modal":
		_ = w.apply(task.ModalGiven{Input: []byte(`{}`)})
	case "delivered":
		_ = w.apply(task.Delivered{Round: rapid.IntRange(0, 3).Draw(w.t, "round"), State: rapid.SampledFrom([]mediagate.WebhookState{
			"", mediagate.WebhookDelivered, mediagate.WebhookAbandoned,
		}).Draw(w.t, "delivery")})
	case "breaker":
		_ = w.apply(task.BreakerClosed{Reasons: []mediagate.ParkReason{mediagate.ParkProviderAway, mediagate.ParkFunds}})
	case "channel gone":
		_ = w.apply(task.ChannelGone{Channel: "a"})
	case "slot":
		if w.State.Wait.Why == mediagate.WhySlot {
			w.State.Granted = w.Grant == nil || w.Grant()
		}
	case "expired":
		for _, a := range w.State.Attempts {
			_ = w.apply(task.SlotExpired{N: a.N})
		}
	case "restored": // and nothing was lost
		_ = w.apply(task.Restored{At: w.Now})
	case "unreadable":
		w.State.Unreadable = w.MayBeUnreadable && !w.State.Unreadable
	}
}

// intrude is a run that does not know that it was replaced: it makes attempts that
// nobody asked for now.
func (w *World) intrude() {
	a := w.State.Last()
	if a != nil && w.chance("reopen", 50) {
		if w.apply(task.Reopened{N: a.N, Absent: a.SendBefore, SendBefore: w.Now.Add(10 * time.Second), CallEnds: w.Now.Add(45 * time.Second)}) == nil {
			w.sent()
		}
		return
	}
	_ = w.submit(task.Step{Kind: task.Submit, N: len(w.State.Attempts) + 1})
}

// again tells something that was told before, late.
func (w *World) again() {
	if len(w.past) == 0 {
		return
	}
	e := rapid.SampledFrom(w.past).Draw(w.t, "event")
	switch e.(type) {
	case task.IntentStored, task.Reopened, task.Claimed, task.RetryRequested, task.RerouteRequested, task.ModalGiven, task.CancelRequested:
		return // not by those who repeat themselves
	default:
	}
	_ = w.apply(e)
}

// Exhaust lets every step fail from now on, and nobody help: the task must end.
func (w *World) Exhaust() {
	w.t.Helper()
	w.State.Unreadable = false
	begin := w.Now
	for range 3000 {
		if w.State.Status.Terminal() {
			if passed := w.Now.Sub(begin); passed > 15*24*time.Hour {
				w.t.Fatalf("it took %s to end", passed)
			}
			return
		}
		_ = w.apply(task.Asked{})
		switch step := w.State.Advance(w.Now); step.Kind {
		case task.Sleep:
			w.Wait(step.Until.Sub(w.Now))
			w.endSource()
		case task.Settle:
			_ = w.apply(task.EndDue{})
		default:
			w.fails(step)
		}
	}
	w.t.Fatalf("no end in sight: %+v of %+v", w.State.Advance(w.Now), w.State)
}

// Play lets so many things happen, then every step fail until the task has ended.
func (w *World) Play(length int) {
	w.t.Helper()
	w.Live(length)
	w.Exhaust()
	w.Wait(time.Hour)
	w.oneJob()
}

// PlayRestored lets so many things happen, and now and then takes the task back to how
// a backup has it, while the vendor's jobs are those of today. Its run knows more than
// the row, or was replaced. Nothing is made twice without somebody who answers for it.
func (w *World) PlayRestored(length int) {
	w.t.Helper()
	w.find, w.full, w.backedUp = w.chance("can be asked", 80), 10, true
	w.backups = append(w.backups, backup{state: clone(w.State)})
	w.vendor = []string{"accepts", "refuses for now", "refuses for now", "lost", "died", "died after"}
	for range length {
		if w.chance("anything", 20) {
			w.Live(1)
		} else {
			w.step()
		}
		if w.chance("restored", 15) {
			w.restore()
		}
		w.oneJob()
	}
	w.Exhaust()
	w.Wait(time.Hour)
	w.oneJob()
}

func (w *World) restore() {
	w.Wait(time.Duration(rapid.IntRange(1, 100).Draw(w.t, "hours without")) * time.Hour) // calls that were under way have landed
	b := rapid.SampledFrom(w.backups).Draw(w.t, "backup")
	w.State, w.entries, w.promised, w.ended = clone(b.state), b.entries, b.promised, b.ended
	w.past, w.steps = nil, nil
	w.heartbeat = task.Seen{}
	if w.chance("the run is new", 50) {
		w.seen = task.Seen{}
	}
	_ = w.apply(task.Restored{At: w.Now})
}

// PlayLapsed lets so many things happen while the database loses its last seconds now and
// then, as in a failover to a replica that lagged, and nobody says so. The vendor's jobs,
// calls that are under way, and the memories of the run and of senders stay.
func (w *World) PlayLapsed(length int) {
	w.t.Helper()
	w.full, w.backedUp, w.lapses = 10, true, true
	w.backups = append(w.backups, backup{at: w.Now, state: clone(w.State)})
	for range length {
		switch rapid.SampledFrom([]string{"step", "step", "step", "step", "poll", "wish", "wait"}).Draw(w.t, "who") {
		case "step":
			w.step()
		case "poll":
			w.Poll()
		case "wish":
			w.wish()
		case "wait":
			w.Wait(time.Duration(rapid.IntRange(1, 40).Draw(w.t, "seconds passed")) * time.Second)
		}
		w.mayLapse()
		w.oneJob()
	}
	w.lapses = false
	w.step()
	w.Exhaust()
	w.Wait(time.Hour)
	w.oneJob()
}

// lapse is the most that the database loses.
const lapse = 30 * time.Second

// mayLapse takes the task back to how it was some seconds ago, now and then.
func (w *World) mayLapse() {
	w.t.Helper()
	if !w.lapses || !w.chance("lapse", 25) {
		return
	}
	oldest := slices.IndexFunc(w.backups, func(b backup) bool { return w.Now.Sub(b.at) <= lapse })
	if oldest < 0 {
		return
	}
	back := rapid.IntRange(oldest, len(w.backups)-1).Draw(w.t, "state")
	w.backups = w.backups[:back+1] // what came after is of no database any more
	b := w.backups[back]
	if s := w.seen.Status; s == mediagate.StatusFailed || s == mediagate.StatusCancelled {
		w.endsAs = s
	}
	w.State, w.entries, w.promised, w.ended = clone(b.state), b.entries, b.promised || w.seen.Cancelled, b.ended
	w.past, w.steps = nil, nil
}

// Let lets these things happen. One that is refused ends the test.
func (w *World) Let(events ...task.Event) {
	w.t.Helper()
	for _, e := range events {
		if err := w.apply(e); err != nil {
			w.t.Fatalf("%T: %s", e, err)
		}
	}
}

// Live lets so many things happen.
func (w *World) Live(length int) {
	w.t.Helper()
	for range length {
		switch rapid.SampledFrom([]string{"step", "step", "step", "step", "poll", "poll", "wish", "again", "wait", "intrude"}).Draw(w.t, "who") {
		case "step":
			w.step()
		case "poll":
			w.Poll()
		case "wish":
			w.wish()
		case "again":
			w.again()
		case "intrude":
			w.intrude()
		case "wait":
			w.Wait(time.Duration(rapid.IntRange(1, 7200).Draw(w.t, "seconds passed")) * time.Second)
		}
	}
}

// PlayLossy lets so many things happen between the task and a vendor that loses most
// answers. Nobody interferes.
func (w *World) PlayLossy(length int) {
	w.t.Helper()
	w.State.Plan.Inputs, w.State.Plan.Modal, w.sync = nil, 0, false
	w.find, w.full, w.twice = w.chance("can be asked", 80), 0, rapid.Bool().Draw(w.t, "takes names twice")
	w.vendor = []string{"accepts", "refuses", "refuses for now", "late", "late", "late", "lost", "died", "died after"}
	for range length {
		switch rapid.SampledFrom([]string{"step", "step", "step", "look", "again", "wait", "intrude"}).Draw(w.t, "who") {
		case "step":
			w.step()
		case "look": // of another run, at any time
			if a := w.State.Last(); a != nil && a.State == mediagate.AttemptUnknown {
				w.lookUp(task.Step{Kind: task.Lookup, N: a.N})
			}
		case "again":
			w.again()
		case "intrude":
			w.intrude()
		case "wait":
			w.Wait(time.Duration(rapid.IntRange(1, 40).Draw(w.t, "seconds passed")) * time.Second)
		}
		w.oneJob()
	}
	w.Wait(time.Hour)
	w.oneJob()
}

// oneJob holds that the vendor has no job that nobody answers for.
func (w *World) oneJob() {
	w.t.Helper()
	if len(w.jobs) > 1+w.excuses {
		w.t.Fatalf("%d jobs, with excuses for %d: %v", len(w.jobs), w.excuses, w.jobs)
	}
}
