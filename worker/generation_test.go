package worker

import (
	"context"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// While workers are replaced, a workflow task may be done by an old one and its
// activity by a new one. A story that the old code cannot heed would be in the
// history with what that code did instead, which the new code cannot follow:
// the run would be stuck (D1).
func TestOldRunsAreToldWhatTheyKnow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		marks  []string
		queued bool
	}{
		"a run of this build": {[]string{headerGeneration}, true},
		"an old one":          {nil, false},
	} {
		for limited, concurrency := range map[string]int{"no slot": 1, "no channel": 0} {
			t.Run(name+", "+limited, func(t *testing.T) {
				t.Parallel()
				w := activitytest.New(time.Now)
				task := w.NewVideo()
				w.Store.Add(task)
				c := w.AsyncBound()
				c.Concurrency = concurrency
				w.Channels.Set(c)
				if _, err := w.Store.EnableChannel(t.Context(), c.Name, false); err != nil {
					t.Fatal(err)
				}
				var suite testsuite.WorkflowTestSuite
				env := suite.NewTestActivityEnvironment()
				header := &commonpb.Header{Fields: map[string]*commonpb.Payload{}} // which the suite writes to
				for _, mark := range test.marks {
					header.Fields[mark] = &commonpb.Payload{}
				}
				env.SetHeader(header)
				env.SetWorkerOptions(sdkworker.Options{Interceptors: []interceptor.WorkerInterceptor{&generations{}}})
				env.RegisterActivity(w.Activities)
				value, err := env.ExecuteActivity(w.Activities.SubmitJob, activities.AttemptArgs{TaskID: activitytest.TaskID, N: 1})
				switch failed := activities.FromTemporal(err); {
				case !test.queued:
					if err == nil || failed.Kind != mediagate.KindCapacity {
						t.Errorf("the old run is answered %v, %v; want an error that it parks for", value, err)
					}
				case concurrency == 0:
					if err == nil || failed.Kind != mediagate.KindShutOut {
						t.Errorf("the answer is %v, %v", value, err)
					}
				default:
					var st mediagate.Story
					if err != nil || value.Get(&st) != nil || st.QueuedAt.IsZero() {
						t.Errorf("the story is %+v, %v", st, err)
					}
				}
				if queued, err := w.Store.QueuedTasks(t.Context(), c.Name, 1); err != nil || (len(queued) > 0) != (test.queued && concurrency > 0) {
					t.Errorf("queued: %v, %v", queued, err)
				}
			})
		}
	}
}

func TestWorkflowsMarkTheirActivities(t *testing.T) {
	t.Parallel()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(sdkworker.Options{Interceptors: []interceptor.WorkerInterceptor{&generations{}, &seen{}}})
	env.RegisterActivityWithOptions(func(ctx context.Context) (bool, error) { return ctx.Value(seenKey{}).(bool), nil }, activity.RegisterOptions{Name: "look"})
	env.ExecuteWorkflow(func(ctx workflow.Context) (marked bool, err error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		err = workflow.ExecuteActivity(ctx, "look").Get(ctx, &marked)
		return marked, err
	})
	var marked bool
	if err := env.GetWorkflowResult(&marked); err != nil || !marked {
		t.Errorf("marked: %t, %v", marked, err)
	}
}

// seen tells the activity whether it was marked.
type seen struct {
	interceptor.WorkerInterceptorBase
}

type seenKey struct{}

func (*seen) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &seenActivity{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type seenActivity struct {
	interceptor.ActivityInboundInterceptorBase
}

func (a *seenActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	_, marked := interceptor.Header(ctx)[headerGeneration]
	return a.Next.ExecuteActivity(context.WithValue(ctx, seenKey{}, marked), in)
}
