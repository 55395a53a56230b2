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
	// jobSlice is how long the activity of a job works before it returns its progress to the
	// workflow, which shows it.
	jobSlice = 30 * time.Second
	// jobTries is how often a command is tried that meets an error. After that the job counts the
	// task as failed, and goes on.
	jobTries = 5
)

// JobArgs is a command for many tasks, with the progress so far.
type JobArgs struct {
	mediagate.TaskJob
	Progress JobProgress `json:"progress,omitzero"`
}

// JobProgress is how far a job has come. A job begins with the newest task.
type JobProgress struct {
	After   string `json:"after,omitempty"` // the last task that was handled
	Done    int    `json:"done"`            // tasks that were given the command
	Skipped int    `json:"skipped"`         // tasks to which it does not apply, or that are gone
	Failed  int    `json:"failed"`          // tasks whose command met an error at each try
	Tries   int    `json:"tries,omitempty"` // tries so far of the next task
	Ended   bool   `json:"ended,omitempty"`
}

// ActOnTasks gives a command to the tasks that a job selects, at the job's rate, for jobSlice. It
// continues where its last heartbeat says. Repeating a command changes nothing, since the command
// for a task always has the same id.
//
// It ends early if its worker stops or the job is cancelled, and returns how far it came. If the
// activity is paused, it fails, so that Temporal tries it again when the pause is over.
//
// For example, a worker dies after it gave the command to task 40 and before the heartbeat said so.
// The next worker continues after task 39, and gives the command to task 40 again: its id is on
// record, so it counts as done and changes nothing.
func (a *Activities) ActOnTasks(ctx context.Context, in JobArgs) (JobProgress, error) {
	p := in.Progress
	// The last try of this activity may have come further than the workflow knows.
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &p); err != nil {
			return p, a.fail(ctx, err)
		}
	}
	// The regular heartbeats run in a goroutine of their own, so they read a copy of the progress.
	var beat atomic.Value
	note := func() {
		beat.Store(p)
		activity.RecordHeartbeat(ctx, p)
	}
	note()
	defer heartbeat(ctx, func() []any { return []any{beat.Load()} }, nil)()
	working, cancel := untilStopped(ctx)
	defer cancel()
	// The end of the slice ends the wait for the pace. It does not cut off a command that is under
	// way.
	working, cancel = context.WithTimeout(working, jobSlice)
	defer cancel()
	// A burst of one: the rate also holds across the activities of a job.
	pace := rate.NewLimiter(rate.Limit(in.PerSecond), 1)
	for !p.Ended {
		f := in.Filter
		f.After, f.Limit = p.After, jobPage
		// The tasks come newest first, and the page begins after the last one that was handled.
		tasks, more, err := a.Store.SelectTasks(ctx, f)
		if err != nil {
			return p, a.fail(ctx, err)
		}
		for _, t := range tasks {
			if pace.Wait(working) != nil { // the slice ends before the next task is due
				return p, pausedOrReset(ctx)
			}
			// The failed try is in the heartbeat, so the next try of the activity counts on.
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

// pausedOrReset returns the error of an activity that Temporal has paused or reset, and nil
// otherwise. After a pause or a reset Temporal tries the activity again, which continues from the
// heartbeat. The end of the slice, or a worker that stops, is a success with a part of the
// progress.
func pausedOrReset(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, activity.ErrActivityPaused) || errors.Is(cause, activity.ErrActivityReset) {
		return cause
	}
	return nil
}

// actOn gives the job's command to one task, and counts it. If it returns an error, the task is to
// be tried again. The command and its record are one transaction; the signal comes after it, and
// only makes things faster.
func (a *Activities) actOn(ctx context.Context, job mediagate.TaskJob, t mediagate.Task, p *JobProgress) error {
	// A reroute to a channel that does not serve the task would only park it.
	if job.Channel != "" && !a.canTake(job.Channel, t) {
		p.Skipped++
		return nil
	}
	command := mediagate.Action{
		ID: job.ActionID(t.ID), TaskID: t.ID, Action: job.Action, Channel: job.Channel, By: job.By, Reason: job.Reason,
	}
	changed, err := a.Store.Command(ctx, command, task.CommandOf(job.Action, job.Channel))
	switch {
	// The task has moved on since it was selected, or was erased.
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
		if _, err := a.Engine.Wake(ctx, t.ID); err != nil { // the task's wake is due anyway
			a.Logger.DebugContext(ctx, "workflow not signalled: its wake is due in seconds", "task", t.ID, "error", err)
		}
	}
	return nil
}

// canTake reports whether the channel could take the task's next attempt. An open breaker, or a
// lack of free slots, does not matter: the task can wait for the channel.
func (a *Activities) canTake(name string, t mediagate.Task) bool {
	return len(restrictTo(a.serving(t, nil), name)) > 0
}
