package storage

import (
	"context"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// A task's wait for modal parameters (D15). It begins once, and one UPDATE ends
// it: the client's call or its expiry, whichever finds it.

// BeginModal notes that the vendor's job of attempt n waits for modal
// parameters, and ends its polling. It changes nothing for a task that takes
// none, that was given them, or that has ended, and for an attempt that is not
// the newest or is over. Returns KindNotFound.
func (s *Store) BeginModal(ctx context.Context, taskID string, n int) error {
	return s.underLock(ctx, taskID, "begin modal wait", func(tx *gorm.DB, task lockedTask) error {
		waits, err := s.beginModal(tx, task, n)
		if err != nil || !waits {
			return err
		}
		_, err = exec(tx, "DELETE FROM awaits WHERE task_id = ? AND n = ?", taskID, n)
		return err
	})
}

// beginModal lets the deadline come after the wait, whose time does not count
// (D10). The job has no slot meanwhile: the vendor has not begun with it. A
// parking is over, as the vendor has answered; its time is in what is left. It
// tells whether the task waits for that attempt, from now on or already.
func (s *Store) beginModal(tx *gorm.DB, task lockedTask, n int) (waits bool, err error) {
	if task.ArtState == mediagate.ModalWaiting && task.ModalN == n {
		return true, nil
	}
	var plan mediagate.Plan
	if err := fromJSON("tasks.plan", task.Plan, &plan); err != nil || plan.Modal <= 0 {
		return false, err
	}
	now := s.clock()
	until, left := now.Add(plan.Modal), max(0, task.waitsUntil(now).Sub(now))
	changed, err := exec(tx, `UPDATE tasks SET art_state = 'MODAL', modal_n = ?, modal_until = ?, deadline_at = ?,
			parked_at = NULL, park_reason = '', version = version + 1
		WHERE id = ? AND art_state = '' AND `+isOpen+` AND EXISTS (SELECT 1 FROM attempts
			WHERE task_id = tasks.id AND n = ? AND state = 'accepted' AND outcome IS NULL)
			AND NOT EXISTS (SELECT 1 FROM attempts WHERE task_id = tasks.id AND n > ?)`,
		n, at(until), at(until.Add(left)), task.ID, n, n)
	if err != nil || changed == 0 {
		return false, err
	}
	_, err = exec(tx, "UPDATE attempts SET slot_until = ?, trouble = '' WHERE task_id = ? AND n = ?", at(now), task.ID, n)
	return true, err
}

// SubmitModal takes the modal parameters of a task in: the idempotency record
// when there is a key, the parameters, and the command that its workflow is
// told by, all or nothing. The task is pending again, with the time of a new
// one. A repetition returns replayed, also when both arrive at once; of two
// different calls one is taken.
//
// Returns KindNotFound, also for someone else's task; KindConflict when the task
// does not wait for parameters, and with code idempotency_conflict when the key
// belongs to another request.
func (s *Store) SubmitModal(ctx context.Context, m mediagate.ModalCall) (command mediagate.Action, replayed bool, err error) {
	command = mediagate.Action{ID: s.newID("act_"), TaskID: m.TaskID, Action: mediagate.ActionModal, By: "client", State: actionPending}
	err = s.write(ctx, "submit modal parameters", func(tx *gorm.DB) error {
		replayed = false
		task, err := s.lockOwn(tx, m.AccountID, m.TaskID)
		if err != nil {
			return err
		}
		command.At = s.clock()
		if m.IdempotencyKey != "" {
			first, err := remember(tx, &idempotencyRow{
				AccountID: m.AccountID, Key: m.IdempotencyKey, Path: m.Path, BodySHA256: m.BodySHA256[:], TaskID: m.TaskID, CreatedAt: at(command.At),
			}, at(command.At))
			if err != nil {
				return err
			}
			if replayed = !first; replayed {
				return nil
			}
		}
		return s.submitModal(tx, task, document(m.Input), command)
	})
	if err != nil || !replayed {
		return command, false, err
	}
	taskID, found, err := s.Replay(ctx, m.AccountID, m.IdempotencyKey, m.Path, m.BodySHA256)
	if err == nil && (!found || taskID != m.TaskID) {
		err = mediagate.Errorf(mediagate.KindUnavailable, "the idempotency record keeps changing")
	}
	return mediagate.Action{}, true, err
}

func (s *Store) submitModal(tx *gorm.DB, task lockedTask, input document, command mediagate.Action) error {
	var plan mediagate.Plan
	if err := fromJSON("tasks.plan", task.Plan, &plan); err != nil {
		return err
	}
	now := at(command.At)
	changed, err := exec(tx, `UPDATE tasks SET modal_input = ?, art_state = 'SUBMITTED', status = 'pending', deadline_at = ?,
			parked_at = NULL, park_reason = '', version = version + 1
		WHERE id = ? AND art_state = 'MODAL' AND cancel_requested_at IS NULL AND `+isOpen,
		input, at(command.At.Add(plan.Timeout)), task.ID)
	if err != nil {
		return err
	}
	if changed == 0 {
		return conflict("the task does not wait for modal parameters")
	}
	if _, err := exec(tx, "UPDATE attempts SET state = 'ended', ended_at = ? WHERE task_id = ? AND n = ? AND state = 'accepted' AND outcome IS NULL",
		now, task.ID, task.ModalN); err != nil {
		return err
	}
	if _, err := exec(tx, "DELETE FROM awaits WHERE task_id = ?", task.ID); err != nil {
		return err
	}
	return tx.Create(&actionRow{
		ID: command.ID, TaskID: command.TaskID, Action: command.Action, ByWhom: command.By, State: command.State, At: now,
	}).Error
}

// ExpireModal ends the wait of a task whose client has said nothing in time; one
// that has stays as it is. Returns KindNotFound.
func (s *Store) ExpireModal(ctx context.Context, taskID string) error {
	return s.underLock(ctx, taskID, "expire modal wait", func(tx *gorm.DB, _ lockedTask) error {
		_, err := exec(tx, "UPDATE tasks SET art_state = 'EXPIRED', version = version + 1 WHERE id = ? AND art_state = 'MODAL' AND modal_until <= ? AND "+isOpen,
			taskID, at(s.clock()))
		return err
	})
}
