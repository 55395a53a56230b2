package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate/activities"
)

// TaskActions gives a command to all tasks that a filter selects and that existed when the job
// began. The page of the run shows how far the job has come. An operator can pause its activity,
// or cancel the workflow. A crash costs some seconds, since the progress is in the activity's
// heartbeat.
func TaskActions(ctx workflow.Context, in activities.JobArgs) (activities.JobProgress, error) {
	options := tendOptions(in.Action + " of tasks: " + in.ID)
	// After a cancel, the activity's own result says how far it came.
	options.WaitForCancellation = true
	working := workflow.WithActivityOptions(ctx, options)
	// Each activity works for a slice of the job and returns its progress, which the page then
	// shows.
	for range handovers {
		workflow.SetCurrentDetails(ctx, jobDetails(in, "under way"))
		progress := in.Progress
		err := workflow.ExecuteActivity(working, acts.ActOnTasks, in).Get(ctx, &progress)
		// A cancelled activity that still returned a result says how far it came.
		if err == nil {
			in.Progress = progress
		}
		switch {
		case ctx.Err() != nil: // cancelled, however the activity ended
			workflow.SetCurrentDetails(ctx, jobDetails(in, "cancelled"))
			return in.Progress, ctx.Err()
		case err != nil:
			return in.Progress, err
		case in.Progress.Ended:
			workflow.SetCurrentDetails(ctx, jobDetails(in, "done"))
			return in.Progress, nil
		}
	}
	// The next run continues after in.Progress, with an empty history.
	return in.Progress, workflow.NewContinueAsNewError(ctx, TaskActions, in)
}

// jobDetails returns the lines that show a person how far a job has come.
func jobDetails(in activities.JobArgs, state string) string {
	p := in.Progress
	lines := []string{
		fmt.Sprintf("**%s: %s for %d tasks, %d a second**", state, in.Action, in.Matched, in.PerSecond), "",
		fmt.Sprintf("- %d done, %d skipped since it does not apply, %d failed", p.Done, p.Skipped, p.Failed),
		"- by " + in.By + ", to hold it: pause its activity; to end it: request a cancellation",
	}
	if p.After != "" {
		lines = append(lines, "- as far as `"+p.After+"`, from new to old")
	}
	return strings.Join(lines, "\n")
}
