package activities

import (
	"context"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/task"
)

// searchLost looks for the job of an attempt that the database has lost, and of which only
// the name is known (D17): in our bucket, for a synchronous call that ended, and at each
// channel that may have made it and can be asked. It goes on to the next channel where
// one is out of reach, and returns that error if none has the job.
//
// The files of a synchronous call do not say which account made them. They are taken for
// those of the first channel that could have: nothing else is asked of it.
func (a *Activities) searchLost(ctx context.Context, t mediagate.Task, row mediagate.Attempt) ([]task.Event, error) {
	candidates, err := a.mayHaveMade(ctx, t, row.N)
	if err != nil {
		return nil, err
	}
	var unreached error
	for _, c := range candidates {
		var canStop bool
		row.Channel, row.Provider, row.Fingerprint = c.Name, c.Provider, c.Fingerprint
		row.Route, canStop = a.routeAt(t, row.N, c)
		row.Route.Parts = 0 // which of several calls were made is lost as well
		events, err := a.search(ctx, t, row)
		if err != nil {
			unreached = err
			continue
		}
		for _, e := range events {
			if job, ok := e.(task.Accepted); ok {
				a.Logger.InfoContext(ctx, "the job of a lost attempt was found", "task", t.ID, "attempt", row.N, "channel", c.Name)
				return []task.Event{task.Found{
					N: row.N, Channel: row.Channel, Provider: row.Provider, Fingerprint: row.Fingerprint, Route: row.Route, CanStop: canStop,
					Submission: job.Submission, FirstPollAt: job.FirstPollAt,
				}}, nil
			}
		}
	}
	return nil, unreached
}

// mayHaveMade lists the channels at which attempt n may have been made.
func (a *Activities) mayHaveMade(ctx context.Context, t mediagate.Task, n int) ([]channel.Candidate, error) {
	if !t.Modal.Resumes(n) {
		return a.Channels.Candidates(t.Model, t.Plan.Routes, askable(t)), nil
	}
	_, candidates, err := a.following(ctx, t, n)
	return candidates, err
}
