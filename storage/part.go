package storage

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/mediagate/mediagate"
)

type partRow struct {
	TaskID     string
	N          int
	Part       int
	State      mediagate.PartState
	SendBefore stamp
	Sends      int
	Submission document
	Failure    document
	Error      string
	CreatedAt  stamp
	EndedAt    stamp
	CallEnds   stamp
}

// TableName tells GORM.
func (partRow) TableName() string { return "attempt_parts" }

func (r partRow) part() (mediagate.Part, error) {
	p := mediagate.Part{
		TaskID: r.TaskID, N: r.N, Part: r.Part, State: r.State, SendBefore: r.SendBefore.Time, Sends: r.Sends, Error: r.Error,
	}
	if err := fromJSON("attempt_parts.submission", r.Submission, &p.Submission); err != nil {
		return mediagate.Part{}, err
	}
	return p, fromJSON("attempt_parts.failure", r.Failure, &p.Failure)
}

// Parts reads those calls of an attempt whose intent was ever stored, in order.
func (s *Store) Parts(ctx context.Context, taskID string, n int) ([]mediagate.Part, error) {
	var rows []partRow
	if err := read(s.on(ctx), &rows, "SELECT "+columnsOf[partRow]().text+" FROM attempt_parts WHERE task_id = ? AND n = ? ORDER BY part", taskID, n); err != nil {
		return nil, dbError(err, "read parts")
	}
	return convertAll(rows, partRow.part)
}

// OpenPart stores the intent to make one call of an attempt, under the same
// conditions as that of the attempt (D3): its first, with p.Sends zero, or
// another after a refusal that p.Sends calls have led to. It tells false when
// somebody else has stored that intent. Returns KindConflict when the task has
// ended, is to be cancelled or is past the end of its waiting, or the attempt
// is no intent any more, and KindNotFound.
func (s *Store) OpenPart(ctx context.Context, p mediagate.Part) (opened bool, err error) {
	err = s.underLock(ctx, p.TaskID, "open part", func(tx *gorm.DB, task lockedTask) error {
		opened = false
		row, err := readAttempt(tx, p.TaskID, p.N)
		switch {
		case err != nil:
			return err
		case task.Status.Terminal():
			return conflict("task %s has ended", p.TaskID)
		case !task.CancelRequestedAt.IsZero():
			return conflict("task %s is to be cancelled", p.TaskID)
		case task.late(s.clock()):
			return conflict("nobody waits for task %s any more", p.TaskID)
		case row.State != mediagate.AttemptIntent:
			return conflict("attempt %d of task %s is %s", p.N, p.TaskID, row.State)
		}
		if p.Sends == 0 {
			result := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&partRow{
				TaskID: p.TaskID, N: p.N, Part: p.Part, State: mediagate.PartIntent, SendBefore: at(p.SendBefore), Sends: 1, CreatedAt: at(s.clock()),
			})
			opened = result.RowsAffected > 0
			return result.Error
		}
		changed, err := exec(tx, `UPDATE attempt_parts SET state = 'intent', send_before = ?, sends = sends + 1, failure = NULL, error = '', ended_at = NULL
			WHERE task_id = ? AND n = ? AND part = ? AND state = 'refused' AND submission IS NULL AND sends = ?`,
			at(p.SendBefore), p.TaskID, p.N, p.Part, p.Sends)
		opened = changed > 0
		return err
	})
	return opened, err
}

// EndPart stores what came of a call. Only the intent that the caller sent
// under counts, named by its SendBefore, and what is known of it stays.
func (s *Store) EndPart(ctx context.Context, p mediagate.Part) error {
	endedAt := stamp{}
	if p.State != mediagate.PartUnknown {
		endedAt = at(s.clock())
	}
	return s.underLock(ctx, p.TaskID, "end part", func(tx *gorm.DB, task lockedTask) error {
		if !task.InputsErasedAt.IsZero() {
			p.Error = ""
		}
		submission, failure, err := task.leavesOfPart(p)
		if err != nil {
			return err
		}
		_, err = exec(tx, `UPDATE attempt_parts SET state = ?, submission = ?, failure = ?, error = ?, ended_at = ?
			WHERE task_id = ? AND n = ? AND part = ? AND send_before = ? AND state IN ('intent', 'unknown')`,
			p.State, submission, failure, p.Error, endedAt, p.TaskID, p.N, p.Part, at(p.SendBefore.Truncate(time.Microsecond)))
		return err
	})
}
