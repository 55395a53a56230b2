package activities

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/limit"
)

// What waits for a permit holds one of the worker's slots on its queue. If it kept that,
// a crowd of one account would have all slots in the end, and a newcomer wait before
// them. So it waits for moments, gives its slot back, and comes again, which is no try
// of the step's: the slots of any crowd fall free within moments.

const (
	// comeAgain is after how long it comes again the first time, give or take half
	// of it: of many that wait none has to be first. Each time costs Temporal some
	// writes, so who is turned away again comes less often. With 5 s a crowd of 400
	// was felt by others on a small machine.
	comeAgain    = 10 * time.Second
	comeAgainMax = time.Minute
)

// codeNoPlace tells what waits for its turn from what failed.
const codeNoPlace = "no_place"

// errNoTurn says that there was no permit within moments.
var errNoTurn = errors.New("no permit yet")

// WaitsForTurn reports that the error is of an activity that waits for its turn.
func WaitsForTurn(err error) bool { return FromTemporal(err).Code == codeNoPlace }

// inTurn waits for a permit while patience lasts. Returns errNoTurn, or the error of ctx.
func inTurn(ctx context.Context, patience time.Duration, acquire func(context.Context) (*limit.Permit, error)) (*limit.Permit, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	permit, err := acquire(waiting)
	if err != nil && ctx.Err() == nil {
		return nil, errNoTurn
	}
	return permit, err
}

// laterInTurn is how an activity ends that got no permit, to be tried again later. What
// it waits behind is for operators.
func laterInTurn(ctx context.Context, behind string) error {
	wait := min(comeAgain<<min(activity.GetInfo(ctx).Attempt-1, 8), comeAgainMax)
	return &mediagate.Error{
		Kind: mediagate.KindCapacity, Code: codeNoPlace, Message: "waits for its turn behind " + behind,
		RetryAfter: wait/2 + rand.N(wait), //nolint:gosec // no secret
	}
}

// turned are the details of a step's heartbeats that was turned away so often. They
// are the one thing that outlives a try.
func turned(times int32) []any { return (&progress{}).details(times) }

// turnedAway is how many of the step's tries got no permit.
func turnedAway(ctx context.Context) (times int32) {
	var index, bytes int64
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &index, &bytes, &times) != nil {
		return 0
	}
	return times
}

// tryOf is which try this is of the step's that had a permit, from 1 on.
func tryOf(ctx context.Context) int32 { return activity.GetInfo(ctx).Attempt - turnedAway(ctx) }
