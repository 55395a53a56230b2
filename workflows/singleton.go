package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate/activities"
)

// handovers is how often a singleton starts its long activity before it begins a new history.
const handovers = 50

// Channel keeps one TendChannel running for a vendor account. It ends when no worker has the
// account any more and no task waits for it. A worker that has the account starts it again, and so
// does the housekeeping when a row waits for the channel (D2).
func Channel(ctx workflow.Context, in activities.ChannelArgs) error {
	ctx = workflow.WithActivityOptions(ctx, tendOptions("poll for all tasks of channel "+in.Channel))
	for range handovers {
		var gone bool // stays false if the activity ends without a result
		// The activity returns when its worker stops or another run has fenced it. The next one
		// may start on any worker.
		if err := workflow.ExecuteActivity(ctx, acts.TendChannel, in).Get(ctx, &gone); err != nil || gone {
			return err
		}
	}
	// Begin a new history before this one gets long.
	return workflow.NewContinueAsNewError(ctx, Channel, in)
}

// Wake keeps one TendWakes running. Each TendWakes ends when its worker stops, and the next one may
// start on any worker.
func Wake(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, tendOptions("wake runs that should have asked for their next step by now"))
	for range handovers {
		if err := workflow.ExecuteActivity(ctx, acts.TendWakes).Get(ctx, nil); err != nil {
			return err
		}
	}
	return workflow.NewContinueAsNewError(ctx, Wake)
}
