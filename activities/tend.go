package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
)

// stuckAfter is how long a poller may go without a step: no batch takes that
// long.
const stuckAfter = 3 * time.Minute

// ChannelArgs names a channel.
type ChannelArgs struct {
	Channel string `json:"channel"`
}

// TendChannel polls the vendor for all tasks that wait for the channel, until
// the worker stops. Its epoch fences it: once another run has begun, this one
// can claim nothing more and returns (D8).
//
// On a worker that lacks the channel it fails with KindUnreached, so that
// another one gets it; gone says that no worker has the channel any more, and
// that no task waits for it.
func (a *Activities) TendChannel(ctx context.Context, in ChannelArgs) (gone bool, err error) {
	poller, err := a.accounts().Poller(ctx, in.Channel)
	if err != nil {
		return false, a.fail(ctx, err)
	}
	if poller == nil {
		return a.tendMissing(ctx, in.Channel)
	}
	poller.Report = func(ctx context.Context, b channel.Beat) { activity.RecordHeartbeat(ctx, b) }
	defer keepAlive(ctx, poller)()
	calls, cancel := untilStopped(ctx, activity.GetWorkerStopChannel(ctx))
	defer cancel()
	err = poller.Run(ctx, calls)
	if mediagate.Is(err, mediagate.KindConflict) {
		return false, nil // fenced: the newer run polls
	}
	return false, a.fail(ctx, err)
}

// keepAlive repeats the last beat while a batch takes its time: a vendor that
// hangs must not make the channel look dead. A run that has made no step for
// longer than any batch takes is dead, and another is to take over.
func keepAlive(ctx context.Context, p *channel.Poller) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		var still time.Duration
		for steps := p.Steps(); ; {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			if now := p.Steps(); now != steps {
				steps, still = now, 0
			} else if still += heartbeatEvery; still > stuckAfter {
				continue
			}
			if beat, ok := p.Beat(); ok {
				activity.RecordHeartbeat(ctx, beat)
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// untilStopped is the context of calls to the vendor: a worker that stops
// does not wait for them, since whoever polls next repeats them.
func untilStopped(ctx context.Context, stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
