package activities

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/mediagate/mediagate"
)

// EvidenceMeter counts evidence that the database has lost commits.
type EvidenceMeter interface {
	LostTail(kind mediagate.Evidence)
}

// evidenceEvery is how often this process logs evidence of one kind. A lapse of seconds may
// affect every open task.
const evidenceEvery = time.Minute

// evidence counts a sign that the database has lost commits. It logs the first sign of each kind
// in each minute, with its task.
func (a *Activities) evidence(ctx context.Context, kind mediagate.Evidence, taskID string) {
	if a.Evidence != nil {
		a.Evidence.LostTail(kind)
	}
	log, _ := a.evidenceLog.LoadOrStore(kind, &rate.Sometimes{Interval: evidenceEvery})
	log.(*rate.Sometimes).Do(func() {
		a.Logger.ErrorContext(ctx, "the database has lost commits", "evidence", string(kind), "task", taskID)
	})
}
