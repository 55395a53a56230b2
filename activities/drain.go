package activities

import (
	"context"
	"errors"
	"sync"

	"github.com/mediagate/mediagate"
)

// beginWide is how many starts are under way at once: with as many, a drain comes to
// over four fifths of the rate of bare starts.
const beginWide = 16

// beginUnseen starts the tasks of which no run was ever seen, however many an
// outage of Temporal has left, as fast as it takes them.
func (a *Activities) beginUnseen(ctx context.Context, t *tally) error {
	return inTurns(ctx, func(ctx context.Context, after string) ([]mediagate.Task, string, error) {
		return a.Store.UnseenTasks(ctx, unseenAfter, after, passBatch)
	}, func(ctx context.Context, tasks []mediagate.Task) (bool, error) {
		return a.marked(ctx, tasks, beginWide, func(ctx context.Context, task mediagate.Task) error {
			if len(task.Plan.Routes) == 0 { // its plan cannot be read: a run would not know whose queue its calls go to
				return mediagate.Errorf(mediagate.KindInternal, "%s has no route", task.ID)
			}
			begun, err := a.Engine.Begin(ctx, task)
			if begun {
				t.add(func(r *PassReport) { r.Started++ })
			}
			return err
		})
	})
}

// inTurns works on what accounts have, batch after batch, until a round of turns
// finds nothing that the one before has not found, or nothing succeeds any more:
// one task that fails, each time, keeps none of those behind it. One account that has
// many tasks delays those of another by a batch for each page of accounts. The
// error is the first one.
func inTurns(
	ctx context.Context, find func(ctx context.Context, after string) (tasks []mediagate.Task, next string, err error),
	work func(ctx context.Context, tasks []mediagate.Task) (some bool, err error),
) error {
	var failed error
	before, found, fresh := map[string]bool{}, map[string]bool{}, false
	for after := ""; ; {
		some := true
		err := limited(func(ctx context.Context) error {
			tasks, next, err := find(ctx, after)
			after = next
			for _, task := range tasks {
				found[task.ID] = true
				fresh = fresh || !before[task.ID]
			}
			if err != nil {
				some = false
				return err
			}
			if len(tasks) > 0 {
				some, err = work(ctx, tasks)
			}
			return err
		})(ctx)
		if failed == nil {
			failed = err
		}
		if !some || ctx.Err() != nil {
			return failed
		}
		if after != "" {
			continue
		}
		if !fresh { // what comes again is in somebody else's hands at this moment
			return failed
		}
		before, found, fresh = found, map[string]bool{}, false
	}
}

// marked does something about the run of each task, and notes which tasks were
// looked at: those that it did not come to come up again at once. It reports
// whether that went well with some of them, and could be noted.
func (a *Activities) marked(
	ctx context.Context, tasks []mediagate.Task, wide int, do func(context.Context, mediagate.Task) error,
) (some bool, err error) {
	var (
		mu             sync.Mutex
		driven, failed []string
	)
	err = each(ctx, tasks, wide, func(task mediagate.Task) error {
		err := mediagate.Guarded(func() error { return do(ctx, task) })
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = append(failed, task.ID)
		} else {
			driven = append(driven, task.ID)
		}
		return err
	})
	unmarked := errors.Join(a.mark(ctx, failed, false), a.mark(ctx, driven, true))
	return unmarked == nil && len(driven) > 0, errors.Join(err, unmarked)
}

// mark notes looks also where the time of the batch is up, or the worker stops.
func (a *Activities) mark(ctx context.Context, ids []string, seen bool) error {
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return a.Store.MarkChecked(ctx, ids, seen)
}
