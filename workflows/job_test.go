package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/workflows"
)

// TestTaskActions checks that a job passes its progress from one activity to the next until the
// last one has come to the end; that it continues as new after many; and that it ends as
// cancelled if it is cancelled.
func TestTaskActions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		slices   int // the number of activities until the end
		cancel   bool
		want     activities.JobProgress
		err      func(error) bool
		runs     int
		lastSeen activities.JobProgress // the input of the last activity
	}{
		"some": {
			slices: 3, runs: 3, want: activities.JobProgress{Done: 3, Ended: true}, lastSeen: activities.JobProgress{Done: 2},
		},
		"more than a history takes": {
			slices: 1000, runs: 50, lastSeen: activities.JobProgress{Done: 49},
			err: func(err error) bool { _, ok := errors.AsType[*workflow.ContinueAsNewError](err); return ok },
		},
		"cancelled": {
			slices: 1000, cancel: true, runs: 1, err: temporal.IsCanceledError,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newEnv()
			env.RegisterWorkflow(workflows.TaskActions)
			a := &activities.Activities{}
			env.RegisterActivity(a)
			runs, seen := 0, activities.JobProgress{}
			env.OnActivity(
				a.ActOnTasks, mock.Anything, mock.Anything,
			).Return(func(_ context.Context, in activities.JobArgs) (activities.JobProgress, error) {
				if in.ID != "job_1" || in.Action != mediagate.ActionRetry {
					t.Errorf("the activity got %+v", in)
				}
				runs++
				seen = in.Progress
				in.Progress.Done++
				in.Progress.Ended = in.Progress.Done == test.slices
				return in.Progress, nil
			})
			if test.cancel {
				env.RegisterDelayedCallback(env.CancelWorkflow, time.Millisecond)
			}
			env.ExecuteWorkflow(
				workflows.TaskActions,
				activities.JobArgs{TaskJob: mediagate.TaskJob{ID: "job_1", Action: mediagate.ActionRetry, Matched: 9}},
			)
			err := env.GetWorkflowError()
			if test.err != nil {
				if err == nil || !test.err(err) {
					t.Errorf("the job ended with %v", err)
				}
			} else {
				var got activities.JobProgress
				if err := env.GetWorkflowResult(&got); err != nil {
					t.Fatal(err)
				}
				same(t, "progress", got, test.want)
			}
			if !test.cancel && (runs != test.runs || seen != test.lastSeen) {
				t.Errorf("%d activities, the last from %+v; want %d, from %+v", runs, seen, test.runs, test.lastSeen)
			}
		})
	}
}
