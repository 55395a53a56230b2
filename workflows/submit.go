package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// send makes an attempt that the vendor knows nothing of, unless nobody would
// wait for its end any more.
func (g *generate) send(ctx workflow.Context, n int) error {
	if g.late(ctx) && (!g.fromOldWorker() || !g.inbox.retryOrdered()) {
		return g.expire(ctx, "the task could not be sent to the provider in time")
	}
	return g.submit(ctx, n)
}

func (g *generate) submit(ctx workflow.Context, n int) error {
	g.lost.attempt = 0
	args := activities.AttemptArgs{TaskID: g.in.TaskID, N: n}
	options := call(g.provider(), fmt.Sprintf("submit attempt %d", n), g.left(ctx))
	if b := g.backlog; b.n == n {
		args.Behind = b.channel
		options = behind(b.channel, fmt.Sprintf("submit attempt %d, behind other calls", n), g.left(ctx))
		g.show(ctx, fmt.Sprintf("attempt %d waits until fewer calls to its provider are under way", n))
	} else {
		g.showWork(ctx, fmt.Sprintf("submitting attempt %d to %s", n, g.provider()))
	}
	g.backlog = backlog{}
	var st mediagate.Story
	err := g.interruptibly(ctx, options, acts.SubmitJob, args, &st)
	switch failure := activities.FromTemporal(err); {
	case err == nil && st.Behind != "":
		g.story, g.backlog = st, backlog{n: n, channel: st.Behind}
		return nil // stays parked, if it is
	case err == nil:
	case args.Behind != "" && notStarted(err):
		return g.reload(ctx) // and looks for another channel
	case temporal.IsCanceledError(err):
		return g.reload(ctx) // the row has the cancel, or the next worker goes on
	case !g.fromOldWorker() && (g.late(ctx) || failure.Kind == mediagate.KindUnavailable):
		return g.reload(ctx) // the row decides, as soon as it can be read
	default:
		return g.park(ctx, submitParkReason(failure))
	}
	if st.N < n || st.N == n && (st.State == mediagate.AttemptRejected || st.State == mediagate.AttemptUnknown) {
		g.story, g.retryDue = st, false // stays parked, if it is: nothing was achieved
		return nil
	}
	g.refusals = 0
	return g.proceed(ctx, st)
}

// backlog is where an attempt is to wait: behind the calls of a channel.
type backlog struct {
	n       int // the attempt's number; 0 for none
	channel string
}

// notStarted reports that nobody has begun a step in the time it had for that.
func notStarted(err error) bool {
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	return ok && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
}

func submitParkReason(e *mediagate.Error) mediagate.ParkReason {
	switch {
	case mediagate.ParkReason(e.Code) == mediagate.ParkChannelMissing, e.Kind == mediagate.KindShutOut:
		return mediagate.ParkReason(e.Code)
	case e.Kind == mediagate.KindInternal:
		return mediagate.ParkInternal
	default:
		return mediagate.ParkProviderAway
	}
}

// awaitSender decides on an intent whose sender has not reported when the
// deadline has passed. The call may still be under way, and its answer counts
// (D5); after that the sender was lost.
func (g *generate) awaitSender(ctx workflow.Context) error {
	if wait := g.story.CallEnds.Sub(g.clock.now(ctx)); wait > 0 {
		g.show(ctx, "deadline: waiting for the submission that may be under way")
		_, err := g.pause(ctx, "the submission's end", wait)
		return err
	}
	return g.database(ctx, "the sender was lost", acts.MarkLost, g.attempt())
}

// maxRefusals is how many attempts a vendor that is full or away gets before
// the task parks.
const maxRefusals = 6

// afterRejection decides on an attempt that provably made no job.
func (g *generate) afterRejection(ctx workflow.Context) error {
	failure := g.story.Failure
	if failure == nil {
		failure = &mediagate.Failure{Code: mediagate.CodeInternal, Message: "the provider refused the request"}
	}
	switch {
	case g.retryDue:
		g.retryDue, g.inbox.command = false, ""
	case g.story.Elsewhere:
		g.showWork(ctx, "the provider is full or away, or refused our account: the next channel follows")
	case failure.Code == mediagate.CodeProviderRefused:
		return g.park(ctx, mediagate.ParkCredentials)
	case failure.Code == mediagate.CodeFunds:
		return g.park(ctx, mediagate.ParkFunds)
	case !failure.Retryable:
		return g.end(ctx, mediagate.StatusFailed, failure)
	default:
		g.refusals++
		if g.refusals >= maxRefusals {
			return g.park(ctx, mediagate.ParkProviderAway)
		}
		g.show(ctx, "the provider is full or away: the next attempt follows")
		if _, err := g.pause(ctx, "before the next attempt", min(time.Second<<g.refusals, 30*time.Second)); err != nil {
			return err
		}
		if g.story.CancelRequested || g.inbox.failOrdered() || g.inbox.runCancelled() {
			return nil
		}
	}
	return g.send(ctx, g.story.N+1)
}
