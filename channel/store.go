package channel

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/task"
)

// changeWidth is how many tasks of a batch are changed at the same time, and thus how many database
// connections a batch uses.
const changeWidth = 16

// store stores results as they come, in batches. If a result could not be stored, its row is due
// again after the lease. It returns the last error once results is closed and empty. An error does
// not stop it, since later batches hold other tasks.
func (p *Poller) store(ctx context.Context, claim string, results <-chan mediagate.PollResult) (failed error) {
	for {
		batch := collect(results)
		if len(batch) == 0 {
			return failed
		}
		if err := p.storeBatch(ctx, claim, batch); err != nil {
			failed = err
		}
	}
}

// storeBatch stores a batch: quiet answers in one statement, and all others as events of their
// tasks. Most polls learn nothing new, and cost a write to the awaits table only.
func (p *Poller) storeBatch(ctx context.Context, claim string, batch []mediagate.PollResult) error {
	left, err := p.storePolls(ctx, claim, batch)
	if err != nil {
		return err
	}
	if woken := p.applyResults(ctx, claim, left); len(woken) > 0 {
		// Signals and copies take time. The next batch does not wait for them.
		p.batches.Go(func() { p.Workflows.StepsChanged(ctx, p.name, woken) })
	}
	return nil
}

// storePolls stores quiet answers, and returns the results that are left. It drops the results
// whose claim was lost meanwhile, except ends (D8).
func (p *Poller) storePolls(
	ctx context.Context, claim string, batch []mediagate.PollResult,
) (left []mediagate.PollResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p.steps.Add(1)
	return p.Store.StorePolls(ctx, p.name, claim, batch)
}

// applyResults applies each result to its task. It returns the changes that gave a task another next
// step. It logs each result that could not be stored; the row of such a result is due again after the
// lease.
func (p *Poller) applyResults(ctx context.Context, claim string, results []mediagate.PollResult) (woken []StepChange) {
	changes := make([]*StepChange, len(results))
	// Each change is a transaction of its own. Several run at the same time, since a transaction
	// spends most of its time waiting for the database.
	var group errgroup.Group
	group.SetLimit(changeWidth)
	for i, r := range results {
		group.Go(func() error {
			change, err := p.applyResult(ctx, claim, r)
			switch {
			case err == nil:
				changes[i] = &change
			// KindNotFound means that the task was deleted, so nothing is left to store.
			case !mediagate.Is(err, mediagate.KindNotFound):
				p.log.WarnContext(ctx, "the answer to a poll was not stored",
					"task", r.TaskID, "attempt", r.N, "error", err)
			}
			return nil
		})
	}
	_ = group.Wait() // errors are logged above
	// over and waits say which kinds of changes were stored. Each kind has a failpoint, which lets
	// tests kill the process right after such a change.
	var over, waits bool
	for i, r := range results {
		if changes[i] == nil {
			continue
		}
		wake := changes[i].Changed.Effects.Wake
		if wake {
			woken = append(woken, *changes[i])
		}
		over = over || r.Outcome != nil || r.Trouble != ""
		waits = waits || r.Waiting && wake
	}
	if waits {
		failpoint.Hit(failpoint.ModalBegun)
	}
	if over {
		failpoint.Hit(failpoint.OutcomeStored)
	}
	// An end frees the job's slot, and so does the wait for modal parameters. A queued task may get
	// it now.
	if over || waits {
		p.slotsFreed()
	}
	return woken
}

// applyResult applies a result to its task. A panic is an error of this row alone (D8).
//
// If the job has succeeded, applyResult first tries to get room for a copy of the task's files. The
// event says whether it got room: if the poller copies the files, the change sets a later wake for
// the run (D2). If the files need no copy after all, applyResult gives the room back.
func (p *Poller) applyResult(
	ctx context.Context, claim string, r mediagate.PollResult,
) (change StepChange, err error) {
	change.N = r.N
	if r.Outcome != nil && r.Outcome.Succeeded {
		change.Release = p.Workflows.RoomToCopy(p.channel.Provider)
	}
	err = mediagate.Guarded(func() (err error) {
		change.Changed, err = p.changeTask(ctx, r.TaskID, eventOf(r, claim, change.Release != nil))
		return err
	})
	// The files need not be copied after all, for example because the task was cancelled.
	if change.Release != nil && (err != nil || !change.Changed.Effects.Copy) {
		change.Release()
		change.Release = nil
	}
	return change, err
}

// changeTask applies an event to a task.
func (p *Poller) changeTask(ctx context.Context, taskID string, e task.Event) (task.Changed, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p.steps.Add(1)
	return p.Store.Change(ctx, taskID, e)
}

// eventOf returns the event of a result. The outcome comes first, and carries no claim: an end
// always counts, even from a poller that has lost its claim (D8). Quiet answers come here only if
// the task is parked or past its deadline.
func eventOf(r mediagate.PollResult, claim string, mayCopy bool) task.Event {
	switch {
	case r.Outcome != nil:
		return task.VendorEnded{N: r.N, Outcome: *r.Outcome, MayCopy: mayCopy}
	case r.Trouble != "":
		return task.Troubled{N: r.N, Claim: claim, Reason: r.Trouble}
	case r.Waiting:
		return task.VendorWaits{N: r.N, Claim: claim, NextAt: r.NextPollAt}
	default:
		return task.Progressed{N: r.N, Claim: claim, Percent: r.Progress, NextAt: r.NextPollAt}
	}
}
