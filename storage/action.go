package storage

import (
	"context"
	"time"

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
}

const actionColumns = "id, task_id, action, channel, by_whom, reason, state, at"

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
	_, err := exec(s.on(ctx), "INSERT INTO actions ("+actionColumns+") VALUES (?, ?, ?, ?, ?, ?, 'pending', ?) ON CONFLICT DO NOTHING",
		a.ID, a.TaskID, a.Action, a.Channel, a.By, a.Reason, at(a.At))
	if isForeignKey(err) {
		return mediagate.Action{}, notFound("task", a.TaskID)
	}
	if err != nil {
		return mediagate.Action{}, dbError(err, "record action")
	}
	row, err := one[actionRow](s.on(ctx), "SELECT "+actionColumns+" FROM actions WHERE id = ?", a.ID)
	if err != nil {
		return mediagate.Action{}, dbError(err, "record action")
	}
	if row == nil {
		return mediagate.Action{}, notFound("action", a.ID)
	}
	return row.action(), nil
}

// TakeAction notes that the task's workflow acts on the command. Of several
// takers one is told true, as often as it asks.
func (s *Store) TakeAction(ctx context.Context, id, taker string) (bool, error) {
	n, err := exec(s.on(ctx), "UPDATE actions SET state = 'taken', taken_at = ?, taken_by = ? WHERE id = ? AND (state = 'pending' OR taken_by = ?)",
		at(s.clock()), taker, id, taker)
	return n > 0, dbError(err, "take action")
}

// UntakenActions lists commands on open tasks that nobody took for a while,
// the oldest first.
func (s *Store) UntakenActions(ctx context.Context, olderThan time.Duration, limit int) ([]mediagate.Action, error) {
	var rows []actionRow
	err := read(s.on(ctx), &rows, "SELECT "+qualified("a", actionColumns)+` FROM actions a JOIN tasks t ON t.id = a.task_id
		WHERE a.state = 'pending' AND a.at < ? AND t.status IN ('pending', 'processing') ORDER BY a.at, a.id LIMIT ?`,
		s.ago(olderThan), limit)
	if err != nil {
		return nil, dbError(err, "list untaken actions")
	}
	return convert(rows, actionRow.action), nil
}
