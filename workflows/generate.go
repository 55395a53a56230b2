package workflows

import (
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/task"
)

// Generate is the run of a task. It asks for the next step, takes it, and asks again, until the
// task has ended and its callback is on its way. Its result is what it has seen of the task:
// Temporal still has that if the database loses its last commits (D5).
func Generate(ctx workflow.Context, in Input) (task.Seen, error) {
	// The cancel of the run is recorded as the client's cancel. It does not stop the run, since
	// the run has to end the task.
	cancelled := ctx
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	r := &run{in: in, signals: listen(ctx, cancelled), shown: startedWith(ctx)}
	answer, err := r.firstStep(ctx)
	for err == nil {
		switch {
		// After a signal the answer in hand may be out of date, and a command that came with the
		// signal is not in the database yet.
		case r.signals.pending(): // record each command before the run goes on, or ends
			answer, err = r.ask(ctx, activities.Question{})
			continue
		// The database has lost the row. The run ends as failed, so that operators find it in
		// Temporal's lists, with its memo (D17).
		case answer.Missing:
			return task.Seen{}, temporal.NewNonRetryableApplicationError(
				"the database has no such task: see the memo for account, key and hold", "row_missing", errRowMissing)
		// A long history makes each workflow task slow. r.in holds all that the next run needs. No
		// signal is lost, since the case for pending signals comes first.
		case answer.Step.Kind != task.Done && workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			return task.Seen{}, workflow.NewContinueAsNewError(ctx, Generate, r.in)
		}
		r.show(ctx, answer)
		switch answer.Step.Kind {
		case task.Sleep:
			answer, err = r.sleep(ctx, answer)
		case task.Done:
			// A command that came while the child was started is recorded in the next pass of the
			// loop: a run that has completed takes no signal.
			if err = r.startCallback(ctx, answer.Step.Round); err == nil && !r.signals.pending() {
				// Here the change of attributes is in the same workflow task as the end of the
				// run.
				r.list(ctx, answer)
				return r.in.Seen, nil
			}
		default:
			answer, err = r.takeStep(ctx, answer)
		}
	}
	return task.Seen{}, err
}

// run is the memory of a run. The database knows all of it, unless it has lost its last commits.
type run struct {
	in      Input // including what the run has seen so far
	signals signals
	at      task.Step // the last step: commands are given for it
	shown   attributes
}

// errRowMissing ends a run whose task is not in the database.
var errRowMissing = errors.New("row_missing")

// firstStep returns the step that the start carried, or else the answer to a question.
//
// For example, the API computes the answer at 12:00:00, and a worker begins the run at 12:00:04.
// Then the answer's time becomes 12:00:04, and a step that has to end by 12:10:00 gets 9 min 56 s.
func (r *run) firstStep(ctx workflow.Context) (activities.Answer, error) {
	// The answer was computed when the run was started. Move its time on by the age of the run,
	// since the time that is left for the step is counted from it.
	first := r.in.First
	if first == nil {
		return r.ask(ctx, activities.Question{})
	}
	// The next run, after a continue-as-new, must ask instead.
	r.in.First = nil
	answer := *first
	answer.Now = answer.Now.Add(workflow.Now(ctx).Sub(workflow.GetInfo(ctx).WorkflowStartTime))
	return answer, nil
}

// ask records what has reached the run, and returns the next step. The commands and the question go
// in one local activity. If it is repeated, the commands have the same ids and are recorded once.
func (r *run) ask(ctx workflow.Context, q activities.Question) (activities.Answer, error) {
	q.TaskID, q.Seen, q.Commands = r.in.TaskID, r.in.Seen, r.signals.drain(r.at)
	ctx = workflow.WithLocalActivityOptions(ctx, localOptions("ask for the next step"))
	return r.waitForAnswer(ctx, workflow.ExecuteLocalActivity(ctx, nameAsk, q))
}

// waitForAnswer waits for an answer and remembers what it says of the task. It forgets nothing that
// the answer lacks, since the row may have lost it (D5).
func (r *run) waitForAnswer(ctx workflow.Context, future workflow.Future) (answer activities.Answer, err error) {
	err = future.Get(ctx, &answer)
	r.in.Seen = r.in.Seen.Updated(answer.Seen)
	return answer, err
}

// rowForgot reports whether the answer's row has lost a cancel or a fail that the run has seen
// (D13). The next question puts it back, so that a cancel that was answered 202 still holds.
func (r *run) rowForgot(answer activities.Answer) bool {
	known, seen := r.in.Seen, answer.Seen
	open := !answer.Missing && !answer.Status.Terminal()
	return open && (known.Cancelled && !seen.Cancelled || known.Failed && !seen.Failed)
}

// takeStep takes a step, and asks whenever a signal comes meanwhile. It cancels a step that is no
// longer needed, and waits until the step has ended before it goes on (D5).
func (r *run) takeStep(ctx workflow.Context, answer activities.Answer) (activities.Answer, error) {
	step, behind, stopped := answer.Step, answer.Behind, false
	r.at = step
	options, activity := activityOf(answer, answer.StepEnds.Sub(answer.Now))
	// Only the activity uses stepCtx. ctx stays open for questions after a stop.
	stepCtx, stop := workflow.WithCancel(workflow.WithActivityOptions(ctx, options))
	defer stop()
	args := activities.StepArgs{TaskID: r.in.TaskID, Step: step, Seen: r.in.Seen, Behind: behind}
	future := workflow.ExecuteActivity(stepCtx, activity, args)
	for {
		err := workflow.Await(ctx, func() bool { return future.IsReady() || r.signals.pending() })
		if err != nil {
			return activities.Answer{}, err
		}
		if future.IsReady() {
			break
		}
		// The step goes on while the run asks. The answer says whether the step is still needed.
		// Each question also renews the run's lease (D2).
		meanwhile, err := r.ask(ctx, activities.Question{Running: &step})
		if err != nil {
			return activities.Answer{}, err
		}
		if meanwhile.Stop {
			stopped = true
			stop()
		}
		// The run's page keeps showing the step that is under way.
		meanwhile.Step, meanwhile.Behind = step, behind
		r.show(ctx, meanwhile)
	}
	// The step has ended. Its answer is the next step, unless the row has lost a cancel that the
	// run knows, or the step failed. In both cases the run asks.
	next, err := r.waitForAnswer(ctx, future)
	// If the worker died, Temporal has the last heartbeat of the sender. It may name a sending or
	// a job that the database has lost.
	r.in.Seen = r.in.Seen.With(lastHeartbeat(err))
	switch {
	case err == nil && !r.rowForgot(next):
		return next, nil
	case err == nil || stopped || neverStarted(err): // the step's end is no failure: the row says what is next
		return r.ask(ctx, activities.Question{})
	default:
		return r.ask(ctx, activities.Question{Ended: failedStep(step, err)})
	}
}

// sleep waits until the step's time, or for a signal, and asks.
func (r *run) sleep(ctx workflow.Context, answer activities.Answer) (activities.Answer, error) {
	r.at = answer.Step
	timerCtx, stop := workflow.WithCancel(ctx)
	defer stop()
	// Both times are by the database's clock, which may differ from Temporal's. Only their
	// difference counts. One second at least keeps the run from asking in a tight loop.
	left := max(answer.Step.Until.Sub(answer.Now), time.Second)
	timer := workflow.NewTimerWithOptions(timerCtx, left, workflow.TimerOptions{Summary: activitySummary(answer)})
	if err := workflow.Await(ctx, func() bool { return timer.IsReady() || r.signals.pending() }); err != nil {
		return activities.Answer{}, err
	}
	return r.ask(ctx, activities.Question{})
}

// startCallback starts the delivery round as a child workflow that outlives this run (D14). It
// waits until the child has started, not until it has delivered. If the round was started before,
// for example by the wake scan, that is not an error.
func (r *run) startCallback(ctx workflow.Context, round int) error {
	if round == 0 {
		return nil
	}
	ctx = workflow.WithChildOptions(ctx, childOptions(r.in.TaskID, round))
	child := workflow.ExecuteChildWorkflow(ctx, DeliverWebhook, RoundInput{TaskID: r.in.TaskID, Round: round})
	err := child.GetChildWorkflowExecution().Get(ctx, nil)
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return nil
	}
	return err
}

// failedStep says how a step failed. It passes on a message only if a client may read it. Package
// task decides by kind and code whether the task parks, tries again or fails.
func failedStep(step task.Step, err error) *task.StepEnded {
	e := activities.FromTemporal(err)
	ended := &task.StepEnded{Step: step.Kind, N: step.N, Failed: true, Kind: e.Kind, Code: e.Code}
	if e.Kind == mediagate.KindInvalid || e.Kind == mediagate.KindTooLarge {
		ended.Reason = e.Message
	}
	return ended
}

// lastHeartbeat returns what the sender of a step that timed out had reported last. It returns the
// zero value for an activity whose heartbeats hold something else.
func lastHeartbeat(err error) (seen task.Seen) {
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	if !ok || !timeout.HasLastHeartbeatDetails() || timeout.LastHeartbeatDetails(&seen) != nil {
		return task.Seen{}
	}
	return seen
}

// neverStarted reports whether no worker began the step in the time that it had for that. For a
// submit in a backlog that time is backlogTime.
func neverStarted(err error) bool {
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	return ok && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
}
