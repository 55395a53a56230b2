package activitytest

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// sweepAfter is how long after a task's end files may still be copied for it.
const sweepAfter = 2 * mediagate.CopyLimit

// Store keeps tasks in memory: what was submitted, and the state that events have made
// of it. Package task alone decides what an event does.
type Store struct {
	// Fault may fail a method, given by its name, before it does anything. Set it before
	// the store is used.
	Fault func(method string) error
	// Lost may lose the answer of a method that took effect. Its error comes instead.
	Lost func(ctx context.Context, method string) error

	// Fetches are the bytes that may be fetched for an account; 0: any.
	Fetches int64

	now func() time.Time

	mu       sync.Mutex
	tasks    map[string]*entry
	actions  []mediagate.Action
	channels map[string]*channelRow
	calls    []mediagate.ChannelCalls
	proofs   []mediagate.AccountProof
	served   map[string][]string // by channel: accounts that were given slots, the latest last
	removals map[mediagate.Removal]mediagate.RemovalState
	fetched  map[string]int64 // by account
	past     []moment         // nil: nothing is kept
}

// entry is all that is stored of a task.
type entry struct {
	task       mediagate.Task // as submitted
	state      task.State     // with all attempts
	polls      map[int]*poll  // by attempt: those with an await
	queue      queueRow
	wakes      map[mediagate.WakeKind]mediagate.Wake
	deliveries []mediagate.Delivery
	body       []byte
	bodyAt     time.Time
	sweepAt    time.Time // when files that the task does not show are looked for
	end        End
}

// End is how a task's hold was resolved.
type End struct {
	Times   int // never more than once
	Entry   mediagate.EntryKind
	Cost    mediagate.Micros
	Charged map[int]*mediagate.VendorCharge // by attempt
}

type channelRow struct {
	epoch  int64
	seenAt time.Time
	state  mediagate.ChannelState
	probe  string
}

// NewStore makes an empty store on the clock.
func NewStore(now func() time.Time) *Store {
	return &Store{now: now, tasks: map[string]*entry{}, channels: map[string]*channelRow{}, served: map[string][]string{}, fetched: map[string]int64{}}
}

func (s *Store) clock() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// under runs a method under the store's lock. A context that has ended finds the store
// away, as it does a database.
func under[T any](ctx context.Context, s *Store, method string, f func() (T, error)) (none T, err error) {
	if err := ctx.Err(); err != nil {
		return none, mediagate.Errorf(mediagate.KindUnavailable, "the database is away: %w", err)
	}
	if s.Fault != nil {
		if err := s.Fault(method); err != nil {
			return none, err
		}
	}
	result, err := locked(s, f)
	if err == nil && s.Lost != nil {
		if err := s.Lost(ctx, method); err != nil {
			return none, err
		}
	}
	return result, err
}

func locked[T any](s *Store, f func() (T, error)) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	result, err := f()
	if s.past != nil && err == nil {
		s.past = append(s.past, s.present())
	}
	return result, err
}

// run is under for a method that returns no more than an error.
func (s *Store) run(ctx context.Context, method string, f func() error) error {
	_, err := under(ctx, s, method, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

func missing(what, id string) error {
	return mediagate.Errorf(mediagate.KindNotFound, "no %s %q", what, id)
}

func (s *Store) entry(id string) (*entry, error) {
	e, ok := s.tasks[id]
	if !ok {
		return nil, missing("task", id)
	}
	return e, nil
}

// entries are all tasks, in the order of their ids.
func (s *Store) entries() []*entry {
	all := make([]*entry, 0, len(s.tasks))
	for _, id := range slices.Sorted(maps.Keys(s.tasks)) {
		all = append(all, s.tasks[id])
	}
	return all
}

func (e *entry) open() bool { return !e.state.Status.Terminal() }

// Add stores a task as a submit does.
func (s *Store) Add(t mediagate.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &entry{task: t, wakes: map[mediagate.WakeKind]mediagate.Wake{}, state: task.State{
		ID: t.ID, Terms: task.TermsOf(t.Plan, t.Charges, t.Hold),
		Status: t.Status, Progress: t.Progress, Version: max(t.Version, 1), StartedAt: t.StartedAt, EndedAt: t.EndedAt, DeadlineAt: t.DeadlineAt,
		CancelRequestedAt: t.CancelRequestedAt, ParkedAt: t.ParkedAt, ParkReason: t.ParkReason, QueuedAt: t.QueuedAt, Modal: t.Modal,
		Failure: t.Failure, Results: t.Results, Made: t.Made, Cost: t.Cost,
	}}
	if w := t.Webhook; w != nil {
		e.state.WebhookRound, e.state.WebhookState, e.state.WebhookReason = w.Round, w.State, w.Reason
	}
	if e.open() {
		e.wake(mediagate.WakeRun, mediagate.Wake{At: s.clock().Add(startLease)})
	}
	e.keep()
	s.tasks[t.ID] = e
}

// Remove loses a task's rows.
func (s *Store) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tasks, id)
}

// Edit changes a task's state as no event would, to set a scene.
func (s *Store) Edit(id string, f func(*task.State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.tasks[id].state)
	s.tasks[id].keep()
}

// EditTask changes what was submitted.
func (s *Store) EditTask(id string, f func(*mediagate.Task)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.tasks[id]
	f(&e.task)
	e.state.Terms = task.TermsOf(e.task.Plan, e.task.Charges, e.task.Hold)
}

// Erase leaves of an ended task what the database does when its client erases it, as
// far as workers see it.
func (s *Store) Erase(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.tasks[id]
	t, st := &e.task, &e.state
	t.ErasedAt, t.InputsErasedAt, t.Params, t.Plan = s.clock(), s.clock(), mediagate.NoParams, mediagate.Plan{Uploads: t.Plan.Uploads}
	st.Results, st.Made, st.Failure, st.WebhookState = nil, nil, st.Failure.Wordless(), ""
	e.sweepAt = s.clock()
}

// Peek reads a task's state, past the faults.
func (s *Store) Peek(id string) (st task.State, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.tasks[id]; ok {
		return clone(e.state), true
	}
	return task.State{}, false
}

// Attempts lists a task's attempts in their order.
func (s *Store) Attempts(id string) []mediagate.Attempt {
	st, _ := s.Peek(id)
	rows := make([]mediagate.Attempt, len(st.Attempts))
	for i, a := range st.Attempts {
		rows[i] = attemptRow(id, a)
	}
	return rows
}

// End is how the task's hold was resolved.
func (s *Store) End(id string) End {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[id].end
}

// Actions lists the operators' commands.
func (s *Store) Actions() []mediagate.Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.actions)
}

// Change applies events to a task, all or none.
func (s *Store) Change(ctx context.Context, taskID string, events ...task.Event) (task.Changed, error) {
	return under(ctx, s, "Change", func() (task.Changed, error) { return s.change(taskID, events) })
}

func (s *Store) change(id string, events []task.Event) (task.Changed, error) {
	e, err := s.entry(id)
	if err != nil {
		return task.Changed{}, err
	}
	before, after, now := e.state, clone(e.state), s.clock()
	var effects task.Effects
	for _, event := range events {
		more, err := after.Apply(event, now)
		if err != nil {
			return task.Changed{}, err
		}
		effects = effects.And(more)
	}
	e.state = after
	e.keep()
	changed := task.Changed{State: loaded(after, numbers(events)...), Step: after.Advance(now), Effects: effects, At: now}
	e.keepWakes(&before, events, changed)
	for _, event := range events {
		if _, ok := event.(task.PollRequested); ok && after.Last().Await != nil {
			e.polls[after.Last().N].hinted = true
		}
	}
	if effects.Sweep {
		e.sweepAt = now.Add(sweepAfter)
	}
	if effects.Entry != "" {
		e.end.Times, e.end.Entry, e.end.Cost = e.end.Times+1, effects.Entry, after.Cost
	}
	if effects.Charged != nil {
		charged := maps.Clone(effects.Charged)
		maps.Copy(charged, e.end.Charged)
		e.end.Charged = charged
	}
	return changed, nil
}

// keep has the rows beside the state follow it.
func (e *entry) keep() {
	polls := map[int]*poll{}
	for _, a := range e.state.Attempts {
		switch {
		case a.Await == nil:
		case e.polls[a.N] != nil:
			polls[a.N] = e.polls[a.N]
		default:
			polls[a.N] = &poll{}
		}
	}
	e.polls = polls
	switch {
	case e.state.QueuedAt.IsZero():
		e.queue = queueRow{}
	case e.queue.since.IsZero():
		e.queue.since = e.state.QueuedAt
	}
	if !e.state.Granted {
		e.queue.grantedBy = ""
	}
}

// clone copies what events change in place.
func clone(s task.State) task.State {
	s.Attempts = slices.Clone(s.Attempts)
	for i := range s.Attempts {
		a := &s.Attempts[i]
		a.Parts = slices.Clone(a.Parts)
		if a.Await != nil {
			await := *a.Await
			a.Await = &await
		}
	}
	return s
}

// loaded leaves of the attempts the last one and those of the numbers: the database
// loads no others.
func loaded(s task.State, numbers ...int) task.State {
	s = clone(s)
	if a := s.Last(); a != nil {
		numbers = append(numbers, a.N)
	}
	s.Attempts = slices.DeleteFunc(s.Attempts, func(a task.Attempt) bool { return !slices.Contains(numbers, a.N) })
	return s
}

// numbers are those of the attempts that the events name.
func numbers(events []task.Event) (n []int) {
	for _, event := range events {
		if field := reflect.ValueOf(event).FieldByName("N"); field.IsValid() {
			n = append(n, int(field.Int()))
		}
	}
	return n
}

// OpenIntent takes a slot and stores the intent of an attempt.
func (s *Store) OpenIntent(ctx context.Context, taskID string, slots mediagate.Slots, intent task.IntentStored) (task.Changed, error) {
	return under(ctx, s, "OpenIntent", func() (task.Changed, error) {
		e, err := s.entry(taskID)
		if err == nil {
			err = s.takeSlot(e, intent.Channel, slots)
		}
		if err != nil {
			return task.Changed{}, err
		}
		return s.change(taskID, []task.Event{intent})
	})
}

// SelectTasks lists tasks by the account and the callback's state, newest first.
func (s *Store) SelectTasks(ctx context.Context, f mediagate.TaskFilter) (tasks []mediagate.Task, more bool, err error) {
	_, err = under(ctx, s, "SelectTasks", func() (none struct{}, _ error) {
		for _, e := range slices.Backward(s.entries()) {
			t := e.task
			switch {
			case f.After != "" && t.ID >= f.After, f.AccountID != "" && t.AccountID != f.AccountID,
				!f.CreatedBefore.IsZero() && !t.CreatedAt.Before(f.CreatedBefore), f.Webhook != "" && e.state.WebhookState != f.Webhook:
			case len(tasks) == f.Limit:
				more = true
			default:
				tasks = append(tasks, t)
			}
		}
		return none, nil
	})
	return tasks, more, err
}

// Command records a command and applies it, once.
func (s *Store) Command(ctx context.Context, a mediagate.Action, events ...task.Event) (task.Changed, error) {
	return under(ctx, s, "Command", func() (task.Changed, error) {
		if slices.ContainsFunc(s.actions, func(stored mediagate.Action) bool { return stored.ID == a.ID }) {
			return s.change(a.TaskID, nil)
		}
		changed, err := s.change(a.TaskID, events)
		if err == nil {
			a.At = changed.At
			s.actions = append(s.actions, a)
		}
		return changed, err
	})
}

// State reads the task's state with its last attempt and attempt n.
func (s *Store) State(ctx context.Context, taskID string, n int) (task.State, error) {
	return under(ctx, s, "State", func() (task.State, error) {
		e, err := s.entry(taskID)
		if err != nil {
			return task.State{}, err
		}
		return loaded(e.state, n), nil
	})
}

// TaskByID reads a task.
func (s *Store) TaskByID(ctx context.Context, taskID string) (mediagate.Task, error) {
	return under(ctx, s, "TaskByID", func() (mediagate.Task, error) {
		e, err := s.entry(taskID)
		if err != nil {
			return mediagate.Task{}, err
		}
		t, st := e.task, clone(e.state)
		t.Status, t.Progress, t.Version, t.Cost = st.Status, st.Progress, st.Version, st.Cost
		t.StartedAt, t.EndedAt, t.DeadlineAt, t.CancelRequestedAt = st.StartedAt, st.EndedAt, st.DeadlineAt, st.CancelRequestedAt
		t.ParkedAt, t.ParkReason, t.QueuedAt, t.RerouteTo, t.Modal = st.ParkedAt, st.ParkReason, st.QueuedAt, st.RerouteTo, st.Modal
		t.Results, t.Made, t.Failure = st.Results, st.Made, st.Failure
		if t.Webhook != nil {
			t.Webhook = &mediagate.Webhook{URL: t.Webhook.URL, State: st.WebhookState, Reason: st.WebhookReason, Round: st.WebhookRound}
		}
		if st.WebhookState == "" {
			t.Webhook = nil
		}
		return t, nil
	})
}

// Attempt reads one attempt.
func (s *Store) Attempt(ctx context.Context, taskID string, n int) (mediagate.Attempt, error) {
	return under(ctx, s, "Attempt", func() (mediagate.Attempt, error) {
		e, err := s.entry(taskID)
		if err != nil {
			return mediagate.Attempt{}, err
		}
		a := e.state.Attempt(n)
		if a == nil {
			return mediagate.Attempt{}, missing("attempt of "+taskID, strconv.Itoa(n))
		}
		return attemptRow(taskID, *a), nil
	})
}

func attemptRow(taskID string, a task.Attempt) mediagate.Attempt {
	return mediagate.Attempt{
		TaskID: taskID, N: a.N, Channel: a.Channel, Provider: a.Provider, Fingerprint: a.Fingerprint, Route: a.Route, ExternalID: a.ExternalID,
		CanStop: a.CanStop, SendBefore: a.SendBefore, CallEnds: a.CallEnds, Ref: a.Ref, State: a.State, Outcome: a.Outcome, Results: a.Results, Trouble: a.Trouble, Error: a.Error,
		AbsentAt: a.AbsentAt, AgainAt: a.AbsentAgainAt, Sends: a.Sends, Refusal: a.Refusal,
		CreatedAt: a.CreatedAt, AcceptedAt: a.AcceptedAt, EndedAt: a.EndedAt,
	}
}

// Refusals counts a task's rejected attempts.
func (s *Store) Refusals(ctx context.Context, taskID string) (map[string]int, error) {
	return under(ctx, s, "Refusals", func() (map[string]int, error) {
		by := map[string]int{}
		if e := s.tasks[taskID]; e != nil {
			for _, a := range e.state.Attempts {
				if a.State == mediagate.AttemptRejected {
					by[a.Channel]++
				}
			}
		}
		return by, nil
	})
}

// names lists the keys in order.
func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
