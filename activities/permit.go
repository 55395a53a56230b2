package activities

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
)

// A submit that gets no permit waits in a queue of Temporal, `backlog/CHANNEL`. Every other
// activity without a permit gives its slot back and comes again, see waitForPermit. Submits could
// do that too, and the queue would not be needed, but the time until the vendor is called would be
// longer. In a measurement, 400 calls of a channel held all of its permits. Then 60 tasks of one
// account came, and then four of another account (two busy cores, the same program both ways):
//
//	from the submit to the vendor           with the queue   coming again
//	all calls end after 30 s: the four      25 to 29 s       29 to 40 s
//	the last of the 60                      30 s             81 to 86 s
//	one call ends each 150 ms: the four     2 to 4 s         1 to 14 s
//	the last of the 60                      23 s             45 to 47 s
//
// The queue hands out each permit within 0.1 s. An activity that comes again tries every 5 to 90
// seconds. More frequent tries would cost more writes than Temporal can make on a small machine.

const (
	// permitTime is how long a submit waits behind a channel's calls before its task looks for
	// another channel again.
	permitTime = time.Minute
	// lookupTime is how long a submit waits for the permit to look for a channel.
	lookupTime = 30 * time.Second
)

// permit is room for one call at a channel, until it is released.
type permit struct {
	*limit.Permit
	channel string
}

// awaitPermit takes a permit for a call of the channel that the step waits behind. It returns an
// empty permit if there is no such channel, if no permit becomes free within permitTime, or if the
// worker stops.
func (a *Activities) awaitPermit(ctx context.Context, in StepArgs) permit {
	if in.Behind == "" {
		return permit{}
	}
	t, err := a.Store.TaskByID(ctx, in.TaskID)
	if err != nil {
		return permit{} // the step meets the same error
	}
	waiting, cancel := untilStopped(ctx)
	defer cancel()
	waiting, expire := context.WithTimeout(waiting, permitTime)
	defer expire()
	held, err := a.Limits.Calls.Acquire(waiting, in.Behind, t.AccountID, 1)
	if err != nil {
		return permit{}
	}
	return permit{held, in.Behind}
}

// permit takes a permit for a call of the channel, if one is free for the account. If the caller
// has a permit for that channel already, it returns that.
func (a *Activities) permit(channel, account string, has permit) (permit, bool) {
	if has.channel == channel {
		return has, true
	}
	held, ok := a.Limits.Calls.TryAcquire(channel, account, 1)
	return permit{held, channel}, ok
}

// An activity that waits for a permit holds one of the worker's slots on its queue. If it kept
// that slot, the tasks of one busy account would hold all slots in the end, and the next account
// would wait behind them. So it waits a few seconds, gives its slot back, and comes again later,
// which does not count as a try of the step. Slots therefore become free within seconds, however
// many tasks an account has.

const (
	// againAfter is the first pause before an activity comes again. Each try costs Temporal some
	// writes, so the pause grows up to againMost. With 5 s, 400 waiting tasks slowed down others
	// on a small machine. Pauses vary by one half, so that the tries of many activities spread.
	againAfter = 10 * time.Second
	againMost  = time.Minute
)

// codeNoPermit distinguishes an activity that waits for a permit from one that failed. Histories
// hold the word.
const codeNoPermit = "no_place"

// errNoPermit says that there was no permit within the time to wait.
var errNoPermit = errors.New("no permit yet")

// WaitsForPermit reports whether the error is that of an activity that waits for a permit.
func WaitsForPermit(err error) bool { return FromTemporal(err).Code == codeNoPermit }

// waitForPermit waits for a permit, at most for patience. It returns errNoPermit, or the error of
// ctx.
func waitForPermit(
	ctx context.Context, patience time.Duration, acquire func(context.Context) (*limit.Permit, error),
) (*limit.Permit, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	permit, err := acquire(waiting)
	if err != nil && ctx.Err() == nil {
		return nil, errNoPermit
	}
	return permit, err
}

// comeAgain returns the error of an activity that got no permit, and is to be tried again later.
// The message tells operators what it waits behind.
func comeAgain(ctx context.Context, behind string) error {
	// 10 s, 20 s, 40 s, then 1 min; each of them between one half and one and a half of that.
	wait := min(againAfter<<min(activity.GetInfo(ctx).Attempt-1, 8), againMost)
	return &mediagate.Error{
		Kind: mediagate.KindCapacity, Code: codeNoPermit, Message: "waits for a permit behind " + behind,
		RetryAfter: wait/2 + rand.N(wait), //nolint:gosec // no secret
	}
}

// retryWithoutPermit is comeAgain for a step that counts its tries. A try without a permit does
// not count.
func retryWithoutPermit(ctx context.Context, behind string) error {
	activity.RecordHeartbeat(ctx, refusedDetails(timesRefused(ctx)+1)...)
	return comeAgain(ctx, behind)
}

// refusedDetails returns heartbeat details that count how often the step got no permit. Heartbeat
// details are all that one try passes on to the next.
func refusedDetails(times int32) []any { return (&progress{}).details(times) }

// timesRefused returns how many of the step's tries got no permit.
func timesRefused(ctx context.Context) (times int32) {
	var index, bytes int64
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &index, &bytes, &times) != nil {
		return 0
	}
	return times
}

// tryOf returns the number of this try, counting from 1, among those that had a permit.
func tryOf(ctx context.Context) int32 { return activity.GetInfo(ctx).Attempt - timesRefused(ctx) }
