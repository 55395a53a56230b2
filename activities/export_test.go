package activities

import (
	"context"

	"github.com/mediagate/mediagate/channel"
)

// ProveLedger is one check of what is new in the ledger.
func ProveLedger(ctx context.Context, a *Activities) error { return a.proveLedger(ctx) }

// CodeNoPermit is that of a copy which waits for a permit.
const CodeNoPermit = codeNoPermit

// StepsChanged is what a poller tells.
func StepsChanged(ctx context.Context, a *Activities, changes []channel.StepChange) {
	signals{a}.StepsChanged(ctx, "a channel", changes)
}
