package activities

import (
	"context"
	"slices"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/providers"
)

// openAttempt stores the intent of an attempt that is not there, at the first
// channel that lets a job through and has a slot for it. A channel that has not
// is passed over, for whatever is next: that costs no attempt.
//
// Where none has a slot the task is queued for all of them (D7), those too that
// take no jobs now: whichever can, grants it one. Where none takes jobs it is
// queued if any has slots to grant, and else nobody has to count them. A parked
// task goes on once a channel that is well is merely full; behind a breaker it
// stays parked while it is queued, or its patience would never end (D12).
//
// Where the calls of a channel that takes jobs are all that this process makes
// at once, and no other channel will do, the attempt waits behind them.
//
// None is stored when the task has ended, is cancelled, late or overtaken: the
// story tells.
func (a *Activities) openAttempt(ctx context.Context, task mediagate.Task, n int, has *channel.Place) (claimed, error) {
	if err := a.provenFor(ctx, task, n); err != nil {
		return claimed{}, err
	}
	look, ok := a.looking.Await(ctx, "", looksAtOnce, lookPatience)
	if !ok {
		return claimed{}, mediagate.Errorf(mediagate.KindUnavailable, "the database is busy")
	}
	defer look.Leave()
	id, candidates, err := a.following(ctx, task, n)
	if err != nil {
		return claimed{}, err
	}
	if len(candidates) == 0 {
		return claimed{}, &mediagate.Error{
			Kind: mediagate.KindUnreached, Code: string(mediagate.ParkChannelMissing),
			Message: "no channel of this worker serves the task",
		}
	}
	full, well, behind := false, false, ""
	for _, c := range candidates {
		place, ok := a.place(c.Name, has)
		if !ok {
			if behind == "" && a.Breakers.TakesJobs(c.Name) {
				behind = c.Name
			}
			continue
		}
		entry, ok, err := a.enter(ctx, c)
		if err != nil || !ok {
			place.Leave()
		}
		if err != nil {
			return claimed{}, err
		}
		if !ok {
			continue
		}
		row, opened, err := a.openAt(ctx, task, n, id, c)
		if !opened {
			entry.Unused(ctx)
			place.Leave()
		}
		switch {
		case mediagate.Is(err, mediagate.KindCapacity):
			full, well = true, well || !a.Breakers.State(c.Name).Open
			continue
		case mediagate.Is(err, mediagate.KindConflict):
			return claimed{}, nil
		}
		return claimed{row: row, channel: c.Channel, entry: entry, place: place, send: opened}, err
	}
	if behind != "" {
		return a.behind(ctx, behind)
	}
	limited := func(c channel.Candidate) bool { return c.Concurrency > 0 }
	if !full && !slices.ContainsFunc(candidates, limited) {
		return claimed{}, a.shutOut(candidates)
	}
	if forOldRun(ctx) {
		return claimed{}, errNoRoom
	}
	names := make([]string, len(candidates))
	for i, c := range candidates {
		names[i] = c.Name
	}
	if well && !task.ParkedAt.IsZero() {
		if err := a.Store.Unpark(ctx, task.ID); err != nil {
			return claimed{}, err
		}
	}
	err = a.Store.Queue(ctx, task.ID, n, names)
	if mediagate.Is(err, mediagate.KindConflict) {
		return claimed{}, nil
	}
	return claimed{}, err
}

// behind lets the attempt wait behind the channel's calls. Runs of older workers
// know nothing of that.
func (a *Activities) behind(ctx context.Context, name string) (claimed, error) {
	if forOldRun(ctx) {
		return claimed{}, errNoRoom
	}
	return claimed{behind: name}, nil
}

// openAt stores the intent at the channel, if it has a slot.
func (a *Activities) openAt(ctx context.Context, task mediagate.Task, n int, externalID string, c channel.Candidate) (mediagate.Attempt, bool, error) {
	now, route := a.Now(), c.Route
	_, route.Find = c.Vendor.(providers.Finder)
	route.Find = route.Find || task.Modal.Resumes(n) // by the id of the job that waits
	if n := partsOf(task.Params, a.operation(route).Parts); n > 1 && route.Sync {
		route.Parts = n
	}
	return a.Store.OpenAttempt(ctx, mediagate.Attempt{
		TaskID: task.ID, N: n, Channel: c.Name, Provider: c.Provider, Fingerprint: c.Fingerprint,
		Route: route, ExternalID: externalID, SendBefore: a.sendBefore(task, route, now), CreatedAt: now,
	}, c.Slots())
}
