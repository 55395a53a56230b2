package activities

import (
	"context"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
)

// ParkArgs says why a task waits for a person.
type ParkArgs struct {
	TaskID string               `json:"task"`
	Reason mediagate.ParkReason `json:"reason"`
}

// ParkTask makes the task visible as stuck. The first time of parking counts
// until it is unparked. An attempt in trouble is not polled for while parked.
func (a *Activities) ParkTask(ctx context.Context, in ParkArgs) (mediagate.Story, error) {
	if err := a.Store.Park(ctx, in.TaskID, in.Reason); err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	return a.beforeWait(ctx, in.TaskID)
}

// UnparkTask ends the parking; the deadline moves by the time parked (D10).
func (a *Activities) UnparkTask(ctx context.Context, in TaskArgs) (mediagate.Story, error) {
	if err := a.Store.Unpark(ctx, in.TaskID); err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	return a.story(ctx, in.TaskID)
}

// TroubleArgs says why attempt N cannot be asked for.
type TroubleArgs struct {
	TaskID  string               `json:"task"`
	N       int                  `json:"n"`
	Trouble mediagate.ParkReason `json:"trouble"`
}

// NoteTrouble ends the polling for the attempt, as its channel does after a
// few refusals.
func (a *Activities) NoteTrouble(ctx context.Context, in TroubleArgs) (mediagate.Story, error) {
	if err := a.Store.NoteTrouble(ctx, in.TaskID, in.N, in.Trouble); err != nil {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	return a.story(ctx, in.TaskID)
}

// RestoreAwait lets the channel ask again for an attempt whose waiting was in
// trouble.
func (a *Activities) RestoreAwait(ctx context.Context, in AttemptArgs) (mediagate.Story, error) {
	// A conflict says that there is nothing to wait for any more.
	if err := a.Store.RestoreAwait(ctx, in.TaskID, in.N, a.Now()); err != nil && !mediagate.Is(err, mediagate.KindConflict) {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	return a.beforeWait(ctx, in.TaskID)
}

// HintPoll makes the channel ask now.
func (a *Activities) HintPoll(ctx context.Context, in TaskArgs) error {
	return a.fail(ctx, a.Store.HintPoll(ctx, in.TaskID))
}

// ActionArgs is an operator's command as it reached the workflow. ID is empty
// when it was signalled by hand, without a row.
type ActionArgs struct {
	ID     string `json:"id,omitempty"`
	TaskID string `json:"task"`
	Action string `json:"action"`
	Reason string `json:"reason,omitempty"`
}

// TakeAction marks a command as taken, writing its row first where it has
// none; it reports false for one that was taken before.
func (a *Activities) TakeAction(ctx context.Context, in ActionArgs) (bool, error) {
	// An activity that is repeated since its answer was lost is the same taker
	// of the same row.
	info := activity.GetInfo(ctx)
	taker := info.WorkflowExecution.RunID + "/" + info.ActivityID
	if in.ID == "" {
		row, err := a.Store.RecordAction(ctx, mediagate.Action{
			ID: "act_" + taker, TaskID: in.TaskID, Action: in.Action, Reason: in.Reason, By: "workflow signal",
		})
		if err != nil {
			return false, a.fail(ctx, err)
		}
		in.ID = row.ID
	}
	taken, err := a.Store.TakeAction(ctx, in.ID, taker)
	return taken, a.fail(ctx, err)
}

// CancelTask records that an operator cancelled the workflow: it counts as
// the client's own cancel.
func (a *Activities) CancelTask(ctx context.Context, in TaskArgs) (mediagate.Story, error) {
	task, err := a.Store.TaskByID(ctx, in.TaskID)
	if err == nil {
		_, err = a.Store.RequestCancel(ctx, task.AccountID, in.TaskID)
	}
	if err != nil && !mediagate.Is(err, mediagate.KindConflict) && !mediagate.Is(err, mediagate.KindNotFound) {
		return mediagate.Story{}, a.fail(ctx, err)
	}
	return a.story(ctx, in.TaskID)
}
