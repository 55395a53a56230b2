package storage

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// RetryParked has parked tasks try again now, up to limit: BreakerClosed of package task
// for many (D12). Those that would have tried again first come first, so that tasks
// which park again take turns. It leaves out those that try now anyway, those of a lost
// submission, and those that are being written. Their wakes are spread by some seconds.
// It returns how many there were.
func (s *Store) RetryParked(ctx context.Context, p mediagate.Parked, limit int) (retried int, err error) {
	reasons := slices.DeleteFunc(slices.Clone(p.Reasons), func(r mediagate.ParkReason) bool { return r == mediagate.ParkSubmissionUnknown })
	if len(reasons) == 0 {
		return 0, nil
	}
	which, args := named("park_reason", reasons)
	if p.Channel != "" {
		which, args = which+" AND channel = ?", append(args, p.Channel)
	}
	if p.Provider != "" {
		which, args = which+" AND plan LIKE ?", append(args, `%"provider":"`+p.Provider+`"%`)
	}
	err = s.write(ctx, "retry parked tasks", func(tx *gorm.DB) error {
		now := s.clock()
		var rows []struct{ ID, AccountID string }
		if err := read(tx, &rows, "WITH parked AS MATERIALIZED (SELECT id FROM tasks WHERE "+isOpen+" AND parked_at IS NOT NULL AND "+which+
			" AND retry_at > ? ORDER BY retry_at LIMIT ?"+s.skipLocked("tasks")+`)
			UPDATE tasks SET retry_at = NULL FROM parked WHERE tasks.id = parked.id RETURNING tasks.id, tasks.account_id`, append(args, at(now), limit)...); err != nil {
			return err
		}
		retried = len(rows)
		wakes := make([]mediagate.Wake, len(rows))
		for i, r := range rows {
			wakes[i] = mediagate.Wake{TaskID: r.ID, AccountID: r.AccountID, At: now.Add(time.Duration(i) * retrySpread)}
		}
		return s.wakeRuns(tx, wakes)
	})
	return retried, err
}
