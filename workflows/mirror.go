package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// mirror copies the result. Files that are none fail the task: no repetition
// would mend them.
func (g *generate) mirror(ctx workflow.Context) error {
	g.show(ctx, "copying the result into the bucket")
	options := mirror("copy the result into the bucket", g.left(ctx))
	var st mediagate.Story
	err := g.interruptibly(ctx, options, acts.MirrorResult, g.attempt(), &st)
	switch {
	case err == nil:
		return g.proceed(ctx, st)
	case temporal.IsCanceledError(err):
		return g.reload(ctx)
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
