package storage

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/mediagate/mediagate"
)

type actionRow struct {
	ID      string
	TaskID  string
	Action  string
	Channel string
	ByWhom  string
	Reason  string
	State   string
	At      stamp
	TakenAt stamp
	TakenBy string
}

// TableName tells GORM.
func (actionRow) TableName() string { return "actions" }

// The states of a command.
const (
	actionPending = "pending"
	actionTaken   = "taken"
)

func (r actionRow) action() mediagate.Action {
	return mediagate.Action{
		ID: r.ID, TaskID: r.TaskID, Action: r.Action, Channel: r.Channel, By: r.ByWhom, Reason: r.Reason, State: r.State, At: r.At.Time,
	}
}

// RecordAction stores an operator's command, pending. An id that is stored
// already returns that command as it is found. Returns KindNotFound for an
// unknown task.
func (s *Store) RecordAction(ctx context.Context, a mediagate.Action) (mediagate.Action, error) {
	if a.ID == "" {
		a.ID = s.newID("act_")
	}
	if a.At.IsZero() {
		a.At = s.clock()
	}
	// Under the task's lock: whoever ends it and has looked for commands ends it first.
	err := s.underLock(ctx, a.TaskID, "record action", func(tx *gorm.DB, _ lockedTask) error {
		return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&actionRow{
			ID: a.ID, TaskID: a.TaskID, Action: a.Action, Channel: a.Channel, ByWhom: a.By, Reason: a.Reason, State: actionPending, At: at(a.At),
		}).Error
	})
	if err != nil {
		return mediagate.Action{}, err
	}
	row, err := take[actionRow](s.on(ctx).Where("id = ?", a.ID))
	if err != nil {
		return mediagate.Action{}, dbError(err, "record action")
	}
	if row == nil {
		return mediagate.Action{}, notFound("action", a.ID)
	}
	return row.action(), nil
}

// TakeAction notes that the task's workflow acts on the command. Of several
// takers one is told true, as often as it asks. A retry gives an open task as
// much time from now on as a new one has (D10).
func (s *Store) TakeAction(ctx context.Context, id, taker string) (taken bool, err error) {
	row, err := take[actionRow](s.on(ctx).Where("id = ?", id))
	if err != nil || row == nil {
		return false, dbError(err, "take action")
	}
	err = s.underLock(ctx, row.TaskID, "take action", func(tx *gorm.DB, task lockedTask) error {
		result := tx.Select("state", "taken_at", "taken_by").Where("id = ? AND state = ?", id, actionPending).
			Updates(&actionRow{State: actionTaken, TakenAt: at(s.clock()), TakenBy: taker})
		if result.Error != nil {
			return result.Error
		}
		if result.RowsAffected > 0 {
			taken = true
			return s.extend(tx, task, row.Action)
		}
		again, err := take[actionRow](tx.Where("id = ? AND taken_by = ?", id, taker))
		taken = again != nil
		return err
	})
	return taken, err
}

// extend moves the deadline of an open task as a command asks for: never back.
func (s *Store) extend(tx *gorm.DB, task lockedTask, action string) error {
	if action != mediagate.ActionRetry || task.Status.Terminal() {
		return nil
	}
	var plan mediagate.Plan
	if err := fromJSON("tasks.plan", task.Plan, &plan); err != nil {
		return err
	}
	now := s.clock()
	if task.ParkReason == mediagate.ParkSubmissionUnknown { // the deadline ends that parking (D6): another begins with the new one
		if err := s.unpark(tx, task); err != nil {
			return err
		}
		task.DeadlineAt, task.ParkedAt = at(task.waitsUntil(now)), stamp{}
	}
	moved := task.waitsUntil(now).Sub(task.DeadlineAt.Time) // by the parking or queueing, so far
	deadline := now.Add(plan.Timeout - moved)
	if !deadline.After(task.DeadlineAt.Time) {
		return nil
	}
	_, err := exec(tx, "UPDATE tasks SET deadline_at = ? WHERE id = ?", at(deadline), task.ID)
	return err
}

// UntakenActions lists commands on open tasks that nobody took for a while,
// the oldest first and after that one.
func (s *Store) UntakenActions(ctx context.Context, olderThan time.Duration, after mediagate.Action, limit int) ([]mediagate.Action, error) {
	where, args := "a.state = 'pending' AND a.at < ? AND t.status IN ('pending', 'processing')", []any{s.ago(olderThan)}
	if after.ID != "" {
		where, args = where+" AND (a.at, a.id) > (?, ?)", append(args, at(after.At), after.ID)
	}
	var rows []actionRow
	err := read(s.on(ctx), &rows, "SELECT "+columnsOf[actionRow]().of("a")+" FROM actions a JOIN tasks t ON t.id = a.task_id WHERE "+where+
		" ORDER BY a.at, a.id LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, dbError(err, "list untaken actions")
	}
	return convert(rows, actionRow.action), nil
}
