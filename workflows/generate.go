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

// Generate is the run of a task. It asks for the next step, takes it, and asks again,
// until the task has ended and its callback is on its way. Its result is what it has seen of
// the task: the database may lose it (D5).
func Generate(ctx workflow.Context, in Input) (task.Seen, error) {
	// The cancel of the run is recorded as the client's. It does not stop the run, which
	// has to end the task.
	cancelled := ctx
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	r := &run{in: in, signals: listen(ctx, cancelled), shown: asStarted(ctx)}
	answer, err := r.begin(ctx)
	for err == nil {
		switch {
		case r.signals.pending(): // each command is recorded before the run goes on, or ends
			answer, err = r.ask(ctx, activities.Question{})
			continue
		case answer.Missing:
			return task.Seen{}, temporal.NewNonRetryableApplicationError(
				"the database has no such task: see the memo for account, key and hold", "row_missing", errRowMissing)
		case answer.Step.Kind != task.Done && workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			return task.Seen{}, workflow.NewContinueAsNewError(ctx, Generate, r.in)
		}
		r.show(ctx, answer)
		switch answer.Step.Kind {
		case task.Sleep:
			answer, err = r.sleep(ctx, answer)
		case task.Done:
			if err = r.startCallback(ctx, answer.Step.Round); err == nil && !r.signals.pending() {
				r.list(ctx, answer)
				return r.in.Seen, nil
			}
		default:
			answer, err = r.take(ctx, answer)
		}
	}
	return task.Seen{}, err
}

// run is what a run remembers. The database knows all of it, unless it has lost its last
// commits.
type run struct {
	in      Input // with what the run has seen so far
	signals signals
	at      task.Step // the step that was taken last: what commands are given for
	shown   attributes
}

// errRowMissing ends a run whose task is not in the database.
var errRowMissing = errors.New("row_missing")

// begin returns the first step: the one that the start carried, or else the answer to a question.
func (r *run) begin(ctx workflow.Context) (activities.Answer, error) {
	first := r.in.First
	if first == nil {
		return r.ask(ctx, activities.Question{})
	}
	r.in.First = nil
	answer := *first
	answer.Now = answer.Now.Add(workflow.Now(ctx).Sub(workflow.GetInfo(ctx).WorkflowStartTime))
	return answer, nil
}

// ask records what has reached the run, and returns the next step.
func (r *run) ask(ctx workflow.Context, q activities.Question) (activities.Answer, error) {
	q.TaskID, q.Seen, q.Commands = r.in.TaskID, r.in.Seen, r.signals.drain(r.at)
	ctx = workflow.WithLocalActivityOptions(ctx, load("ask for the next step"))
	return r.answerOf(ctx, workflow.ExecuteLocalActivity(ctx, nameAsk, q))
}

func (r *run) answerOf(ctx workflow.Context, future workflow.Future) (answer activities.Answer, err error) {
	err = future.Get(ctx, &answer)
	r.keepSeen(answer.Seen)
	return answer, err
}

// keepSeen keeps what an answer says of the task.
func (r *run) keepSeen(seen task.Seen) { r.in.Seen = r.in.Seen.Heard(seen) }

// forgotten reports that the row of the answer has lost a cancel or a fail that the run has
// heard of (D13).
func (r *run) forgotten(answer activities.Answer) bool {
	known, seen := r.in.Seen, answer.Seen
	open := !answer.Missing && !answer.Status.Terminal()
	return open && (known.Cancelled && !seen.Cancelled || known.Failed && !seen.Failed)
}

// take takes a step, and asks whenever a signal comes meanwhile. A step that is not
// needed any more is cancelled. The run goes on once the step has ended (D5).
func (r *run) take(ctx workflow.Context, answer activities.Answer) (activities.Answer, error) {
	step, behind, stopped := answer.Step, answer.Behind, false
	r.at = step
	options, activity := activityOf(answer, answer.StepEnds.Sub(answer.Now))
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
		meanwhile, err := r.ask(ctx, activities.Question{Running: &step})
		if err != nil {
			return activities.Answer{}, err
		}
		if meanwhile.Stop {
			stopped = true
			stop()
		}
		meanwhile.Step, meanwhile.Behind = step, behind
		r.show(ctx, meanwhile)
	}
	next, err := r.answerOf(ctx, future)
	r.in.Seen = r.in.Seen.With(seenIn(err))
	switch {
	case err == nil && !r.forgotten(next):
		return next, nil
	case err == nil || stopped || notStarted(err): // the row decides
		return r.ask(ctx, activities.Question{})
	default:
		return r.ask(ctx, activities.Question{Ended: ended(step, err)})
	}
}

// sleep waits until the step's time, or for a signal, and asks.
func (r *run) sleep(ctx workflow.Context, answer activities.Answer) (activities.Answer, error) {
	r.at = answer.Step
	timerCtx, stop := workflow.WithCancel(ctx)
	defer stop()
	left := max(answer.Step.Until.Sub(answer.Now), time.Second)
	timer := workflow.NewTimerWithOptions(timerCtx, left, workflow.TimerOptions{Summary: doing(answer)})
	if err := workflow.Await(ctx, func() bool { return timer.IsReady() || r.signals.pending() }); err != nil {
		return activities.Answer{}, err
	}
	return r.ask(ctx, activities.Question{})
}

// startCallback starts the delivery round, in a workflow of its own that outlives this
// one (D14). One that was started before is as good.
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

// ended says how a step failed. Only what a client may read goes on with it.
func ended(step task.Step, err error) *task.StepEnded {
	e := activities.FromTemporal(err)
	ended := &task.StepEnded{Step: step.Kind, N: step.N, Failed: true, Kind: e.Kind, Code: e.Code}
	if e.Kind == mediagate.KindInvalid || e.Kind == mediagate.KindTooLarge {
		ended.Reason = e.Message
	}
	return ended
}

// seenIn is what the sender of a step that timed out had reported last.
func seenIn(err error) (seen task.Seen) {
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	if !ok || !timeout.HasLastHeartbeatDetails() || timeout.LastHeartbeatDetails(&seen) != nil {
		return task.Seen{}
	}
	return seen
}

// notStarted reports that no worker began the step in the time that it had for that.
func notStarted(err error) bool {
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	return ok && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
}
