package storage

import (
	"context"

	"github.com/mediagate/mediagate"
)

// Lists of operators, of all accounts. Like those of an account they read no more rows
// than they show (ADR 52):
//
//	filter                           index                                       stretches
//	none                             the primary key                             1
//	type, model, channel, status     tasks_made: type, model, channel, status, id    of the kinds that there are
//	reference                        tasks_references: reference, account, id    1
//	stuck                            tasks_stuck: id; wakes_stuck                2
//
// A kind is a type, model and channel that occur together; there are some dozens. Of an
// account and a channel, all tasks of the account are looked at. Of what is stuck, all
// that is overdue is looked at, and all that is parked where there is another filter.

// madeKind is what tasks_made has in front of the status.
type madeKind struct {
	Type    mediagate.Type   `json:"type"`
	Model   string           `json:"model"`
	Channel string           `json:"channel"`
	Status  mediagate.Status `json:"status"`
}

// kindsOfTasks goes from kind to kind by the index, with one look at each.
const kindsOfTasks = `WITH RECURSIVE kinds (id) AS (
		SELECT id FROM (SELECT id FROM tasks WHERE erased_at IS NULL ORDER BY type, model, channel LIMIT 1) AS first
		UNION ALL SELECT (SELECT id FROM tasks WHERE erased_at IS NULL AND (type, model, channel) > (was.type, was.model, was.channel)
			ORDER BY type, model, channel LIMIT 1) FROM kinds JOIN tasks AS was ON was.id = kinds.id)
	SELECT type, model, channel FROM kinds JOIN tasks ON tasks.id = kinds.id`

// listingOfKinds is a list of the tasks of some kinds: the newest of each are merged.
func (s *Store) listingOfKinds(ctx context.Context, f mediagate.TaskFilter) (*statement, error) {
	var kinds []struct {
		Type    mediagate.Type
		Model   string
		Channel string
	}
	if err := read(s.on(ctx), &kinds, kindsOfTasks); err != nil {
		return nil, err
	}
	stretches := []madeKind{}
	for _, k := range kinds {
		if f.Type != "" && k.Type != f.Type || f.Model != "" && k.Model != f.Model || f.Channel != "" && k.Channel != f.Channel {
			continue
		}
		for _, status := range oneOf(f.Status, mediagate.Statuses()) {
			stretches = append(stretches, madeKind{k.Type, k.Model, k.Channel, status})
		}
	}
	text, err := jsonText(stretches)
	if err != nil {
		return nil, err
	}
	f.Type, f.Model, f.Channel, f.Status = "", "", "", "" // the stretches have them
	list := s.newest()
	if s.lite { // which has no LATERAL
		list.with("SELECT newest.value AS id FROM "+s.rowsOf(madeColumns)+" JOIN json_each((SELECT json_group_array(id) FROM (", text)
	} else {
		list.with("SELECT newest.id FROM "+s.rowsOf(madeColumns)+" CROSS JOIN LATERAL (", text)
	}
	list.say("SELECT id FROM tasks").where(f, s.bytewiseID("tasks.id")).
		say(" AND type = v.type AND model = v.model AND channel = v.channel AND status = v.status ORDER BY ", s.bytewiseID("id"), " DESC LIMIT ", readAhead(f.Limit), ")")
	if s.lite {
		list.say("))")
	}
	return list.say(" AS newest").oldest(f.Limit), nil
}

// madeColumns are those of madeKind.
const madeColumns = "type text, model text, channel text, status text"

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
