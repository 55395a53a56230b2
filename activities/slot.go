package activities

import (
	"context"
	"slices"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/task"
)

// openAttempt stores the intent of a new attempt, at the first channel that takes jobs, has a
// slot, and has a permit for a call. Going on to the next channel costs no attempt.
//
// If no channel will do:
//
//   - If a channel takes jobs and has no free permit, the attempt waits behind the calls of that
//     channel.
//   - If a channel is full, or any channel has a concurrency, the task is queued for all of them
//     (D7), including those that take no jobs now. The first channel that has a free slot grants
//     it. A parked task is no longer parked if one of the channels is full and has no trouble. If
//     the breakers of all channels are open, the task stays parked while it is queued, so that its
//     parking still has an end (D12). If all refuse our account, the task parks while it is
//     queued: the pauses of the breakers grow, and a person has to mend the cause.
//   - If no channel takes jobs, and none has a concurrency, the error says why (shutOut).
//   - If the vendors of all candidates no longer have their models, the task fails.
//
// The task refuses the intent if it has ended, is cancelled, is late, or has a newer attempt.
// Then nothing is sent, and the next step says what follows.
//
// The order at each channel is: permit, breaker, slot. The permit belongs to this process alone.
// The slot is taken last, in the transaction that stores the intent. So a crash before that leaves
// at most a claimed probe, whose lease ends.
func (a *Activities) openAttempt(ctx context.Context, t mediagate.Task, n int, has permit) (prepared, error) {
	if err := a.confirmAccount(ctx, t, n); err != nil {
		return prepared{}, err
	}
	waiting, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	toLook, err := a.Limits.Lookups.Acquire(waiting, t.AccountID, 1)
	if err != nil {
		return prepared{}, mediagate.Errorf(mediagate.KindUnavailable, "the database is busy")
	}
	defer toLook.Release()
	id, candidates, err := a.chooseChannels(ctx, t, n)
	if err != nil {
		return prepared{}, err
	}
	switch {
	case len(candidates) > 0:
	case a.modelRetired(t):
		return prepared{events: []task.Event{task.ModelRetired{N: n}}}, nil
	default:
		return prepared{}, &mediagate.Error{
			Kind: mediagate.KindUnreached, Code: string(mediagate.ParkChannelMissing),
			Message: "no channel of this worker serves the task",
		}
	}
	// full says that some channel has no free slot. onlyFull says that such a channel has no
	// other trouble. behind is the first channel that takes jobs and has no free permit.
	full, onlyFull, behind := false, false, ""
	for _, c := range candidates {
		permit, ok := a.permit(c.Name, t.AccountID, has)
		if !ok {
			if behind == "" && a.Breakers.TakesJobs(c.Name) {
				behind = c.Name
			}
			continue
		}
		// The breaker comes after the permit: a probe must not wait for a permit.
		pass, ok, err := a.enterBreaker(ctx, t, n, c)
		if err != nil || !ok {
			permit.Release()
		}
		if err != nil {
			return prepared{}, err
		}
		if !ok {
			continue
		}
		row, err := a.openAt(ctx, t, n, id, c)
		if err == nil {
			return prepared{row: row, channel: c.Channel, pass: pass, permit: permit, send: true}, nil
		}
		pass.Unused(ctx)
		permit.Release()
		switch {
		case mediagate.Is(err, mediagate.KindCapacity):
			full, onlyFull = true, onlyFull || !a.Breakers.State(c.Name).Open
		// The task refuses the intent.
		case mediagate.Is(err, mediagate.KindConflict):
			return prepared{}, nil
		default:
			return prepared{}, err
		}
	}
	if behind != "" {
		return prepared{behind: behind}, nil
	}
	return a.queueFor(n, candidates, full, onlyFull)
}

// queueFor queues the task for a slot of the candidates, none of which took the attempt. If none
// of them has a concurrency, there are no slots to queue for, and the error says why no channel
// took the task.
func (a *Activities) queueFor(n int, candidates []channel.Candidate, full, onlyFull bool) (prepared, error) {
	bounded := func(c channel.Candidate) bool { return c.Concurrency > 0 }
	if !full && !slices.ContainsFunc(candidates, bounded) {
		return prepared{}, a.shutOut(candidates)
	}
	names := make([]string, len(candidates))
	for i, c := range candidates {
		names[i] = c.Name
	}
	queued := task.Queued{N: n, Channels: names, OnlyFull: onlyFull}
	if reason := a.shutOutReason(candidates); !full && reason != mediagate.ParkProviderAway {
		queued.Refused = reason
	}
	return prepared{events: []task.Event{queued}}, nil
}

// openAt stores the intent at the channel, if the channel has a slot. It returns KindCapacity if
// the channel has none, and KindConflict if the task refuses the intent.
func (a *Activities) openAt(
	ctx context.Context, t mediagate.Task, n int, externalID string, c channel.Candidate,
) (task.Attempt, error) {
	now := a.Now()
	route, canStop := a.routeAt(t, n, c)
	row := task.Attempt{TaskID: t.ID, State: mediagate.AttemptIntent, Sending: task.Sending{
		N: n, Channel: c.Name, Provider: c.Provider, Fingerprint: c.Fingerprint, Route: route, CanStop: canStop,
		ExternalID: externalID, SendBefore: a.sendBefore(t, route, now), Sends: 1,
	}}
	row.CallEnds = a.callEnds(t, route, row.SendBefore, now)
	_, err := a.Store.OpenIntent(ctx, t.ID, c.Slots(), task.IntentStored{Sending: row.Sending, Former: c.Former})
	return row, err
}

// routeAt returns the route that attempt n takes at the channel, with what the vendor can do.
func (a *Activities) routeAt(t mediagate.Task, n int, c channel.Candidate) (route mediagate.Route, canStop bool) {
	route = c.Route
	_, route.Find = c.Vendor.(providers.Finder)
	route.Find = route.Find || t.Modal.Resumes(n) // it is asked by the id of the job that waits
	_, canStop = c.Vendor.(providers.Canceller)
	return route, canStop
}
