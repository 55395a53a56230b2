package storage

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// NoteRestore records that the database was restored to a time. A repeated call records nothing.
// Each call returns when the restore was first recorded (D17). Returns KindInvalid for a time in
// the future, or before the oldest open task was submitted.
//
// The command mediagate recover repeats its call until all tasks are marked. The stored time of
// the first call separates tasks of the backup from tasks that were submitted after it.
func (s *Store) NoteRestore(ctx context.Context, to time.Time) (notedAt time.Time, err error) {
	err = s.write(ctx, "note a restore", func(tx *gorm.DB) error {
		// noted reads the record of this restore, if there is one.
		noted := func() (bool, error) {
			row, err := one[struct{ NotedAt stamp }](tx, "SELECT noted_at FROM restores WHERE restored_to = ?", at(to))
			if row != nil {
				notedAt = row.NotedAt.Time
			}
			return row != nil, err
		}
		if done, err := noted(); done || err != nil {
			return err
		}
		// If no task is open, MIN still gives one row. Its time is zero, which is before any restore.
		oldest, err := one[struct{ CreatedAt stamp }](tx, "SELECT MIN(created_at) FROM tasks WHERE "+isOpen)
		notedAt = s.clock()
		switch {
		case err != nil:
			return err
		case to.After(notedAt):
			return mediagate.Invalid("restored_to", "restored_to must not be in the future")
		case oldest.CreatedAt.After(to):
			return mediagate.Invalid("restored_to", "restored_to must not be before %s, when the oldest open task "+
				"was submitted: a database of that time would not have it", oldest.CreatedAt.Format(time.RFC3339))
		}
		// The primary key is the time of the backup. Of two concurrent calls one inserts, and both
		// return its time.
		made, err := exec(tx, "INSERT INTO restores (restored_to, noted_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
			at(to), at(notedAt))
		if err != nil {
			return err
		}
		if made == 0 { // a concurrent call was first
			_, err := noted()
			return err
		}
		return s.note(ctx, tx, deed{
			action: mediagate.AuditRecover,
			object: to.UTC().Format(time.RFC3339Nano),
			after:  map[string]time.Time{"noted_at": notedAt},
		})
	})
	return notedAt, err
}

// MarkRestored marks up to limit tasks as read from a backup: open tasks that were submitted before
// the restore was recorded and are not marked yet. It returns how many. Fewer than limit means that
// all tasks are marked (D17).
//
// Each task is changed in a transaction of its own, so a call that is broken off has marked some
// tasks, and the next call goes on with the rest. The event Restored makes the task refuse intents
// until its attempts are certain (ADR 21).
func (s *Store) MarkRestored(ctx context.Context, notedAt time.Time, limit int) (marked int, err error) {
	var rows []struct{ ID string }
	// restored_at < notedAt also selects tasks that an earlier restore has marked.
	if err := read(s.on(ctx), &rows, "SELECT id FROM tasks WHERE "+isOpen+`
			AND created_at <= ? AND (restored_at IS NULL OR restored_at < ?)
		ORDER BY id LIMIT ?`, at(notedAt), at(notedAt), limit); err != nil {
		return 0, dbError(err, "list tasks of a backup")
	}
	for _, r := range rows {
		_, err := s.Change(ctx, r.ID, task.Restored{At: notedAt})
		// A task that retention has removed meanwhile needs no mark.
		if err != nil && !mediagate.Is(err, mediagate.KindNotFound) {
			return marked, err
		}
		marked++
	}
	return marked, nil
}

// UncertainTasks lists the open tasks of a backup that may lack attempts, by id. They wait for an
// operator unless a lookup finds their jobs.
//
// tail_lost says that the row may lack attempts. A task whose submission is parked as unknown may
// have a job at a vendor that the row cannot name. after is the id of the last task of the page
// before.
func (s *Store) UncertainTasks(
	ctx context.Context, after string, limit int,
) (tasks []mediagate.UncertainTask, hasMore bool, err error) {
	err = read(s.on(ctx), &tasks, `SELECT id, account_id, key_id, model, hold, status, wait_reason, created_at
		FROM tasks WHERE `+isOpen+` AND restored_at IS NOT NULL AND (tail_lost OR wait_reason = ?) AND id > ?
		ORDER BY id LIMIT ?`, mediagate.ParkSubmissionUnknown, after, limit+1)
	if err != nil {
		return nil, false, dbError(err, "list tasks of a backup")
	}
	tasks, hasMore = page(tasks, limit)
	return tasks, hasMore, nil
}

// Unknown returns the ids that no task has.
//
// The recovery asks it about the runs that Temporal has, and lists those that the backup lost
// (D17).
func (s *Store) Unknown(ctx context.Context, ids []string) (unknown []string, err error) {
	list, err := jsonText(ids)
	if err != nil {
		return nil, err
	}
	known, err := s.texts(ctx, "look for tasks", "SELECT id FROM tasks WHERE id IN "+s.inList(), list)
	if err != nil {
		return nil, err
	}
	slices.Sort(known)
	for _, id := range ids {
		if _, found := slices.BinarySearch(known, id); !found {
			unknown = append(unknown, id)
		}
	}
	return unknown, nil
}
