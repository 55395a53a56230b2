package activities

import (
	"cmp"
	"context"
	"slices"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/task"
)

// enterBreaker asks the channel's breaker to let attempt n through. A disabled channel takes
// nothing new, but finishes what it has: modal parameters go to a job that waits there. Such a call
// gets the pass of a job that is inside already, which is not the probe.
func (a *Activities) enterBreaker(
	ctx context.Context, t mediagate.Task, n int, c channel.Candidate,
) (channel.Pass, bool, error) {
	if t.Modal.Resumes(n) && !a.Breakers.State(c.Name).Enabled {
		return a.Breakers.Inside(c.Name), true, nil
	}
	return a.Breakers.Enter(ctx, c.Name, a.operation(c.Route).Submit)
}

// shutOut returns the error for a task that no channel takes. Its code is the reason to park.
func (a *Activities) shutOut(candidates []channel.Candidate) error {
	return &mediagate.Error{
		Kind: mediagate.KindShutOut, Code: string(a.shutOutReason(candidates)),
		Message: "no channel for the task takes new jobs",
	}
}

// shutOutReason returns what is wrong with the channels. If that is not the same for all, it
// returns provider_unavailable. For example, if two accounts lack funds, the task shows as parked
// for funds. If one lacks funds and the vendor of the other is away, waiting may help, so the task
// shows as parked because the provider is away.
func (a *Activities) shutOutReason(candidates []channel.Candidate) mediagate.ParkReason {
	reason := mediagate.ParkProviderAway
	for i, c := range candidates {
		why := cmp.Or(a.Breakers.State(c.Name).Reason, mediagate.ParkProviderAway)
		if i == 0 {
			reason = why
		} else if why != reason {
			reason = mediagate.ParkProviderAway
		}
	}
	return reason
}

// chooseChannels decides under which name attempt n is made at the vendor, and which channels are
// tried, in order.
//
// After a proven rejection, the channels that have refused the task least often come first. After
// the rejection of an attempt that was sent more than once, the name and the channel stay: the last
// sending made no job, but an earlier one may have made one. Only the same vendor, asked under the
// same name, refuses to make a second job (D4). Otherwise the channel that an operator has chosen
// counts, if there is one.
func (a *Activities) chooseChannels(
	ctx context.Context, t mediagate.Task, n int,
) (externalID string, candidates []channel.Candidate, err error) {
	// The first attempt has no history, so it needs no query.
	if n == 1 {
		return t.ID, a.candidates(t), nil
	}
	st, err := a.Store.State(ctx, t.ID, 0)
	if err != nil {
		return "", nil, err
	}
	externalID, kept := st.NextExternalID()
	switch {
	case t.Modal.Resumes(n): // only the account whose job waits can take the parameters, see confirmAccount
		waiting, err := a.Store.Attempt(ctx, t.ID, t.Modal.N)
		if err != nil {
			return "", nil, err
		}
		route := waiting.Route
		route.Operation, route.Sync = mediagate.OperationModal, false
		c, err := a.accounts().Asker(waiting)
		return externalID, []channel.Candidate{{Channel: c.Channel, Route: route}}, err
	// The account must be the same one, and not only a channel of that name: Owner checks the
	// fingerprint.
	case kept:
		before := *st.Last()
		c, err := a.accounts().Owner(before)
		return externalID, []channel.Candidate{{Channel: c, Route: before.Route}}, err
	}
	candidates = a.candidates(t)
	if last := st.Last(); last != nil && last.State == mediagate.AttemptRejected {
		refusals, err := a.Store.Refusals(ctx, t.ID)
		if err != nil {
			return "", nil, err
		}
		// The sort is stable: channels that have refused equally often keep their order.
		slices.SortStableFunc(candidates, func(x, y channel.Candidate) int {
			return refusals[x.Name] - refusals[y.Name]
		})
	}
	return externalID, candidates, nil
}

// candidates returns the channels that the task's next attempt may try, without routes whose models
// are retired. If an operator has chosen the channel, its vendor is asked again.
func (a *Activities) candidates(t mediagate.Task) []channel.Candidate {
	retired := a.Breakers.Retired
	if t.RerouteTo != "" {
		retired = nil
	}
	return restrictTo(a.serving(t, retired), t.RerouteTo)
}

// serving returns the channels that can make the task. If retired is nil, models that are retired
// count as well.
func (a *Activities) serving(t mediagate.Task, retired channel.Retired) []channel.Candidate {
	return a.Channels.Candidates(t.Model, t.Plan.Routes, draftJob(t), retired)
}

// modelRetired reports whether the task has no candidates because their models are retired, and
// not because no channel is configured.
func (a *Activities) modelRetired(t mediagate.Task) bool {
	return t.RerouteTo == "" && len(a.serving(t, nil)) > 0
}

// restrictTo returns the candidates that are the channel that an operator has chosen. If name is
// empty, the operator has chosen none, and all candidates stay.
func restrictTo(candidates []channel.Candidate, name string) []channel.Candidate {
	if name == "" {
		return candidates
	}
	return slices.DeleteFunc(candidates, func(c channel.Candidate) bool {
		return c.Name != name && !slices.Contains(c.Former, name)
	})
}

// isChannelFault reports whether a refusal says nothing about the request, so that another
// channel may take it.
func isChannelFault(f mediagate.Failure) bool {
	return f.Retryable && f.Code == mediagate.CodeProviderAway ||
		f.Code == mediagate.CodeProviderRefused || f.Code == mediagate.CodeFunds
}

// mayGoElsewhere reports whether the next attempt can go to another channel at once, after this
// channel has refused the attempt with f. That is so if another channel takes new jobs and has never
// refused this task. If this channel has refused the task before, mayGoElsewhere returns false:
// channels that have never refused the task normally come first, and none of them took this
// attempt. So the task pauses or parks. If the vendor has no such model, any route to another model
// will do. The result is stored with the refusal, in the event Refused. If the refusals cannot be
// read, the task pauses or parks as well.
func (a *Activities) mayGoElsewhere(
	ctx context.Context, t mediagate.Task, row task.Attempt, f mediagate.Failure,
) bool {
	switch {
	case t.Modal.Resumes(row.N), row.Sends > 1, row.ExternalID != task.ExternalID(t.ID, row.N):
		return false // the next attempt stays at this channel
	case f.Code == mediagate.CodeModelRetired:
		return len(a.serving(t, a.Breakers.Retired)) > 0
	case !isChannelFault(f):
		return false
	}
	// The answer is stored even if the worker stops.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	refusals, err := a.Store.Refusals(ctx, t.ID)
	if err != nil || refusals[row.Channel] > 0 {
		return false
	}
	return slices.ContainsFunc(a.serving(t, a.Breakers.Retired), func(c channel.Candidate) bool {
		return c.Name != row.Channel && refusals[c.Name] == 0 && a.Breakers.TakesJobs(c.Name)
	})
}
