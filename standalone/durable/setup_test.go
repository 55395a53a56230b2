package durable_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/standalone/temporalserver"
	"github.com/mediagate/mediagate/worker"
	"github.com/mediagate/mediagate/workflows"
)

// patience is how long a test waits for what must happen.
const patience = 3 * time.Minute

// world is a Temporal server, and doubles around the workflows.
type world struct {
	*activitytest.World
	t        *testing.T
	temporal client.Client
	engine   workflows.Client
}

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
		HostPort: server.Addr(), Namespace: temporalserver.DefaultNamespace,
		Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatalf("dial Temporal: %v", err)
	}
	t.Cleanup(c.Close)
	return &world{World: activitytest.New(time.Now), t: t, temporal: c, engine: workflows.Client{Temporal: c}}
}

// serves runs a worker for these providers' calls, and all other queues.
func (w *world) serves(channels []string, providers ...string) {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, worker.Config{
			Temporal: w.temporal, Activities: w.Activities, Providers: providers, Channels: channels, Grace: 5 * time.Second,
			Logger: slog.New(slog.DiscardHandler),
		})
	}()
	w.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.t.Errorf("the worker failed: %v", err)
		}
	})
}

// begin stores a task and starts its workflow.
func (w *world) begin(task mediagate.Task, id string, timeout time.Duration) mediagate.Task {
	w.t.Helper()
	task.ID = id
	task.Webhook = nil
	task.DeadlineAt = time.Now().Add(timeout).UTC().Truncate(time.Microsecond)
	w.Store.Add(task)
	if err := w.engine.Start(w.t.Context(), task); err != nil {
		w.t.Fatalf("start %s: %v", id, err)
	}
	return task
}

func (w *world) task(id string) mediagate.Task {
	w.t.Helper()
	task, err := w.Store.TaskByID(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return task
}

// awaits waits until the condition holds.
func (w *world) awaits(what string, holds func() bool) {
	w.t.Helper()
	for give := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(give) {
			w.t.Fatalf("waited %v for this: %s", patience, what)
		}
	}
}

// ended waits for the end of the task's run, and checks the one end that it
// made.
func (w *world) ended(id string, status mediagate.Status, code mediagate.FailureCode) {
	w.t.Helper()
	w.awaits(fmt.Sprintf("%s ends", id), func() bool { return w.task(id).Status.Terminal() })
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	if err := w.temporal.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
		w.t.Errorf("the run of %s: %v", id, err)
	}
	ends := w.Store.Settlements(id)
	if len(ends) != 1 || ends[0].Status != status || ends[0].Cost != 0 {
		w.t.Fatalf("ends of %s: %+v, want one: %s", id, ends, status)
	}
	if f := ends[0].Failure; code != "" && (f == nil || f.Code != code) {
		w.t.Errorf("%s failed with %+v, want %s", id, f, code)
	}
}
