package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

// Each open task has a wake. If its time is past, the task's run has not asked in time, or
// a callback's round has not recorded an attempt (D2). One scan works off those wakes. It
// starts what the API could not start, repeats lost signals, also those of cancels and
// commands, and replaces runs that do not ask any more. Signals elsewhere are only faster.

const (
	wakeEvery = time.Second            // between a scan that finds nothing and the next
	wakeSoon  = 100 * time.Millisecond // after one that finds something: starts may have been answered
	wakeBatch = 256                    // the most wakes of a batch
	wakeWide  = 16                     // of them at the same time
	roundTry  = 3                      // from which try on a round's run is replaced: some ten minutes after its time
)

// wakeDue works off the wakes that are past their time, batch after batch.
func (a *Activities) wakeDue(ctx context.Context, t *tally) (err error) {
	for began := time.Now(); time.Since(began) < batchLimit/2 && ctx.Err() == nil; {
		due, failed := a.Store.DueWakes(ctx, wakeBatch)
		if failed != nil || len(due) == 0 {
			return errors.Join(err, failed)
		}
		var (
			mu          sync.Mutex
			tried, away []mediagate.Wake
		)
		err = each(ctx, due, wakeWide, func(w mediagate.Wake) error {
			err := mediagate.Guarded(func() error { return a.wakeOne(ctx, w, t) })
			mu.Lock()
			defer mu.Unlock()
			_, unreached := errors.AsType[temporalAway](err)
			if unreached || mediagate.Is(err, mediagate.KindUnavailable) {
				away = append(away, w)
			} else {
				tried = append(tried, w)
			}
			return err
		})
		noted := errors.Join(a.putOff(ctx, tried, true), a.putOff(ctx, away, false))
		if noted != nil || len(tried) == 0 {
			return errors.Join(noted, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wakeSoon):
		}
	}
	return err
}

// putOff notes tries also where the worker stops.
func (a *Activities) putOff(ctx context.Context, wakes []mediagate.Wake, tried bool) error {
	if len(wakes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return a.Store.PutOff(ctx, wakes, tried)
}

// temporalAway is an error of a Temporal that could not be asked: that is no try.
type temporalAway struct{ error }

// Unwrap is the error.
func (e temporalAway) Unwrap() error { return e.error }

// answered returns nil if Temporal has answered. That a run was started before, or takes
// no signal any more, is an answer.
func answered(err error) error {
	if err == nil || mediagate.Is(err, mediagate.KindConflict) {
		return nil
	}
	return temporalAway{err}
}

// wakeOne starts, signals or replaces the run of one wake (D2). The first try starts a
// run that has never asked, and signals one that has, or that was started before: its first
// step may take long. If that one takes no signal, and at
// each later try, it is found out first what the run is at: one that works, or fails and is
// retried, is left alone; an idle one is signalled once more; any other is replaced. One that
// has completed saw an end that the database has lost (D1).
func (a *Activities) wakeOne(ctx context.Context, w mediagate.Wake, t *tally) error {
	if w.Kind == mediagate.WakeRound {
		return a.wakeRound(ctx, w, t)
	}
	switch {
	case w.Tries > 0:
	case !w.Asked:
		row, err := a.toStart(ctx, w)
		if err != nil {
			return err
		}
		err = a.Engine.Start(ctx, row)
		if err == nil {
			t.add(func(r *WakeReport) { r.Started++ })
			return nil
		}
		if !mediagate.Is(err, mediagate.KindConflict) {
			return answered(err)
		}
		fallthrough // a run is under way, or was
	default:
		if runs, err := a.signal(ctx, w, t); runs || err != nil {
			return err
		}
	}
	state, err := a.Engine.Look(ctx, w.TaskID)
	if err != nil {
		return answered(err)
	}
	switch {
	case state == RunBusy, state == RunFailing:
		return nil
	case state == RunIdle && w.Tries <= 1:
		_, err := a.signal(ctx, w, t)
		return err
	case state == RunNone:
		return a.replace(ctx, w, t, runGone)
	case state == RunCompleted:
		return a.replace(ctx, w, t, runCompleted)
	case state == RunBroken:
		return a.replace(ctx, w, t, "the workflow tasks of this run fail")
	default:
		return a.replace(ctx, w, t, "this run does not ask for its next step")
	}
}

// signal asks the wake's run to ask. It reports whether there is one, or cannot be told any
// more.
func (a *Activities) signal(ctx context.Context, w mediagate.Wake, t *tally) (runs bool, err error) {
	runs, err = a.Engine.Wake(ctx, w.TaskID)
	if err == nil && runs {
		t.add(func(r *WakeReport) { r.Signalled++ })
	}
	return runs || err != nil, answered(err)
}

// Why a run is started anew where none is under way.
const (
	runGone      = "no run of this task is under way"
	runCompleted = "the run of this task has completed, and the task is open"
)

// replace starts a new run, in place of one that is of no use, for the reason why.
func (a *Activities) replace(ctx context.Context, w mediagate.Wake, t *tally, why string) error {
	row, err := a.toStart(ctx, w)
	if err != nil {
		return err
	}
	if why == runCompleted && !row.Status.Terminal() { // it may have ended since the wake was read
		a.evidence(ctx, mediagate.EvidenceCompleted, row.ID)
	}
	reason := fmt.Sprintf("mediagate: %s, since %s. "+
		"A new run goes on from the database, nothing is submitted again. Try %d",
		why, w.At.UTC().Format(time.RFC3339), w.Tries)
	if err := a.Engine.Replace(ctx, row, reason); err != nil {
		return answered(err)
	}
	t.add(func(r *WakeReport) { r.Replaced++ })
	if why != runGone && why != runCompleted {
		a.Logger.WarnContext(ctx, "replaced a run", "task", row.ID, "why", why, "tries", w.Tries)
	}
	return nil
}

// toStart is the task whose run is to be started. The run needs no more than its id: that
// of a task whose row cannot be read parks and ends it.
func (a *Activities) toStart(ctx context.Context, w mediagate.Wake) (mediagate.Task, error) {
	row, err := a.Store.TaskByID(ctx, w.TaskID)
	if mediagate.Is(err, mediagate.KindInternal) {
		a.Logger.ErrorContext(ctx, "the run of a task that cannot be read is started", "task", w.TaskID, "error", err)
		return mediagate.Task{ID: w.TaskID, AccountID: w.AccountID}, nil
	}
	return row, err
}

// wakeRound starts the run of a callback's round, and replaces one that gets nowhere.
func (a *Activities) wakeRound(ctx context.Context, w mediagate.Wake, t *tally) error {
	round := mediagate.WebhookRound{
		TaskID: w.TaskID, AccountID: w.AccountID, Round: w.Round, TraceParent: w.TraceParent,
	}
	t.add(func(r *WakeReport) { r.Rounds++ })
	if w.Tries < roundTry {
		return answered(a.Engine.EnsureRound(ctx, round))
	}
	replaced, err := a.Engine.ReplaceRound(ctx, round,
		"mediagate: the callback should be delivered or given up by now. "+
			"A new run goes on with the attempt that is due")
	if replaced {
		t.add(func(r *WakeReport) { r.Replaced++ })
		a.Logger.WarnContext(ctx, "replaced the run of a callback that hung", "task", w.TaskID, "round", w.Round)
	}
	return answered(err)
}

// WakeReport counts what the wake scan did since the report before.
type WakeReport struct {
	Started   int    `json:"started"`
	Signalled int    `json:"signalled"`
	Replaced  int    `json:"replaced"` // runs that were terminated, or gone, and are started anew
	Rounds    int    `json:"rounds"`   // of callbacks
	LastError string `json:"last_error,omitempty"`
}

// tally is the report that is being made.
type tally struct {
	mu     sync.Mutex
	report WakeReport
}

func (t *tally) add(what func(*WakeReport)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what(&t.report)
}

// take begins the next report.
func (t *tally) take() WakeReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	report := t.report
	t.report = WakeReport{}
	return report
}
