package activitytest

import (
	"context"
	"fmt"
	"sync"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// Engine records the calls that it gets, one line each.
type Engine struct {
	// OnStart, OnWake and OnReplace may fail a call, or take their time.
	OnStart   func(ctx context.Context, taskID string) error
	OnWake    func(ctx context.Context, taskID string) error
	OnReplace func(ctx context.Context, taskID string) error

	calls noted[string]

	mu     sync.Mutex
	states map[string]activities.RunState
}

// SetRun sets the state of the task's newest run. Until it is called, the task counts as never
// started: Start succeeds, and so does Wake.
func (e *Engine) SetRun(taskID string, state activities.RunState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.states == nil {
		e.states = make(map[string]activities.RunState)
	}
	e.states[taskID] = state
}

func (e *Engine) run(taskID string) (state activities.RunState, started bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	state, started = e.states[taskID]
	return state, started
}

// Calls returns the lines so far.
func (e *Engine) Calls() []string { return e.calls.all() }

func (e *Engine) note(format string, args ...any) { e.calls.add(fmt.Sprintf(format, args...)) }

// hooked calls a hook, if there is one.
func hooked(ctx context.Context, hook func(context.Context, string) error, taskID string) error {
	if hook == nil {
		return nil
	}
	return hook(ctx, taskID)
}

// Start starts the task's run, unless one was started.
func (e *Engine) Start(ctx context.Context, t mediagate.Task) error {
	e.note("start %s", t.ID)
	if err := hooked(ctx, e.OnStart, t.ID); err != nil {
		return err
	}
	if _, started := e.run(t.ID); started {
		return mediagate.Errorf(mediagate.KindConflict, "a run of %s was started before", t.ID)
	}
	return nil
}

// Wake signals the task's run.
func (e *Engine) Wake(ctx context.Context, taskID string) (bool, error) {
	e.note("wake %s", taskID)
	state, _ := e.run(taskID)
	return state != activities.RunNone && state != activities.RunCompleted, hooked(ctx, e.OnWake, taskID)
}

// DescribeRun returns the state of the task's newest run.
func (e *Engine) DescribeRun(_ context.Context, taskID string) (activities.RunState, error) {
	if state, started := e.run(taskID); started {
		return state, nil
	}
	return activities.RunNone, nil
}

// Replace starts a new run of the task.
func (e *Engine) Replace(ctx context.Context, t mediagate.Task, _ string) error {
	e.note("replace %s", t.ID)
	return hooked(ctx, e.OnReplace, t.ID)
}

// EnsureRound starts a delivery round.
func (e *Engine) EnsureRound(_ context.Context, w mediagate.WebhookRound) error {
	e.note("round %s %d", w.TaskID, w.Round)
	return nil
}

// ReplaceRound replaces a round's run.
func (e *Engine) ReplaceRound(_ context.Context, w mediagate.WebhookRound, _ string) (bool, error) {
	e.note("replace round %s %d", w.TaskID, w.Round)
	return true, nil
}

// EnsureChannel starts a channel's workflow.
func (e *Engine) EnsureChannel(_ context.Context, name string) error {
	e.note("channel %s", name)
	return nil
}
