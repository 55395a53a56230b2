package durable_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/internal/limit"
)

// TestD18HangingChannel checks a channel whose vendor accepts calls and never answers (D18). The
// channel holds at most the calls that one channel may have. It delays neither tasks that may
// use the provider's other channel, nor tasks that must use the other, nor tasks of other
// providers. Tasks that must use the hanging channel wait, and go on later.
func TestD18HangingChannel(t *testing.T) {
	t.Parallel()
	const atOnce, tasks = 5, 15
	w := setup(t)
	w.Activities.Limits.Calls = limit.NewGroup("calls", 2*atOnce)
	release := make(chan struct{})
	var underWay, most atomic.Int32
	hangs, answers := &activitytest.Vendor{}, &activitytest.Vendor{}
	hangs.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		for n := underWay.Add(1); n > most.Load(); n = underWay.Load() {
			most.Store(n)
		}
		defer underWay.Add(-1)
		<-release
		return hangs.Accept(job)
	}
	account := func(name string, priority int, v *activitytest.Vendor, models ...string) channel.Channel {
		c := w.AsyncBound()
		c.Name, c.Fingerprint, c.Priority, c.Vendor, c.Models = name, name, priority, v.Finding(), models
		return c
	}
	w.Channels.Set(account("hangs", 1, hangs, "alpha-v3", "only-here"), account("answers", 2, answers, "alpha-v3", "only-there"), w.SyncBound())
	w.Sync.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
		s, err := w.Sync.Accept(job)
		outcome := activitytest.Success()
		s.Outcome = &outcome
		return s, err
	}
	w.startWorker([]string{"hangs", "answers"}, activitytest.AsyncProvider, activitytest.SyncProvider)

	ids := map[string][]string{}
	begin := func(kind string, task mediagate.Task) {
		for i := range tasks {
			id := fmt.Sprintf("task_%s_%02d", kind, i)
			ids[kind] = append(ids[kind], id)
			w.startTask(task, id, time.Hour)
		}
	}
	alone := func(model string) mediagate.Task {
		task := w.NewVideo()
		task.Model = model
		return task
	}
	begin("here", alone("only-here"))
	w.await("the vendor hangs", func() bool { return underWay.Load() == atOnce })
	begin("any", w.NewVideo())
	begin("there", alone("only-there"))
	begin("image", w.NewImage())

	accepted := func(kind string) (n int) {
		for _, id := range ids[kind] {
			if a, err := w.Store.Attempt(t.Context(), id, 1); err == nil && !a.AcceptedAt.IsZero() {
				n++
			}
		}
		return n
	}
	for _, kind := range []string{"any", "there"} {
		w.await("all tasks go on: "+kind, func() bool { return accepted(kind) == tasks })
	}
	for _, id := range ids["image"] {
		w.await(id+" ends", func() bool { return w.task(id).Status == mediagate.StatusCompleted })
	}
	if got := len(hangs.Submits()); got != atOnce {
		t.Errorf("%d calls at the vendor that hangs, want %d", got, atOnce)
	}
	close(release)
	w.await("those that waited go on", func() bool { return accepted("here") == tasks })
	if got := most.Load(); got != atOnce {
		t.Errorf("up to %d calls at once, want %d", got, atOnce)
	}
	for kind := range ids {
		for _, id := range ids[kind] {
			if got := len(w.Store.Attempts(id)); got != 1 {
				t.Errorf("%s has %d attempts", id, got)
			}
		}
	}
}
