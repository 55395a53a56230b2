package activitytest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

// Engine notes what workflows are told, one line each.
type Engine struct {
	// OnEnsure may fail a start, or take its time; OnRuns a look.
	OnEnsure func(ctx context.Context, taskID string) error
	OnRuns   func(ctx context.Context, taskID string) error
	// OnWork tells whether a step is at work; nil: none ever is.
	OnWork func(taskID string) (bool, error)
	// OnUpstream may pass the signal on, or fail it.
	OnUpstream func(taskID string, n int) error
	// OnSlot may pass the signal on, or fail it.
	OnSlot func(taskID string, n int) error
	// OnWake may fail the signal.
	OnWake func(taskID string) error
	// OnAction may fail a signal of a command.
	OnAction func(taskID string) error
	// Running are the tasks that have a run.
	Running map[string]bool
	// Gone are the tasks whose run was terminated: no signal reaches it.
	Gone map[string]bool
	// Failing are the ages of the runs whose workflow tasks fail.
	Failing map[string]time.Duration

	mu    sync.Mutex
	calls []string
	began map[string]time.Time // runs that replaced others
}

// Calls are the lines so far.
func (e *Engine) Calls() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls)
}

func (e *Engine) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, fmt.Sprintf(format, args...))
}

// Begin starts a run unless there is one.
func (e *Engine) Begin(ctx context.Context, t mediagate.Task) (bool, error) { return e.Ensure(ctx, t) }

// Runs tells whether there is a run.
func (e *Engine) Runs(ctx context.Context, taskID string) (bool, error) {
	if e.OnRuns != nil {
		if err := e.OnRuns(ctx, taskID); err != nil {
			return false, err
		}
	}
	return e.Running[taskID], nil
}

// AtWork tells whether a step of the run is at work.
func (e *Engine) AtWork(_ context.Context, taskID string) (bool, error) {
	if e.OnWork == nil {
		return false, nil
	}
	return e.OnWork(taskID)
}

// Ensure starts a run unless there is one.
func (e *Engine) Ensure(ctx context.Context, t mediagate.Task) (bool, error) {
	if e.OnEnsure != nil {
		if err := e.OnEnsure(ctx, t.ID); err != nil {
			return false, err
		}
	}
	if e.Running[t.ID] {
		return false, nil
	}
	e.note("start %s", t.ID)
	return true, nil
}

// EnsureWebhook starts a round.
func (e *Engine) EnsureWebhook(_ context.Context, w mediagate.WebhookRound) error {
	e.note("webhook %s %d", w.TaskID, w.Round)
	return nil
}

// Replace replaces a run, unless it came by another Replace less than patience ago.
func (e *Engine) Replace(_ context.Context, t mediagate.Task, patience time.Duration, _ string) (bool, error) {
	e.mu.Lock()
	began, again := e.began[t.ID]
	young := again && time.Since(began) < patience
	if !young {
		if e.began == nil {
			e.began = make(map[string]time.Time)
		}
		e.began[t.ID] = time.Now()
	}
	e.mu.Unlock()
	if !young {
		e.note("replace %s", t.ID)
	}
	return !young, nil
}

// ReplaceWebhook replaces a round's run.
func (e *Engine) ReplaceWebhook(_ context.Context, w mediagate.WebhookRound, _ string) (bool, error) {
	e.note("replace webhook %s %d", w.TaskID, w.Round)
	return true, nil
}

// EnsureChannel starts a channel.
func (e *Engine) EnsureChannel(_ context.Context, name string) error {
	e.note("channel %s", name)
	return nil
}

// SignalUpstream tells that an attempt's waiting is over.
func (e *Engine) SignalUpstream(_ context.Context, taskID string, n int) (bool, error) {
	e.note("upstream %s %d", taskID, n)
	if e.OnUpstream != nil {
		return true, e.OnUpstream(taskID, n)
	}
	return !e.Gone[taskID], nil
}

// SignalSlot tells that a slot is granted.
func (e *Engine) SignalSlot(_ context.Context, taskID string, n int) error {
	e.note("slot %s %d", taskID, n)
	if e.OnSlot != nil {
		return e.OnSlot(taskID, n)
	}
	return nil
}

// SignalWake tells to look again.
func (e *Engine) SignalWake(_ context.Context, taskID string) error {
	e.note("wake %s", taskID)
	if e.OnWake != nil {
		return e.OnWake(taskID)
	}
	return nil
}

// RepeatCancel tells of a cancel, or replaces a run that fails and is as old as patience.
func (e *Engine) RepeatCancel(_ context.Context, t mediagate.Task, patience time.Duration, _ string) (bool, error) {
	if age, fails := e.Failing[t.ID]; fails && age >= patience {
		e.note("replace %s", t.ID)
		return true, nil
	}
	e.note("cancel %s", t.ID)
	return false, nil
}

// SignalAction tells of a command.
func (e *Engine) SignalAction(_ context.Context, a mediagate.Action) error {
	if e.OnAction != nil {
		if err := e.OnAction(a.TaskID); err != nil {
			return err
		}
	}
	e.note("action %s %s", a.TaskID, a.Action)
	return nil
}
