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
		mark   *commonpb.Payload
		queued bool
	}{
		"a run of this build":    {&commonpb.Payload{Data: mark}, true},
		"one of before modal":    {&commonpb.Payload{}, true},
		"one of builds to come":  {&commonpb.Payload{Data: []byte("99")}, true},
		"one of before queueing": {nil, false},
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
				if test.mark != nil {
					header.Fields[headerGeneration] = test.mark
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

// D15: the run of a build that knew nothing of the wait waits for the deadline,
// which lies behind it, and then wants the task to end.
func TestOldRunsAndModal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mark  *commonpb.Payload
		knows bool
	}{
		"a run of this build":    {&commonpb.Payload{Data: mark}, true},
		"one of before modal":    {&commonpb.Payload{}, false},
		"one of before queueing": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			w := activitytest.New(func() time.Time { return now })
			task := w.NewVideo()
			task.Type, task.Plan.Modal = mediagate.TypeArt, 30*time.Minute
			w.Store.Add(task)
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			header := &commonpb.Header{Fields: map[string]*commonpb.Payload{}}
			if test.mark != nil {
				header.Fields[headerGeneration] = test.mark
			}
			env.SetHeader(header)
			env.SetWorkerOptions(sdkworker.Options{Interceptors: []interceptor.WorkerInterceptor{&generations{}}})
			env.RegisterActivity(w.Activities)
			story := func(activity, args any) (st mediagate.Story) {
				value, err := env.ExecuteActivity(activity, args)
				if err == nil {
					err = value.Get(&st)
				}
				if err != nil {
					t.Fatal(err)
				}
				return st
			}
			story(w.Activities.SubmitJob, activities.AttemptArgs{TaskID: activitytest.TaskID, N: 1})
			if err := w.Store.BeginModal(t.Context(), activitytest.TaskID, 1); err != nil {
				t.Fatal(err)
			}
			if st := story(w.Activities.UnparkTask, activities.TaskArgs{TaskID: activitytest.TaskID}); st.ModalUntil.IsZero() == test.knows {
				t.Errorf("the story says that it waits until %v", st.ModalUntil)
			}
			if test.knows {
				return // what it does then is in the tests of workflows
			}
			now = now.Add(3 * time.Hour)
			late := &mediagate.Failure{Code: mediagate.CodeGenerationTimeout, Message: "late", Retryable: true}
			st := story(w.Activities.Settle, activities.SettleArgs{TaskID: task.ID, N: 1, Status: mediagate.StatusFailed, Failure: late, WithoutOutcome: true})
			ended, err := w.Store.TaskByID(t.Context(), task.ID)
			if err != nil {
				t.Fatal(err)
			}
			if st.Status != mediagate.StatusFailed || ended.Failure == nil || ended.Failure.Code != mediagate.CodeModalExpired {
				t.Errorf("the task is %s for %+v", st.Status, ended.Failure)
			}
		})
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
