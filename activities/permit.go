package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate/limit"
)

const (
	// permitPatience is how long a step waits behind a channel's calls before its
	// task looks for another channel again.
	permitPatience = time.Minute
	lookPatience   = 30 * time.Second
)

// permit is room for one call at a channel, until it is released.
type permit struct {
	*limit.Permit
	channel string
}

// awaitPermit takes room among the calls of the channel that the step is to
// wait behind, if any, or none when that takes too long. A worker that stops
// does not wait.
func (a *Activities) awaitPermit(ctx context.Context, in StepArgs) permit {
	if in.Behind == "" {
		return permit{}
	}
	t, err := a.Store.TaskByID(ctx, in.TaskID)
	if err != nil {
		return permit{} // the step finds out
	}
	waiting, cancel := untilStopped(ctx, activity.GetWorkerStopChannel(ctx))
	defer cancel()
	waiting, expire := context.WithTimeout(waiting, permitPatience)
	defer expire()
	lease, err := a.Limits.Calls.Acquire(waiting, in.Behind, t.AccountID, 1)
	if err != nil {
		return permit{}
	}
	return permit{lease, in.Behind}
}

// permit takes room among the channel's calls for the account, if there is some, or is
// what the caller has already.
func (a *Activities) permit(channel, account string, has permit) (permit, bool) {
	if has.channel == channel {
		return has, true
	}
	lease, ok := a.Limits.Calls.TryAcquire(channel, account, 1)
	return permit{lease, channel}, ok
}
