package durable_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/standalone/temporalserver"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/worker"
	"github.com/mediagate/mediagate/workflows"
)

// patience is how long a test waits for an expected change.
const patience = 3 * time.Minute

// world is a Temporal server with doubles around the workflows.
type world struct {
	*activitytest.World
	t        *testing.T
	temporal client.Client
	engine   workflows.Client
	ahead    atomic.Int64 // how far the doubles' clock is ahead of the real one
}

// later moves the clock forward, for all but Temporal.
func (w *world) later(d time.Duration) { w.ahead.Add(int64(d)) }

func setup(t *testing.T) *world {
	t.Helper()
	server, err := temporalserver.Start(t.Context(), temporalserver.Config{
		Addr: "127.0.0.1:0", File: filepath.Join(t.TempDir(), "temporal.db"),
	})
	if err != nil {
		t.Fatalf("start Temporal: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Errorf("stop Temporal: %v", err)
		}
	})
	c, err := client.Dial(client.Options{
		HostPort: server.Addr(), Namespace: temporalserver.DefaultNamespace, Identity: "durable",
		Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatalf("dial Temporal: %v", err)
	}
	t.Cleanup(c.Close)
	w := &world{t: t, temporal: c, engine: workflows.Client{Temporal: c, Namespace: temporalserver.DefaultNamespace}}
	w.World = activitytest.New(t, func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) })
	w.Activities.Engine = w.engine
	return w
}

// startWorker runs a worker for the calls of these providers and for all other queues, until it is
// stopped or the test ends.
func (w *world) startWorker(channels []string, providers ...string) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, worker.Config{
			Temporal: w.temporal, Activities: w.Activities, Providers: providers, Channels: channels, Grace: 5 * time.Second,
			Logger: slog.New(slog.DiscardHandler),
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the worker failed: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// change applies events to a task.
func (w *world) change(id string, events ...task.Event) {
	w.t.Helper()
	if _, err := w.Store.Change(w.t.Context(), id, events...); err != nil {
		w.t.Fatal(err)
	}
}

// pending returns the activities in progress of the workflow's newest run.
func (w *world) pending(id string) []*workflow.PendingActivityInfo {
	w.t.Helper()
	d, err := w.temporal.DescribeWorkflowExecution(w.t.Context(), id, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return d.GetPendingActivities()
}

// startTask stores a task and starts its workflow.
func (w *world) startTask(t mediagate.Task, id string, timeout time.Duration) mediagate.Task {
	w.t.Helper()
	t.ID = id
	t.Webhook = mediagate.Webhook{}
	t.DeadlineAt = time.Now().Add(timeout).UTC().Truncate(time.Microsecond)
	w.Store.Add(t)
	if err := w.engine.Start(w.t.Context(), t); err != nil {
		w.t.Fatalf("start %s: %v", id, err)
	}
	return t
}

func (w *world) task(id string) mediagate.Task {
	w.t.Helper()
	t, err := w.Store.TaskByID(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// await waits until the condition holds.
func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	for give := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(give) {
			w.t.Fatalf("waited %v for this: %s", patience, what)
		}
	}
}

// expectEnd waits for the end of the task's run and checks that the task has ended once, in this
// way.
func (w *world) expectEnd(id string, status mediagate.Status, code mediagate.FailureCode) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s ends", id), func() bool { return w.task(id).Status.Terminal() })
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	if err := w.temporal.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
		w.t.Errorf("the run of %s: %v", id, err)
	}
	t, end := w.task(id), w.Store.End(id)
	if end.Times != 1 || t.Status != status || t.Cost != 0 {
		w.t.Fatalf("%s is %s and costs %s, ended %d times; want %s", id, t.Status, t.Cost, end.Times, status)
	}
	if f := t.Failure; code != "" && (f == nil || f.Code != code) {
		w.t.Errorf("%s failed with %+v, want %s", id, f, code)
	}
}
