package activities

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
)

// Files of one provider take half of a worker's places for copies, so that servers
// that are slow keep no other provider's files waiting. Who finds no place within
// moments gives the worker's back and comes again; that is no try of the step's.

const (
	// mirrorTries is how often a copy is tried that fails, or whose worker is lost.
	mirrorTries = 5
	// lookForPlace is how often a copy looks whether one of its provider's places
	// has fallen free: while files come as fast as they should, one does at once.
	lookForPlace = 20 * time.Millisecond
	// comeAgain is how long a copy without a place waits, give or take half of it:
	// of many that wait none has to be first.
	comeAgain = 10 * time.Second
)

// codeNoPlace tells what waits for its turn from what failed: a copy of a provider,
// or a callback of an account, that has its share of those under way.
const codeNoPlace = "no_place"

// errNoPlace says that a provider has its share of the copies under way.
var errNoPlace = errors.New("no place for a copy")

// noPlace has the step tried again later, and notes that for the next try: its
// details are the one thing that outlives it.
func noPlace(ctx context.Context) error {
	activity.RecordHeartbeat(ctx, (&progress{}).details(turnedAway(ctx)+1)...)
	return &mediagate.Error{
		Kind: mediagate.KindTransient, Code: codeNoPlace, Message: "other files of the provider are being copied",
		RetryAfter: comeAgain/2 + rand.N(comeAgain), //nolint:gosec // no secret
	}
}

// turnedAway is how many of the step's tries found no place.
func turnedAway(ctx context.Context) (times int32) {
	var index, bytes int64
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &index, &bytes, &times) != nil {
		return 0 // of a worker that did not count them
	}
	return times
}

// mirrorTry is which try this is of those that had a place, from 1 on.
func mirrorTry(ctx context.Context) int32 { return activity.GetInfo(ctx).Attempt - turnedAway(ctx) }
