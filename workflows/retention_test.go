package workflows_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/workflows"
)

// expire runs the workflow with an activity. It returns what the workflow removed, and which
// calls it made.
func expire(
	t *testing.T, env *testsuite.TestWorkflowEnvironment, act func(activities.RemoveArgs) (mediagate.RemovedSlice, error),
) (map[mediagate.Removal]int, []activities.RemoveArgs) {
	t.Helper()
	env.RegisterWorkflow(workflows.Expire)
	var calls []activities.RemoveArgs
	env.RegisterActivityWithOptions(func(_ context.Context, in activities.RemoveArgs) (mediagate.RemovedSlice, error) {
		calls = append(calls, in)
		return act(in)
	}, activity.RegisterOptions{Name: "RemoveExpired"})
	env.ExecuteWorkflow(workflows.Expire)
	var removed map[mediagate.Removal]int
	if env.GetWorkflowError() == nil {
		if err := env.GetWorkflowResult(&removed); err != nil {
			t.Fatal(err)
		}
	}
	return removed, calls
}

// TestExpireTakesTurns checks that the kinds are handled in turn until nothing is left, and that
// the run is noted.
func TestExpireTakesTurns(t *testing.T) {
	t.Parallel()
	env, tasks := newEnv(), 0
	removed, calls := expire(t, env, func(in activities.RemoveArgs) (mediagate.RemovedSlice, error) {
		if in.Kind != mediagate.RemoveTasks {
			return mediagate.RemovedSlice{}, nil
		}
		tasks++
		return mediagate.RemovedSlice{Removed: 10, Next: "task_" + strings.Repeat("x", tasks), More: tasks < 3}, nil
	})
	if diff := cmp.Diff(30, removed[mediagate.RemoveTasks]); diff != "" || env.GetWorkflowError() != nil {
		t.Errorf("removed (-want +got):\n%s%v", diff, env.GetWorkflowError())
	}
	want := []activities.RemoveArgs{}
	for _, kind := range mediagate.Removals() {
		want = append(want, activities.RemoveArgs{Kind: kind})
	}
	want = append(want, activities.RemoveArgs{Kind: mediagate.RemoveTasks, After: "task_x"},
		activities.RemoveArgs{
			Kind: mediagate.RemoveTasks, After: "task_xx",
		}, activities.RemoveArgs{Kind: mediagate.RemovalRun})
	same(t, "calls", calls, want)
	if got := (&bundle{t: t, env: env}).details(); !strings.Contains(got, "nothing is left") ||
		!strings.Contains(got, "- tasks: 30") {
		t.Errorf("details:\n%s", got)
	}
}

// TestExpireGoesOn checks that a kind that fails delays no other, and that the run then ends as
// failed and is not noted.
func TestExpireGoesOn(t *testing.T) {
	t.Parallel()
	env, others := newEnv(), 0
	_, calls := expire(t, env, func(in activities.RemoveArgs) (mediagate.RemovedSlice, error) {
		if in.Kind == mediagate.RemoveDeliveries {
			return mediagate.RemovedSlice{}, errors.New("away")
		}
		others++
		return mediagate.RemovedSlice{}, nil
	})
	if err := env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "not all was removed: deliveries") ||
		others != len(mediagate.Removals())-1 {
		t.Errorf("%v, %d others", err, others)
	}
	if last := calls[len(calls)-1].Kind; last == mediagate.RemovalRun {
		t.Error("a run that failed is noted")
	}
}

// TestExpireIsBounded checks that a removal that would not end is left to the next run.
func TestExpireIsBounded(t *testing.T) {
	t.Parallel()
	env := newEnv()
	began := env.Now()
	tried := 0
	_, calls := expire(t, env, func(in activities.RemoveArgs) (mediagate.RemovedSlice, error) {
		if in.Kind == mediagate.RemoveObjects {
			tried++
		}
		if in.Kind == mediagate.RemoveObjects && tried%2 == 1 {
			return mediagate.RemovedSlice{}, temporal.NewApplicationErrorWithOptions(
				"busy", "busy", temporal.ApplicationErrorOptions{NextRetryDelay: 4 * time.Minute},
			)
		}
		return mediagate.RemovedSlice{More: true}, nil
	})
	if took := env.Now().Sub(began); env.GetWorkflowError() != nil || took > time.Hour {
		t.Errorf("%v after %v and %d calls", env.GetWorkflowError(), took, len(calls))
	}
	if last := calls[len(calls)-1].Kind; last == mediagate.RemovalRun {
		t.Error("a run that did not come to the end is noted")
	}
}
