package channel

import (
	"context"
	"sync"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/task"
)

// changeWidth is how many tasks of a batch change at once.
const changeWidth = 16

// store stores results as they come, in batches. Rows whose result could not be stored
// come up again after their lease.
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

// storeBatch stores a batch: quiet answers in one statement, all others as events of
// their tasks.
func (p *Poller) storeBatch(ctx context.Context, claim string, batch []mediagate.PollResult) error {
	left, err := p.storePolls(ctx, claim, batch)
	if err != nil {
		return err
	}
	if woken := p.change(ctx, claim, left); len(woken) > 0 {
		p.batches.Go(func() { p.Workflows.StepsChanged(ctx, p.name, woken) })
	}
	return nil
}

func (p *Poller) storePolls(
	ctx context.Context, claim string, batch []mediagate.PollResult,
) (left []mediagate.PollResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p.steps.Add(1)
	return p.Store.StorePolls(ctx, p.name, claim, batch)
}

// change applies each result to its task. It returns the changes that gave a task
// another next step. A result that could not be stored is logged: its row comes up again.
func (p *Poller) change(ctx context.Context, claim string, results []mediagate.PollResult) (woken []StepChange) {
	changes := make([]*task.Changed, len(results))
	var group sync.WaitGroup
	width := make(chan struct{}, changeWidth)
	for i, r := range results {
		width <- struct{}{}
		group.Go(func() {
			defer func() { <-width }()
			var changed task.Changed
			err := mediagate.Guarded(func() (err error) { // a panic is that of one row (D8)
				changed, err = p.changeTask(ctx, r.TaskID, event(r, claim))
				return err
			})
			switch {
			case err == nil:
				changes[i] = &changed
			case !mediagate.Is(err, mediagate.KindNotFound): // of a task that was deleted
				p.log.WarnContext(ctx, "the answer to a poll was not stored",
					"task", r.TaskID, "attempt", r.N, "error", err)
			}
		})
	}
	group.Wait()
	var over, waits bool
	for i, r := range results {
		if changes[i] == nil {
			continue
		}
		wake := changes[i].Effects.Wake
		if wake {
			woken = append(woken, StepChange{N: r.N, Changed: *changes[i]})
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
	if over || waits {
		p.free()
	}
	return woken
}

func (p *Poller) changeTask(ctx context.Context, taskID string, e task.Event) (task.Changed, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	p.steps.Add(1)
	return p.Store.Change(ctx, taskID, e)
}

// event is what a result means for its task.
func event(r mediagate.PollResult, claim string) task.Event {
	switch {
	case r.Outcome != nil:
		return task.VendorEnded{N: r.N, Outcome: *r.Outcome}
	case r.Trouble != "":
		return task.Troubled{N: r.N, Claim: claim, Reason: r.Trouble}
	case r.Waiting:
		return task.VendorWaits{N: r.N, Claim: claim, NextAt: r.NextPollAt}
	default:
		return task.Progressed{N: r.N, Claim: claim, Percent: r.Progress, NextAt: r.NextPollAt}
	}
}
