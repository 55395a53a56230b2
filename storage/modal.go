package storage

import (
	"context"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// SubmitModal takes the modal parameters of a task in: the idempotency record when
// there is a key, and the event, all or nothing (D15). A repetition returns replayed,
// also when both arrive at once; of two different calls one is taken.
//
// Returns KindNotFound, also for someone else's task; KindConflict when the task
// does not wait for parameters, and with code idempotency_conflict when the key
// belongs to another request.
func (s *Store) SubmitModal(ctx context.Context, m mediagate.ModalCall) (replayed bool, err error) {
	_, err = s.change(ctx, m.TaskID, &changing{events: []task.Event{task.ModalGiven{Input: m.Input}}, owner: m.AccountID, first: func(tx *gorm.DB, _ stateTask) (bool, error) {
		replayed = false
		if m.IdempotencyKey == "" {
			return true, nil
		}
		now := at(s.clock())
		first, err := remember(tx, &idempotencyRow{
			AccountID: m.AccountID, Key: m.IdempotencyKey, Path: m.Path, BodySHA256: m.BodySHA256[:], TaskID: m.TaskID, CreatedAt: now,
		}, now)
		replayed = err == nil && !first
		return first, err
	}})
	if err != nil || !replayed {
		return false, err
	}
	taskID, found, err := s.Replay(ctx, m.AccountID, m.IdempotencyKey, m.Path, m.BodySHA256)
	if err == nil && (!found || taskID != m.TaskID) {
		err = mediagate.Errorf(mediagate.KindUnavailable, "the idempotency record keeps changing")
	}
	return true, err
}
