package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// judge has the client's media looked at that the contract bounds. The verdict
// comes with the story.
func (g *generate) judge(ctx workflow.Context) error {
	if g.late(ctx) {
		return g.expire(ctx, "the media of the request could not be judged in time")
	}
	g.showWork(ctx, "judging the media of the request")
	options := judging("judge the media of the request", g.left(ctx))
	var st mediagate.Story
	err := g.interruptibly(ctx, options, acts.JudgeInputs, activities.TaskArgs{TaskID: g.in.TaskID}, &st)
	switch failure := activities.FromTemporal(err); {
	case err == nil:
		return g.proceed(ctx, st)
	case temporal.IsCanceledError(err):
		return g.reload(ctx)
	case mediagate.ParkReason(failure.Code) == mediagate.ParkStorage:
		return g.park(ctx, mediagate.ParkStorage)
	case g.late(ctx) || failure.Kind == mediagate.KindUnavailable:
		return g.reload(ctx) // the row decides, as soon as it can be read
	default:
		return g.park(ctx, mediagate.ParkInternal)
	}
}
