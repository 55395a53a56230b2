package activities

import "context"

// ProveLedger is what the reconciler does beside its passes.
func (a *Activities) ProveLedger(ctx context.Context) { a.proveLedger(ctx) }
