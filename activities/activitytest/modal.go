package activitytest

import (
	"context"
	"strconv"
	"time"

	"github.com/mediagate/mediagate"
)

// BeginModal notes that the attempt's job waits for modal parameters.
func (s *Store) BeginModal(ctx context.Context, taskID string, n int) error {
	return s.change(ctx, "BeginModal", taskID, n, func(r *record, a *attempt) error {
		if s.beginModal(r, a) {
			s.drop(taskID, n)
		}
		return nil
	})
}

// beginModal tells whether the task waits for that attempt, from now on or
// already.
func (s *Store) beginModal(r *record, a *attempt) bool {
	m := &r.task.Modal
	switch newest := r.attempts[len(r.attempts)-1]; {
	case m.State == mediagate.ModalWaiting && m.N == a.N:
		return true
	case m.State != mediagate.ModalNone, r.task.Plan.Modal <= 0, r.task.Status.Terminal(),
		a != newest, a.State != mediagate.AttemptAccepted, a.Outcome != nil:
		return false
	}
	now := s.clock()
	left := max(0, r.task.WaitsUntil(now).Sub(now))
	*m = mediagate.Modal{State: mediagate.ModalWaiting, N: a.N, Until: now.Add(r.task.Plan.Modal)}
	r.task.DeadlineAt = m.Until.Add(left)
	r.task.ParkedAt, r.task.ParkReason = time.Time{}, ""
	r.task.Version++
	a.slotUntil, a.Trouble = now, ""
	return true
}

// SubmitModal takes a client's modal parameters in. Idempotency is of the
// database only.
func (s *Store) SubmitModal(ctx context.Context, m mediagate.ModalCall) (mediagate.Action, bool, error) {
	unlock, err := s.lock(ctx, "SubmitModal")
	defer unlock()
	if err != nil {
		return mediagate.Action{}, false, err
	}
	r, err := s.record(m.TaskID)
	switch {
	case err != nil:
		return mediagate.Action{}, false, err
	case r.task.AccountID != m.AccountID:
		return mediagate.Action{}, false, missing("task", m.TaskID)
	case r.task.Modal.State != mediagate.ModalWaiting, r.task.Status.Terminal(), !r.task.CancelRequestedAt.IsZero():
		return mediagate.Action{}, false, conflict("the task does not wait for modal parameters")
	}
	now := s.clock()
	r.task.Modal.State, r.task.Modal.Input = mediagate.ModalSubmitted, m.Input
	r.task.Status, r.task.DeadlineAt = mediagate.StatusPending, now.Add(r.task.Plan.Timeout)
	r.task.ParkedAt, r.task.ParkReason = time.Time{}, ""
	r.task.Version++
	if _, a, err := s.attempt(m.TaskID, r.task.Modal.N); err == nil && a.State == mediagate.AttemptAccepted && a.Outcome == nil {
		a.State, a.EndedAt = mediagate.AttemptEnded, now
	}
	for _, a := range r.attempts {
		s.drop(m.TaskID, a.N)
	}
	s.ids++
	command := &mediagate.Action{
		ID: "act_" + strconv.Itoa(s.ids), TaskID: m.TaskID, Action: mediagate.ActionModal, By: "client", State: "pending", At: now,
	}
	s.actions = append(s.actions, command)
	return *command, false, nil
}

// ExpireModal ends a wait whose time is up.
func (s *Store) ExpireModal(ctx context.Context, taskID string) error {
	unlock, err := s.lock(ctx, "ExpireModal")
	defer unlock()
	if err != nil {
		return err
	}
	r, err := s.record(taskID)
	if err == nil && !r.task.Status.Terminal() && r.task.Modal.State == mediagate.ModalWaiting && !s.clock().Before(r.task.Modal.Until) {
		r.task.Modal.State = mediagate.ModalExpired
		r.task.Version++
	}
	return err
}
