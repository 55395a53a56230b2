package activities

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mediagate/mediagate"
)

const (
	// lookAgain is the least time between two looks at the run of an open task.
	lookAgain = 60 * time.Second
	// lookRate is how many looks there are a second at most. With more open tasks
	// than lookAgain has room for, each is looked at the less often.
	lookRate = 200
)

// looks finds open tasks whose run is gone, since somebody terminated or deleted
// it, or Temporal lost it. Lists of runs lag behind and prove nothing: each task's
// is asked for (D2). What else a run's absence hides is found sooner: an outcome
// that cannot be signalled, a cancel, a deadline.
type looks struct {
	*Activities
	counted *tally
	pace    *rate.Limiter
	after   mediagate.Look // where the round stands
}

func newLooks(a *Activities, t *tally) *looks {
	return &looks{Activities: a, counted: t, pace: rate.NewLimiter(lookRate, lookRate)}
}

// round looks at all open tasks that are due, from where the round before failed.
func (l *looks) round(ctx context.Context) error {
	for {
		var due []mediagate.Look
		err := limited(func(ctx context.Context) (err error) {
			if due, err = l.Store.OpenTasks(ctx, l.Now().Add(-lookAgain), l.after, passBatch); err != nil {
				return err
			}
			return l.look(ctx, due)
		})(ctx)
		if len(due) == passBatch {
			l.after = due[passBatch-1]
		} else if err == nil {
			l.after = mediagate.Look{}
		}
		if err != nil || l.after.TaskID == "" || ctx.Err() != nil {
			return err
		}
	}
}

// look looks for the runs of a batch, and notes of which it did.
func (l *looks) look(ctx context.Context, due []mediagate.Look) error {
	var (
		mu     sync.Mutex
		looked []string
	)
	err := each(ctx, due, reconcileWide, func(look mediagate.Look) error {
		if err := l.pace.Wait(ctx); err != nil {
			return err
		}
		longest := l.Now().Sub(look.CheckedAt)
		started := false
		err := mediagate.Guarded(func() error {
			runs, err := l.Engine.Runs(ctx, look.TaskID)
			if err == nil && !runs {
				started, err = l.ensure(ctx, look.TaskID)
			}
			return err
		})
		l.counted.add(func(r *PassReport) {
			r.Looked++
			r.LookSeconds = max(r.LookSeconds, int(longest.Seconds()))
			if started {
				r.Started++
			}
		})
		mu.Lock()
		defer mu.Unlock()
		looked = append(looked, look.TaskID)
		return err
	})
	if marked := l.mark(ctx, looked, false); marked != nil {
		return marked
	}
	return err
}

// ensure starts a run of a task that has none, if it is open.
func (a *Activities) ensure(ctx context.Context, taskID string) (started bool, err error) {
	task, err := a.Store.TaskByID(ctx, taskID)
	if err != nil || task.Status.Terminal() {
		return false, err
	}
	return a.Engine.Ensure(ctx, task)
}
