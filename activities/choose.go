package activities

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
)

// enter asks the channel's breaker to let a job through.
func (a *Activities) enter(ctx context.Context, c channel.Candidate) (channel.Entry, bool, error) {
	return a.Breakers.Enter(ctx, c.Name, a.operation(c.Route).Submit)
}

// shutOut is what keeps a task from any attempt. Its code is the reason to park
// for: what is wrong with all of the channels, if that is one thing.
func (a *Activities) shutOut(candidates []channel.Candidate) error {
	reason := mediagate.ParkProviderAway
	for i, c := range candidates {
		why := cmp.Or(a.Breakers.State(c.Name).Reason, mediagate.ParkProviderAway)
		if i == 0 {
			reason = why
		} else if why != reason {
			reason = mediagate.ParkProviderAway
		}
	}
	return &mediagate.Error{Kind: mediagate.KindShutOut, Code: string(reason), Message: "no channel for the task takes new jobs"}
}

// following decides by the attempt before it under which name attempt n is made
// at the vendor, and which channels it tries, in order.
//
// The first name is the task id itself; only a proven rejection leads to
// another. So it leads to another channel as well: those come first that have
// refused the task least often, so that each has its turn. What follows an
// attempt that was sent more than once keeps its name and its channel: that the
// last sending made no job proves nothing of the first, which only that vendor
// would refuse to double, and under that name only (D4).
func (a *Activities) following(ctx context.Context, task mediagate.Task, n int) (externalID string, candidates []channel.Candidate, err error) {
	all := func() []channel.Candidate { return a.Channels.Candidates(task.Model, task.Plan.Routes, askable(task)) }
	if n == 1 {
		return task.ID, all(), nil
	}
	before, err := a.Store.Attempt(ctx, task.ID, n-1)
	if err != nil {
		return "", nil, err
	}
	if task.Modal.Resumes(n) {
		return a.resuming(ctx, task, before)
	}
	if before.State != mediagate.AttemptRejected {
		return numbered(task.ID, n), all(), nil
	}
	if sentBefore(before) {
		c, err := a.accounts().Of(ctx, before)
		return before.ExternalID, []channel.Candidate{{Channel: c, Route: before.Route}}, err
	}
	refusals, err := a.Store.Refusals(ctx, task.ID)
	if err != nil {
		return "", nil, err
	}
	candidates = all()
	slices.SortStableFunc(candidates, func(x, y channel.Candidate) int { return refusals[x.Name] - refusals[y.Name] })
	return numbered(task.ID, n), candidates, nil
}

// sentBefore reports that a job may have been made under the attempt's name by
// another sending than its last: one of its own, or of the attempt whose name it
// has kept.
func sentBefore(row mediagate.Attempt) bool {
	return row.Sends > 1 || row.ExternalID != numbered(row.TaskID, row.N)
}

func numbered(taskID string, n int) string {
	if n == 1 {
		return taskID
	}
	return fmt.Sprintf("%s-%d", taskID, n)
}

// ofTheChannel reports a refusal that says nothing of the request: another
// channel may take it.
func ofTheChannel(f *mediagate.Failure) bool {
	if f == nil {
		return false
	}
	return f.Retryable && f.Code == mediagate.CodeProviderAway || f.Code == mediagate.CodeProviderRefused || f.Code == mediagate.CodeFunds
}

// mayMove reports that the attempt after n, which the channel refused, may go to
// one that takes new jobs and has never refused this task. One that has refused
// it twice had its turn between: the others were full, and the task rests before
// it tries again.
func (a *Activities) mayMove(ctx context.Context, taskID string, n int, refusedBy string) (bool, error) {
	task, err := a.Store.TaskByID(ctx, taskID)
	if err != nil {
		return false, err
	}
	_, candidates, err := a.following(ctx, task, n+1)
	if mediagate.TroubleOf(err) != "" {
		return false, nil // the one channel that it must go to is missing
	}
	if err != nil {
		return false, err
	}
	refusals, err := a.Store.Refusals(ctx, taskID)
	if err != nil {
		return false, err
	}
	if refusals[refusedBy] > 1 {
		return false, nil
	}
	return slices.ContainsFunc(candidates, func(c channel.Candidate) bool { return refusals[c.Name] == 0 && a.Breakers.TakesJobs(c.Name) }), nil
}
