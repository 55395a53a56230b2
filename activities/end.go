package activities

import (
	"context"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog/price"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/task"
)

// Settle ends the task if its end is due. One transaction writes the final status, the result, the
// ledger entry and the callback's first round. A task that has ended stays as it is (D13). If the
// end is not due any more, for example after a retry, the event EndDue changes nothing.
func (a *Activities) Settle(ctx context.Context, in StepArgs) (Answer, error) {
	failpoint.Hit(failpoint.SettleBeforeCommit)
	return a.stepDone(ctx, in, task.EndDue{})
}

// carryOut does what a change asks for outside of the database. Housekeeping sweeps what could not
// be swept here. A stop that fails is not tried again: the job keeps its slot for as long as it may
// run. The transaction is committed by now, so nothing here may fail the step: errors are only
// logged.
func (a *Activities) carryOut(ctx context.Context, changed task.Changed) {
	st, effects := &changed.State, changed.Effects
	// An entry in the ledger means that this change has ended the task.
	if effects.Entry != "" {
		failpoint.Hit(failpoint.SettleCommitted)
		if st.Modal.State == mediagate.ModalExpired {
			failpoint.Hit(failpoint.ModalExpired)
		}
		a.dropUploads(ctx, st)
	}
	// These jobs were reported when their task no longer waited for them. If the vendor stops
	// them, their slots are free.
	for _, n := range effects.Stop {
		row, err := a.Store.Attempt(ctx, st.ID, n)
		if err == nil && a.stopJob(ctx, row) {
			_, err = a.Store.Change(ctx, st.ID, task.StopProven{N: n})
		}
		if err != nil {
			a.Logger.WarnContext(ctx, "the slot of an unwanted job is kept for a while",
				"task", st.ID, "attempt", n, "error", err)
		}
	}
	for _, e := range effects.Evidence {
		a.evidence(ctx, e, st.ID)
	}
	// These jobs belong to no attempt, so no row can say whether they were stopped. The log says
	// it.
	for _, s := range effects.Stray {
		stopped := a.stopJob(ctx, task.Attempt{TaskID: st.ID, Sending: s.Sending, Ref: s.Ref})
		a.Logger.WarnContext(ctx, "a vendor has a job that no attempt of its task has",
			"task", st.ID, "channel", s.Sending.Channel, "job", s.Ref.JobID, "stopped", stopped)
	}
	if effects.Sweep && st.Status.Terminal() && hasFiles(st) {
		a.dropUnwanted(ctx, st.ID)
	}
}

// CancelJob asks the vendor to stop the attempt's job. If the vendor does not stop it, that changes
// nothing for the task. If the stop is proven, the job's slot is free at once. Otherwise the
// attempt is abandoned, and keeps its slot for as long as the job may run (D5).
func (a *Activities) CancelJob(ctx context.Context, in StepArgs) (Answer, error) {
	defer a.stopped(ctx, in.TaskID)
	defer heartbeat(ctx, noDetails, nil)()
	row, err := a.Store.Attempt(ctx, in.TaskID, in.Step.N)
	if err != nil {
		return Answer{}, a.fail(ctx, err)
	}
	if !a.stopJob(ctx, row) {
		return a.stepDone(ctx, in)
	}
	return a.stepDone(ctx, in, task.StopProven{N: row.N})
}

// stopJob asks the vendor to stop a job, and reports whether it did. It returns false for a job
// whose id we do not know, for a channel that is gone, and for a vendor that cannot stop jobs.
func (a *Activities) stopJob(ctx context.Context, row task.Attempt) (stopped bool) {
	if row.Ref.JobID == "" {
		return false
	}
	// A channel with a new key is first asked for the job, so that no job of another account is
	// stopped.
	c, err := a.accounts().ConfirmedOwner(ctx, row)
	if err != nil {
		return false
	}
	canceller, ok := c.Vendor.(providers.Canceller)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := canceller.Cancel(ctx, row.Ref); err != nil {
		a.Logger.WarnContext(ctx, "vendor job not cancelled", "task", row.TaskID, "channel", c.Name, "error", err)
		return false
	}
	return true
}

// hasFiles reports whether the bucket may have files of an attempt that the task does not show.
func hasFiles(st *task.State) bool {
	return st.Status != mediagate.StatusCompleted && slices.ContainsFunc(st.Attempts, func(a task.Attempt) bool {
		return a.Outcome != nil && a.Outcome.Succeeded || a.Results != nil
	})
}

// sweepTimeout is short, since housekeeping sweeps the rest at its time.
const sweepTimeout = 15 * time.Second

// dropUnwanted removes files of a task that the task does not show.
func (a *Activities) dropUnwanted(ctx context.Context, taskID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepTimeout)
	defer cancel()
	// The row has a time for a sweep as well, and housekeeping removes the rest then.
	if err := a.sweepTask(ctx, taskID); err != nil {
		a.Logger.WarnContext(ctx, "files of an ended task not removed", "task", taskID, "error", err)
	}
}

// dropTimeout is short, since retention removes the rest by its age.
const dropTimeout = 2 * time.Second

// dropUploads removes the media that came within the request of a task that has ended. No vendor
// is sent a link to them any more.
func (a *Activities) dropUploads(ctx context.Context, st *task.State) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
	defer cancel()
	// After the first failure the rest is left to retention as well: the bucket is probably away.
	for field, key := range st.Plan.Uploads {
		if err := a.Sweeper.Delete(ctx, key); err != nil {
			a.Logger.WarnContext(ctx, "media of a request not removed", "task", st.ID, "field", field, "error", err)
			return
		}
	}
}

// settlePatience is how long a copy keeps its permit while it ends its task. The end itself takes
// a small part of that time. The wait for the account's row may take much longer (D18).
const settlePatience = 2 * time.Second

// storeMirrored stores the files that were copied for an attempt, which ends the task. If the
// account's row is locked for long, it stores only the files. The end is then a step of its own,
// which is tried again without limit.
//
// For example, 200 tasks of one account end at the same time, and each end waits for the row of
// that account. After two seconds the copy stores its files without the end, and its permit is free
// for another copy.
func (f *files) storeMirrored(ctx context.Context, results []mediagate.Result) error {
	f.warnOfUnknownLengths(ctx, results)
	failpoint.Hit(failpoint.SettleBeforeCommit)
	// The copy holds a permit that other copies wait for, so the end must not take long here.
	patient, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	_, err := f.change(patient, f.task.ID, task.Mirrored{N: f.row.N, Results: results})
	if err == nil || ctx.Err() != nil || mediagate.Is(err, mediagate.KindNotFound) {
		return err
	}
	f.warn(ctx, "a task's end is left to a step of its own", "error", err)
	_, err = f.change(ctx, f.task.ID, task.Mirrored{N: f.row.N, Results: results, Keep: true})
	return err
}

// warnOfUnknownLengths logs that seconds are charged although no file has a known length. The
// client pays what was held, and operators learn of it.
func (f *files) warnOfUnknownLengths(ctx context.Context, results []mediagate.Result) {
	delivered := price.DeliveredBy(*f.row.Outcome, results)
	perSecond := slices.ContainsFunc(f.task.Charges, func(c mediagate.Charge) bool {
		return c.Unit == mediagate.UnitSecond
	})
	if perSecond && delivered.Seconds == 0 && slices.Contains(delivered.Lengths, 0) {
		f.warn(ctx, "the length of a result cannot be told: the seconds that were held are charged")
	}
}
