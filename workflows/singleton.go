package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate/activities"
)

// handovers is how often a singleton starts its long activity before it begins a new history.
const handovers = 50

// Channel keeps one TendChannel running for a vendor account. It ends when no worker has the
// account any more and no task waits for it. A worker that has the account, or a row that waits
// for it, starts it again (D2).
func Channel(ctx workflow.Context, in ChannelInput) error {
	ctx = workflow.WithActivityOptions(ctx, tendOptions("poll for all tasks of channel "+in.Channel))
	for range handovers {
		var gone bool // it stays false if the activity does not say
		args := activities.ChannelArgs{Channel: in.Channel}
		if err := workflow.ExecuteActivity(ctx, acts.TendChannel, args).Get(ctx, &gone); err != nil || gone {
			return err
		}
	}
	return workflow.NewContinueAsNewError(ctx, Channel, in)
}

// Wake keeps one TendWakes running.
func Wake(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, tendOptions("wake runs that should have asked for their next step by now"))
	for range handovers {
		if err := workflow.ExecuteActivity(ctx, acts.TendWakes).Get(ctx, nil); err != nil {
			return err
		}
	}
	return workflow.NewContinueAsNewError(ctx, Wake)
}
