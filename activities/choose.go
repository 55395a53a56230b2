package activities

import (
	"cmp"
	"context"
	"slices"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/task"
)

// enter asks the channel's breaker to let attempt n through. A channel that is disabled
// takes nothing new and ends what it has: the parameters of a job that waits there go in.
func (a *Activities) enter(
	ctx context.Context, t mediagate.Task, n int, c channel.Candidate,
) (channel.Pass, bool, error) {
	if t.Modal.Resumes(n) && !a.Breakers.State(c.Name).Enabled {
		return a.Breakers.Inside(c.Name), true, nil
	}
	return a.Breakers.Enter(ctx, c.Name, a.operation(c.Route).Submit)
}

// shutOut is what keeps a task from any attempt. Its code is the reason to park
// for: what is wrong with all of the channels, if that is one thing.
func (a *Activities) shutOut(candidates []channel.Candidate) error {
	return &mediagate.Error{
		Kind: mediagate.KindShutOut, Code: string(a.shutOutReason(candidates)),
		Message: "no channel for the task takes new jobs",
	}
}

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

// following decides under which name attempt n is made at the vendor, and which
// channels it tries, in order.
//
// A proven rejection leads to another channel: those come first that have refused the
// task least often. What follows an attempt that was sent more than once keeps its name
// and its channel: that the last sending made no job proves nothing of the first, which
// only that vendor would refuse to double, and under that name only (D4). Otherwise an
// operator's choice of a channel counts.
func (a *Activities) following(
	ctx context.Context, t mediagate.Task, n int,
) (externalID string, candidates []channel.Candidate, err error) {
	if n == 1 {
		return t.ID, a.candidates(t), nil
	}
	st, err := a.Store.State(ctx, t.ID, n-1)
	if err != nil {
		return "", nil, err
	}
	externalID, kept := st.NextExternalID()
	switch {
	case t.Modal.Resumes(n): // only the account can take the parameters whose job waits: see provenFor
		waiting, err := a.Store.Attempt(ctx, t.ID, t.Modal.N)
		if err != nil {
			return "", nil, err
		}
		route := waiting.Route
		route.Operation, route.Sync = mediagate.OperationModal, false
		c, err := a.accounts().Asker(waiting)
		return externalID, []channel.Candidate{{Channel: c.Channel, Route: route}}, err
	case kept:
		before, err := a.Store.Attempt(ctx, t.ID, n-1)
		if err != nil {
			return "", nil, err
		}
		c, err := a.accounts().Of(before)
		return externalID, []channel.Candidate{{Channel: c, Route: before.Route}}, err
	}
	candidates = a.candidates(t)
	if last := st.Last(); last != nil && last.State == mediagate.AttemptRejected {
		refusals, err := a.Store.Refusals(ctx, t.ID)
		if err != nil {
			return "", nil, err
		}
		slices.SortStableFunc(candidates, func(x, y channel.Candidate) int {
			return refusals[x.Name] - refusals[y.Name]
		})
	}
	return externalID, candidates, nil
}

// candidates lists the channels that the task's next attempt may try, without routes whose
// models are retired. Where an operator has chosen the channel, its vendor is asked again.
func (a *Activities) candidates(t mediagate.Task) []channel.Candidate {
	retired := a.Breakers.Retired
	if t.RerouteTo != "" {
		retired = nil
	}
	return chosen(a.Channels.Candidates(t.Model, t.Plan.Routes, askable(t), retired), t.RerouteTo)
}

// modelRetired reports that the task has no candidates since their models are retired, and
// not for want of a channel.
func (a *Activities) modelRetired(t mediagate.Task) bool {
	return t.RerouteTo == "" && len(a.Channels.Candidates(t.Model, t.Plan.Routes, askable(t), nil)) > 0
}

// chosen is what an operator's choice leaves of the candidates; an empty name is none.
func chosen(candidates []channel.Candidate, name string) []channel.Candidate {
	if name == "" {
		return candidates
	}
	return slices.DeleteFunc(candidates, func(c channel.Candidate) bool {
		return c.Name != name && !slices.Contains(c.Former, name)
	})
}

// ofTheChannel reports a refusal that says nothing of the request: another
// channel may take it.
func ofTheChannel(f mediagate.Failure) bool {
	return f.Retryable && f.Code == mediagate.CodeProviderAway ||
		f.Code == mediagate.CodeProviderRefused || f.Code == mediagate.CodeFunds
}

// elsewhere reports that the attempt after this one, which was refused so, may go
// to a channel that takes new jobs and has never refused this task. A channel that has
// refused it before had its turn: the others were full, and the task rests before it
// tries again. Where the vendor has no such model, any route to another one will do.
func (a *Activities) elsewhere(ctx context.Context, t mediagate.Task, row task.Attempt, f mediagate.Failure) bool {
	switch {
	case t.Modal.Resumes(row.N), row.Sends > 1, row.ExternalID != task.Numbered(t.ID, row.N):
		return false // or it stays at its channel
	case f.Code == mediagate.CodeModelRetired:
		return len(a.Channels.Candidates(t.Model, t.Plan.Routes, askable(t), a.Breakers.Retired)) > 0
	case !ofTheChannel(f):
		return false
	}
	// An answer is stored also where the worker stops.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	refusals, err := a.Store.Refusals(ctx, t.ID)
	if err != nil || refusals[row.Channel] > 0 {
		return false
	}
	candidates := a.Channels.Candidates(t.Model, t.Plan.Routes, askable(t), a.Breakers.Retired)
	return slices.ContainsFunc(candidates, func(c channel.Candidate) bool {
		return c.Name != row.Channel && refusals[c.Name] == 0 && a.Breakers.TakesJobs(c.Name)
	})
}
