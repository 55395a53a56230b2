package activities

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/time/rate"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

const (
	// jobPage is how many tasks a job reads at once.
	jobPage = 100
	// jobSlice is how long a job works before it hands its progress to its workflow, which
	// shows it.
	jobSlice = 30 * time.Second
	// jobTries is how often a task is tried whose command meets an error. Then the job
	// counts it as failed, and goes on.
	jobTries = 5
)

// JobArgs is a command for many tasks, and how far it has come.
type JobArgs struct {
	mediagate.TaskJob
	Progress JobProgress `json:"progress,omitzero"`
}

// JobProgress is how far a job has come. It begins with the newest task.
type JobProgress struct {
	After   string `json:"after,omitempty"` // the last task that it has come to
	Done    int    `json:"done"`            // were given the command
	Skipped int    `json:"skipped"`         // to which it does not apply, or that are gone
	Failed  int    `json:"failed"`          // met errors, however often they were tried
	Tries   int    `json:"tries,omitempty"` // of the task that is next
	Ended   bool   `json:"ended,omitempty"`
}

// ActOnTasks gives a command to the tasks that a job selects, in its rate, for some time.
// It goes on where its last heartbeat says. What it does twice changes nothing: the
// command for a task has one id.
//
// It ends early when its worker stops or the job is cancelled; the job knows how far it
// came. One that is paused fails, so that Temporal tries it again once it goes on.
func (a *Activities) ActOnTasks(ctx context.Context, in JobArgs) (JobProgress, error) {
	p := in.Progress
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &p); err != nil {
			return p, a.fail(ctx, err)
		}
	}
	var beat atomic.Value
	note := func() {
		beat.Store(p)
		activity.RecordHeartbeat(ctx, p)
	}
	note()
	defer heartbeat(ctx, func() []any { return []any{beat.Load()} }, nil)()
	working, cancel := untilStopped(ctx)
	defer cancel()
	working, cancel = context.WithTimeout(working, jobSlice)
	defer cancel()
	pace := rate.NewLimiter(rate.Limit(in.PerSecond), 1)
	for !p.Ended {
		f := in.Filter
		f.After, f.Limit = p.After, jobPage
		tasks, more, err := a.Store.SelectTasks(ctx, f)
		if err != nil {
			return p, a.fail(ctx, err)
		}
		for _, t := range tasks {
			if pace.Wait(working) != nil { // it ends before the task's turn
				return p, heldUp(ctx)
			}
			if err := a.actOn(ctx, in.TaskJob, t, &p); err != nil {
				note()
				return p, a.fail(ctx, err)
			}
			p.After, p.Tries = t.ID, 0
			note()
		}
		p.Ended = !more
	}
	return p, nil
}

// heldUp is the error of an activity that Temporal has paused or reset; nil otherwise.
func heldUp(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, activity.ErrActivityPaused) || errors.Is(cause, activity.ErrActivityReset) {
		return cause
	}
	return nil
}

// actOn gives the job's command to one task, and counts it. An error is one to try again.
func (a *Activities) actOn(ctx context.Context, job mediagate.TaskJob, t mediagate.Task, p *JobProgress) error {
	if job.Channel != "" && !a.takes(job.Channel, t) {
		p.Skipped++
		return nil
	}
	command := mediagate.Action{
		ID: job.ActionID(t.ID), TaskID: t.ID, Action: job.Action, Channel: job.Channel, By: job.By, Reason: job.Reason,
	}
	changed, err := a.Store.Command(ctx, command, task.CommandOf(job.Action, job.Channel))
	switch {
	case mediagate.Is(err, mediagate.KindConflict), mediagate.Is(err, mediagate.KindNotFound):
		p.Skipped++
		return nil
	case err != nil && ctx.Err() == nil && p.Tries+1 >= jobTries:
		a.Logger.WarnContext(ctx, "a command of a job fails for a task",
			"task", t.ID, "job", job.ID, "action", job.Action, "error", err)
		p.Failed++
		return nil
	case err != nil:
		p.Tries++
		return err
	}
	p.Done++
	if !changed.State.Status.Terminal() {
		if _, err := a.Engine.Wake(ctx, t.ID); err != nil { // its wake is due all the same
			a.Logger.DebugContext(ctx, "workflow not signalled: its wake is due in seconds", "task", t.ID, "error", err)
		}
	}
	return nil
}

// takes reports whether the channel could take the task's next attempt.
func (a *Activities) takes(name string, t mediagate.Task) bool {
	return len(chosen(a.Channels.Candidates(t.Model, t.Plan.Routes, askable(t), nil), name)) > 0
}
