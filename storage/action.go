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
// does not apply, which is not recorded, and KindNotFound for an unknown task, and for
// one that is not the account's where the command names one.
func (s *Store) Command(ctx context.Context, a mediagate.Action, event task.Event) (task.Changed, error) {
	row := actionRow{ID: a.ID, TaskID: a.TaskID, Action: a.Action, Channel: a.Channel, ByWhom: a.By, Reason: a.Reason, At: at(a.At)}
	if row.ID == "" {
		row.ID = s.newID("act_")
	}
	if row.At.IsZero() {
		row.At = at(s.clock())
	}
	return s.change(ctx, a.TaskID, &changing{owner: a.AccountID, events: []task.Event{event}, first: func(tx *gorm.DB, of stateTask) (bool, error) {
		inserted := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
		if inserted.Error != nil || inserted.RowsAffected == 0 {
			return false, inserted.Error
		}
		return true, s.note(ctx, tx, deed{
			action: mediagate.AuditTaskAction, object: row.TaskID, account: of.AccountID, after: actionFacts{row.ID, row.Action, row.Channel, row.Reason},
		})
	}})
}

type actionFacts struct {
	ID      string `json:"id"`
	Action  string `json:"action"`
	Channel string `json:"channel,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func (r actionRow) command() mediagate.Action {
	return mediagate.Action{ID: r.ID, TaskID: r.TaskID, Action: r.Action, Channel: r.Channel, By: r.ByWhom, Reason: r.Reason, At: r.At.Time}
}

// NoteTaskJob notes in the audit that somebody begins a job. It is noted before the job
// begins: one that nobody is known to have begun must not act.
func (s *Store) NoteTaskJob(ctx context.Context, job mediagate.TaskJob) error {
	return dbError(s.note(ctx, s.on(ctx), deed{action: mediagate.AuditTaskJob, object: job.ID, account: job.Filter.AccountID, after: job}), "note a job")
}
