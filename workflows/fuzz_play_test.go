package workflows_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/mock"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/workflows"
)

// play is one scenario while it is played: the real workflow and the real
// activities, also those of the channel and the reconciler, on doubles of
// everything outside. A workflow of the test's own, the stage, starts the runs
// of the task one after another as its children, so that what an earlier run
// has left under way goes on beside the next one, on one clock.
type play struct {
	*activitytest.World
	scenario
	checks
	env *testsuite.TestWorkflowEnvironment

	mu        sync.Mutex
	trace     []string
	runs      int
	alive     bool     // a run is
	wedge     bool     // the next run is to do nothing
	early     []func() // what is to reach it once it has begun; nil when it has
	calls     map[string]int
	next      map[string]activity.Info // started last, by name
	scheduled map[string]time.Time     // first attempts, by run and id
	expired   map[string]bool
	dropped   map[string]bool // cancelled by their workflow
	jobs      []*job
	starts    []time.Time // of activities
	ordered   []time.Time // retries
}

// patience is how long a parked task waits in a play.
const patience = time.Hour

func newPlay(s scenario) *play {
	p := &play{
		scenario: s, calls: map[string]int{}, next: map[string]activity.Info{}, scheduled: map[string]time.Time{},
		expired: map[string]bool{}, dropped: map[string]bool{},
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	p.env = suite.NewTestWorkflowEnvironment()
	p.env.SetStartTime(start)
	p.env.SetTestTimeout(1000 * time.Hour) // of the bubble
	p.env.SetActivityTimeoutGracePeriod(1000 * time.Hour)
	p.env.SetDetachedChildWait(false)
	p.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "stage", TaskQueue: workflows.QueueMain})
	p.World = activitytest.New(func() time.Time { return p.env.Now() })
	p.Store.Fault = p.fault
	slippery := &slippery{p.Store, p}
	p.Activities.Store, p.Activities.Breakers.Store = slippery, slippery
	p.Activities.Engine = &prompter{p.Engine, p}
	p.Activities.Settings.ParkTimeout, p.Activities.Settings.QueueTimeout = patience, patience
	p.Activities.StartedAt = start
	p.Fetcher.OnFetch = p.fetch
	p.Bucket.OnMirror = p.store
	p.Deliverer.OnDeliver = p.receive
	for _, v := range []*activitytest.Vendor{p.Async, p.Sync} {
		v.OnSubmit, v.OnPoll, v.OnFind, v.OnCancel = p.submit, p.poll, p.find, p.cancel
	}
	p.setChannels("")
	p.Store.Add(p.newTask())
	p.frozen, _ = p.Store.Peek(taskID)
	p.seenAt = start
	return p
}

func (p *play) newTask() mediagate.Task {
	t := p.NewVideo()
	if p.Vendor == vendorSync {
		t = p.NewImage()
	}
	t.Plan.OnUnknown, t.Plan.Timeout = p.OnUnknown, p.Timeout
	t.DeadlineAt = t.CreatedAt.Add(p.Timeout)
	if p.Modal {
		t.Type, t.Plan.Modal = mediagate.TypeArt, 30*time.Minute
	}
	if !p.Callback {
		t.Webhook = nil
	}
	return t
}

// setChannels gives the worker its channels, but for what is wrong with them.
func (p *play) setChannels(wrong string) {
	async, sync := p.AsyncBound(), p.SyncBound()
	async.PollMin, async.PollMax = 10*time.Second, time.Minute
	if p.Vendor == vendorBlind {
		async.Vendor = p.Async
	}
	switch wrong {
	case "gone":
		p.Channels.Set()
		return
	case "another account":
		async.Fingerprint, sync.Fingerprint = "account-x", "account-y"
	}
	channels := []channel.Channel{async, sync}
	if p.Spare {
		for _, c := range channels {
			c.Name, c.Fingerprint, c.Priority = c.Name+"-spare", c.Fingerprint+", spare", 1
			channels = append(channels, c)
		}
	}
	if p.Slots {
		for i := range channels {
			channels[i].Concurrency = 1
		}
	}
	p.Channels.Set(channels...)
}

// fill gives the slots of all channels that are free to others, or has these
// end.
func (p *play) fill(full bool) {
	for _, c := range p.Channels.All() {
		id := "other at " + c.Name
		if !full {
			p.Store.EditAttempt(id, 1, func(a *mediagate.Attempt) { a.State = mediagate.AttemptEnded })
			continue
		}
		other := p.NewVideo()
		other.ID, other.DeadlineAt = id, start.Add(10_000*time.Hour)
		p.Store.Add(other)
		if _, _, err := p.Store.OpenAttempt(context.Background(), mediagate.Attempt{TaskID: id, N: 1, Channel: c.Name, Provider: c.Provider}, c.Slots()); err != nil {
			p.note("nobody else takes a slot: %v", err)
		}
	}
}

// absent makes what is wrong with the channels begin or end.
func (p *play) absent(wrong string, begins bool) {
	ctx := context.Background()
	for _, name := range []string{activitytest.AsyncChannel, activitytest.SyncChannel} {
		var err error
		switch {
		case wrong == "disabled":
			_, err = p.Store.EnableChannel(ctx, name, !begins)
		case wrong == "broken" && begins:
			_, _, err = p.Store.TripBreaker(ctx, mediagate.Trip{
				Channel: name, Reason: mediagate.ParkProviderAway, Began: p.env.Now(), OpenFor: 30 * time.Second,
			})
		}
		if err != nil {
			p.note("channels stay as they are: %v", err)
		}
	}
	switch {
	case wrong == "disabled", wrong == "broken":
	case wrong == "full":
		p.fill(begins)
	case begins:
		p.setChannels(wrong)
	default:
		p.setChannels("")
	}
}

// run plays the scenario to its end.
func (p *play) run() {
	p.env.RegisterActivity(p.Activities)
	p.env.RegisterActivity(&passes{p})
	p.env.RegisterWorkflowWithOptions(p.generate, workflow.RegisterOptions{Name: "Generate"})
	p.env.RegisterWorkflow(workflows.DeliverWebhook)
	p.env.RegisterWorkflowWithOptions(p.stage, workflow.RegisterOptions{Name: "Stage"})
	p.env.OnRequestCancelExternalWorkflow(mock.Anything, mock.Anything, mock.Anything).Return(nil) // no such run any more
	p.queueAll()
	p.env.SetOnActivityStartedListener(p.started)
	p.env.SetOnActivityCompletedListener(p.completed)
	p.env.SetOnActivityCanceledListener(func(info *activity.Info) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.dropped[nameOf(*info)] = true
	})
	for _, e := range p.Happening {
		p.env.RegisterDelayedCallback(func() { p.happen(e.What) }, e.At)
	}
	for _, w := range p.Absent {
		p.env.RegisterDelayedCallback(func() { p.note("channels: %s", w.What); p.absent(w.What, true) }, w.From)
		p.env.RegisterDelayedCallback(func() { p.note("channels: no longer %s", w.What); p.absent(w.What, false) }, w.To)
	}
	p.env.ExecuteWorkflow("Stage")
	if err := p.env.GetWorkflowError(); err != nil {
		p.violate("the stage broke: %v", err)
	}
	p.final()
}

func (p *play) elapsed() time.Duration { return p.env.Now().Sub(start) }

// note adds a line to the play's record.
func (p *play) note(format string, args ...any) {
	line := fmt.Sprintf("%12v  ", p.elapsed()) + fmt.Sprintf(format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trace = append(p.trace, line)
}

// sleep passes time within an activity, in small steps: what else measures
// time meanwhile, as the activity's own limits do, keeps up.
func (p *play) sleep(ctx context.Context, d time.Duration) {
	for d > 0 && ctx.Err() == nil {
		step := min(d, time.Second)
		d -= step
		woken := make(chan struct{})
		p.env.RegisterDelayedCallback(func() { close(woken) }, step)
		<-woken
	}
}

// The stage.

const (
	signalEnsure    = "ensure"
	signalRound     = "round"
	signalTerminate = "terminate"
)

// stage starts a run whenever somebody asks for one and none is there, until
// the task has ended and all is calm; then one more, which must not change
// anything.
//
//workflowcheck:ignore
func (p *play) stage(ctx workflow.Context) error {
	ensure, over := workflow.GetSignalChannel(ctx, signalEnsure), false
	end := max(p.calm(), 0) + p.Timeout + patience + 3*time.Hour
	workflow.Go(ctx, p.tending)
	workflow.Go(ctx, p.reconciling)
	workflow.Go(ctx, p.rounds)
	workflow.Go(ctx, func(ctx workflow.Context) {
		_ = workflow.Sleep(ctx, end)
		if t, _ := p.Store.Peek(taskID); !t.Status.Terminal() {
			p.violate("the task never ends: %s, parked %q, deadline %v", t.Status, t.ParkReason, t.DeadlineAt.Sub(start))
			p.stop()
		}
		over = true
	})
	wanted := !p.StartLost
	for {
		_ = workflow.Await(ctx, func() bool { return wanted || over || ensure.ReceiveAsync(nil) })
		if t, _ := p.Store.Peek(taskID); t.Status.Terminal() || over {
			break
		}
		wanted = false
		p.runOnce(ctx)
		for ensure.ReceiveAsync(nil) {
			continue // meant for the run that has ended
		}
		t, _ := p.Store.Peek(taskID)
		wanted = t.Status.Terminal()
	}
	p.note("the task has ended")
	if left := p.calm() - p.elapsed(); left > 0 {
		_ = workflow.Sleep(ctx, left)
	}
	_ = workflow.Sleep(ctx, 30*time.Minute) // of callbacks, and of what was under way
	p.wedge = false
	p.runOnce(ctx)
	return workflow.Sleep(ctx, 10*time.Minute)
}

func (p *play) runOnce(ctx workflow.Context) {
	p.mu.Lock()
	p.runs++
	p.alive, p.early = true, []func(){}
	id := p.runID()
	p.mu.Unlock()
	p.note("%s begins", id)
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: id, TaskQueue: workflows.QueueMain, WaitForCancellation: true,
	})
	provider := activitytest.AsyncProvider
	if p.Vendor == vendorSync {
		provider = activitytest.SyncProvider
	}
	err := workflow.ExecuteChildWorkflow(ctx, "Generate", workflows.Input{TaskID: taskID, Provider: provider}).Get(ctx, nil)
	p.mu.Lock()
	p.alive = false
	p.mu.Unlock()
	p.note("%s ends: %v", id, err)
	if t, _ := p.Store.Peek(taskID); err == nil && !t.Status.Terminal() {
		p.violate("a run ended well though the task is %s", t.Status)
	}
	if err != nil && !excused(err) {
		p.violate("a run failed: %v", err)
	}
}

// excused reports that a run may fail so: it was terminated, or its activity
// was repeated as often as the suite does while the database was away.
func excused(err error) bool {
	text := err.Error()
	return strings.Contains(text, "terminated by the play") || strings.Contains(text, "unavailable") ||
		strings.Contains(text, "the process died") || strings.Contains(text, "StartToClose") || strings.Contains(text, "nobody serves")
}

func (p *play) runID() string { return fmt.Sprintf("run-%d", p.runs) }

// generate is the real workflow, which the play can terminate.
//
//workflowcheck:ignore
func (p *play) generate(ctx workflow.Context, in workflows.Input) (err error) {
	ended, killed := false, false
	p.mu.Lock()
	early := p.early
	p.early = nil
	p.mu.Unlock()
	for _, f := range early {
		p.env.RegisterDelayedCallback(f, 0)
	}
	if wedged := p.wedge; wedged {
		p.wedge = false
		p.note("the run is wedged")
	} else {
		workflow.Go(ctx, func(ctx workflow.Context) {
			err = workflows.Generate(ctx, in)
			ended = true
		})
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, signalTerminate).Receive(ctx, nil)
		killed = true
	})
	inner, _ := workflow.NewDisconnectedContext(ctx)
	if e := workflow.Await(inner, func() bool { return ended || killed }); e != nil {
		return e
	}
	if ended {
		return err
	}
	return temporal.NewNonRetryableApplicationError("terminated by the play", "terminated", nil)
}

// stop ends a play that would not end by itself.
func (p *play) stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.Store.Edit(taskID, func(t *mediagate.Task) { t.Status = mediagate.StatusFailed })
	p.terminate()
}

func (p *play) terminate() {
	if mayTerminate {
		p.signal(signalTerminate, nil)
	}
}

// signal reaches the run that is there, if one is.
func (p *play) signal(name string, arg any) {
	p.reach(func(id string) {
		if err := p.env.SignalWorkflowByID(id, name, arg); err != nil {
			p.note("signal %s reached nobody", name)
		}
	})
}

// reach does something to the run that is there, once it has begun.
func (p *play) reach(f func(id string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.runID()
	switch {
	case !p.alive:
	case p.early != nil:
		p.early = append(p.early, func() { f(id) })
	default:
		p.env.RegisterDelayedCallback(func() { f(id) }, 0)
	}
	p.signals++
}

// rounds starts the delivery rounds that the reconciler asks for.
func (p *play) rounds(ctx workflow.Context) {
	for {
		var round int
		workflow.GetSignalChannel(ctx, signalRound).Receive(ctx, &round)
		child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID: workflows.IDWebhook(taskID, round), TaskQueue: workflows.QueueMain,
			ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
		})
		future := workflow.ExecuteChildWorkflow(child, workflows.DeliverWebhook, workflows.RoundInput{TaskID: taskID, Round: round})
		_ = future.GetChildWorkflowExecution().Get(ctx, nil) // it runs already, or now
	}
}

// tending lets the channels poll whenever a row is due, and hand out their
// slots while the task is queued for one.
func (p *play) tending(ctx workflow.Context) {
	for {
		var next time.Time
		for _, row := range p.Store.Awaits() {
			if next.IsZero() || row.NextPollAt.Before(next) {
				next = row.NextPollAt
			}
		}
		if since := p.queuedSince(); !since.IsZero() && next.IsZero() { // often at first, then once a minute
			next = workflow.Now(ctx).Add(min(workflow.Now(ctx).Sub(since), time.Minute))
		}
		if next.IsZero() { // until the reconciler's pause is over, which is soon enough
			_ = workflow.Await(ctx, func() bool { return len(p.Store.Awaits()) > 0 || !p.queuedSince().IsZero() })
			continue
		}
		_ = workflow.Sleep(ctx, max(next.Sub(workflow.Now(ctx)), 5*time.Second))
		p.pass(ctx, (*passes).Tend)
	}
}

func (p *play) queuedSince() time.Time {
	t, _ := p.Store.Peek(taskID)
	return t.QueuedAt
}

// reconciling lets the reconciler look whenever it may find something.
func (p *play) reconciling(ctx workflow.Context) {
	for {
		pause := time.Minute
		if p.elapsed() < 5*time.Minute {
			pause = 20 * time.Second
		}
		_ = workflow.Sleep(ctx, pause)
		t, _ := p.Store.Peek(taskID)
		p.mu.Lock()
		idle := !p.alive
		p.mu.Unlock()
		open := !t.Status.Terminal()
		untaken := slices.ContainsFunc(p.Store.Actions(), func(a mediagate.Action) bool { return a.State == "pending" })
		pending := t.Webhook != nil && t.Webhook.Round > 0 && t.Webhook.State == mediagate.WebhookPending
		since := t.DeadlineAt
		if !t.ParkedAt.IsZero() {
			since = t.ParkedAt.Add(patience)
		}
		overdue := since.Add(p.Activities.Settings.OverdueAfter).Before(p.env.Now())
		untold := !open && t.EndedAt.Add(p.Activities.Settings.RescueEvery).Before(p.env.Now()) && len(p.Store.Awaits()) > 0
		if untold || open && (idle || untaken || overdue || !t.CancelRequestedAt.IsZero()) || pending {
			p.pass(ctx, (*passes).Reconcile)
		}
	}
}

func (p *play) pass(ctx workflow.Context, activity any) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: workflows.QueueChannel, StartToCloseTimeout: time.Hour, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	if err := workflow.ExecuteActivity(ctx, activity).Get(ctx, nil); err != nil {
		p.note("a pass failed: %v", err)
		_ = workflow.Sleep(ctx, 15*time.Second)
	}
}

// passes are the long activities, for a moment each.
type passes struct{ p *play }

// Tend is what the channels' activities do until nothing is due: that of the
// vendor whose jobs are polled for, be it configured or not, and all that the
// task may be queued for.
func (x *passes) Tend(context.Context) error {
	names := []string{activitytest.AsyncChannel}
	if !x.p.queuedSince().IsZero() {
		for _, c := range x.p.Channels.All() {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	var failed error
	for _, name := range names {
		if _, ok := x.p.Channels.Channel(name); ok {
			x.p.Store.SeeChannel(name, x.p.env.Now())
		}
		failed = errors.Join(failed, x.pass(x.p.Activities.TendChannel, activities.ChannelArgs{Channel: name}))
	}
	return failed
}

// Reconcile is one pass of the reconciler.
func (x *passes) Reconcile(context.Context) error { return x.pass(x.p.Activities.Reconcile) }

func (x *passes) pass(f any, args ...any) error {
	stop := make(chan struct{})
	env := newActivityEnv(x.p.World)
	env.SetWorkerStopChannel(stop)
	env.SetWorkerOptions(worker.Options{BackgroundActivityContext: context.WithValue(context.Background(), gently{}, true)})
	time.AfterFunc(300*time.Millisecond, func() { close(stop) }) // of the bubble
	_, err := env.ExecuteActivity(f, args...)
	return err
}

// gently marks calls that may not die or sleep, since they are not an
// activity's of the task.
type gently struct{}

func newActivityEnv(w *activitytest.World) *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(w.Activities)
	return env
}

// prompter hands what the activities tell the engine to the stage.
type prompter struct {
	*activitytest.Engine
	p *play
}

func (e *prompter) Begin(ctx context.Context, t mediagate.Task) (bool, error) {
	return e.Ensure(ctx, t)
}

func (e *prompter) Runs(_ context.Context, id string) (bool, error) {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	return id != taskID || e.p.alive, nil
}

func (e *prompter) Ensure(_ context.Context, t mediagate.Task) (bool, error) {
	if t.ID != taskID {
		return false, nil
	}
	e.p.mu.Lock()
	alive := e.p.alive
	e.p.mu.Unlock()
	if alive {
		return false, nil
	}
	e.p.note("the reconciler asks for a run")
	e.p.env.RegisterDelayedCallback(func() { e.p.env.SignalWorkflow(signalEnsure, nil) }, 0)
	return true, nil
}

func (e *prompter) EnsureWebhook(_ context.Context, w mediagate.WebhookRound) error {
	e.p.env.RegisterDelayedCallback(func() { e.p.env.SignalWorkflow(signalRound, w.Round) }, 0)
	return nil
}

// Replace terminates the run, and another follows.
func (e *prompter) Replace(_ context.Context, _ mediagate.Task, _ time.Duration, reason string) (bool, error) {
	e.p.note("the reconciler replaces the run: %s", reason)
	e.p.terminate()
	e.p.env.RegisterDelayedCallback(func() { e.p.env.SignalWorkflow(signalEnsure, nil) }, time.Second)
	return true, nil
}

// ReplaceWebhook starts the round unless it runs: a play wedges none.
func (e *prompter) ReplaceWebhook(ctx context.Context, w mediagate.WebhookRound, _ string) (bool, error) {
	return true, e.EnsureWebhook(ctx, w)
}

func (e *prompter) SignalUpstream(_ context.Context, _ string, n int) (bool, error) {
	if how := e.p.slipped("SignalUpstream"); how == "before" {
		return false, mediagate.Errorf(mediagate.KindUnavailable, "the signal was lost")
	}
	e.p.note("the channel signals the end of attempt %d", n)
	e.p.signal(workflows.SignalUpstream, n)
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	return e.p.alive, nil
}

func (e *prompter) SignalSlot(_ context.Context, id string, n int) error {
	if how := e.p.slipped("SignalSlot"); how == "before" {
		return mediagate.Errorf(mediagate.KindUnavailable, "the signal was lost")
	}
	if id == taskID {
		e.p.note("a channel grants a slot for attempt %d", n)
		e.p.signal(workflows.SignalSlot, n)
	}
	return nil
}

func (e *prompter) SignalWake(context.Context, string) error {
	e.p.note("the gateway wakes the task")
	e.p.signal(workflows.SignalWake, nil)
	return nil
}

func (e *prompter) RepeatCancel(context.Context, mediagate.Task, time.Duration, string) (bool, error) {
	e.p.signal(workflows.SignalCancel, nil)
	return false, nil
}

func (e *prompter) SignalAction(_ context.Context, a mediagate.Action) error {
	e.p.signal(workflows.SignalAction, activities.ActionArgs{ID: a.ID, TaskID: a.TaskID, Action: a.Action, Reason: a.Reason})
	return nil
}

// happen lets something come from outside.
func (p *play) happen(what string) {
	p.note("happens: %s", what)
	ctx := context.WithValue(context.Background(), gently{}, true)
	words := strings.Split(what, " ")
	switch words[0] {
	case "cancel":
		if what == "cancel the run" {
			p.reach(func(id string) { p.env.CancelWorkflowByID(id, "") })
			return
		}
		_, err := p.Activities.Store.RequestCancel(ctx, "acc_1", taskID)
		p.note("the client's cancel: %v", err)
		if err == nil && what == "cancel" {
			p.signal(workflows.SignalCancel, nil)
		}
	case "modal":
		p.speak(what)
	case "terminate":
		p.terminate()
	case "slot":
		p.signal(workflows.SignalSlot, 1)
	case "wedge":
		p.wedge = mayTerminate
		p.terminate()
	case "wake":
		p.signal(workflows.SignalWake, nil)
	case "upstream":
		n := map[string]any{"1": 1, "2": 2, "7": 7, "nonsense": "nonsense"}[words[1]]
		p.signal(workflows.SignalUpstream, n)
	case "action":
		p.signal(workflows.SignalAction, []string{"nonsense"})
	case mediagate.ActionRetry, mediagate.ActionFail, mediagate.ActionPollNow:
		p.command(ctx, words[0], what)
	}
}

// speak is the client's modal call, which is refused where nothing waits for it.
func (p *play) speak(how string) {
	calls := 1
	if how == "modal twice" {
		calls = 2
	}
	taken := 0
	for range calls {
		command, _, err := p.Store.SubmitModal(context.Background(), mediagate.ModalCall{AccountID: "acc_1", TaskID: taskID, Input: []byte("{}")})
		p.note("the client's modal call: %v", err)
		p.look()
		if err != nil {
			continue
		}
		taken++
		if how != "modal unsignalled" {
			p.signal(workflows.SignalAction, activities.ActionArgs{ID: command.ID, TaskID: taskID, Action: command.Action})
		}
	}
	if taken > 1 {
		p.violate("D15: two modal calls were taken")
	}
}

// command is an operator's, by a row or by hand.
func (p *play) command(ctx context.Context, action, how string) {
	if action == mediagate.ActionRetry {
		p.mu.Lock()
		p.ordered = append(p.ordered, p.env.Now())
		p.mu.Unlock()
	}
	if strings.HasSuffix(how, "by hand") {
		p.signal(action, nil)
		return
	}
	row, err := p.Activities.Store.RecordAction(ctx, mediagate.Action{TaskID: taskID, Action: action, By: "operator"})
	if err != nil {
		p.note("the command is not on record: %v", err)
		return
	}
	args := activities.ActionArgs{ID: row.ID, TaskID: taskID, Action: action}
	if !strings.HasSuffix(how, "unsignalled") {
		p.signal(workflows.SignalAction, args)
	}
	if strings.HasSuffix(how, "twice") {
		p.signal(workflows.SignalAction, args)
	}
}

// Activities, and the queues that they wait in.

// queueAll makes all activities of a task wait while nobody serves their
// queue, as long as their options let them.
func (p *play) queueAll() {
	methods := reflect.ValueOf(p.Activities)
	for i := range methods.NumMethod() {
		name, method := methods.Type().Method(i).Name, methods.Method(i)
		if slices.Contains([]string{"LoadTask", "LoadRound", "TendChannel", "Reconcile"}, name) || method.Type().NumIn() != 2 {
			continue
		}
		f := reflect.MakeFunc(method.Type(), func(in []reflect.Value) []reflect.Value {
			if err := p.refused(in[0].Interface().(context.Context)); err != nil {
				out := make([]reflect.Value, method.Type().NumOut())
				for i := range out {
					out[i] = reflect.Zero(method.Type().Out(i))
				}
				out[len(out)-1] = reflect.ValueOf(&err).Elem()
				return out
			}
			return method.Call(in)
		})
		p.env.OnActivity(name, mock.Anything, mock.Anything).AfterFn(func() time.Duration { return p.wait(name) }).Return(f.Interface())
	}
}

func nameOf(info activity.Info) string { return info.WorkflowExecution.RunID + "/" + info.ActivityID }

// wait is how long the activity that was just started has to wait for a worker.
func (p *play) wait(name string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	info := p.next[name]
	first, ok := p.scheduled[nameOf(info)]
	if !ok {
		first = p.env.Now()
		p.scheduled[nameOf(info)] = first
	}
	idle := during(p.Idle, p.elapsed())
	queue, _, _ := strings.Cut(info.TaskQueue, "/")
	if idle.What != "all" && idle.What != map[string]string{"call": "call", workflows.QueueMirror: "mirror", workflows.QueueMain: "main"}[queue] {
		return 0
	}
	wait := idle.To - p.elapsed()
	if limit := info.ScheduleToCloseTimeout; limit > 0 {
		left := max(first.Add(limit).Sub(p.env.Now()), time.Millisecond)
		if wait >= left {
			wait, p.expired[nameOf(info)] = left, true
		}
	}
	return wait
}

// refused is why an activity is not begun after its wait.
func (p *play) refused(ctx context.Context) error {
	info := activity.GetInfo(ctx)
	key := nameOf(info)
	p.mu.Lock()
	defer p.mu.Unlock()
	run := info.WorkflowExecution.ID
	switch {
	case p.dropped[key], strings.HasPrefix(run, "run-") && (run != p.runID() || !p.alive): // nobody waits for it
		return temporal.NewCanceledError()
	case p.expired[key]:
		return temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil)
	default:
		return nil
	}
}

// started runs on the suite's own loop, as an activity begins.
func (p *play) started(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
	name := info.ActivityType.Name
	p.mu.Lock()
	p.next[name] = *info
	if name == "Settle" {
		p.settling, p.settlingOn = p.env.Now(), p.lastPoll
	}
	p.mu.Unlock()
	if name != "Tend" && name != "Reconcile" {
		p.note("%s starts, attempt %d", name, info.Attempt)
		p.busy(name)
	}
}

func (p *play) completed(info *activity.Info, _ converter.EncodedValue, err error) {
	if name := info.ActivityType.Name; name != "Tend" && name != "Reconcile" {
		p.note("%s ends: %v", name, err)
	}
}

// The database.

var errDatabaseAway = mediagate.Errorf(mediagate.KindUnavailable, "the database is away")

// fault is what a call to the database meets before it does anything.
func (p *play) fault(method string) error {
	if during(p.Away, p.elapsed()).What == "" {
		return nil
	}
	switch method {
	case "AcceptAttempt", "RejectAttempt", "MarkUnknown":
		p.env.RegisterDelayedCallback(func() {}, time.Second) // so that who insists sees time pass
	}
	return errDatabaseAway
}

// slipped tells what goes wrong with this call of the method.
func (p *play) slipped(method string) string {
	p.mu.Lock()
	p.calls[method]++
	n := p.calls[method]
	p.mu.Unlock()
	for _, s := range p.Lost {
		if s.Method == method && s.Nth == n {
			return s.What
		}
	}
	return ""
}

// slip makes a call of the store as the scenario has it.
func slip(p *play, ctx context.Context, method string, call func() error) error {
	how := p.slipped(method)
	if how == "before" {
		p.note("%s is lost before it took effect", method)
		return errDatabaseAway
	}
	err := call()
	p.look()
	if err != nil || how == "" {
		return err
	}
	if ctx.Value(gently{}) != nil && how != "after" {
		return err
	}
	if how == "dead" && slices.Contains([]string{"Story", "TaskByID", "Attempt"}, method) {
		how = "after" // helpers read too, beside an activity
	}
	p.note("%s takes effect: %s", method, how)
	switch how {
	case "after":
		return errDatabaseAway
	case "slow":
		// A server repeats a step that ran out of time. The suite does not: it
		// repeats one that fails.
		p.sleep(ctx, 9*time.Second)
		return errDatabaseAway
	default:
		panic("the process died")
	}
}

// The bucket, the vendor's files and the receiver.

func (p *play) store(string) error {
	switch what := during(p.Copies, p.elapsed()).What; what {
	case "away":
		return &mediagate.Error{Kind: mediagate.KindUnavailable, Code: string(mediagate.ParkStorage), Message: "the bucket is away"}
	case "invalid":
		return mediagate.Errorf(mediagate.KindInvalid, "this is no video")
	case "too large":
		return mediagate.Errorf(mediagate.KindTooLarge, "too large")
	case "internal":
		return mediagate.Errorf(mediagate.KindInternal, "a fault")
	case "slow":
		p.sleep(context.Background(), 20*time.Second)
	}
	return nil
}

func (p *play) receive(n int) (activities.DeliveryResult, error) {
	what := "delivered"
	if n <= len(p.Receiver) {
		what = p.Receiver[n-1]
	}
	p.note("callback %d: %s", n, what)
	if what == "error" {
		return activities.DeliveryResult{}, mediagate.Errorf(mediagate.KindInternal, "a fault")
	}
	return activities.DeliveryResult{Verdict: activities.Verdict(what), Status: 500, Reason: what}, nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
