package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate/channel"
)

const (
	// placePatience is how long a step waits behind a channel's calls before its
	// task looks for another channel again.
	placePatience = time.Minute
	// looksAtOnce bounds the looks for a channel, whatever the places: each is
	// a few statements, and what a process has of connections is for others, too.
	looksAtOnce  = 16
	lookPatience = 30 * time.Second
)

// awaitPlace takes a place among the calls of the channel that the step is to
// wait behind, if any, or none when that takes too long. A worker that stops
// does not wait.
func (a *Activities) awaitPlace(ctx context.Context, behind string) *channel.Place {
	if behind == "" {
		return nil
	}
	waiting, cancel := untilStopped(ctx, activity.GetWorkerStopChannel(ctx))
	defer cancel()
	place, _ := a.places.Await(waiting, behind, a.Settings.CallsAtOnce, placePatience)
	return place
}

// place takes a place among the channel's calls, if one is free, or is what the
// caller has already.
func (a *Activities) place(name string, has *channel.Place) (*channel.Place, bool) {
	if has != nil && has.Channel == name {
		return has, true
	}
	return a.places.Try(name, a.Settings.CallsAtOnce)
}
