package storage

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

// isOpen is written as the partial indexes are, so that the planner takes them.
const isOpen = "status IN ('pending', 'processing')"

// sweepAfter is how long after a task's end files may still be copied for it:
// a copy that began before the end, and whatever delays its last write.
const sweepAfter = 2 * mediagate.CopyLimit

// OldestOpen is when the oldest of the open tasks was created; zero where none
// is open.
func (s *Store) OldestOpen(ctx context.Context) (time.Time, error) {
	var created stamp
	query := "SELECT MIN(created_at) FROM tasks WHERE " + isOpen
	if err := s.on(ctx).Raw(query).Row().Scan(&created); err != nil {
		return time.Time{}, dbError(err, "find the oldest open task")
	}
	return created.Time, nil
}

// DueSweeps lists ended tasks for which files may be stored that they do not show:
// copied for an end that did not come, once no copy can be under way any more
// (D13), or erased.
func (s *Store) DueSweeps(ctx context.Context, limit int) ([]mediagate.Sweep, error) {
	now := s.clock()
	var rows []struct {
		ID      string
		SweepAt stamp
		EndedAt stamp
	}
	err := read(s.on(ctx), &rows, "SELECT id, sweep_at, ended_at FROM tasks WHERE sweep_at IS NOT NULL AND sweep_at < ? ORDER BY sweep_at LIMIT ?", at(now), limit)
	if err != nil {
		return nil, dbError(err, "list due sweeps")
	}
	due := make([]mediagate.Sweep, len(rows))
	for i, r := range rows {
		due[i] = mediagate.Sweep{TaskID: r.ID, DueAt: r.SweepAt.Time}
		if last := r.EndedAt.Add(sweepAfter); now.Before(last) {
			due[i].Again = last
		}
	}
	return due, nil
}

// SetSweep notes when a task whose sweep was due is to be swept again; the zero
// time says that nothing is left. It changes nothing where another sweep has
// become due meanwhile.
func (s *Store) SetSweep(ctx context.Context, due mediagate.Sweep, next time.Time) error {
	_, err := exec(s.on(ctx), "UPDATE tasks SET sweep_at = ? WHERE id = ? AND sweep_at = ?", at(next), due.TaskID, at(due.DueAt))
	return dbError(err, "note sweep")
}
