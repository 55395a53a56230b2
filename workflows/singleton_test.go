package workflows_test

import (
	"context"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/workflows"
)

// TestD2ChannelEndsWhenGone checks that the workflow of a channel that is gone ends, and that any
// other starts its activity again, for ever.
func TestD2ChannelEndsWhenGone(t *testing.T) {
	t.Parallel()
	env := newEnv()
	env.RegisterWorkflow(workflows.Channel)
	tended := 0
	env.RegisterActivityWithOptions(func(context.Context, activities.ChannelArgs) (bool, error) {
		tended++
		return tended == 3, nil
	}, activity.RegisterOptions{Name: "TendChannel"})
	env.ExecuteWorkflow(workflows.Channel, activities.ChannelArgs{Channel: "removed"})
	if err := env.GetWorkflowError(); err != nil || tended != 3 {
		t.Errorf("ended with %v after %d handovers, want 3", err, tended)
	}
}

// TestD2WakeGoesOn checks that the other singleton starts its activity again, for ever, in one
// history after another.
func TestD2WakeGoesOn(t *testing.T) {
	t.Parallel()
	env := newEnv()
	env.RegisterWorkflow(workflows.Wake)
	tended := 0
	env.RegisterActivityWithOptions(func(context.Context) error {
		tended++
		return nil
	}, activity.RegisterOptions{Name: "TendWakes"})
	env.ExecuteWorkflow(workflows.Wake)
	if err := env.GetWorkflowError(); !workflow.IsContinueAsNewError(err) || tended < 2 {
		t.Errorf("ended with %v after %d handovers", err, tended)
	}
}
