package activities

import (
	"context"
	"errors"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/story"
)

// Question is a run's question for its next step, with what has happened since the last question.
type Question struct {
	TaskID string    `json:"task"`
	Seen   task.Seen `json:"seen,omitzero"` // what the run has seen so far (D5)
	// Ended is the step that has just ended without an answer of its own.
	Ended *task.StepEnded `json:"ended,omitempty"`
	// Running is the step that is under way while the run asks.
	Running *task.Step `json:"running,omitempty"`
	// Commands are the operators' commands that reached the run as signals, and the run's cancel.
	Commands []Command `json:"commands,omitempty"`
}

// Command is an operator's command that reached the run as a signal, and has no row yet. For is
// the step that the run was at then, which is what the operator saw.
type Command struct {
	ID      string    `json:"id"`
	Action  string    `json:"action"`
	Channel string    `json:"channel,omitempty"`
	For     task.Step `json:"for,omitzero"`
}

// ActionCancel is the cancel of the run from Temporal's UI. It counts as the client's cancel.
const ActionCancel = "cancel"

// Answer is the task's next step, with what operators see of the task. It becomes part of the
// history, so it holds no prompt, no link and no secret.
type Answer struct {
	story.Explanation
	Now     time.Time `json:"now,omitzero"` // by the database's clock, as all times here
	Missing bool      `json:"missing,omitempty"`
	// Stop says that the running step is no longer needed.
	Stop bool `json:"stop,omitempty"`
	// StepEnds is the time by which the step has to end.
	StepEnds time.Time `json:"ends,omitzero"`
	// Behind is set if a submit has to wait: it names the channel whose calls come first.
	Behind string `json:"behind,omitempty"`
	// Seen is what the run has to remember (D5).
	Seen task.Seen `json:"seen,omitzero"`
}

// StepArgs is the input of an activity that takes a step. For Seen see Question.
type StepArgs struct {
	TaskID string    `json:"task"`
	Step   task.Step `json:"step"`
	Seen   task.Seen `json:"seen,omitzero"`
	Behind string    `json:"behind,omitempty"`
}

// Ask applies what the run reports, and returns the next step. It is a local activity of the run.
// By asking, the run also renews its lease (D2).
func (a *Activities) Ask(ctx context.Context, q Question) (Answer, error) {
	// Commands come first: the answer is the next step after them.
	for _, c := range q.Commands {
		if err := a.command(ctx, q.TaskID, c); err != nil {
			return Answer{}, a.fail(ctx, err)
		}
	}
	var events []task.Event
	if q.Ended != nil {
		events = append(events, *q.Ended)
	}
	// The end of the step and the question are one transaction, so the answer is the step after
	// that end.
	changed, err := a.change(ctx, q.TaskID, append(events, task.Asked{Seen: q.Seen})...)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return Answer{Missing: true}, nil
	}
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	answer := answerTo(changed)
	// The run asked because a signal came while its step was under way. If the step is no longer
	// needed, the run cancels it.
	answer.Stop = q.Running != nil && !changed.State.Continues(*q.Running)
	return answer, nil
}

// command records an operator's command and applies it. A command that does not apply is recorded
// as well: after a reset of the run Temporal delivers its signal again, and the record keeps the
// command from being applied then, when the task may have moved on.
func (a *Activities) command(ctx context.Context, taskID string, c Command) error {
	var event task.Event
	switch c.Action {
	case ActionCancel:
		// A cancel needs no row of its own: a repeated cancel changes nothing.
		_, err := a.Store.Change(ctx, taskID, task.CancelRequested{})
		return a.unlessRefused(ctx, taskID, c, err)
	case mediagate.ActionFail:
		event = task.FailRequested{}
	case mediagate.ActionRetry:
		event = task.RetryRequested{For: c.For}
	case mediagate.ActionReroute:
		event = task.RerouteRequested{For: c.For, Channel: c.Channel}
	case mediagate.ActionPollNow:
		event = task.PollRequested{}
	default:
		err := mediagate.Errorf(mediagate.KindConflict, "no such command: %s", c.Action)
		return a.unlessRefused(ctx, taskID, c, err)
	}
	// The run does not learn which operator sent the signal.
	row := mediagate.Action{ID: c.ID, TaskID: taskID, Action: c.Action, Channel: c.Channel, By: "workflow signal"}
	_, err := a.Store.Command(ctx, row, event)
	// The command does not apply. Record it with the reason, and without an effect.
	if refused, ok := errors.AsType[*mediagate.Error](err); ok && refused.Kind == mediagate.KindConflict {
		row.Reason = refused.Message
		if _, err := a.Store.Command(ctx, row); err != nil {
			return err
		}
	}
	return a.unlessRefused(ctx, taskID, c, err)
}

// unlessRefused returns nil for a command that does not apply, and logs that. It returns all other
// errors. An error that is final would end the run, and a refused command is no reason for that.
func (a *Activities) unlessRefused(ctx context.Context, taskID string, c Command, err error) error {
	if mediagate.Is(err, mediagate.KindConflict) || mediagate.Is(err, mediagate.KindNotFound) {
		a.Logger.InfoContext(ctx, "a command does not apply", "task", taskID, "action", c.Action, "error", err)
		return nil
	}
	return err
}

// FirstAnswer answers the first question of a new task's run in advance. The start of the run
// carries the answer, which saves the run one question. It returns nil if the task cannot begin
// with a check or a submit, or may have to wait for a source. The row may have changed by the time
// the run takes the step; the step finds out, as any late step does.
func FirstAnswer(t mediagate.Task, now time.Time) *Answer {
	// A new task has no attempt yet, so its row alone is the whole state.
	st := task.State{Task: t}
	step := st.Advance(now)
	if len(t.Plan.Routes) == 0 || len(t.Sources) > 0 || step.Kind != task.CheckInputs && step.Kind != task.Submit {
		return nil
	}
	return new(answerTo(task.Changed{State: st, Step: step, At: now}))
}

// answerTo returns the answer to a run's question after a change of its task.
func answerTo(changed task.Changed) Answer {
	st, now := &changed.State, changed.At
	answer := Answer{Now: now, Explanation: story.Explain(st, changed.Step, now), Seen: st.Seen()}
	answer.StepEnds = st.WaitsUntil(now)
	// A stuck task fails at the end of its parking, even if its deadline is later.
	if st.Wait.Reason != "" && st.Wait.EndsAt.Before(answer.StepEnds) {
		answer.StepEnds = st.Wait.EndsAt
	}
	return answer
}
