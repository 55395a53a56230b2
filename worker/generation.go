package worker

import (
	"context"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate/activities"
)

// headerGeneration is on each activity that workflows schedule: the generation of
// their code, as a number. The first builds had none, and those after them left
// it empty.
const headerGeneration = "mediagate-generation"

// mark is the header of this build.
var mark = []byte(strconv.Itoa(int(activities.Newest)))

// generationOf reads the header, which is nil where there is none. A number that
// is none here is of newer code, which knows all that this one does.
func generationOf(header *commonpb.Payload) activities.Generation {
	if header == nil {
		return activities.BeforeQueues
	}
	if len(header.GetData()) == 0 {
		return activities.BeforeModal
	}
	if n, err := strconv.Atoi(string(header.GetData())); err == nil && n >= 0 && n < int(activities.Newest) {
		return activities.Generation(n)
	}
	return activities.Newest
}

// generations lets activities know which code asks: while workers are replaced,
// a workflow of an old one may be served by the activities of a new one.
type generations struct {
	interceptor.WorkerInterceptorBase
}

// InterceptWorkflow has the workflow's activities marked.
func (*generations) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &markingWorkflow{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type markingWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
}

// Init puts the marking behind whatever the workflow calls.
func (w *markingWorkflow) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	return w.Next.Init(&markingCalls{interceptor.WorkflowOutboundInterceptorBase{Next: outbound}})
}

type markingCalls struct {
	interceptor.WorkflowOutboundInterceptorBase
}

// ExecuteActivity schedules the activity with the mark.
func (c *markingCalls) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	interceptor.WorkflowHeader(ctx)[headerGeneration] = &commonpb.Payload{Data: mark}
	return c.Next.ExecuteActivity(ctx, name, args...)
}

// InterceptActivity looks for the mark.
func (*generations) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &markedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type markedActivity struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity runs the activity, for whoever asks. A local one is asked by
// this very process.
func (a *markedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	if !activity.GetInfo(ctx).IsLocalActivity {
		ctx = activities.ForRunOf(ctx, generationOf(interceptor.Header(ctx)[headerGeneration]))
	}
	return a.Next.ExecuteActivity(ctx, in)
}
