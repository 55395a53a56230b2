package storage

import (
	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// Tasks that use files of other tasks (D21).
//
// A submit locks the rows of its sources FOR SHARE, in the order of their ids, and checks them under
// that lock. Every change and every erasure of a task takes a lock that conflicts with FOR SHARE, so
// either the submit comes first, or the end or the erasure of the source:
//
//	the submit, then the end        The end finds the new task in the table sources, and brings
//	                                the wake of that task forward.
//	the end, then the submit        The submit sees the end.
//	the submit, then the erasure    The erasure finds the new task, and is refused.
//	the erasure, then the submit    The submit sees the erasure, and is refused.
//
// The end of a source never locks the rows of waiting tasks. It only brings their wakes forward, and
// wakes are locked after all other rows, in the order of ids. A change of a waiting task locks its
// sources FOR SHARE as well, after its own row. So the change either sees the end of the source, or
// it commits its renewed lease before the end brings that lease forward.

// usesFile is the condition that a task uses a file of another.
//
// The primary key of sources begins with source_id, and serves the condition.
const usesFile = "id IN (SELECT task_id FROM sources WHERE source_id = ?)"

// lockSources reads the sources of a new task under locks that delay their ends and erasures until
// the transaction ends, and decides how the task begins. Returns KindInvalid, naming the field, for a
// source that has ended without the file.
//
// FOR SHARE conflicts with the lock of every change of a source, but two submits with the same
// source do not wait for each other.
func (s *Store) lockSources(tx *gorm.DB, st *task.State) error {
	sources, err := s.readSources(tx, &st.Task, s.lock("FOR SHARE"))
	if err != nil {
		return err
	}
	st.SourceTasks = sources
	return st.Begin(s.clock())
}

// readSources reads the states of the task's sources, by their ids. lock is the clause that locks
// their rows. Tasks of other accounts are left out.
//
// ORDER BY id keeps the order of the locks. Erased sources are returned with the time of their
// erasure.
func (s *Store) readSources(
	db *gorm.DB, t *mediagate.Task, lock string,
) (sources map[string]mediagate.Task, err error) {
	ids, err := jsonText(t.SourceIDs())
	if err != nil {
		return nil, err
	}
	var rows []taskRow
	query := "SELECT " + columnsOf[taskRow]().text + " FROM tasks WHERE account_id = ? AND id IN " + s.inList() +
		" ORDER BY id" + lock
	if err := read(db, &rows, query, t.AccountID, ids); err != nil {
		return nil, err
	}
	sources = make(map[string]mediagate.Task, len(rows))
	for _, row := range rows {
		source, err := row.task()
		// A source that cannot be decoded still shows its status and its readable results.
		if err != nil && !unreadable(err) {
			return nil, err
		}
		sources[row.ID] = mediagate.Task{
			ID:       row.ID,
			Status:   row.Status,
			EndedAt:  row.EndedAt,
			ErasedAt: row.ErasedAt,
			Results:  source.Results,
		}
	}
	return sources, nil
}

// noteSourceStates fills in the statuses of the sources of tasks that were read.
//
// One statement serves all tasks. An erased or removed source gets an empty status.
func (s *Store) noteSourceStates(db *gorm.DB, tasks ...*mediagate.Task) error {
	ids := []string{}
	for _, t := range tasks {
		ids = append(ids, t.SourceIDs()...)
	}
	if len(ids) == 0 {
		return nil
	}
	list, err := jsonText(ids)
	if err != nil {
		return err
	}
	var rows []struct {
		ID     string
		Status mediagate.Status
	}
	query := "SELECT id, status FROM tasks WHERE erased_at IS NULL AND id IN " + s.inList()
	if err := read(db, &rows, query, list); err != nil {
		return err
	}
	states := make(map[string]mediagate.Status, len(rows))
	for _, row := range rows {
		states[row.ID] = row.Status
	}
	for _, t := range tasks {
		for i := range t.Sources {
			t.Sources[i].Status = states[t.Sources[i].TaskID]
		}
	}
	return nil
}

// waitersOf returns wakes, due now, for the open tasks that wait for a task which has just ended.
//
// Open tasks that already have all their sources are among them; an early wake does them no harm.
func waitersOf(tx *gorm.DB, changed task.Changed) (wakes []mediagate.Wake, err error) {
	var rows []struct{ ID, AccountID string }
	err = read(tx, &rows, "SELECT id, account_id FROM tasks WHERE "+usesFile+" AND "+isOpen, changed.State.ID)
	for _, r := range rows {
		wakes = append(wakes, mediagate.Wake{TaskID: r.ID, AccountID: r.AccountID, At: changed.At})
	}
	return wakes, err
}
