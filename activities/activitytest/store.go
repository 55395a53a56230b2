package activitytest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

// Store keeps tasks in memory. Its writes are conditional as those of the
// database are: what was decided first stays.
type Store struct {
	// Fault may fail a method before it does anything; it gets the method's
	// name. Set it before the store is used.
	Fault func(method string) error
	// Skip are tasks that others write at this moment: MarkChecked leaves them out.
	Skip map[string]bool

	now func() time.Time

	mu       sync.Mutex
	tasks    map[string]*record
	actions  []*mediagate.Action
	takers   map[string]string // by action
	awaits   []*awaitRow
	queue    []*queueRow
	turns    map[string][]string // by channel, the accounts that it served, the last one last
	channels map[string]*channelRow
	calls    []mediagate.ChannelCalls
	proofs   []mediagate.AccountProof
	ids      int
}

// record is all that is stored of a task.
type record struct {
	task       mediagate.Task
	attempts   []*attempt
	deliveries []mediagate.Delivery
	body       []byte
	bodyAt     time.Time
	settled    []mediagate.Settlement // those that won
	seen       bool                   // a run has been seen
	checkedAt  time.Time
	pending    time.Time // when the callback's round began or was offered
	rescues    int
	rescueAt   time.Time
	judgement  mediagate.Judgement
	sweepAt    time.Time // when files that are not shown are looked for
}

type attempt struct {
	mediagate.Attempt
	rejection *mediagate.Failure
	parts     []mediagate.Part
	latePart  bool // one reported after the attempt's end
	slotUntil time.Time
}

type channelRow struct {
	epoch  int64
	seenAt time.Time
	state  mediagate.ChannelState
	probe  string
}

// NewStore makes an empty store on the clock.
func NewStore(now func() time.Time) *Store {
	return &Store{
		now: now, tasks: make(map[string]*record), channels: make(map[string]*channelRow), turns: make(map[string][]string), takers: make(map[string]string),
	}
}

// lock begins a method: its fault strikes first, and a caller that is not there
// any more finds the store away, as it does a database.
func (s *Store) lock(ctx context.Context, method string) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return func() {}, mediagate.Errorf(mediagate.KindUnavailable, "the database is away: %w", err)
	}
	if s.Fault != nil {
		if err := s.Fault(method); err != nil {
			return func() {}, err
		}
	}
	s.mu.Lock()
	return s.mu.Unlock, nil
}

func (s *Store) clock() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

func missing(what, id string) error {
	return mediagate.Errorf(mediagate.KindNotFound, "no %s %q", what, id)
}

func conflict(format string, args ...any) error {
	return mediagate.Errorf(mediagate.KindConflict, format, args...)
}

func (s *Store) record(id string) (*record, error) {
	r, ok := s.tasks[id]
	if !ok {
		return nil, missing("task", id)
	}
	return r, nil
}

func (s *Store) attempt(id string, n int) (*record, *attempt, error) {
	r, err := s.record(id)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range r.attempts {
		if a.N == n {
			return r, a, nil
		}
	}
	return r, nil, missing("attempt of "+id, strconv.Itoa(n))
}

// Add stores a task as a submit would have.
func (s *Store) Add(t mediagate.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Version = max(t.Version, 1)
	s.tasks[t.ID] = &record{task: t, checkedAt: s.clock()}
}

// Remove loses a task's row.
func (s *Store) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tasks, id)
}

// Edit changes a task's row as no method would, to set a scene.
func (s *Store) Edit(id string, f func(*mediagate.Task)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.tasks[id].task)
}

// EditAttempt changes an attempt's row to set a scene.
func (s *Store) EditAttempt(id string, n int, f func(*mediagate.Attempt)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, a, err := s.attempt(id, n); err == nil {
		f(&a.Attempt)
	}
}

// Settlements are the ends that were written for a task: never more than one.
func (s *Store) Settlements(id string) []mediagate.Settlement {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.tasks[id]; ok {
		return slices.Clone(r.settled)
	}
	return nil
}

// Attempts lists a task's attempts in their order.
func (s *Store) Attempts(id string) []mediagate.Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []mediagate.Attempt
	if r, ok := s.tasks[id]; ok {
		for _, a := range r.attempts {
			out = append(out, a.Attempt)
		}
	}
	return out
}

// Actions lists the commands of operators.
func (s *Store) Actions() []mediagate.Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]mediagate.Action, len(s.actions))
	for i, a := range s.actions {
		out[i] = *a
	}
	return out
}

// Story reads a task's story.
func (s *Store) Story(ctx context.Context, taskID string) (mediagate.Story, error) {
	unlock, err := s.lock(ctx, "Story")
	defer unlock()
	if err != nil {
		return mediagate.Story{}, err
	}
	return s.story(taskID), nil
}

func (s *Store) story(taskID string) mediagate.Story {
	r, ok := s.tasks[taskID]
	if !ok {
		return mediagate.Story{Missing: true}
	}
	t := r.task
	st := mediagate.Story{
		ReadAt: s.clock(), Status: t.Status, Model: t.Model, Type: t.Type,
		CancelRequested: !t.CancelRequestedAt.IsZero(), DeadlineAt: t.DeadlineAt,
		ParkedAt: t.ParkedAt, ParkReason: t.ParkReason, QueuedAt: t.QueuedAt, QueuedFor: s.queuedFor(taskID), Granted: s.hasGrant(taskID),
		Expected: t.Plan.Expected, OnUnknown: t.Plan.OnUnknown,
	}
	if t.Modal.State == mediagate.ModalWaiting {
		st.ModalUntil = t.Modal.Until
	}
	st.ModalExpired = t.Modal.State == mediagate.ModalExpired
	if t.Webhook != nil {
		st.WebhookRound, st.WebhookState = t.Webhook.Round, t.Webhook.State
	}
	if len(r.attempts) == 0 {
		st.JudgeInputs, st.Failure = len(t.Plan.Inputs) > 0 && !r.judgement.Over, r.judgement.Failure
		return st
	}
	a := r.attempts[len(r.attempts)-1]
	st.N, st.State, st.Channel, st.Provider, st.Trouble = a.N, a.State, a.Channel, a.Provider, a.Trouble
	st.SendBefore, st.AbsentAt, st.Mirrored, st.Sync, st.CanFind = a.SendBefore, a.AbsentAt, a.Results != nil, a.Route.Sync, a.Route.Find
	st.Outstanding = slices.ContainsFunc(s.awaits, func(w *awaitRow) bool { return w.TaskID == taskID && w.N == a.N && w.Ended })
	st.Unanswered = slices.ContainsFunc(s.awaits, func(w *awaitRow) bool { return w.TaskID == taskID && w.N == a.N && w.unanswered })
	st.SenderLost = a.State == mediagate.AttemptUnknown && a.Error == mediagate.SenderLost
	st.Failure = a.rejection
	if a.Outcome != nil {
		st.Succeeded, st.Failure = a.Outcome.Succeeded, a.Outcome.Failure
	}
	return st
}

// TaskByID reads a task.
func (s *Store) TaskByID(ctx context.Context, taskID string) (mediagate.Task, error) {
	unlock, err := s.lock(ctx, "TaskByID")
	defer unlock()
	if err != nil {
		return mediagate.Task{}, err
	}
	r, err := s.record(taskID)
	if err != nil {
		return mediagate.Task{}, err
	}
	t := r.task
	if t.Webhook != nil {
		w := *t.Webhook
		t.Webhook = &w
	}
	return t, nil
}

// RequestCancel notes the client's wish.
func (s *Store) RequestCancel(ctx context.Context, accountID, taskID string) (mediagate.Task, error) {
	unlock, err := s.lock(ctx, "RequestCancel")
	defer unlock()
	if err != nil {
		return mediagate.Task{}, err
	}
	r, err := s.record(taskID)
	switch {
	case err != nil:
		return mediagate.Task{}, err
	case r.task.AccountID != accountID:
		return mediagate.Task{}, missing("task", taskID)
	case r.task.Status.Terminal():
		return mediagate.Task{}, conflict("task %s has ended", taskID)
	case r.task.CancelRequestedAt.IsZero():
		r.task.CancelRequestedAt = s.clock()
		r.task.Version++
	}
	return r.task, nil
}

// Park notes that a task is stuck; the first time of a reason counts.
func (s *Store) Park(ctx context.Context, taskID string, reason mediagate.ParkReason) error {
	unlock, err := s.lock(ctx, "Park")
	defer unlock()
	if err != nil {
		return err
	}
	r, err := s.record(taskID)
	if err != nil || r.task.Status.Terminal() {
		return err
	}
	s.leaveQueue(r)
	if !r.task.ParkedAt.IsZero() && r.task.ParkReason == reason {
		return nil
	}
	if reason == mediagate.ParkSubmissionUnknown || r.task.ParkReason == mediagate.ParkSubmissionUnknown {
		s.unpark(r)
	}
	if r.task.ParkedAt.IsZero() {
		r.task.ParkedAt = s.clock()
	}
	r.task.ParkReason = reason
	return nil
}

// Unpark ends the parking and moves the deadline by its length.
func (s *Store) Unpark(ctx context.Context, taskID string) error {
	unlock, err := s.lock(ctx, "Unpark")
	defer unlock()
	if err != nil {
		return err
	}
	r, err := s.record(taskID)
	if err == nil && !r.task.Status.Terminal() && !r.task.ParkedAt.IsZero() {
		s.unpark(r)
		for _, a := range r.attempts {
			if a.State == mediagate.AttemptAccepted && a.Trouble == "" && r.task.Modal.State != mediagate.ModalWaiting {
				a.slotUntil = time.Time{}
			}
		}
	}
	return err
}

func (s *Store) unpark(r *record) {
	if !r.task.ParkedAt.IsZero() {
		until := s.clock()
		if !r.task.QueuedAt.IsZero() {
			until = r.task.QueuedAt
		}
		r.task.DeadlineAt = r.task.DeadlineAt.Add(max(0, until.Sub(r.task.ParkedAt)))
		r.task.ParkedAt, r.task.ParkReason = time.Time{}, ""
	}
}

// RecordAction stores a command once.
func (s *Store) RecordAction(ctx context.Context, a mediagate.Action) (mediagate.Action, error) {
	unlock, err := s.lock(ctx, "RecordAction")
	defer unlock()
	if err != nil {
		return mediagate.Action{}, err
	}
	if _, err := s.record(a.TaskID); err != nil {
		return mediagate.Action{}, err
	}
	for _, stored := range s.actions {
		if stored.ID == a.ID {
			return *stored, nil
		}
	}
	if a.ID == "" {
		s.ids++
		a.ID = "act_" + strconv.Itoa(s.ids)
	}
	if a.At.IsZero() {
		a.At = s.clock()
	}
	a.State = "pending"
	s.actions = append(s.actions, &a)
	return a, nil
}

// TakeAction tells the first taker of a command true.
func (s *Store) TakeAction(ctx context.Context, id, taker string) (bool, error) {
	unlock, err := s.lock(ctx, "TakeAction")
	defer unlock()
	if err != nil {
		return false, err
	}
	for _, a := range s.actions {
		if a.ID == id && (a.State == "pending" || s.takers[id] == taker) {
			if a.State == "pending" {
				s.extend(a)
			}
			a.State, s.takers[id] = "taken", taker
			return true, nil
		}
	}
	return false, nil
}

// extend gives an open task that is to be tried again the time of a new one.
func (s *Store) extend(a *mediagate.Action) {
	r, ok := s.tasks[a.TaskID]
	if !ok || a.Action != mediagate.ActionRetry || r.task.Status.Terminal() {
		return
	}
	if r.task.ParkReason == mediagate.ParkSubmissionUnknown { // the deadline ends that parking
		s.unpark(r)
	}
	now := s.clock()
	moved := r.task.WaitsUntil(now).Sub(r.task.DeadlineAt)
	if deadline := now.Add(r.task.Plan.Timeout - moved); deadline.After(r.task.DeadlineAt) {
		r.task.DeadlineAt = deadline
	}
}

// names lists the keys in order.
func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
