package activities

import (
	"context"

	"github.com/mediagate/mediagate/channel"
)

// ProveLedger is one check of what is new in the ledger.
func ProveLedger(ctx context.Context, a *Activities) error { return a.proveLedger(ctx) }

// CodeNoPlace is that of a copy which waits for its turn.
const CodeNoPlace = codeNoPlace

// StepsChanged is what a poller tells.
func StepsChanged(ctx context.Context, a *Activities, changes []channel.StepChange) {
	signals{a}.StepsChanged(ctx, "a channel", changes)
}
