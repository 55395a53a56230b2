package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

// Each open task has a wake. If the time of a wake is past, the task's run has not asked in time,
// or a callback's round has not recorded an attempt (D2). One scan works through those wakes. It
// starts runs that the API could not start, repeats signals that were lost, including those of
// cancels and commands, and replaces runs that no longer ask. All other signals only make things
// faster.

const (
	wakeEvery = time.Second            // the pause after a scan that finds nothing
	wakeSoon  = 100 * time.Millisecond // the pause after any other scan: starts may have been answered
	wakeBatch = 256                    // the most wakes of a batch
	wakeWide  = 16                     // how many of them are handled at the same time
	roundTry  = 3                      // from this try on a round's run is replaced, seven minutes after the first try
)

// wakeDue works through the wakes that are past their time, batch after batch.
//
// A wake stays due until it is put off, or until its run asks and renews it. So the loop ends when
// no wake is due any more, when its time is over, or when Temporal answers none of a batch.
func (a *Activities) wakeDue(ctx context.Context, t *tally) (err error) {
	// No batch begins after half of the time, so that the last one can still note its tries.
	for began := time.Now(); time.Since(began) < batchLimit/2 && ctx.Err() == nil; {
		due, failed := a.Store.DueWakes(ctx, wakeBatch)
		if failed != nil || len(due) == 0 {
			return errors.Join(err, failed)
		}
		var (
			mu          sync.Mutex
			tried, away []mediagate.Wake
		)
		err = forEach(ctx, due, wakeWide, func(w mediagate.Wake) error {
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
		// Wakes that were tried are put off for longer each time. Those that could not reach
		// Temporal are due again in seconds.
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

// putOff notes tries, even if the worker stops. A wake that has changed since it was listed, for
// example because its run has asked meanwhile, stays as it is.
func (a *Activities) putOff(ctx context.Context, wakes []mediagate.Wake, tried bool) error {
	if len(wakes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return a.Store.PutOff(ctx, wakes, tried)
}

// temporalAway is an error of a Temporal that could not be asked. It does not count as a try.
type temporalAway struct{ error }

// Unwrap returns the error.
func (e temporalAway) Unwrap() error { return e.error }

// unlessAnswered returns nil if Temporal has answered, and otherwise a temporalAway. KindConflict
// is an answer: a run was started before, or takes no more signals.
func unlessAnswered(err error) error {
	if err == nil || mediagate.Is(err, mediagate.KindConflict) {
		return nil
	}
	return temporalAway{err}
}

// wakeOne starts, signals or replaces the run of one wake (D2).
//
// The first try starts a run that has never asked. It signals a run that has asked, or that was
// started before, since the first step of that run may take long. If there is no run to signal,
// and at each later try, wakeOne first finds out what the newest run is doing. It leaves a run
// alone if the run works, or if its workflow tasks have only begun to fail. It signals an idle run
// once more. It replaces any other run. If the run of an open task has completed, it saw an end
// that the database has lost (D1).
//
// For example, the start of a run is lost at 12:00:00. The scan starts the run at 12:00:05, after
// the lease of a new task. If a run was started all the same, Temporal refuses, and the scan
// signals that run. If the run still has not asked a minute later, the second try asks Temporal
// what the run is doing.
func (a *Activities) wakeOne(ctx context.Context, w mediagate.Wake, t *tally) error {
	if w.Kind == mediagate.WakeRound {
		return a.wakeRound(ctx, w, t)
	}
	switch {
	// From the second try on, ask Temporal first.
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
			return unlessAnswered(err)
		}
		fallthrough // a run is under way, or was started before
	default:
		if runs, err := a.signal(ctx, w, t); runs || err != nil {
			return err
		}
	}
	state, err := a.Engine.DescribeRun(ctx, w.TaskID)
	if err != nil {
		return unlessAnswered(err)
	}
	switch {
	// A busy run asks by itself. A failing one asks once a worker can replay it, perhaps a worker
	// of the next release.
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

// signal signals the wake's run to ask. runs is true if there is a run, even one that takes no
// more signals.
func (a *Activities) signal(ctx context.Context, w mediagate.Wake, t *tally) (runs bool, err error) {
	runs, err = a.Engine.Wake(ctx, w.TaskID)
	if err == nil && runs {
		t.add(func(r *WakeReport) { r.Signalled++ })
	}
	return runs || err != nil, unlessAnswered(err)
}

// These are the reasons to start a new run if none is under way.
const (
	runGone      = "no run of this task is under way"
	runCompleted = "the run of this task has completed, and the task is open"
)

// replace starts a new run in place of one that is of no use. Operators read why in Temporal. The
// new run may begin while an activity of the old one still ends. That is no harm, since both go
// through the same row.
func (a *Activities) replace(ctx context.Context, w mediagate.Wake, t *tally, why string) error {
	row, err := a.toStart(ctx, w)
	if err != nil {
		return err
	}
	if why == runCompleted && !row.Status.Terminal() { // the task may have ended since the wake was read
		a.evidence(ctx, mediagate.EvidenceCompleted, row.ID)
	}
	reason := fmt.Sprintf("mediagate: %s, since %s. "+
		"A new run goes on from the database, nothing is submitted again. Try %d",
		why, w.At.UTC().Format(time.RFC3339), w.Tries)
	if err := a.Engine.Replace(ctx, row, reason); err != nil {
		return unlessAnswered(err)
	}
	t.add(func(r *WakeReport) { r.Replaced++ })
	if why != runGone && why != runCompleted {
		a.Logger.WarnContext(ctx, "replaced a run", "task", row.ID, "why", why, "tries", w.Tries)
	}
	return nil
}

// toStart returns the task whose run is to be started. If its row cannot be read, toStart returns
// only the ids, which are all that a run needs: the run parks such a task, and ends it in time.
// Other errors, such as a database that is away, are returned.
func (a *Activities) toStart(ctx context.Context, w mediagate.Wake) (mediagate.Task, error) {
	row, err := a.Store.TaskByID(ctx, w.TaskID)
	if mediagate.Is(err, mediagate.KindInternal) {
		a.Logger.ErrorContext(ctx, "the run of a task that cannot be read is started", "task", w.TaskID, "error", err)
		return mediagate.Task{ID: w.TaskID, AccountID: w.AccountID}, nil
	}
	return row, err
}

// wakeRound starts the run of a callback's round, or replaces one that makes no progress. A round
// that was started before and still runs is left to itself by the first tries.
func (a *Activities) wakeRound(ctx context.Context, w mediagate.Wake, t *tally) error {
	round := mediagate.WebhookRound{
		TaskID: w.TaskID, AccountID: w.AccountID, Round: w.Round, TraceParent: w.TraceParent,
	}
	t.add(func(r *WakeReport) { r.Rounds++ })
	// A round may wait for permits for minutes, so the first tries replace nothing.
	if w.Tries < roundTry {
		return unlessAnswered(a.Engine.EnsureRound(ctx, round))
	}
	replaced, err := a.Engine.ReplaceRound(ctx, round,
		"mediagate: the callback should be delivered or abandoned by now. "+
			"A new run goes on with the attempt that is due")
	if replaced {
		t.add(func(r *WakeReport) { r.Replaced++ })
		a.Logger.WarnContext(ctx, "replaced the run of a callback that hung", "task", w.TaskID, "round", w.Round)
	}
	return unlessAnswered(err)
}

// WakeReport counts what the wake scan has done since the last report.
type WakeReport struct {
	Started   int    `json:"started"`
	Signalled int    `json:"signalled"`
	Replaced  int    `json:"replaced"` // runs that were terminated or gone, and were started anew
	Rounds    int    `json:"rounds"`   // of callbacks
	LastError string `json:"last_error,omitempty"`
}

// tally is the report that is being made. All goroutines of the scan add to it.
type tally struct {
	mu     sync.Mutex
	report WakeReport
}

// add changes the report, under the lock.
func (t *tally) add(what func(*WakeReport)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what(&t.report)
}

// take returns the report, and begins the next one.
func (t *tally) take() WakeReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	report := t.report
	t.report = WakeReport{}
	return report
}
