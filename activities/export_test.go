package activities

import "context"

// ProveLedger is one check of what is new in the ledger.
func ProveLedger(ctx context.Context, a *Activities) error { return a.proveLedger(ctx) }

// CodeNoPlace is that of a copy which waits for its turn.
const CodeNoPlace = codeNoPlace
