package activities

import (
	"context"

	"github.com/mediagate/mediagate/channel"
)

// CheckLedger is one check of the ledger.
func CheckLedger(ctx context.Context, a *Activities) error { return a.checkLedger(ctx) }

// CodeNoPermit is the code of an activity that waits for a permit.
const CodeNoPermit = codeNoPermit

// StepsChanged is what a poller calls after a change.
func StepsChanged(ctx context.Context, a *Activities, changes []channel.StepChange) {
	signals{a}.StepsChanged(ctx, "a channel", changes)
}
