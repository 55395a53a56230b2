package activities

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	ledgerEvery   = time.Hour        // between two checks of what is new in the ledger
	ledgerTimeout = 30 * time.Minute // of one; the next goes on where it was cut off
	ledgerTold    = 20               // problems in a line of the log
)

// Ledger is the money, as far as the reconciler proves it.
type Ledger interface {
	// CheckLedgerSince proves what is new since the last time.
	CheckLedgerSince(ctx context.Context) (mediagate.LedgerReport, error)
}

// proveLedger checks what is new in the ledger, at once and then each hour, until
// ctx ends. What is broken is told each time: somebody has to look.
func (a *Activities) proveLedger(ctx context.Context) {
	if a.Ledger == nil {
		return
	}
	repeat(ctx, ledgerEvery, func(ctx context.Context) error {
		limited, cancel := context.WithTimeout(ctx, ledgerTimeout)
		defer cancel()
		report, err := a.Ledger.CheckLedgerSince(limited)
		if err == nil && !report.OK {
			a.Logger.ErrorContext(ctx, "the ledger does not hold", "runbook", "LedgerBroken", "problems", len(report.Problems),
				"first", report.Problems[:min(len(report.Problems), ledgerTold)])
		}
		return err
	}, func(err error) { a.Logger.WarnContext(ctx, "the ledger was not checked", "error", err) })
}
