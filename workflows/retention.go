package workflows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// IDRetention is the id of the schedule that starts Expire, and the beginning of the ids of its
// runs.
const IDRetention = "retention"

const (
	retentionEvery = time.Hour
	retentionBound = 50 * time.Minute // of one run; the next run removes what is left
)

// Expire removes what is past its time (D16). The kinds take turns of one minute until nothing is
// left, so a kind with many rows delays no other. A kind that fails is left to the next run, and
// this run then ends as failed.
//
// For example, of two kinds one has rows for an hour and the other for ten seconds. The second one
// is finished after its first activity. The first one gets all further minutes, until the time of
// the run is over.
func Expire(ctx workflow.Context) (map[mediagate.Removal]int, error) {
	ctx = workflow.WithActivityOptions(ctx, removalOptions())
	began := workflow.Now(ctx)
	removed := map[mediagate.Removal]int{}
	var failed []string
	// open holds the kinds that are not finished, each with the place where its next activity
	// continues.
	open := make([]activities.RemoveArgs, 0, len(mediagate.Removals()))
	for _, kind := range mediagate.Removals() {
		open = append(open, activities.RemoveArgs{Kind: kind})
	}
	// ended shows and logs what the run has removed.
	ended := func(how string) {
		workflow.SetCurrentDetails(ctx, removalDetails(removed, failed, how))
		workflow.GetLogger(ctx).Info("a run of retention has ended", "how", how, "removed", removed, "failed", failed,
			"took", workflow.Now(ctx).Sub(began).String())
	}
	// Each pass gives every open kind one activity, which works for a minute.
	for len(open) > 0 {
		var left []activities.RemoveArgs
		for _, args := range open {
			// The next run is due soon. It goes on with the rest.
			if workflow.Now(ctx).Sub(began) >= retentionBound {
				ended("its time is over, the next run goes on")
				return removed, nil
			}
			workflow.SetCurrentDetails(ctx, removalDetails(removed, failed, "at work on "+string(args.Kind)))
			var slice mediagate.RemovedSlice
			err := workflow.ExecuteActivity(ctx, acts.RemoveExpired, args).Get(ctx, &slice)
			switch {
			// An operator has cancelled this run. The kinds that are left wait for the next one.
			case temporal.IsCanceledError(err):
				return removed, err
			case err != nil:
				failed = append(failed, string(args.Kind))
				continue
			}
			if removed[args.Kind] += slice.Removed; slice.More {
				left = append(left, activities.RemoveArgs{Kind: args.Kind, After: slice.Next})
			}
		}
		open = left
	}
	if len(failed) > 0 {
		ended("ended")
		message := "not all was removed: " + strings.Join(failed, ", ")
		return removed, temporal.NewNonRetryableApplicationError(message, "retention", nil)
	}
	ended("ended, nothing is left")
	// Record that a run has come through all kinds, for operators and alerts.
	end := activities.RemoveArgs{Kind: mediagate.RemovalRun}
	return removed, workflow.ExecuteActivity(ctx, acts.RemoveExpired, end).Get(ctx, nil)
}

// removalDetails returns the lines that explain a run to a person.
func removalDetails(removed map[mediagate.Removal]int, failed []string, now string) string {
	lines := []string{"**" + now + "**", "", "Removed by this run:", ""}
	for _, kind := range mediagate.Removals() {
		lines = append(lines, fmt.Sprintf("- %s: %d", kind, removed[kind]))
	}
	if len(failed) > 0 {
		lines = append(lines, "", "Failed, the next run tries again: "+strings.Join(failed, ", "))
	}
	return strings.Join(lines, "\n")
}

// EnsureRetention creates the schedule that starts Expire, or updates it. A schedule that an
// operator has paused stays paused.
func (c Client) EnsureRetention(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	options := client.ScheduleOptions{
		ID:   IDRetention,
		Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: retentionEvery}}},
		Action: &client.ScheduleWorkflowAction{
			ID: IDRetention, Workflow: Expire, TaskQueue: QueueMain, StaticSummary: "remove what is past its time",
		},
		// A run that still works when the next one is due goes on alone. A start that was missed
		// while Temporal was away is made up for if it is at most one interval late.
		Overlap:       enums.SCHEDULE_OVERLAP_POLICY_SKIP,
		CatchupWindow: retentionEvery,
	}
	schedules := c.Temporal.ScheduleClient()
	// Every worker calls this at its start. If the schedule exists, perhaps with the options of an
	// older release, it is updated.
	_, err := schedules.Create(ctx, options)
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return err
	}
	return schedules.GetHandle(ctx, IDRetention).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			schedule := in.Description.Schedule
			if matchesOptions(schedule, options) { // an update could undo a pause that comes at the same time
				return nil, temporal.ErrSkipScheduleUpdate
			}
			schedule.Spec, schedule.Action = &options.Spec, options.Action
			schedule.Policy.Overlap, schedule.Policy.CatchupWindow = options.Overlap, options.CatchupWindow
			return &client.ScheduleUpdate{Schedule: &schedule}, nil
		},
	})
}

// matchesOptions reports whether the schedule has these options already. The state of the
// schedule, such as a pause, is not compared, since it belongs to operators.
func matchesOptions(s client.Schedule, o client.ScheduleOptions) bool {
	is, ok := s.Action.(*client.ScheduleWorkflowAction)
	want, _ := o.Action.(*client.ScheduleWorkflowAction)
	return ok && is.ID == want.ID && is.TaskQueue == want.TaskQueue &&
		slices.Equal(s.Spec.Intervals, o.Spec.Intervals) &&
		s.Policy.Overlap == o.Overlap && s.Policy.CatchupWindow == o.CatchupWindow
}
