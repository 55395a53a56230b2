package storage

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

type actionRow struct {
	ID      string
	TaskID  string
	Action  string
	Channel string
	ByWhom  string
	Reason  string
	At      stamp
}

// TableName tells GORM.
func (actionRow) TableName() string { return "actions" }

// Command is Change for an operator's command, which it records in the same
// transaction. A command that has no id is given one. One whose id is on record changes
// nothing, and the state is returned as it is. Returns KindConflict for a command that
// does not apply, which is not recorded, and KindNotFound for an unknown task.
func (s *Store) Command(ctx context.Context, a mediagate.Action, event task.Event) (task.Changed, error) {
	row := actionRow{ID: a.ID, TaskID: a.TaskID, Action: a.Action, Channel: a.Channel, ByWhom: a.By, Reason: a.Reason, At: at(a.At)}
	if row.ID == "" {
		row.ID = s.newID("act_")
	}
	if row.At.IsZero() {
		row.At = at(s.clock())
	}
	return s.change(ctx, a.TaskID, &changing{events: []task.Event{event}, first: func(tx *gorm.DB, _ stateTask) (bool, error) {
		inserted := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
		return inserted.RowsAffected > 0, inserted.Error
	}})
}
