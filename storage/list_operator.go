package storage

import (
	"context"

	"github.com/mediagate/mediagate"
)

// listingOfStuck is a list of tasks that are parked, or overdue.
func (s *Store) listingOfStuck(f mediagate.TaskFilter) *statement {
	list := s.newest()
	of := func(from, and, id string) {
		list.say("SELECT id FROM (SELECT tasks.id FROM ", from).where(f, s.bytewiseID(id)).
			say(" AND ", openTask, " AND ", and, " ORDER BY ", s.bytewiseID(id), " DESC LIMIT ", readAhead(f.Limit), ") AS newest")
	}
	of("tasks", "tasks.parked_at IS NOT NULL", "tasks.id")
	list.say(" UNION ")
	of("wakes JOIN tasks ON tasks.id = wakes.task_id", overdueRun, "wakes.task_id")
	return list.oldest(f.Limit)
}

const (
	openTask   = "tasks.status IN ('pending', 'processing')"
	overdueRun = "wakes.kind = 'run' AND wakes.tries >= 3" // mediagate.StuckTries
)

// newest begins a list of the tasks whose ids a query names, and oldest ends it.
func (s *Store) newest() *statement {
	return (&statement{}).say("SELECT ", columnsOf[taskRow]().of("tasks"), " FROM (SELECT id FROM (")
}

func (list *statement) oldest(limit int) *statement {
	return list.say(") AS found ORDER BY id DESC LIMIT ", readAhead(limit), ") AS listed JOIN tasks ON tasks.id = listed.id ORDER BY tasks.id DESC")
}

// bytewiseID is an id as the indexes of filtered lists order it.
func (s *Store) bytewiseID(column string) string {
	if s.lite {
		return column
	}
	return column + bytewise
}

// CountTasks counts what a filter selects. It reads all of that.
func (s *Store) CountTasks(ctx context.Context, f mediagate.TaskFilter) (int, error) {
	f.CreatedBefore = wholeMicros(f.CreatedBefore)
	count := (&statement{}).say("SELECT COUNT(*) AS n FROM tasks").where(f, "tasks.id")
	if f.Stuck {
		count.say(" AND tasks.id IN (SELECT tasks.id FROM tasks WHERE ", openTask, " AND tasks.parked_at IS NOT NULL UNION ",
			"SELECT tasks.id FROM wakes JOIN tasks ON tasks.id = wakes.task_id WHERE ", openTask, " AND ", overdueRun, ")")
	}
	row, err := one[struct{ N int }](s.on(ctx), count.text.String(), count.args...)
	if err != nil || row == nil {
		return 0, dbError(err, "count tasks")
	}
	return row.N, nil
}

// StuckCounts counts the tasks that are stuck, by their reason.
func (s *Store) StuckCounts(ctx context.Context) (map[string]int, error) {
	var rows []struct {
		Reason string
		N      int
	}
	if err := read(s.on(ctx), &rows, `SELECT park_reason, COUNT(*) FROM tasks WHERE `+openTask+` AND parked_at IS NOT NULL GROUP BY park_reason
		UNION ALL SELECT '`+mediagate.ReasonRunOverdue+`', COUNT(*) FROM wakes JOIN tasks ON tasks.id = wakes.task_id
		WHERE `+openTask+` AND tasks.parked_at IS NULL AND `+overdueRun); err != nil {
		return nil, dbError(err, "count stuck tasks")
	}
	counts := map[string]int{}
	for _, r := range rows {
		if r.N > 0 {
			counts[r.Reason] = r.N
		}
	}
	return counts, nil
}
