package workflows

import (
	"context"
	"fmt"
)

// Keeper keeps the singletons running. It remembers how it found them at the last check. Only one
// goroutine may use it. Every worker has a Keeper, and lets it check each minute (D2).
type Keeper struct {
	Client Client
	// Replaced is called for each run that was terminated, with the reason.
	Replaced func(id, reason string)

	// lastPoint is where a run without an activity was at the last check, by workflow id.
	lastPoint map[string]string
}

// Wake starts the singleton that works through due wakes, or replaces a run of it that makes no
// progress.
func (k *Keeper) Wake(ctx context.Context) error {
	return k.keep(ctx, IDWake, k.Client.ensureWake)
}

// Channel does the same for a channel's workflow.
func (k *Keeper) Channel(ctx context.Context, name string) error {
	return k.keep(ctx, IDChannel(name), func(ctx context.Context) error { return k.Client.EnsureChannel(ctx, name) })
}

// keep starts the workflow, or replaces a run that makes no progress.
func (k *Keeper) keep(ctx context.Context, id string, ensure func(context.Context) error) error {
	// A Temporal that hangs must not keep the other singletons from being checked.
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	desc, err := k.Client.describe(ctx, id)
	if err != nil {
		return err
	}
	// All workers check the same runs. Two of them may both replace a run: terminate names the run
	// that was described, and ensure starts none if one is under way.
	trouble := k.diagnose(id, desc)
	switch {
	case !running(desc):
		return ensure(ctx)
	case trouble == "":
		return nil
	}
	reason := "mediagate's worker: " + trouble + ". A new run takes over; its work is in the database"
	if err := k.Client.terminate(ctx, desc, reason); err != nil {
		return err
	}
	k.Replaced(id, reason)
	return ensure(ctx)
}

// diagnose says what is wrong with a run, or returns "" for a healthy one. A singleton has a long
// activity, or is about to start the next one. A run that has neither at two checks, and has made
// no progress between them, is blocked.
//
// For example, a run without an activity has 120 events at 12:00. If it still has 120 events at
// 12:01, and still nothing pending, it is replaced. With 126 events it has gone on meanwhile.
func (k *Keeper) diagnose(id string, desc *description) string {
	before := k.lastPoint[id]
	delete(k.lastPoint, id)
	info, attempt := desc.GetWorkflowExecutionInfo(), desc.GetPendingWorkflowTask().GetAttempt()
	switch {
	case !running(desc):
		return ""
	case attempt >= brokenAttempts:
		return fmt.Sprintf("the workflow tasks of this run fail, the last one at attempt %d", attempt)
	case len(desc.GetPendingActivities()) > 0 || desc.GetPendingWorkflowTask() != nil:
		return ""
	default:
		// Nothing is pending. A healthy run is in this state only for a moment, between two
		// workflow tasks. Remember where it is, and compare at the next check.
		point := fmt.Sprint(info.GetExecution().GetRunId(), info.GetHistoryLength())
		if before == point {
			return "this run is blocked, without an activity"
		}
		if k.lastPoint == nil {
			k.lastPoint = make(map[string]string)
		}
		k.lastPoint[id] = point
		return ""
	}
}
