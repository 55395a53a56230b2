package activities

import "context"

// ProveLedger is what the reconciler does beside its passes.
func ProveLedger(ctx context.Context, a *Activities) { a.proveLedger(ctx) }

// CodeNoPlace is that of a copy which waits for its turn.
const CodeNoPlace = codeNoPlace
