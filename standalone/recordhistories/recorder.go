package main

import (
	"bytes"
	"cmp"
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
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/worker"
	"github.com/mediagate/mediagate/workflows"
)

// scenario is one recorded run. A world and a worker of its own make sure that no
// other task shows in it.
type scenario struct {
	name     string
	task     func(*activitytest.World) mediagate.Task
	prepare  func(*stage) // the doubles' script, before anything runs
	play     []move       // what happens once the task is started
	workflow string       // whose history counts; empty: the task's
	open     bool         // the workflow does not end
}

// move is a step of a scenario.
type move func(context.Context, *stage) error

// stage is where a scenario plays.
type stage struct {
	*activitytest.World
	engine  workflows.Client
	id      string
	stop    func() error          // the worker
	start   func(context.Context) // the worker, again
	begun   chan struct{}         // a call that hangs says so here
	release chan struct{}         // and here it goes on, once this is closed
}

type recorder struct {
	client client.Client
	out    string
	log    *slog.Logger
}

// endings are what is to be done when a recording ends.
type endings []func()

// Cleanup implements activitytest.T.
func (e *endings) Cleanup(f func()) { *e = append(*e, f) }

func (e *endings) run() {
	for _, f := range *e {
		f()
	}
}

func (r *recorder) record(ctx context.Context, s scenario) (err error) {
	var ending endings
	defer ending.run()
	w := activitytest.New(&ending, time.Now)
	st := &stage{
		World: w, engine: workflows.Client{Temporal: r.client}, id: "task_" + s.name,
		begun: make(chan struct{}, 100), release: make(chan struct{}),
	}
	w.Activities.Engine = st.engine
	t := s.task(w)
	t.ID = st.id
	w.Store.Add(t)
	if s.prepare != nil {
		s.prepare(st)
	}
	st.start = func(ctx context.Context) { st.stop = r.work(ctx, w) }
	st.start(ctx)
	defer func() { err = errors.Join(err, st.stop()) }()
	if err := st.engine.Start(ctx, t); err != nil {
		return err
	}
	for i, move := range s.play {
		if err := move(ctx, st); err != nil {
			return fmt.Errorf("move %d: %w", i+1, err)
		}
	}
	id := cmp.Or(s.workflow, st.id)
	if !s.open {
		if err := r.client.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
			return fmt.Errorf("workflow %s: %w", id, err)
		}
	}
	return r.write(ctx, st, id, s.name)
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

// write stores a history as indented JSON, without the name of the machine.
func (r *recorder) write(ctx context.Context, st *stage, id, name string) error {
	events, err := st.history(ctx, id)
	if err != nil {
		return err
	}
	text, err := protojson.Marshal(&historypb.History{Events: events})
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
	r.log.InfoContext(ctx, "recorded", "workflow", id, "events", len(events), "bytes", pretty.Len(), "file", file)
	return os.WriteFile(file, pretty.Bytes(), 0o600)
}

// history reads the events of a workflow's newest run.
func (st *stage) history(ctx context.Context, id string) (history []*historypb.HistoryEvent, err error) {
	all := st.engine.Temporal.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for all.HasNext() {
		e, err := all.Next()
		if err != nil {
			return nil, err
		}
		history = append(history, e)
	}
	return history, nil
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

// change has events happen to a task, and wakes the run that the scenario is about.
func (st *stage) change(ctx context.Context, id string, all ...task.Event) error {
	if _, err := st.Store.Change(ctx, id, all...); err != nil {
		return err
	}
	_, err := st.engine.Wake(ctx, st.id)
	return err
}

// hangs says that a call has begun, and waits until it may go on.
func (st *stage) hangs(ctx context.Context) error {
	st.begun <- struct{}{}
	select {
	case <-st.release:
		return nil
	case <-ctx.Done():
		return mediagate.Errorf(mediagate.KindTransient, "cut: %w", ctx.Err())
	}
}
