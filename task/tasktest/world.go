// Package tasktest plays random lives of tasks. A [World] has a vendor that keeps a list of its
// jobs, a run that loses its way, and clients, operators and pollers that interfere. It checks the
// promises of package task after each event. The tests of task use it, and so do those of storage,
// which stores what task decides. The package may import the module root, task and task/story.
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

// World is a task, its vendor, and the clients, operators and pollers that may interfere. Reports
// about the vendor are always true, but may be late. Everything else is random. World checks the
// promises after each event.
type World struct {
	State task.State
	Now   time.Time
	// MayBeUnreadable lets the task's documents be damaged and mended.
	MayBeUnreadable bool
	// Grant reports whether a slot that the task is queued for is granted now. That is a fact of
	// other rows, not an event. If Grant is nil, a slot is always granted.
	Grant func() bool
	// Observe is called for each event that was applied or refused, with the task before it. It
	// may be nil.
	Observe func(before task.State, e task.Event, effects task.Effects, err error)

	t      *rapid.T
	stop   bool
	find   bool
	sync   bool
	full   int      // percentage of submits that find no slot
	vendor []string // what it does with a sending; each entry is equally likely

	jobs    map[string]bool // those that the vendor has; for the keys see key
	twice   bool            // the vendor takes a name twice
	late    []landing       // sendings that reach the vendor later
	excuses int             // jobs beyond the first that an operator answers for

	backedUp bool // a backup is made after each event
	lapses   bool // now and then the database loses its last seconds
	backups  []backup

	history   []task.Event // to be repeated
	steps     []task.Step  // those that the run took or slept on
	claims    int
	seen      task.Seen // what the run has seen
	heartbeat task.Seen // that of a sender that died, until the step is tried again
	entries   int
	promised  bool
	ended     *task.State
	endsAs    mediagate.Status // how the run saw the task end; the task must end like that again
}

// backup is the task in a backup of the database.
type backup struct {
	at       time.Time
	state    task.State
	entries  int
	promised bool
	ended    *task.State
}

// landing is a sending that reaches the vendor late, but before its call must be over.
type landing struct {
	at  time.Time
	key string
}

// Noon is when tasks begin.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(t time.Time) string { return t.Sub(Noon).String() }

// New returns a world with a task that has just been submitted.
func New(t *rapid.T) *World {
	w := &World{t: t, Now: Noon, jobs: map[string]bool{}, full: 20}
	w.vendor = []string{
		"accepts", "accepts", "accepts", "refuses", "refuses for now", "late", "lost", "died", "died after",
	}
	w.sync = rapid.Bool().Draw(t, "sync")
	w.find, w.stop = rapid.Bool().Draw(t, "find"), rapid.Bool().Draw(t, "stop")
	plan := mediagate.Plan{
		Routes:   []mediagate.Route{{Provider: "kling"}},
		Expected: time.Minute, Timeout: 2 * time.Hour, ParkTimeout: 24 * time.Hour, ParkRetry: 5 * time.Minute,
		QueueTimeout: 24 * time.Hour,
	}
	if rapid.Bool().Draw(t, "inputs") {
		plan.Inputs = []mediagate.Input{{Field: "image_urls[0]"}}
	}
	plan.OnUnknown = rapid.SampledFrom([]string{mediagate.OnUnknownFail, mediagate.OnUnknownPark}).Draw(t, "unknown")
	if rapid.Bool().Draw(t, "modal") {
		plan.Modal = 30 * time.Minute
	}
	w.State = task.State{Task: mediagate.Task{
		ID: "task_1", Status: mediagate.StatusPending, Version: 1, DeadlineAt: Noon.Add(2 * time.Hour), Plan: plan,
		Hold:    500_000,
		Charges: []mediagate.Charge{{Item: "video", Unit: mediagate.UnitSecond, Quantity: 5, UnitPrice: 100_000}},
	}}
	w.State.Webhook.State = rapid.SampledFrom(
		[]mediagate.WebhookState{"", mediagate.WebhookPending, mediagate.WebhookDropped},
	).Draw(t, "webhook")
	return w
}

// UseSources lets the task use a file of each of two tasks that still run; in most worlds it uses
// none.
func (w *World) UseSources() {
	if !w.chance("uses sources", 30) {
		return
	}
	w.State.SourceTasks = map[string]mediagate.Task{}
	for i, id := range []string{"task_a", "task_b"} {
		w.State.Sources = append(
			w.State.Sources, mediagate.TaskFile{Field: fmt.Sprintf("image_urls[%d]", i), TaskID: id, N: 1},
		)
		w.State.SourceTasks[id] = mediagate.Task{ID: id, Status: mediagate.StatusProcessing}
	}
	if err := w.State.Begin(w.Now); err != nil {
		w.t.Fatal(err)
	}
}

// endSource ends one of the sources that still run, as completed or not.
func (w *World) endSource() {
	open := w.State.OpenSources()
	if len(open) == 0 {
		return
	}
	source := mediagate.Task{ID: open[0], EndedAt: w.Now}
	source.Status = rapid.SampledFrom([]mediagate.Status{
		mediagate.StatusCompleted, mediagate.StatusCompleted, mediagate.StatusCompleted, mediagate.StatusFailed,
		mediagate.StatusCancelled,
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

// apply applies an event and checks the promises.
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
	w.history = append(w.history, e)
	w.check(before, e, effects)
	if w.backedUp {
		w.backups = append(w.backups, backup{w.Now, clone(w.State), w.entries, w.promised, w.ended})
	}
	return nil
}

// check checks the promises after an event.
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
	case effects.Entry == mediagate.EntryPost && s.Status != mediagate.StatusCompleted,
		effects.Entry == mediagate.EntryVoid && s.Status == mediagate.StatusCompleted:
		fail("%s for %s", effects.Entry, s.Status)
	case s.Cost < 0 || s.Cost > s.Hold || s.Cost > 0 && s.Status != mediagate.StatusCompleted:
		fail("%s costs %s of %s", s.Status, s.Cost, s.Hold)
	case s.Progress < before.Progress || (s.Progress == 100) != (s.Status == mediagate.StatusCompleted):
		fail("progress %d after %d, %s", s.Progress, before.Progress, s.Status)
	case s.Version < before.Version || s.Version > before.Version+1:
		fail("version %d after %d", s.Version, before.Version)
	case w.endsAs != "" && s.Status.Terminal() && s.Status != w.endsAs &&
		(!w.promised || s.Status != mediagate.StatusCancelled):
		fail("ended as %s, and was seen as %s", s.Status, w.endsAs)
	case w.promised && s.Status == mediagate.StatusCompleted:
		fail("completed after a promised cancel")
	case (s.Failure != nil) != (s.Status == mediagate.StatusFailed):
		fail("%s with failure %v", s.Status, s.Failure)
	case effects.Copy && (!effects.Wake || s.Advance(w.Now).Kind != task.Mirror):
		fail("a poller copies, and the next step is %s", s.Advance(w.Now).Kind)
	}
	if w.ended != nil && (s.Status != w.ended.Status || s.Cost != w.ended.Cost || len(s.Results) != len(
		w.ended.Results,
	) || s.Failure != w.ended.Failure) {
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
		open := a.State == mediagate.AttemptIntent || a.State == mediagate.AttemptUnknown ||
			a.State == mediagate.AttemptAccepted
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

// CheckStep checks that the task has a next step, and that each sleep has an end.
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

// checkActions checks that the offered commands apply, and that no others do.
func (w *World) checkActions(offered []string, fail func(string, ...any)) {
	for action, event := range map[string]task.Event{
		mediagate.ActionRetry: task.RetryRequested{}, mediagate.ActionReroute: task.RerouteRequested{},
		mediagate.ActionFail:    task.FailRequested{},
		mediagate.ActionPollNow: task.PollRequested{}, mediagate.ActionRedeliver: task.RedeliverRequested{},
	} {
		state := clone(w.State)
		_, err := state.Apply(event, w.Now)
		applies := slices.Contains(offered, action)
		if why := w.State.SkipReason(action, w.Now); applies != (why == "") {
			fail("%s is skipped: %q", action, why)
		}
		if action == mediagate.ActionFail && !w.State.FailRequestedAt.IsZero() && !w.State.Status.Terminal() {
			continue // a repeated fail changes nothing
		}
		if applies && err != nil {
			fail("%s is offered: %v", action, err)
		}
		if !applies && err == nil {
			fail("%s is not offered, and is taken", action)
		}
	}
}

// clone copies what events change in place.
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

// Wait lets time pass. Late sendings reach the vendor.
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

// key names the attempt's job at the vendor: by channel and name, and also by sending if the vendor
// takes a name twice.
func (w *World) key(a *task.Attempt) string {
	if w.twice {
		return fmt.Sprintf("%s %s, sent before %s", a.Channel, a.ExternalID, at(a.SendBefore))
	}
	return a.Channel + " " + a.ExternalID
}

// foundAt returns the channel at which the vendor has a job under the attempt's name, or "" if
// there is none. An attempt without a channel may have been made at any channel.
func (w *World) foundAt(a *task.Attempt) (channel string) {
	for _, job := range slices.Sorted(maps.Keys(w.jobs)) {
		at, name, _ := strings.Cut(job, " ")
		name, _, _ = strings.Cut(name, ",")
		if name == a.ExternalID && (a.Channel == "" || a.Channel == at) {
			return at
		}
	}
	return ""
}

// sendAttempt plays a sending of the last attempt: what the vendor does with it, and whether its answer
// arrives.
func (w *World) sendAttempt() {
	a := w.State.Last()
	name, sending, callEnds := w.key(a), a.Sending, a.CallEnds
	answer := rapid.SampledFrom(w.vendor).Draw(w.t, "vendor")
	if w.jobs[name] { // the vendor takes no name twice
		answer = "refuses"
	}
	w.mayLapse()
	switch answer {
	case "accepts":
		w.jobs[name] = true
		w.accept(sending)
	case "refuses":
		_ = w.apply(
			task.Refused{Sending: sending, Failure: mediagate.Failure{Code: mediagate.CodeInvalidParameters}, Invalid: true},
		)
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
		w.late = append(
			w.late, landing{at: w.Now.Add(wait * time.Duration(rapid.IntRange(1, 10).Draw(w.t, "tenths")) / 10), key: name},
		)
		_ = w.apply(task.SubmitUnknown{Sending: sending})
	case "lost":
		if w.chance("made", 50) {
			w.jobs[name] = true
		}
		_ = w.apply(task.SubmitUnknown{Sending: sending, SenderLost: w.chance("sender lost", 50)})
	case "died after":
		w.jobs[name] = true
		w.heartbeat = task.Seen{Sending: sending}
	case "died": // the sender died before it sent anything
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

// Outcome returns a random end of a job.
func (w *World) Outcome() *mediagate.Outcome {
	if w.chance("job fails", 30) {
		return &mediagate.Outcome{Failure: &mediagate.Failure{Code: mediagate.CodeGenerationFailed}}
	}
	return &mediagate.Outcome{Succeeded: true, Seconds: float64(rapid.IntRange(0, 9).Draw(w.t, "seconds"))}
}

// ask is the run's question. The run remembers the answer.
func (w *World) ask(seen task.Seen) {
	if err := w.apply(task.Asked{Seen: seen}); err != nil {
		w.t.Fatal(err)
	}
	w.remember()
}

// remember lets the run remember what the row knows now.
func (w *World) remember() {
	if seen := w.State.Seen(); seen.N >= w.seen.N {
		w.seen = seen
	}
	w.promised = w.promised || w.seen.Cancelled
}

// step takes the next step as a run does, successfully or not.
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
		w.failStep(step)
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
	w.checkProgress(step)
	w.remember()
}

// checkProgress checks that the same step is not returned again without a pause.
func (w *World) checkProgress(step task.Step) {
	if next := w.State.Advance(w.Now); next.Kind == step.Kind && next.N == step.N {
		w.t.Fatalf("%s %d again at once", next.Kind, next.N)
	}
}

// failStep lets the step fail for a random reason.
func (w *World) failStep(step task.Step) {
	kind := rapid.SampledFrom([]mediagate.Kind{
		mediagate.KindInternal, mediagate.KindUnavailable, mediagate.KindTransient, mediagate.KindShutOut,
		mediagate.KindUnreached,
		mediagate.KindInvalid, mediagate.KindNotFound, mediagate.KindGone, mediagate.KindCredentials,
	}).Draw(w.t, "kind")
	code := ""
	switch kind {
	case mediagate.KindShutOut:
		code = string(
			rapid.SampledFrom([]mediagate.ParkReason{mediagate.ParkProviderAway, mediagate.ParkFunds}).Draw(w.t, "why"),
		)
	case mediagate.KindUnreached:
		code = string(mediagate.ParkChannelMissing)
	case mediagate.KindNotFound:
		code = string(mediagate.ParkJobLost)
	case mediagate.KindGone:
		code = string(mediagate.CodeResultUnavailable)
	default:
	}
	_ = w.apply(task.StepEnded{Step: step.Kind, N: step.N, Failed: true, Kind: kind, Code: code, Reason: "r"})
	w.checkProgress(step)
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
				w.excuses++ // this attempt continues the same job
			}
			w.sendAttempt()
		}
		return err
	case a.State == mediagate.AttemptIntent: // its sender is gone
		return w.apply(task.SubmitUnknown{Sending: a.Sending, SenderLost: true})
	case a.State == mediagate.AttemptUnknown:
		err := w.apply(
			task.Reopened{
				N: a.N, Absent: a.SendBefore, SendBefore: w.Now.Add(10 * time.Second), CallEnds: w.Now.Add(45 * time.Second),
			},
		)
		if err == nil {
			w.sendAttempt()
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
	case w.foundAt(a) == "":
		_ = w.apply(task.NotFound{N: a.N, SendBefore: a.SendBefore, AskedAt: w.Now})
	case a.Channel == "":
		w.accept(w.sending(a.N, w.foundAt(a), a.ExternalID))
	default:
		w.accept(a.Sending)
	}
}

// sending returns a sending that is made now.
func (w *World) sending(n int, channel, name string) task.Sending {
	return task.Sending{
		N: n, Channel: channel, Provider: "kling", Route: mediagate.Route{Provider: "kling", Sync: w.sync, Find: w.find},
		CanStop:    w.stop,
		ExternalID: name, SendBefore: w.Now.Add(10 * time.Second), CallEnds: w.Now.Add(45 * time.Second), Sends: 1,
	}
}

// Poll plays a poller of the channel. It claims rows that are due, and reports under that claim
// or a stale one.
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
			_ = w.apply(
				task.Progressed{
					N: n, Claim: claim, Percent: rapid.SampledFrom([]int{60, 30, -1, 0, 99, 100, 120}).Draw(w.t, "percent"),
					NextAt: w.Now.Add(time.Second),
				},
			)
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

// giveCommand plays a command of a client or an operator. The command may be meant for an earlier
// step.
func (w *World) giveCommand() {
	var meant task.Step
	if len(w.steps) > 0 && w.chance("meant", 50) {
		meant = rapid.SampledFrom(w.steps).Draw(w.t, "step")
	}
	last := w.State.Last()
	switch rapid.SampledFrom(
		[]string{
			"cancel", "fail", "retry", "retry", "reroute", "poll", "redeliver", "modal", "delivered", "breaker", "channel gone",
			"slot", "expired", "unreadable", "restored",
		},
	).Draw(w.t, "wish") {
	case "cancel":
		if w.apply(task.CancelRequested{}) == nil {
			w.promised = true
		}
	case "fail":
		_ = w.apply(task.FailRequested{})
	case "retry", "reroute":
		state, tailLost := mediagate.AttemptState(""), w.State.TailLost
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
		if tailLost && !w.State.TailLost || last != nil && (state != w.State.Last().State || ends && w.State.Advance(
			w.Now,
		).Kind != task.Settle) {
			w.excuses++ // an operator took the risk, or ordered another job after one was stopped
		}
	case "poll":
		w.Wait(time.Microsecond) // rows know by their times whether a request came after a claim
		_ = w.apply(task.PollRequested{})
	case "redeliver":
		_ = w.apply(task.RedeliverRequested{})
	case "modal":
		_ = w.apply(task.ModalGiven{Input: []byte(`{}`)})
	case "delivered":
		_ = w.apply(task.Delivered{Round: rapid.IntRange(0, 3).Draw(
			w.t, "round",
		), State: rapid.SampledFrom([]mediagate.WebhookState{
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
	case "restored": // nothing was lost
		_ = w.apply(task.Restored{At: w.Now})
	case "unreadable":
		w.State.Unreadable = w.MayBeUnreadable && !w.State.Unreadable
	}
}

// intrude plays a run that was replaced and does not know it. It makes attempts that are not the
// next step.
func (w *World) intrude() {
	a := w.State.Last()
	if a != nil && w.chance("reopen", 50) {
		if w.apply(
			task.Reopened{
				N: a.N, Absent: a.SendBefore, SendBefore: w.Now.Add(10 * time.Second), CallEnds: w.Now.Add(45 * time.Second),
			},
		) == nil {
			w.sendAttempt()
		}
		return
	}
	_ = w.submit(task.Step{Kind: task.Submit, N: len(w.State.Attempts) + 1})
}

// repeatEvent repeats an earlier event, late.
func (w *World) repeatEvent() {
	if len(w.history) == 0 {
		return
	}
	e := rapid.SampledFrom(w.history).Draw(w.t, "event")
	switch e.(type) {
	case task.IntentStored, task.Reopened, task.Claimed, task.RetryRequested, task.RerouteRequested, task.ModalGiven,
		task.CancelRequested:
		return // the senders of these events do not repeat them
	default:
	}
	_ = w.apply(e)
}

// Exhaust lets every step fail from now on, and nobody helps. The task must end all the same.
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
			w.failStep(step)
		}
	}
	w.t.Fatalf("no end in sight: %+v of %+v", w.State.Advance(w.Now), w.State)
}

// Play plays length random moves, then lets every step fail until the task has ended.
func (w *World) Play(length int) {
	w.t.Helper()
	w.Live(length)
	w.Exhaust()
	w.Wait(time.Hour)
	w.checkJobs()
}

// PlayRestored plays length random moves. Now and then it takes the task back to a backup, while
// the vendor keeps today's jobs. Afterwards the run knows more than the row, or it was replaced
// and knows nothing. No job may be made twice unless an operator answers for it.
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
		w.checkJobs()
	}
	w.Exhaust()
	w.Wait(time.Hour)
	w.checkJobs()
}

func (w *World) restore() {
	// calls that were under way are over
	w.Wait(time.Duration(rapid.IntRange(1, 100).Draw(w.t, "hours without")) * time.Hour)
	b := rapid.SampledFrom(w.backups).Draw(w.t, "backup")
	w.State, w.entries, w.promised, w.ended = clone(b.state), b.entries, b.promised, b.ended
	w.history, w.steps = nil, nil
	w.heartbeat = task.Seen{}
	if w.chance("the run is new", 50) {
		w.seen = task.Seen{}
	}
	_ = w.apply(task.Restored{At: w.Now})
}

// PlayLapsed plays length random moves. Now and then the database loses its last seconds,
// unannounced, as in a failover to a replica that lagged. The vendor's jobs, the calls that are
// under way, and the memories of the run and of senders stay.
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
			w.giveCommand()
		case "wait":
			w.Wait(time.Duration(rapid.IntRange(1, 40).Draw(w.t, "seconds passed")) * time.Second)
		}
		w.mayLapse()
		w.checkJobs()
	}
	w.lapses = false
	w.step()
	w.Exhaust()
	w.Wait(time.Hour)
	w.checkJobs()
}

// lapse is the longest time that the database loses.
const lapse = 30 * time.Second

// mayLapse now and then takes the task back to its state of some seconds ago.
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
	w.backups = w.backups[:back+1] // no database has the later ones any more
	b := w.backups[back]
	if s := w.seen.Status; s == mediagate.StatusFailed || s == mediagate.StatusCancelled {
		w.endsAs = s
	}
	w.State, w.entries, w.promised, w.ended = clone(b.state), b.entries, b.promised || w.seen.Cancelled, b.ended
	w.history, w.steps = nil, nil
}

// Apply applies the events. A refused one ends the test.
func (w *World) Apply(events ...task.Event) {
	w.t.Helper()
	for _, e := range events {
		if err := w.apply(e); err != nil {
			w.t.Fatalf("%T: %s", e, err)
		}
	}
}

// Live plays length random moves.
func (w *World) Live(length int) {
	w.t.Helper()
	for range length {
		switch rapid.SampledFrom(
			[]string{"step", "step", "step", "step", "poll", "poll", "wish", "again", "wait", "intrude"},
		).Draw(w.t, "who") {
		case "step":
			w.step()
		case "poll":
			w.Poll()
		case "wish":
			w.giveCommand()
		case "again":
			w.repeatEvent()
		case "intrude":
			w.intrude()
		case "wait":
			w.Wait(time.Duration(rapid.IntRange(1, 7200).Draw(w.t, "seconds passed")) * time.Second)
		}
	}
}

// PlayLossy plays length random moves between the task and a vendor that loses most answers. No
// client or operator interferes.
func (w *World) PlayLossy(length int) {
	w.t.Helper()
	w.State.Plan.Inputs, w.State.Plan.Modal, w.sync = nil, 0, false
	w.find, w.full, w.twice = w.chance("can be asked", 80), 0, rapid.Bool().Draw(w.t, "takes names twice")
	w.vendor = []string{"accepts", "refuses", "refuses for now", "late", "late", "late", "lost", "died", "died after"}
	for range length {
		switch rapid.SampledFrom([]string{"step", "step", "step", "look", "again", "wait", "intrude"}).Draw(w.t, "who") {
		case "step":
			w.step()
		case "look": // by another run, at any time
			if a := w.State.Last(); a != nil && a.State == mediagate.AttemptUnknown {
				w.lookUp(task.Step{Kind: task.Lookup, N: a.N})
			}
		case "again":
			w.repeatEvent()
		case "intrude":
			w.intrude()
		case "wait":
			w.Wait(time.Duration(rapid.IntRange(1, 40).Draw(w.t, "seconds passed")) * time.Second)
		}
		w.checkJobs()
	}
	w.Wait(time.Hour)
	w.checkJobs()
}

// checkJobs checks that an operator answers for each job of the vendor beyond the first.
func (w *World) checkJobs() {
	w.t.Helper()
	if len(w.jobs) > 1+w.excuses {
		w.t.Fatalf("%d jobs, with excuses for %d: %v", len(w.jobs), w.excuses, w.jobs)
	}
}
