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

// A submit that gets no permit waits in a queue of Temporal, `backlog/CHANNEL`. All else
// that gets none gives its slot back and comes again, see waitForPermit. Submits could do
// that too, and the queue could go, but for the time to the vendor. 400 calls of a channel
// were held, 60 tasks of one account came, and four newcomers (two busy cores, both ways by
// the same program):
//
//	from the submit to the vendor        with the queue   coming again
//	all calls end after 30 s, newcomers  25 to 29 s       29 to 40 s
//	the last of the crowd                30 s             81 to 86 s
//	one call ends each 150 ms, newcomers 2 to 4 s         1 to 14 s
//	the last of the crowd                23 s             45 to 47 s
//
// The queue hands out each permit within 0.1 s. Who comes again looks for it every 5 to 90
// seconds, and more often would cost Temporal more writes than a small machine has.

const (
	// permitPatience is how long a step waits behind a channel's calls before its
	// task looks for another channel again.
	permitPatience = time.Minute
	// lookPatience is how long a submit waits for a permit to look for a channel.
	lookPatience = 30 * time.Second
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
	waiting, cancel := untilStopped(ctx)
	defer cancel()
	waiting, expire := context.WithTimeout(waiting, permitPatience)
	defer expire()
	held, err := a.Limits.Calls.Acquire(waiting, in.Behind, t.AccountID, 1)
	if err != nil {
		return permit{}
	}
	return permit{held, in.Behind}
}

// permit takes room among the channel's calls for the account, if there is some, or is
// what the caller has already.
func (a *Activities) permit(channel, account string, has permit) (permit, bool) {
	if has.channel == channel {
		return has, true
	}
	held, ok := a.Limits.Calls.TryAcquire(channel, account, 1)
	return permit{held, channel}, ok
}

// What waits for a permit holds one of the worker's slots on its queue. If it kept that,
// a crowd of one account would have all slots in the end, and a newcomer wait before
// them. So it waits for moments, gives its slot back, and comes again, which is no try
// of the step's: the slots of any crowd fall free within moments.

const (
	// againAfter is after how long it comes again the first time, give or take half
	// of it: of many that wait none has to be first. Each time costs Temporal some
	// writes, so who is refused again comes less often. With 5 s a crowd of 400
	// was felt by others on a small machine.
	againAfter = 10 * time.Second
	againMost  = time.Minute
)

// codeNoPermit tells what waits for a permit from what failed. Histories hold the word.
const codeNoPermit = "no_place"

// errNoPermit says that there was no permit within moments.
var errNoPermit = errors.New("no permit yet")

// WaitsForPermit reports that the error is of an activity that waits for a permit.
func WaitsForPermit(err error) bool { return FromTemporal(err).Code == codeNoPermit }

// acquire takes a permit of a limit, as soon as there is one.
type acquire func(context.Context) (*limit.Permit, error)

// waitForPermit waits for a permit while patience lasts. Returns errNoPermit, or the error
// of ctx.
func waitForPermit(ctx context.Context, patience time.Duration, get acquire) (*limit.Permit, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	permit, err := get(waiting)
	if err != nil && ctx.Err() == nil {
		return nil, errNoPermit
	}
	return permit, err
}

// comeAgain is how an activity ends that got no permit, to be tried again later. What
// it waits behind is for operators.
func comeAgain(ctx context.Context, behind string) error {
	wait := min(againAfter<<min(activity.GetInfo(ctx).Attempt-1, 8), againMost)
	return &mediagate.Error{
		Kind: mediagate.KindCapacity, Code: codeNoPermit, Message: "waits for its turn behind " + behind,
		RetryAfter: wait/2 + rand.N(wait), //nolint:gosec // no secret
	}
}

// refused is comeAgain for a step that counts its tries: this one is none.
func refused(ctx context.Context, behind string) error {
	activity.RecordHeartbeat(ctx, refusedDetails(timesRefused(ctx)+1)...)
	return comeAgain(ctx, behind)
}

// refusedDetails returns heartbeat details that count how often the step got no permit. A
// try passes nothing but its heartbeat details on to the next one.
func refusedDetails(times int32) []any { return (&progress{}).details(times) }

// timesRefused is how many of the step's tries got no permit.
func timesRefused(ctx context.Context) (times int32) {
	var index, bytes int64
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &index, &bytes, &times) != nil {
		return 0
	}
	return times
}

// tryOf is which try this is of the step's that had a permit, from 1 on.
func tryOf(ctx context.Context) int32 { return activity.GetInfo(ctx).Attempt - timesRefused(ctx) }
