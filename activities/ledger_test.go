package activities_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// TestHousekeepingChecksTheLedger checks that housekeeping begins with a check of the ledger, and
// does not wait for its end.
func TestHousekeepingChecksTheLedger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, ledger := activitytest.New(t, time.Now), &books{}
		w.Activities.Ledger = ledger
		housekeep(t, w, time.Millisecond)
		if n := ledger.checks.Load(); n != 1 {
			t.Errorf("%d checks, want one", n)
		}
	})
}

// books answer each check with the next report. A nil report is an error.
type books struct {
	reports []*mediagate.LedgerReport
	checks  atomic.Int64
}

func (b *books) CheckLedger(ctx context.Context) (mediagate.LedgerReport, error) {
	n := int(b.checks.Add(1)) - 1
	if n >= len(b.reports) {
		<-ctx.Done() // a long check is cut off when the worker stops
		return mediagate.LedgerReport{}, ctx.Err()
	}
	if b.reports[n] == nil {
		return mediagate.LedgerReport{}, mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
	}
	return *b.reports[n], nil
}

// TestBrokenLedgerIsLogged checks that a broken ledger is logged in a line that operators watch
// for.
func TestBrokenLedgerIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := activitytest.New(t, time.Now)
	w.Activities.Logger = slog.New(slog.NewTextHandler(&log, nil))
	broken := strings.Split(strings.Repeat("account acc_1: held is 2, not 1\n", 25), "\n")[:25]
	w.Activities.Ledger = &books{reports: []*mediagate.LedgerReport{{OK: true}, nil, {Problems: broken}}}
	for i, away := range []bool{false, true, false} {
		if err := activities.CheckLedger(t.Context(), w.Activities); (err != nil) != away {
			t.Errorf("check %d ends with %v", i+1, err)
		}
	}
	if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "level=ERROR") ||
		!strings.Contains(said, "problems=25") || strings.Count(said, "acc_1") != 20 {
		t.Errorf("the log says\n%s", said)
	}
}
