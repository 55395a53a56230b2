package workflows_test

import (
	"context"
	"log/slog"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/workflows"
)

// D2: the workflow of a channel that is gone ends; any
// other passes its activity on for ever.
func TestD2ChannelEndsWhenGone(t *testing.T) {
	t.Parallel()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflow(workflows.Channel)
	tended := 0
	env.RegisterActivityWithOptions(func(context.Context, activities.ChannelArgs) (bool, error) {
		tended++
		return tended == 3, nil
	}, activity.RegisterOptions{Name: "TendChannel"})
	env.ExecuteWorkflow(workflows.Channel, workflows.ChannelInput{Channel: "removed"})
	if err := env.GetWorkflowError(); err != nil || tended != 3 {
		t.Errorf("ended with %v after %d handovers, want 3", err, tended)
	}
}
