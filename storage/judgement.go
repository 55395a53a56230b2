package storage

import (
	"context"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

type judgementRow struct{ Judgement document }

// Judgement reads how far the judging of a task's inputs has come. Returns
// KindNotFound.
func (s *Store) Judgement(ctx context.Context, taskID string) (mediagate.Judgement, error) {
	j, err := readJudgement(s.on(ctx), taskID)
	return j, dbError(err, "read judgement")
}

func readJudgement(db *gorm.DB, taskID string) (j mediagate.Judgement, err error) {
	row, err := one[judgementRow](db, "SELECT judgement FROM tasks WHERE id = ?", taskID)
	if err != nil {
		return j, err
	}
	if row == nil {
		return j, notFound("task", taskID)
	}
	return j, fromJSON("tasks.judgement", row.Judgement, &j)
}

// StoreJudgement adds to what is stored: the first verdict stays, and so does
// what was found good. A task that has ended stays as it is. Returns
// KindNotFound.
func (s *Store) StoreJudgement(ctx context.Context, taskID string, j mediagate.Judgement) error {
	return s.underLock(ctx, taskID, "store judgement", func(tx *gorm.DB, task lockedTask) error {
		if task.Status.Terminal() {
			return nil
		}
		before, err := readJudgement(tx, taskID)
		if err != nil || before.Over {
			return err
		}
		text, err := jsonText(before.With(j))
		if err != nil {
			return err
		}
		_, err = exec(tx, "UPDATE tasks SET judgement = ? WHERE id = ?", text, taskID)
		return err
	})
}
