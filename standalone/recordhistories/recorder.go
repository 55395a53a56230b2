package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/worker"
	"github.com/mediagate/mediagate/workflows"
)

// scenario is one recorded story. A world and a worker of its own make sure
// that no other one shows in it.
type scenario struct {
	name     string
	task     func(*activitytest.World) mediagate.Task
	prepare  func(*stage)                        // the doubles' script, before anything runs
	play     func(context.Context, *stage) error // what happens from outside; nil starts the task
	workflow func(*stage) string                 // whose history counts; nil: the task's
	open     bool                                // the workflow does not end
}

// stage is where a scenario plays.
type stage struct {
	*activitytest.World
	engine workflows.Client
	task   mediagate.Task
	stop   func() error          // the worker
	start  func(context.Context) // the worker, again
}

type recorder struct {
	client client.Client
	out    string
	log    *slog.Logger
}

func (r *recorder) record(ctx context.Context, s scenario) (err error) {
	w := activitytest.New(time.Now)
	st := &stage{World: w, engine: workflows.Client{Temporal: r.client}, task: s.task(w)}
	w.Activities.Engine = st.engine
	w.Activities.Settings.ParkRetry = 2 * time.Second
	w.Activities.Settings.PassInterval = time.Minute
	st.task.ID = "task_" + s.name
	if s.prepare != nil {
		s.prepare(st)
	}
	w.Store.Add(st.task)

	st.start = func(ctx context.Context) { st.stop = r.work(ctx, w) }
	st.start(ctx)
	defer func() { err = errors.Join(err, st.stop()) }()
	play := s.play
	if play == nil {
		play = startTask
	}
	if err := play(ctx, st); err != nil {
		return err
	}
	id := st.task.ID
	if s.workflow != nil {
		id = s.workflow(st)
	}
	if !s.open {
		if err := r.client.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
			return fmt.Errorf("workflow %s: %w", id, err)
		}
	}
	return r.write(ctx, id, s.name)
}

// work runs a worker process's share; stop ends it and waits.
func (r *recorder) work(ctx context.Context, w *activitytest.World) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, worker.Config{
			Temporal: r.client, Activities: w.Activities,
			Providers: []string{activitytest.AsyncProvider, activitytest.SyncProvider},
			Channels:  []string{activitytest.AsyncChannel},
			Grace:     5 * time.Second, Logger: slog.New(slog.DiscardHandler),
		})
	}()
	return func() error {
		cancel()
		return <-done
	}
}

func startTask(ctx context.Context, st *stage) error { return st.engine.Start(ctx, st.task) }

// write stores a history as indented JSON, without the name of the machine.
func (r *recorder) write(ctx context.Context, id, name string) error {
	var history historypb.History
	events := r.client.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return err
		}
		history.Events = append(history.Events, e)
	}
	text, err := protojson.Marshal(&history)
	if err != nil {
		return err
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		text = bytes.ReplaceAll(text, []byte(host), []byte("worker"))
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, text, "", " "); err != nil {
		return err
	}
	pretty.WriteByte('\n')
	file := filepath.Join(r.out, name+".json")
	r.log.InfoContext(ctx, "recorded", "workflow", id, "events", len(history.Events), "bytes", pretty.Len(), "file", file)
	return os.WriteFile(file, pretty.Bytes(), 0o600)
}

// until asks again and again until ok says so.
func until(ctx context.Context, ok func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
