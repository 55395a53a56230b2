package activities

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	ledgerEvery   = 6 * time.Hour    // between two checks of the ledger
	ledgerTimeout = 30 * time.Minute // of one
	ledgerTold    = 20               // problems in a line of the log
)

// Ledger is the money, as far as housekeeping proves it.
type Ledger interface {
	CheckLedger(ctx context.Context) (mediagate.LedgerReport, error)
}

// proveLedger checks the ledger. What is broken is logged each time: somebody has to look.
func (a *Activities) proveLedger(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	report, err := a.Ledger.CheckLedger(ctx)
	if err == nil && !report.OK {
		a.Logger.ErrorContext(ctx, "the ledger does not hold", "runbook", "LedgerBroken", "problems", len(report.Problems),
			"first", report.Problems[:min(len(report.Problems), ledgerTold)])
	}
	return err
}
