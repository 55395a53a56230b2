package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// mirror copies the result and completes the task, in one step: what proves how
// far it came are rows. Files that are none fail the task: no repetition would mend
// them. Where the files are on record and the task is open all the same, settling
// is a step of its own, whose patience has no end.
func (g *generate) mirror(ctx workflow.Context) error {
	g.showWork(ctx, "copying the result into the bucket")
	args := activities.MirrorArgs{TaskID: g.in.TaskID, N: g.story.N, Settle: g.began > activities.BeforeOneStep}
	options := copies("copy the result into the bucket and settle", g.left(ctx))
	var st mediagate.Story
	err := g.interruptibly(ctx, options, acts.MirrorResult, args, &st)
	switch {
	case err == nil:
		return g.proceed(ctx, st)
	case temporal.IsCanceledError(err):
		return g.reload(ctx)
	case g.began > activities.BeforeOneStep: // it may have come further than it could tell
		if err := g.reload(ctx); err != nil {
			return err
		}
		if g.story.Mirrored || g.ending() {
			return nil
		}
	}
	switch e := activities.FromTemporal(err); {
	case mediagate.ParkReason(e.Code) == mediagate.ParkChannelMissing:
		return g.park(ctx, mediagate.ParkChannelMissing)
	case e.Kind == mediagate.KindInvalid || e.Kind == mediagate.KindTooLarge:
		return g.end(ctx, mediagate.StatusFailed, &mediagate.Failure{Code: mediagate.CodeResultUnavailable, Message: e.Message})
	case mediagate.FailureCode(e.Code) == mediagate.CodeResultUnavailable:
		return g.park(ctx, mediagate.ParkResult)
	case e.Kind == mediagate.KindUnavailable || e.Kind == mediagate.KindTransient:
		return g.park(ctx, mediagate.ParkStorage)
	default:
		return g.park(ctx, mediagate.ParkInternal)
	}
}
