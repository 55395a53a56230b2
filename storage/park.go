package storage

import (
	"context"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// Park notes that a task waits for a person or for better times. A task that
// is parked already keeps the time since when, whatever the reasons that
// follow each other, so that its patience ends; one that has ended stays as it
// is. A lost submission alone is a parking of its own, since the deadline ends
// it: the time parked before does not count for that (D6, D10). A task that
// waits for a slot leaves the queue.
func (s *Store) Park(ctx context.Context, taskID string, reason mediagate.ParkReason) error {
	return s.underLock(ctx, taskID, "park", func(tx *gorm.DB, task lockedTask) error {
		if task.Status.Terminal() {
			return nil
		}
		if err := s.leaveQueue(tx, task); err != nil {
			return err
		}
		if !task.ParkedAt.IsZero() && task.ParkReason == reason {
			return nil
		}
		since := task.ParkedAt
		if since.IsZero() || mediagate.ParkSubmissionUnknown == reason || mediagate.ParkSubmissionUnknown == task.ParkReason {
			if !since.IsZero() {
				if err := s.unpark(tx, task); err != nil {
					return err
				}
			}
			since = at(s.clock())
		}
		_, err := exec(tx, "UPDATE tasks SET parked_at = ?, park_reason = ? WHERE id = ?", since, reason, taskID)
		return err
	})
}

// Unpark ends the parking; the deadline moves by the time it took (D10). A job
// that was in trouble is known to run, and has its slot until it ends (D7).
func (s *Store) Unpark(ctx context.Context, taskID string) error {
	return s.underLock(ctx, taskID, "unpark", func(tx *gorm.DB, task lockedTask) error {
		if task.Status.Terminal() || task.ParkedAt.IsZero() {
			return nil
		}
		if task.ArtState == mediagate.ModalWaiting {
			return s.unpark(tx, task) // the job has not begun
		}
		if _, err := exec(tx, "UPDATE attempts SET slot_until = NULL WHERE task_id = ? AND state = 'accepted' AND trouble = '' AND slot_until IS NOT NULL",
			taskID); err != nil {
			return err
		}
		return s.unpark(tx, task)
	})
}

// unpark ends the parking. Of a task that is queued as well, the time since then
// counts when it leaves the queue.
func (s *Store) unpark(tx *gorm.DB, task lockedTask) error {
	until := s.clock()
	if !task.QueuedAt.IsZero() {
		until = task.QueuedAt.Time
	}
	parked := max(0, until.Sub(task.ParkedAt.Time))
	_, err := exec(tx, "UPDATE tasks SET deadline_at = ?, parked_at = NULL, park_reason = '' WHERE id = ?",
		at(task.DeadlineAt.Add(parked)), task.ID)
	return err
}

// ParkedTasks names tasks of the channel that are parked for the reason, the
// longest parked first.
func (s *Store) ParkedTasks(ctx context.Context, channel string, reason mediagate.ParkReason, limit int) ([]string, error) {
	return s.texts(ctx, "list parked tasks", "SELECT id FROM tasks WHERE "+isOpen+` AND parked_at IS NOT NULL AND channel = ? AND park_reason = ?
		ORDER BY parked_at LIMIT ?`, channel, reason, limit)
}

// ParkedFor names tasks of any channel that are parked for the reason, in the
// order of their ids from after on.
func (s *Store) ParkedFor(ctx context.Context, reason mediagate.ParkReason, after string, limit int) ([]string, error) {
	return s.texts(ctx, "list parked tasks", "SELECT id FROM tasks WHERE "+isOpen+` AND parked_at IS NOT NULL AND park_reason = ? AND id > ?
		ORDER BY id LIMIT ?`, reason, after, limit)
}
