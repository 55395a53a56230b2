package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// Generate sees one task through: submit, await, mirror, settle, and hands
// the callback to its own workflow. It ends when the row is terminal.
func Generate(ctx workflow.Context, in Input) error {
	g := &generate{in: in, outer: ctx, log: workflow.GetLogger(ctx)}
	// Steps run to their end even when the run is cancelled from outside: the
	// cancel is an input like any other, and the money must still be settled.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	g.upstream = workflow.GetSignalChannel(ctx, SignalUpstream)
	g.cancel = workflow.GetSignalChannel(ctx, SignalCancel)
	g.wake = workflow.GetSignalChannel(ctx, SignalWake)
	g.action = workflow.GetSignalChannel(ctx, SignalAction)
	g.retry = workflow.GetSignalChannel(ctx, mediagate.ActionRetry)
	g.fail = workflow.GetSignalChannel(ctx, mediagate.ActionFail)
	g.pollNow = workflow.GetSignalChannel(ctx, mediagate.ActionPollNow)
	return g.run(ctx)
}

// generate is the state of a run: what it was told, nothing that the database
// does not know as well.
type generate struct {
	in    Input
	outer workflow.Context // done when the run is cancelled from outside
	log   log.Logger

	upstream workflow.ReceiveChannel
	cancel   workflow.ReceiveChannel
	wake     workflow.ReceiveChannel
	action   workflow.ReceiveChannel
	retry    workflow.ReceiveChannel
	fail     workflow.ReceiveChannel
	pollNow  workflow.ReceiveChannel

	story    mediagate.Story
	ahead    time.Duration           // of the database's clock, which the story's times are by
	clocked  bool                    // ahead has been measured
	held     []activities.ActionArgs // commands that came while a step ran, and are for after it
	shown    shown
	refusals int       // attempts that the vendor refused for now, in a row
	lookups  int       // of a lost submission, since it was parked
	lost     int       // the attempt whose fate this run has found open
	lostTill time.Time // how long it is left alone where nobody can be asked
	ordered  string    // an operator's command that has not been obeyed: retry or fail
	fresh    bool      // that command has come since the last step began
	woken    bool      // by the signal that asks to look again
	again    bool      // a parking's wait is over: the step may be tried once more
	obeyed   bool      // the cancel from outside is on record
}

// errRowMissing ends a run whose task is not in the database.
var errRowMissing = errors.New("row_missing")

func (g *generate) run(ctx workflow.Context) error {
	if err := g.reload(ctx); err != nil {
		return err
	}
	for {
		if g.story.Missing {
			return temporal.NewNonRetryableApplicationError(
				"the database has no such task: see the memo for account, key and hold", "row_missing", errRowMissing)
		}
		if g.story.Status.Terminal() {
			g.show(ctx, "ended: "+string(g.story.Status))
			if err := g.callback(ctx); err != nil {
				return err
			}
			return g.sweep(ctx)
		}
		if g.outer.Err() != nil && !g.obeyed {
			if err := g.recordCancel(ctx); err != nil {
				return err
			}
			continue
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() && !g.commanded() {
			// What a run knows besides the row, it can learn again.
			return workflow.NewContinueAsNewError(ctx, Generate, g.in)
		}
		g.fresh = false
		if err := g.step(ctx); err != nil {
			return err
		}
	}
}

// commanded reports that only this run knows of an operator's command: no step
// has seen it yet.
func (g *generate) commanded() bool {
	return g.fresh || len(g.held)+g.action.Len()+g.retry.Len()+g.fail.Len()+g.pollNow.Len() > 0
}

// recordCancel makes an operator's cancel of the run the task's own cancel.
func (g *generate) recordCancel(ctx workflow.Context) error {
	g.obeyed = true
	return g.database(ctx, "record the cancel", acts.CancelTask, activities.TaskArgs{TaskID: g.in.TaskID})
}

// step takes the next step that the story asks for. An error is one of the
// workflow's own machinery; what a step could not do has parked the task.
func (g *generate) step(ctx workflow.Context) error {
	st := g.story
	switch {
	case st.CancelRequested:
		return g.end(ctx, mediagate.StatusCancelled, nil)
	case g.ordered == mediagate.ActionFail:
		return g.end(ctx, mediagate.StatusFailed, g.parkFailure())
	case st.N == 0:
		return g.send(ctx, 1)
	}
	switch st.State {
	case mediagate.AttemptGranted, mediagate.AttemptIntent:
		if g.late(ctx) {
			return g.outlast(ctx)
		}
		return g.submit(ctx, st.N)
	case mediagate.AttemptUnknown:
		return g.resolve(ctx)
	case mediagate.AttemptRejected:
		return g.afterRejection(ctx)
	default:
		return g.stepAccepted(ctx)
	}
}

// stepAccepted is step for an attempt that the vendor took.
func (g *generate) stepAccepted(ctx workflow.Context) error {
	st := g.story
	switch {
	case st.Failure != nil:
		return g.end(ctx, mediagate.StatusFailed, st.Failure)
	case st.Succeeded && !st.Mirrored:
		return g.mirror(ctx)
	case st.Succeeded:
		return g.end(ctx, mediagate.StatusCompleted, nil)
	case st.State == mediagate.AttemptEnded:
		return g.send(ctx, st.N+1) // given up: the next attempt
	case st.Trouble != "" || troubles(st.ParkReason):
		return g.parkTrouble(ctx)
	default:
		return g.await(ctx)
	}
}

// troubles reports that an accepted attempt is parked since its channel could
// not ask for it.
func troubles(parkReason mediagate.ParkReason) bool {
	switch parkReason {
	case mediagate.ParkJobLost, mediagate.ParkChannelMissing, mediagate.ParkCredentials, mediagate.ParkFunds:
		return true
	default:
		return false
	}
}

// clockJump is by how much a reading of the clock may be too early for having
// been made a moment ago. What is beyond was another clock.
const clockJump = time.Minute

// reload reads the story anew. It is read just now: a clock that stood wrong
// when the run read it before is put right.
func (g *generate) reload(ctx workflow.Context) error {
	ctx = workflow.WithLocalActivityOptions(ctx, load())
	err := g.take(ctx, workflow.ExecuteLocalActivity(ctx, nameLoadTask, activities.TaskArgs{TaskID: g.in.TaskID}))
	if err != nil || g.story.ReadAt.IsZero() {
		return err
	}
	if ahead := g.story.ReadAt.Sub(workflow.Now(ctx)); g.ahead-ahead > clockJump {
		g.ahead = ahead
	}
	return nil
}

// take makes the future's story the run's. It decodes into a fresh one: what
// a story leaves out is over, and must not linger from the one before.
func (g *generate) take(ctx workflow.Context, future workflow.Future) error {
	var st mediagate.Story
	if err := future.Get(ctx, &st); err != nil {
		return err
	}
	g.story = st
	if ahead := st.ReadAt.Sub(workflow.Now(ctx)); !st.ReadAt.IsZero() && (!g.clocked || ahead > g.ahead) {
		g.ahead, g.clocked = ahead, true // what was read longer ago tells less
	}
	return nil
}

// undated reports that a worker from before stories had a date told the one in
// force. What the code of that time did next is in the run's history, which
// cannot change: steps heard nothing but a cancel, and what the database's
// absence kept from being sent parked.
func (g *generate) undated() bool { return g.story.ReadAt.IsZero() }

// now is the present by the database's clock. The run's own is the Temporal
// server's.
func (g *generate) now(ctx workflow.Context) time.Time { return workflow.Now(ctx).Add(g.ahead) }

// provider is whose queue the next call goes to.
func (g *generate) provider() string {
	if g.story.Provider != "" {
		return g.story.Provider
	}
	return g.in.Provider
}

// did notes that a step succeeded: a parked task goes on.
func (g *generate) did(ctx workflow.Context, st mediagate.Story) error {
	g.story, g.again = st, false
	if g.ordered == mediagate.ActionRetry {
		g.ordered = ""
	}
	if st.ParkReason == "" || st.Status.Terminal() || st.Missing {
		return nil
	}
	g.lookups = 0
	return g.database(ctx, "unpark", acts.UnparkTask, activities.TaskArgs{TaskID: g.in.TaskID})
}

// database runs a short step on our own tables and takes its story.
func (g *generate) database(ctx workflow.Context, id string, activity, args any) error {
	ctx = workflow.WithActivityOptions(ctx, database(id))
	return g.take(ctx, workflow.ExecuteActivity(ctx, activity, args))
}

// send makes an attempt that the vendor knows nothing of, unless nobody would
// wait for its end any more.
func (g *generate) send(ctx workflow.Context, n int) error {
	if g.late(ctx) && (!g.undated() || g.ordered != mediagate.ActionRetry) {
		return g.expire(ctx, "the task could not be sent to the provider in time")
	}
	return g.submit(ctx, n)
}

// late reports that the waiting for the vendor is over: as time goes, or as
// the database saw it, which then refuses to have anything sent.
func (g *generate) late(ctx workflow.Context) bool {
	st := g.story
	over := func(now time.Time) bool {
		return !now.Before(mediagate.WaitsUntil(st.DeadlineAt, st.ParkedAt, now))
	}
	return over(g.now(ctx)) || !st.ReadAt.IsZero() && over(st.ReadAt)
}

// left is how long a step that needs a vendor may take, its queueing and its
// repetitions included: until the waiting ends, or the parking. On a queue that
// nobody serves it is what ends the step (D3).
func (g *generate) left(ctx workflow.Context) time.Duration {
	now := g.now(ctx)
	left := mediagate.WaitsUntil(g.story.DeadlineAt, g.story.ParkedAt, now).Sub(now)
	if !g.story.ParkedAt.IsZero() {
		left = min(left, g.story.ParkedAt.Add(g.story.ParkTimeout).Sub(now))
	}
	return max(left, time.Second)
}

// outlast decides on an intent whose sender has not reported when the deadline
// has passed. The call may still be under way, and its answer counts (D5);
// after that the sender was lost.
func (g *generate) outlast(ctx workflow.Context) error {
	if wait := g.story.CallEnds.Sub(g.now(ctx)); wait > 0 {
		g.show(ctx, "deadline: waiting for the submission that may be under way")
		_, err := g.pause(ctx, "the submission's end", wait)
		return err
	}
	return g.database(ctx, "the sender was lost", acts.MarkLost, g.attempt())
}

func (g *generate) submit(ctx workflow.Context, n int) error {
	g.lost = 0
	g.show(ctx, fmt.Sprintf("submitting attempt %d to %s", n, g.provider()))
	options := call(g.provider(), fmt.Sprintf("submit attempt %d", n), g.left(ctx))
	var st mediagate.Story
	err := g.interruptibly(ctx, options, acts.SubmitJob, activities.AttemptArgs{TaskID: g.in.TaskID, N: n}, &st)
	switch failure := activities.FromTemporal(err); {
	case err == nil:
	case temporal.IsCanceledError(err):
		return g.reload(ctx) // the row has the cancel, or the next worker goes on
	case !g.undated() && (g.late(ctx) || failure.Kind == mediagate.KindUnavailable):
		return g.reload(ctx) // the row decides, as soon as it can be read
	default:
		return g.park(ctx, submitParkReason(failure))
	}
	if st.N < n || st.N == n && (st.State == mediagate.AttemptRejected || st.State == mediagate.AttemptUnknown) {
		g.story, g.again = st, false // stays parked, if it is: nothing was achieved
		return nil
	}
	g.refusals = 0
	return g.did(ctx, st)
}

// interruptibly runs a step that may take long, and hears meanwhile: a cancel,
// an operator's "fail" and a task that has ended otherwise stop the step. The
// run waits for it to end all the same, where the options say so, before it
// settles (D5). The options bound it, so that the deadline is heard too.
func (g *generate) interruptibly(ctx workflow.Context, options workflow.ActivityOptions, activity, args, result any) error {
	stepCtx, stop := workflow.WithCancel(workflow.WithActivityOptions(ctx, options))
	future := workflow.ExecuteActivity(stepCtx, activity, args)
	var (
		done, woken bool
		ordered     []activities.ActionArgs
	)
	selector := workflow.NewSelector(ctx)
	selector.AddFuture(future, func(workflow.Future) { done = true })
	selector.AddReceive(g.cancel, func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, nil); stop() })
	if !g.undated() {
		selector.AddReceive(g.wake, func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, nil); woken = true })
		selector.AddReceive(g.fail, func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			ordered = append(ordered, activities.ActionArgs{Action: mediagate.ActionFail})
		})
		selector.AddReceive(g.action, func(c workflow.ReceiveChannel, _ bool) {
			var a activities.ActionArgs
			switch ok := c.ReceiveAsync(&a); {
			case ok && a.Action == mediagate.ActionFail:
				ordered = append(ordered, a)
			case ok:
				g.held = append(g.held, a)
			}
		})
	}
	g.onCancelled(selector, stop)
	for !done {
		selector.Select(ctx)
		for _, command := range ordered {
			if err := g.obey(ctx, command); err != nil {
				return err
			}
		}
		ordered = nil
		if woken && !done {
			if err := g.reload(ctx); err != nil {
				return err
			}
		}
		if g.ordered == mediagate.ActionFail || woken && g.moot() {
			stop()
		}
		woken = false
	}
	return future.Get(ctx, result)
}

func submitParkReason(e *mediagate.Error) mediagate.ParkReason {
	switch {
	case mediagate.ParkReason(e.Code) == mediagate.ParkChannelMissing:
		return mediagate.ParkChannelMissing
	case e.Kind == mediagate.KindInternal:
		return mediagate.ParkInternal
	default:
		return mediagate.ParkProviderAway
	}
}

// maxRefusals is how many attempts a vendor that is full or away gets before
// the task parks.
const maxRefusals = 6

// afterRejection decides on an attempt that provably made no job.
func (g *generate) afterRejection(ctx workflow.Context) error {
	failure := g.story.Failure
	if failure == nil {
		failure = &mediagate.Failure{Code: mediagate.CodeInternal, Message: "the provider refused the request"}
	}
	switch {
	case g.again:
		g.again, g.ordered = false, ""
	case failure.Code == mediagate.CodeProviderRefused:
		return g.park(ctx, mediagate.ParkCredentials)
	case failure.Code == mediagate.CodeFunds:
		return g.park(ctx, mediagate.ParkFunds)
	case !failure.Retryable:
		return g.end(ctx, mediagate.StatusFailed, failure)
	default:
		g.refusals++
		if g.refusals >= maxRefusals {
			return g.park(ctx, mediagate.ParkProviderAway)
		}
		g.show(ctx, "the provider is full or away: the next attempt follows")
		if _, err := g.pause(ctx, "before the next attempt", min(time.Second<<g.refusals, 30*time.Second)); err != nil {
			return err
		}
		if g.story.CancelRequested || g.ordered == mediagate.ActionFail || g.outer.Err() != nil {
			return nil
		}
	}
	return g.send(ctx, g.story.N+1)
}

// mirror copies the result. Files that are none fail the task: no repetition
// would mend them.
func (g *generate) mirror(ctx workflow.Context) error {
	g.show(ctx, "copying the result into the bucket")
	options := mirror("copy the result into the bucket", g.left(ctx))
	var st mediagate.Story
	err := g.interruptibly(ctx, options, acts.MirrorResult, g.attempt(), &st)
	switch {
	case err == nil:
		return g.did(ctx, st)
	case temporal.IsCanceledError(err):
		return g.reload(ctx)
	}
	switch e := activities.FromTemporal(err); {
	case mediagate.ParkReason(e.Code) == mediagate.ParkChannelMissing:
		return g.park(ctx, mediagate.ParkChannelMissing)
	case e.Kind == mediagate.KindInvalid || e.Kind == mediagate.KindTooLarge:
		return g.end(ctx, mediagate.StatusFailed, &mediagate.Failure{Code: mediagate.CodeResultUnavailable, Message: e.Message})
	case mediagate.FailureCode(e.Code) == mediagate.CodeResultUnavailable:
		return g.park(ctx, mediagate.ParkResult)
	case e.Kind == mediagate.KindUnavailable || e.Kind == mediagate.KindTransient:
		return g.park(ctx, mediagate.ParkStorage)
	default:
		return g.park(ctx, mediagate.ParkInternal)
	}
}

func (g *generate) attempt() activities.AttemptArgs {
	return activities.AttemptArgs{TaskID: g.in.TaskID, N: g.story.N}
}

// end settles. The terminal state that comes back counts, whoever wrote it. A
// job that still runs at the vendor is stopped first, where that can be.
func (g *generate) end(ctx workflow.Context, status mediagate.Status, failure *mediagate.Failure) error {
	return g.settle(ctx, activities.SettleArgs{Status: status, Failure: publicFailure(failure)})
}

// lapse fails a task whose patience is over. The end of its attempt, where it
// came to be known after the run had looked, counts for more: the task goes on
// with that.
func (g *generate) lapse(ctx workflow.Context, failure *mediagate.Failure) error {
	return g.settle(ctx, activities.SettleArgs{
		Status: mediagate.StatusFailed, Failure: publicFailure(failure), Unheard: !known(g.story),
	})
}

func (g *generate) settle(ctx workflow.Context, end activities.SettleArgs) error {
	if g.story.CanCancel && g.story.State == mediagate.AttemptAccepted {
		actCtx := workflow.WithActivityOptions(ctx, ask(g.provider(), "cancel the vendor's job", 30*time.Second))
		if err := workflow.ExecuteActivity(actCtx, acts.CancelJob, g.attempt()).Get(ctx, nil); err != nil {
			g.log.Warn("vendor job not cancelled", "error", err)
		}
	}
	end.TaskID, end.N = g.in.TaskID, g.story.N
	g.show(ctx, "settling: "+string(end.Status))
	return g.database(ctx, "settle: "+string(end.Status), acts.Settle, end)
}

// publicFailure keeps operators' words out of a task's failure.
func publicFailure(f *mediagate.Failure) *mediagate.Failure {
	if f != nil && f.Code == mediagate.CodeFunds {
		return &mediagate.Failure{Code: mediagate.CodeProviderAway, Message: f.Message, Retryable: true}
	}
	return f
}

// sweep removes files that were copied for an end that did not come.
func (g *generate) sweep(ctx workflow.Context) error {
	if g.story.Status == mediagate.StatusCompleted || !g.story.Succeeded {
		return nil
	}
	ctx = workflow.WithActivityOptions(ctx, mirror("remove files that nobody will see", 0))
	if err := workflow.ExecuteActivity(ctx, acts.SweepResults, activities.TaskArgs{TaskID: g.in.TaskID}).Get(ctx, nil); err != nil {
		g.log.Warn("files not removed", "error", err)
	}
	return nil
}

// callback starts the delivery round that is owed, in a workflow of its own
// that outlives this one (D14). Whoever started it first, it runs.
func (g *generate) callback(ctx workflow.Context) error {
	if g.story.WebhookRound == 0 || g.story.WebhookState != mediagate.WebhookPending {
		return nil
	}
	ctx = workflow.WithChildOptions(ctx, childOptions(g.in.TaskID, g.story.WebhookRound))
	child := workflow.ExecuteChildWorkflow(ctx, DeliverWebhook, RoundInput{TaskID: g.in.TaskID, Round: g.story.WebhookRound})
	if err := child.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
		if _, ok := errors.AsType[*temporal.ChildWorkflowExecutionAlreadyStartedError](err); !ok {
			return err
		}
	}
	return nil
}
