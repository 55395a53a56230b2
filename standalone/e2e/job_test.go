package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/workflows"
)

// commander starts jobs: commands for many tasks.
type commander struct {
	*world
	temporal client.Client
}

// begin starts a job for tasks of the world's account.
func (c *commander) begin(action, filter string, perSecond, matched int) (job string) {
	c.t.Helper()
	var began struct {
		Matched int
		Job     string
	}
	f := map[string]any{"account": c.account}
	if name, value, ok := strings.Cut(filter, "="); ok {
		f[name] = value
	}
	body := map[string]any{"filter": f, "action": action, "reason": "by a test", "per_second": perSecond}
	c.admin(http.MethodPost, "/tasks/actions", body, &began)
	if began.Matched != matched || began.Job == "" {
		c.t.Fatalf("%s with %s: %+v, want %d tasks", action, filter, began, matched)
	}
	return began.Job
}

// result waits for the job's end and returns its progress.
func (c *commander) result(job string) (p activities.JobProgress, err error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), recoverTime)
	defer cancel()
	err = c.temporal.GetWorkflow(ctx, workflows.IDActions(job), "").Get(ctx, &p)
	return p, err
}

// commandedTasks returns the tasks that have the job's command on record, once for each record.
func (c *commander) commandedTasks(job string) []string {
	c.t.Helper()
	ids, err := c.column("SELECT task_id FROM actions WHERE id LIKE 'act_' || $1 || '/%' ORDER BY task_id", job)
	if err != nil {
		c.t.Fatal(err)
	}
	return ids
}

// awaitProcessed waits until the job has processed n tasks.
func (c *commander) awaitProcessed(job string, n int) {
	c.t.Helper()
	eventually(c.t, crashLimit, job+" goes on", func() error {
		if got := len(c.commandedTasks(job)); got < n {
			return fmt.Errorf("it has processed %d tasks", got)
		}
		return nil
	})
}

// submitWaiting submits n tasks whose vendor takes a long time.
func (c *commander) submitWaiting(n int) (tasks []*task) {
	c.t.Helper()
	for range n {
		t := c.submit(job{model: alpha, directive: "duration=300s"})
		t.wantStatus, t.wantCode = "failed", "internal_error"
		tasks = append(tasks, t)
	}
	for _, t := range tasks {
		c.awaitProcessing(t)
	}
	return tasks
}

// activity returns the job's activity in progress.
func (c *commander) activity(job string) (id string, state enumspb.PendingActivityState, err error) {
	d, err := c.temporal.DescribeWorkflowExecution(c.t.Context(), workflows.IDActions(job), "")
	if err != nil || len(d.GetPendingActivities()) == 0 {
		return "", 0, errors.Join(err, errors.New("it has none"))
	}
	a := d.GetPendingActivities()[0]
	return a.GetActivityId(), a.GetState(), nil
}

// pause pauses the job's activity, as an operator does in Temporal's UI, and waits until no
// worker runs it.
func (c *commander) pause(job string) {
	c.t.Helper()
	eventually(c.t, crashLimit, job+" is paused", func() error {
		id, state, err := c.activity(job)
		if err != nil || state == enumspb.PENDING_ACTIVITY_STATE_PAUSED {
			return err
		}
		_, err = c.temporal.WorkflowService().PauseActivity(c.t.Context(), &workflowservice.PauseActivityRequest{
			Namespace: c.namespace, Execution: execution(workflows.IDActions(job)), Activity: &workflowservice.PauseActivityRequest_Id{Id: id},
		})
		return errors.Join(err, errors.New("it is "+state.String()))
	})
}

func (c *commander) unpause(job string) {
	c.t.Helper()
	id, _, err := c.activity(job)
	if err == nil {
		_, err = c.temporal.WorkflowService().UnpauseActivity(c.t.Context(), &workflowservice.UnpauseActivityRequest{
			Namespace: c.namespace, Execution: execution(workflows.IDActions(job)), Activity: &workflowservice.UnpauseActivityRequest_Id{Id: id},
		})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// TestCommandForManyTasks checks that a command for many tasks continues after its worker was
// killed, and that each task gets it once. The job can be paused in Temporal's UI. Its history
// can be replayed.
func TestCommandForManyTasks(t *testing.T) {
	t.Parallel()
	c := &commander{world: newWorld(t, options{shape: production})}
	c.temporal = c.dial()
	t.Cleanup(c.temporal.Close)

	// The worker is killed in the middle. The job skips a task that has ended.
	done := c.submit(job{model: theta})
	c.await(done, recoverTime, "completes", func(o object) bool { return o.Status == "completed" })
	tasks := c.submitWaiting(12)
	first := c.begin("fail", "", 1, 13)
	later := c.submit(job{model: alpha, directive: "duration=300s"}) // the job does not match this task
	later.wantStatus, later.wantCode = "failed", "internal_error"
	c.awaitProcessed(first, 3)
	c.workers[0].kill()
	before := len(c.commandedTasks(first))
	c.workers[0].start(t)
	want := activities.JobProgress{After: done.id, Done: 12, Skipped: 1, Ended: true}
	if p, err := c.result(first); err != nil || p != want {
		t.Errorf("%+v, %v, want %+v", p, err, want)
	}
	c.checkCommanded(first, tasks)
	if before == 12 {
		t.Error("the job had ended before the kill")
	}
	c.once("replay", "replay", workflows.IDActions(first), "-temporal-address", c.temporalAt, "-temporal-namespace", c.namespace)
	c.once("replay-task", "replay", tasks[0].id, "-temporal-address", c.temporalAt, "-temporal-namespace", c.namespace)

	// This job is paused, and continues.
	c.awaitProcessing(later)
	tasks = append(c.submitWaiting(15), later)
	slices.SortFunc(tasks, func(x, y *task) int { return strings.Compare(x.id, y.id) })
	held := c.begin("poll_now", "status=processing", 1, 16)
	c.awaitProcessed(held, 1)
	c.pause(held)
	at := len(c.commandedTasks(held))
	c.unpause(held)
	if p, err := c.result(held); err != nil || p.Done != 16 || p.Skipped+p.Failed > 0 || at == 16 {
		t.Errorf("held at %d tasks: %+v, %v", at, p, err)
	}
	c.checkCommanded(held, tasks)
	last := c.begin("fail", "status=processing", 50, 16)
	if p, err := c.result(last); err != nil || p.Done != 16 {
		t.Errorf("%s: %+v, %v", last, p, err)
	}
	c.verify(recoverTime)
}

// checkCommanded checks that exactly these tasks have the job's command on record, each once.
func (c *commander) checkCommanded(job string, tasks []*task) {
	c.t.Helper()
	var want []string
	for _, t := range tasks {
		want = append(want, t.id)
	}
	slices.Sort(want)
	if got := c.commandedTasks(job); !slices.Equal(got, want) {
		c.t.Errorf("%s: %d commands on %v, want one each on %v", job, len(got), got, want)
	}
}

func execution(workflowID string) *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: workflowID}
}
