package durable_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/internal/limit"
)

// A newcomer whose first task waits behind calls that are all taken comes next,
// not after all that another account has waiting: with a run that the API started,
// and with one in place of a run that is gone. Without the account as the fairness key of
// their runs they are the last.
func TestNewcomerBesideABacklog(t *testing.T) {
	t.Parallel()
	const backlog = 30
	w := setup(t)
	w.Activities.Limits.Calls = limit.NewGroup("calls", 1)
	vendor := &activitytest.Vendor{}
	var (
		mu    sync.Mutex
		order []string
	)
	called := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(order)
	}
	release := make(chan struct{})
	vendor.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		mu.Lock()
		order = append(order, job.TaskID)
		mu.Unlock()
		<-release
		return vendor.Accept(job)
	}
	c := w.AsyncBound()
	c.Vendor = vendor.Finding()
	w.Channels.Set(c)
	w.serves([]string{c.Name}, activitytest.AsyncProvider)

	begin := func(account, id string) {
		task := w.NewVideo()
		task.AccountID = account
		w.begin(task, id, time.Hour)
	}
	for i := range backlog {
		begin("acc_busy", fmt.Sprintf("task_busy_%02d", i))
	}
	submitting := func(id string) {
		w.awaits(id+" is to be submitted", func() bool {
			steps := w.pending(id)
			return len(steps) == 1 && steps[0].GetActivityType().GetName() == "SubmitJob"
		})
	}
	for i := range backlog {
		submitting(fmt.Sprintf("task_busy_%02d", i))
	}
	newcomers := []string{"task_started", "task_replaced"}
	begin("acc_started", newcomers[0])
	replaced := w.NewVideo()
	replaced.ID, replaced.AccountID, replaced.Webhook, replaced.DeadlineAt = newcomers[1], "acc_replaced", mediagate.Webhook{}, time.Now().Add(time.Hour)
	w.Store.Add(replaced)
	if err := w.engine.Replace(t.Context(), replaced, ""); err != nil {
		t.Fatal(err)
	}
	for _, id := range newcomers {
		submitting(id)
	}
	w.awaits("all wait behind the call", func() bool { return w.Activities.Limits.Calls.Figures().Waiting == backlog+len(newcomers)-1 })
	close(release)
	w.awaits("all are submitted", func() bool { return len(called()) == backlog+len(newcomers) })
	for _, id := range newcomers {
		if at := slices.Index(called(), id); at > backlog/3 {
			t.Errorf("%s came as number %d of %v", id, at+1, called())
		}
	}
}
