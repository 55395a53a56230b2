package storage

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/story"
)

// Outlook reads what a task waits for: the part of its story that lists show. It locks
// nothing. Returns KindNotFound.
func (s *Store) Outlook(ctx context.Context, id string) (story.Story, error) {
	state, lease, err := s.loadState(s.on(ctx), id, "", nil, false)
	if err != nil {
		return story.Story{}, dbError(err, "read what the task waits for")
	}
	return story.Story{State: state, Lease: lease.lease(), At: s.clock()}, nil
}

func (l leaseRow) lease() story.Lease {
	return story.Lease{WakeAt: l.WakeAt.Time, Tries: l.Tries, Asked: l.Asked}
}

// storyRows is how many commands, and how many attempts at its callback, are read of a
// task: the newest. The others have been, and are of no use for what comes next.
const storyRows = 200

// Story reads what is stored of a task, for operators: also of one that is erased,
// and what can be read of one that cannot be read as a whole. Returns KindNotFound.
func (s *Store) Story(ctx context.Context, id string) (story.Story, error) {
	db := s.on(ctx)
	var numbers []struct{ N int }
	if err := read(db, &numbers, "SELECT n FROM attempts WHERE task_id = ?", id); err != nil {
		return story.Story{}, dbError(err, "read attempts")
	}
	state, lease, err := s.loadState(db, id, "", convert(numbers, func(r struct{ N int }) int { return r.N }), false)
	if err != nil {
		return story.Story{}, dbError(err, "read the task's state")
	}
	st := story.Story{State: state, Lease: lease.lease(), At: s.clock()}
	var commands []actionRow
	if err := db.Where("task_id = ?", id).Order("at DESC, id DESC").Limit(storyRows).Find(&commands).Error; err != nil {
		return story.Story{}, dbError(err, "read commands")
	}
	slices.Reverse(commands)
	st.Commands = convert(commands, actionRow.command)
	if st.Deliveries, err = s.Deliveries(ctx, id); err != nil {
		return story.Story{}, err
	}
	st.Ledger, _, err = s.Ledger(ctx, state.AccountID, id, "", 2) // a hold and its end
	return st, err
}

// NotePromptRead notes in the audit that somebody reads what a client wrote.
func (s *Store) NotePromptRead(ctx context.Context, accountID, taskID string) error {
	return dbError(s.note(ctx, s.on(ctx), deed{
		action: mediagate.AuditReadPrompt, object: taskID, account: accountID, after: map[string]bool{"prompt": true},
	}), "note who reads a prompt")
}

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
func (s *Store) Command(ctx context.Context, a mediagate.Action, events ...task.Event) (task.Changed, error) {
	row := actionRow{ID: a.ID, TaskID: a.TaskID, Action: a.Action, Channel: a.Channel, ByWhom: a.By, Reason: a.Reason, At: at(a.At)}
	if row.ID == "" {
		row.ID = s.newID("act_")
	}
	if row.At.IsZero() {
		row.At = at(s.clock())
	}
	return s.change(ctx, a.TaskID, &changing{owner: a.AccountID, events: events, first: func(tx *gorm.DB, of mediagate.Task) (bool, error) {
		inserted := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
		if inserted.Error != nil || inserted.RowsAffected == 0 {
			return false, inserted.Error
		}
		return true, s.note(ctx, tx, deed{
			action: mediagate.AuditTaskAction, object: row.TaskID, account: of.AccountID, after: actionFacts{row.ID, row.Action, row.Channel, row.Reason},
		})
	}})
}

// noteStrays has the task's story name jobs that no attempt has. An erased task has none.
func noteStrays(tx *gorm.DB, of mediagate.Task, strays []task.Stray, now stamp) error {
	for _, s := range strays {
		if !of.ErasedAt.IsZero() {
			continue
		}
		row := actionRow{
			ID: "act_" + of.ID + "/stray/" + s.Sending.Channel + "/" + s.Ref.JobID, TaskID: of.ID, Action: mediagate.ActionStray,
			Channel: s.Sending.Channel, ByWhom: "mediagate", At: now,
			Reason: fmt.Sprintf("%s has the job %s, made as %s for attempt %d: no attempt has that job, and the vendor is asked to stop it",
				s.Sending.Channel, s.Ref.JobID, s.Sending.ExternalID, s.Sending.N),
		}
		if err := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error; err != nil {
			return err
		}
	}
	return nil
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
