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

// The reconciler begins with a check, and does not wait for its end.
func TestReconcileProvesTheLedger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, ledger := activitytest.New(time.Now), &books{}
		w.Activities.Ledger = ledger
		reconcile(t, w, time.Millisecond)
		if n := ledger.checks.Load(); n != 1 {
			t.Errorf("%d checks, want one", n)
		}
	})
}

// books answer each check with the next of the reports; nil is an error.
type books struct {
	reports []*mediagate.LedgerReport
	checks  atomic.Int64
}

func (b *books) CheckLedgerSince(ctx context.Context) (mediagate.LedgerReport, error) {
	n := int(b.checks.Add(1)) - 1
	if n >= len(b.reports) {
		<-ctx.Done() // a check that takes its time is cut off when the worker stops
		return mediagate.LedgerReport{}, ctx.Err()
	}
	if b.reports[n] == nil {
		return mediagate.LedgerReport{}, mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
	}
	return *b.reports[n], nil
}

// The ledger is checked each hour, and what is broken is a line that operators
// watch for.
func TestLedgerIsProvenEachHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := activitytest.New(time.Now)
		w.Activities.Logger = slog.New(slog.NewTextHandler(&log, nil))
		broken := strings.Split(strings.Repeat("account acc_1: held is 2, not 1\n", 25), "\n")[:25]
		ledger := &books{reports: []*mediagate.LedgerReport{{OK: true}, nil, {Problems: broken}}}
		w.Activities.Ledger = ledger
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			activities.ProveLedger(ctx, w.Activities)
		}()
		time.Sleep(3*time.Hour + time.Minute)
		stop()
		<-ended
		if n := ledger.checks.Load(); n != 4 {
			t.Errorf("%d checks within three hours, want one at once and one each hour", n)
		}
		var said []string
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "ledger") {
				said = append(said, line)
			}
		}
		if len(said) != 2 || !strings.Contains(said[0], "level=WARN") || !strings.Contains(said[1], "level=ERROR") ||
			!strings.Contains(said[1], "problems=25") || strings.Count(said[1], "acc_1") != 20 {
			t.Errorf("the log says\n%s", strings.Join(said, ""))
		}
	})
}
