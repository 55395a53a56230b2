package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
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
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/workflows"
)

// play is one scenario while it is played: the real workflow and the real activities, including
// those of the singletons, with doubles of everything outside. The stage, a workflow of the
// test's own, starts the runs of the task one after another as its children. So what an earlier
// run has left under way continues alongside the next run, on the same clock.
type play struct {
	*activitytest.World
	scenario
	checks
	env *testsuite.TestWorkflowEnvironment

	changes atomic.Int64 // how often the database changed
	sight   atomic.Pointer[sight]

	mu      sync.Mutex
	trace   []string
	calls   map[string]int
	jobs    []*job
	runs    int
	origin  map[string]int       // by run: the first of the runs that it was reset from
	alive   bool                 // a run is under way
	ended   bool                 // the last run completed
	first   *activities.Answer   // what the first run begins with
	seen    task.Seen            // what the runs have seen so far
	busy    map[string]bool      // the activities of the run that are under way
	reports map[string]task.Seen // the reports of senders, by activity
	left    task.Seen            // the report of a step that died or timed out, which Temporal passes on and the suite does not
	wedge   bool                 // the next run is to do nothing
	reset   bool                 // the next run gets this run's manual signals again
	given   []string             // those signals
	closing bool
	early   []func() // what has to reach a run once it has begun; nil after that
}

// patience is how long a task stays parked or queued in a play.
const patience = time.Hour

func newPlay(t *testing.T, s scenario) *play {
	t.Helper()
	p := &play{
		scenario: s, calls: map[string]int{}, origin: map[string]int{}, busy: map[string]bool{},
		reports: map[string]task.Seen{},
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	p.env = suite.NewTestWorkflowEnvironment()
	p.env.SetStartTime(start)
	p.env.SetTestTimeout(1000 * time.Hour) // of the bubble
	p.env.SetActivityTimeoutGracePeriod(1000 * time.Hour)
	p.env.SetDetachedChildWait(false)
	p.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "stage", TaskQueue: workflows.QueueMain})
	p.World = activitytest.New(t, func() time.Time { return p.env.Now() })
	p.Store.Fault, p.Store.Lost = p.fault, p.lose
	p.Activities.Engine, p.Activities.StartedAt = &engine{p.Engine, p}, start
	p.Fetcher.OnFetch, p.Bucket.OnMirror, p.Deliverer.OnDeliver = p.fetch, p.store, p.receive
	for _, v := range []*activitytest.Vendor{p.Async, p.Sync} {
		v.OnSubmit, v.OnPoll, v.OnFind, v.OnCancel = p.submit, p.poll, p.find, p.cancel
	}
	p.setChannels("")
	submitted := p.NewVideo()
	if p.Vendor == vendorSync {
		submitted = p.NewImage()
	}
	submitted.Plan.OnUnknown = p.OnUnknown
	submitted.Plan.Timeout = p.Timeout
	submitted.DeadlineAt = submitted.CreatedAt.Add(p.Timeout)
	submitted.Plan.ParkTimeout, submitted.Plan.QueueTimeout = patience, patience
	if p.Modal {
		submitted.Type, submitted.Plan.Modal = mediagate.TypeArt, 30*time.Minute
	}
	if !p.Callback {
		submitted.Webhook = mediagate.Webhook{}
	}
	p.first = activities.FirstAnswer(submitted, start)
	p.Store.Add(submitted)
	if len(p.Lapses) > 0 {
		if err := p.Store.KeepPast(); err != nil {
			t.Fatal(err)
		}
	}
	p.checkTask()
	return p
}

// setChannels gives the worker its channels, except for what is wrong with them.
func (p *play) setChannels(wrong string) {
	async, sync := p.AsyncBound(), p.SyncBound()
	async.PollMin, async.PollMax = 10*time.Second, time.Minute
	if p.Vendor == vendorBlind {
		async.Vendor = p.Async
	}
	if wrong == "another account" {
		async.Fingerprint, sync.Fingerprint = "account-x", "account-y"
	}
	if p.Slots {
		async.Concurrency, sync.Concurrency = 1, 1
	}
	channels := []channel.Channel{async, sync}
	if p.Second {
		for _, c := range channels {
			c.Name, c.Fingerprint, c.Priority = c.Name+"-spare", c.Fingerprint+", spare", 1
			channels = append(channels, c)
		}
	}
	if wrong == "gone" {
		channels = nil
	}
	p.Channels.Set(channels...)
}

// run plays the scenario to its end.
func (p *play) run() {
	p.env.RegisterActivity(p.Activities)
	p.env.RegisterActivity(&singletons{p})
	p.env.RegisterWorkflowWithOptions(p.generate, workflow.RegisterOptions{Name: "Generate"})
	p.env.RegisterWorkflow(workflows.DeliverWebhook)
	p.env.RegisterWorkflowWithOptions(p.stage, workflow.RegisterOptions{Name: "Stage"})
	p.env.OnRequestCancelExternalWorkflow(mock.Anything, mock.Anything, mock.Anything).Return(nil) // no such run any more
	p.env.OnActivity("Ask", mock.Anything, mock.Anything).Return(p.ask)
	p.env.OnActivity("SubmitJob", mock.Anything, mock.Anything).Return(p.submitJob)
	p.env.SetOnActivityStartedListener(
		func(info *activity.Info, _ context.Context, _ converter.EncodedValues) { p.began(info, true, nil) },
	)
	p.env.SetOnActivityHeartbeatListener(func(info *activity.Info, details converter.EncodedValues) {
		var seen task.Seen
		if details.HasValues() && details.Get(&seen) == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.reports[info.ActivityID] = seen
		}
	})
	p.env.SetOnActivityCompletedListener(func(info *activity.Info, value converter.EncodedValue, err error) {
		p.began(info, false, err)
		// Temporal sees the death of a process as a timeout. Here it is a panic.
		_, timeout := errors.AsType[*temporal.TimeoutError](err)
		if timeout || err != nil && strings.Contains(err.Error(), processDied) {
			p.mu.Lock()
			p.left = p.reports[info.ActivityID]
			p.mu.Unlock()
		}
		var answer activities.Answer
		if err == nil && value.HasValue() && value.Get(&answer) == nil {
			p.hear(answer)
		}
	})
	p.env.SetOnActivityCanceledListener(func(info *activity.Info) { p.began(info, false, context.Canceled) })
	for _, e := range p.Happening {
		p.env.RegisterDelayedCallback(func() { p.happen(e.What) }, e.At)
	}
	for _, l := range p.Lapses {
		p.env.RegisterDelayedCallback(func() { p.lapse(l.Back) }, l.At)
	}
	for _, w := range p.Absent {
		p.env.RegisterDelayedCallback(func() { p.setChannels(w.What) }, w.From)
		p.env.RegisterDelayedCallback(func() { p.setChannels("") }, w.To)
	}
	p.env.ExecuteWorkflow("Stage")
	if err := p.env.GetWorkflowError(); err != nil {
		p.violate("the stage broke: %v", err)
	}
	p.final()
}

// submitJob submits in a goroutine of its own. The fake vendor ends that goroutine if the process
// is to die during the call: nothing of the activity goes on, as it would after a panic of an
// adapter.
func (p *play) submitJob(ctx context.Context, in activities.StepArgs) (answer activities.Answer, err error) {
	var died any = processDied
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() {
			if value := recover(); value != nil {
				died = value
			}
		}()
		answer, err = p.Activities.SubmitJob(ctx, in)
		died = nil
	}()
	<-over
	if died != nil {
		panic(died)
	}
	return answer, err
}

// ask is a run's question. It makes the ids of its commands unique to the run, which the suite
// does not. The death of a process ends the question.
func (p *play) ask(ctx context.Context, q activities.Question) (answer activities.Answer, err error) {
	defer func() {
		if recover() != nil {
			err = errDatabaseAway
		}
		p.note("asked %+v: %s %d %s, %v", q, answer.Step.Kind, answer.Step.N, answer.Step.Why, err)
	}()
	p.pace()
	if q.Ended != nil {
		p.mu.Lock()
		q.Seen, p.left = q.Seen.With(p.left), task.Seen{}
		p.mu.Unlock()
	}
	for i := range q.Commands {
		q.Commands[i].ID += fmt.Sprint("@", p.origin[activity.GetInfo(ctx).WorkflowExecution.ID])
	}
	answer, err = p.Activities.Ask(ctx, q)
	p.hear(answer)
	return answer, err
}

// hear notes what a run learns about its task. Another run begins with that.
func (p *play) hear(answer activities.Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if answer.Seen.N >= p.seen.N {
		p.seen = answer.Seen
	}
}

// lapse lets the database lose its last seconds.
func (p *play) lapse(back time.Duration) {
	p.note("the database loses its last %s", back)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.Store.Lapse(back); err != nil {
		panic(err)
	}
	p.changes.Add(1)
	p.frozen = p.peek()
}

// began notes that an activity begins or ends.
func (p *play) began(info *activity.Info, begins bool, err error) {
	name := info.ActivityType.Name
	if name == "Tend" {
		return
	}
	p.note("%s, attempt %d: begins %v, %v", name, info.Attempt, begins, err)
	if begins {
		p.pace()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy[info.WorkflowExecution.ID+"/"+info.ActivityID] = begins
}

func (p *play) elapsed() time.Duration { return p.env.Now().Sub(start) }

// note adds a line to the play's record.
func (p *play) note(format string, args ...any) {
	line := fmt.Sprintf("%12v  ", p.elapsed()) + fmt.Sprintf(format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trace = append(p.trace, line)
}

// sleep lets time pass within an activity, in small steps, so that other measures of time keep
// up.
func (p *play) sleep(ctx context.Context, d time.Duration) {
	for ; d > 0 && ctx.Err() == nil; d -= time.Second {
		woken := make(chan struct{})
		p.env.RegisterDelayedCallback(func() { close(woken) }, min(d, time.Second))
		<-woken
	}
}

// The stage.

const (
	signalEnsure    = "ensure"
	signalRound     = "round"
	signalTerminate = "terminate"
)

// stage starts a run whenever one is asked for and none is under way, until the task has ended
// and nothing more happens. Then it starts one more, which must not change anything.
//
//workflowcheck:ignore
func (p *play) stage(ctx workflow.Context) error {
	workflow.Go(ctx, p.tending)
	workflow.Go(ctx, p.rounds)
	ensure, over := workflow.GetSignalChannel(ctx, signalEnsure), false
	workflow.Go(ctx, func(ctx workflow.Context) {
		_ = workflow.Sleep(ctx, p.calm()+p.Timeout+2*patience+6*time.Hour)
		over = true
		if st := p.peek(); !st.Status.Terminal() {
			p.violate("the task never ends: %+v", st)
			p.stop()
		}
		p.terminate() // a wedged run is no longer needed
	})
	for wanted := p.slipped("Start") != "before"; ; wanted = false {
		_ = workflow.Await(
			ctx, func() bool { return wanted || over || p.peek().Status.Terminal() || ensure.ReceiveAsync(nil) },
		)
		if left := p.lastLapse() - p.elapsed(); !over && left >= 0 && p.peek().Status.Terminal() {
			_ = workflow.Sleep(ctx, left+time.Second)
			wanted = false
			continue
		}
		if over || p.peek().Status.Terminal() {
			break
		}
		p.runOnce(ctx)
		for ensure.ReceiveAsync(nil) {
			continue // this was meant for the run that has ended
		}
	}
	p.note("the task has ended")
	if left := p.calm() - p.elapsed(); left > 0 {
		_ = workflow.Sleep(ctx, left)
	}
	_ = workflow.Sleep(ctx, 90*time.Minute) // for callbacks, and for what was under way
	p.wedge = false
	p.runOnce(ctx)
	_ = workflow.Sleep(ctx, 10*time.Minute)
	p.closing = true
	return workflow.Sleep(ctx, 10*time.Minute) // for the last pass of the singletons
}

// sight is what the database holds after that many changes.
type sight struct {
	changes int64
	state   task.State
	awaits  []mediagate.Await
	wakes   map[mediagate.WakeKind]mediagate.Wake
}

// see reads what the database holds, once for each change, since the stage asks all the time.
func (p *play) see() *sight {
	changes := p.changes.Load()
	if seen := p.sight.Load(); seen != nil && seen.changes == changes {
		return seen
	}
	st, _ := p.Store.Peek(taskID)
	seen := &sight{changes, st, p.Store.Awaits(), p.Store.Wakes(taskID)}
	p.sight.Store(seen)
	return seen
}

func (p *play) peek() task.State { return p.see().state }

//workflowcheck:ignore
func (p *play) runOnce(ctx workflow.Context) {
	p.mu.Lock()
	p.runs++
	id := p.runID()
	p.alive, p.early = true, []func(){}
	if p.origin[id] = p.runs; p.reset {
		p.origin[id] = p.origin[fmt.Sprint("run-", p.runs-1)]
		for _, name := range p.given {
			p.early = append(p.early, func() { _ = p.env.SignalWorkflowByID(id, name, nil) })
		}
	} else {
		p.given = nil
	}
	p.reset = false
	in := workflows.Input{TaskID: taskID, Seen: p.seen}
	if p.origin[id] == 1 { // including a run that is reset to its beginning
		in.First = p.first
	}
	p.mu.Unlock()
	p.note("%s begins, of %d", id, p.origin[id])
	ctx = workflow.WithChildOptions(
		ctx, workflow.ChildWorkflowOptions{WorkflowID: id, TaskQueue: workflows.QueueMain, WaitForCancellation: true},
	)
	err := workflow.ExecuteChildWorkflow(ctx, "Generate", in).Get(ctx, nil)
	p.mu.Lock()
	p.alive, p.ended = false, err == nil
	p.mu.Unlock()
	p.note("%s ends: %v", id, err)
	if st := p.peek(); err == nil && !st.Status.Terminal() && len(p.Lapses) == 0 {
		p.violate("a run ended well though the task is %s", st.Status)
	}
	if err != nil && !strings.Contains(err.Error(), "terminated by the play") {
		p.violate("a run failed: %v", err)
	}
}

// lastLapse returns when the database loses its last seconds for the last time.
func (p *play) lastLapse() (last time.Duration) {
	last = -1
	for _, l := range p.Lapses {
		last = max(last, l.At)
	}
	return last
}

func (p *play) runID() string { return fmt.Sprint("run-", p.runs) }

// generate is the real workflow, which the play can terminate.
//
//workflowcheck:ignore
func (p *play) generate(ctx workflow.Context, in workflows.Input) (seen task.Seen, err error) {
	ended, killed := false, false
	p.mu.Lock()
	early, wedged := p.early, p.wedge
	p.early, p.wedge = nil, false
	p.mu.Unlock()
	for _, f := range early {
		p.env.RegisterDelayedCallback(f, 0)
	}
	if wedged {
		p.note("the run is wedged")
	} else {
		workflow.Go(ctx, func(ctx workflow.Context) {
			seen, err = workflows.Generate(ctx, in)
			ended = true
		})
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, signalTerminate).Receive(ctx, nil)
		killed = true
	})
	inner, _ := workflow.NewDisconnectedContext(ctx)
	if e := workflow.Await(inner, func() bool { return ended || killed }); e != nil || ended {
		return seen, errors.Join(e, err)
	}
	return task.Seen{}, temporal.NewNonRetryableApplicationError("terminated by the play", "terminated", nil)
}

// stop ends a play that would not end by itself.
func (p *play) stop() {
	p.Store.Exec(
		"UPDATE tasks SET status = 'failed', ended_at = created_at, "+
			"document = json_set(document, '$.failure', json('{}')) WHERE id = ?",
		taskID,
	)
	p.changes.Add(1)
	p.terminate()
}

func (p *play) terminate() {
	if mayTerminate {
		p.signal(signalTerminate)
	}
}

// signal reaches the run that is under way, if there is one.
func (p *play) signal(name string) {
	p.reach(func(id string) { _ = p.env.SignalWorkflowByID(id, name, nil) })
}

// reach does something to the run that is under way, once it has begun.
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

// rounds starts the delivery rounds that the wake scan asks for.
func (p *play) rounds(ctx workflow.Context) {
	for {
		var round int
		workflow.GetSignalChannel(ctx, signalRound).Receive(ctx, &round)
		child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID: workflows.IDWebhook(taskID, round), TaskQueue: workflows.QueueMain,
			ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
		})
		future := workflow.ExecuteChildWorkflow(
			child, workflows.DeliverWebhook, workflows.RoundInput{TaskID: taskID, Round: round},
		)
		_ = future.GetChildWorkflowExecution().Get(ctx, nil) // it was running, or runs now
	}
}

// tending has the singletons look whenever they may find something.
//
//workflowcheck:ignore
func (p *play) tending(ctx workflow.Context) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: workflows.QueueChannel, StartToCloseTimeout: time.Hour, RetryPolicy: &temporal.RetryPolicy{
			MaximumAttempts: 1,
		},
	})
	for last := workflow.Now(ctx); !p.closing; {
		now, wait := workflow.Now(ctx), p.peek().Wait
		next := last.Add(10 * time.Minute) // for housekeeping
		for _, row := range p.see().awaits {
			next = earliest(next, row.NextPollAt)
		}
		for _, w := range p.see().wakes {
			next = earliest(next, w.At)
		}
		if wait.Why == mediagate.WhySlot { // often at first, then once a minute
			next = earliest(next, last.Add(min(now.Sub(wait.Since), time.Minute)))
		}
		pause := min(max(next.Sub(now), 2*time.Second), 30*time.Second)
		if during(p.Away, p.elapsed()) != "" { // a pass each two seconds for hours is too much for the suite
			pause = 30 * time.Second
		}
		_ = workflow.Sleep(ctx, pause)
		if workflow.Now(ctx).Before(next) {
			continue // something else may have happened meanwhile
		}
		last = workflow.Now(ctx)
		if err := workflow.ExecuteActivity(ctx, (*singletons).Tend).Get(ctx, nil); err != nil {
			p.note("the singletons failed: %v", err)
			_ = workflow.Sleep(ctx, 30*time.Second) // as Temporal's retries do while the database is away for hours
		}
	}
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// singletons are the long activities, for a moment each: those of the channels with jobs or
// queued tasks, configured or not, and the one of the wakes.
type singletons struct{ p *play }

// Tend is one pass of them.
func (x *singletons) Tend(context.Context) error {
	names := append([]string{}, x.p.peek().QueuedFor...)
	for _, row := range x.p.see().awaits {
		names = append(names, row.Channel)
	}
	slices.Sort(names)
	err := x.pass(x.p.Activities.TendWakes)
	for _, name := range slices.Compact(names) {
		if _, ok := x.p.Channels.Channel(name); ok {
			x.p.Store.SeeChannel(name)
		}
		err = errors.Join(err, x.pass(x.p.Activities.TendChannel, activities.ChannelArgs{Channel: name}))
	}
	return err
}

func (x *singletons) pass(f any, args ...any) error {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(x.p.Activities)
	stop := make(chan struct{})
	env.SetWorkerStopChannel(stop)
	env.SetWorkerOptions(worker.Options{BackgroundActivityContext: gently()})
	time.AfterFunc(x.p.Tends, func() { close(stop) }) // of the bubble
	_, err := env.ExecuteActivity(f, args...)
	return err
}

// gently returns the context of calls that may not die or sleep, since they belong to no activity
// of the task.
func gently() context.Context { return context.WithValue(context.Background(), gentle{}, true) }

type gentle struct{}

// engine is Temporal as the activities see it. It passes what they ask for to the stage.
type engine struct {
	*activitytest.Engine
	p *play
}

// reach is a call to Temporal in the way in which the scenario lets it end.
func (e *engine) reach(method string, call func()) error {
	if e.p.slipped(method) == "before" {
		return mediagate.Errorf(mediagate.KindUnavailable, "temporal is away")
	}
	e.p.note("%s", method)
	call()
	return nil
}

// ensure has the stage start a run once none is under way.
func (e *engine) ensure() {
	e.p.env.RegisterDelayedCallback(func() { e.p.env.SignalWorkflow(signalEnsure, nil) }, time.Second)
}

func (e *engine) Start(context.Context, mediagate.Task) error {
	if e.p.runs > 0 && (e.runs() || e.p.ended) {
		return mediagate.Errorf(mediagate.KindConflict, "it was started before")
	}
	return e.reach("Start", e.ensure)
}

func (e *engine) Wake(context.Context, string) (bool, error) {
	err := e.reach("Wake", func() { e.p.signal(workflows.SignalWake) })
	return err == nil && e.runs(), err
}

func (e *engine) runs() bool {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	return e.p.alive
}

func (e *engine) DescribeRun(context.Context, string) (activities.RunState, error) {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	if !e.p.alive {
		return activities.RunNone, nil
	}
	for id, busy := range e.p.busy {
		if busy && strings.HasPrefix(id, e.p.runID()+"/") {
			return activities.RunBusy, nil
		}
	}
	return activities.RunIdle, nil
}

func (e *engine) Replace(ctx context.Context, t mediagate.Task, reason string) error {
	if state, _ := e.DescribeRun(ctx, t.ID); state == activities.RunBusy {
		return nil
	}
	return e.reach("Replace", func() {
		e.p.note("the run is replaced: %s", reason)
		e.p.terminate()
		e.ensure()
	})
}

func (e *engine) EnsureRound(_ context.Context, w mediagate.WebhookRound) error {
	e.p.env.RegisterDelayedCallback(func() { e.p.env.SignalWorkflow(signalRound, w.Round) }, 0)
	return nil
}

func (e *engine) ReplaceRound(ctx context.Context, w mediagate.WebhookRound, _ string) (bool, error) {
	return true, e.EnsureRound(ctx, w) // a play wedges no round
}

// happen lets an event come from outside.
func (p *play) happen(what string) {
	action, how, _ := strings.Cut(what, " ")
	events := map[string]task.Event{
		"cancel": task.CancelRequested{}, "modal": task.ModalGiven{Input: []byte("{}")}, "fail": task.FailRequested{},
		"retry":   task.RetryRequested{},
		"reroute": task.RerouteRequested{},
	}
	p.mu.Lock()
	if action == "retry" || action == "reroute" {
		p.ordered = append(p.ordered, p.env.Now())
	}
	if how == "by hand" && p.alive {
		p.given = append(p.given, action)
	}
	p.wedge = p.wedge || mayTerminate && action == "wedge"
	p.reset = p.reset || mayTerminate && action == "reset" && p.alive
	p.mu.Unlock()
	p.note("happens: %s", what)
	switch {
	case how == "by hand":
		p.signal(action)
	case how == "the run":
		p.reach(func(id string) { p.env.CancelWorkflowByID(id, "") })
	case action == "terminate", action == "wedge", action == "reset":
		p.terminate()
		if action == "reset" {
			(&engine{p: p}).ensure()
		}
	default:
		if event := events[action]; event != nil {
			_, err := p.Store.Command(
				gently(), mediagate.Action{ID: fmt.Sprint("act_", p.nth("action")), TaskID: taskID, Action: action}, event,
			)
			p.note("%s: %v", what, err)
		}
		if how != "unsignalled" {
			p.signal(workflows.SignalWake)
		}
	}
}

func (p *play) receive(n int) (mediagate.DeliveryResult, error) {
	what := mediagate.DeliveryDone
	if n <= len(p.Receiver) {
		what = p.Receiver[n-1]
	}
	p.note("callback %d: %s", n, what)
	if what == "error" {
		return mediagate.DeliveryResult{}, mediagate.Errorf(mediagate.KindInternal, "a fault")
	}
	return mediagate.DeliveryResult{Outcome: what, Status: 500, Reason: string(what)}, nil
}
