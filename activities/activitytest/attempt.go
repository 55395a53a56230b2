package activitytest

import (
	"context"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// Attempt reads one attempt.
func (s *Store) Attempt(ctx context.Context, taskID string, n int) (mediagate.Attempt, error) {
	unlock, err := s.lock(ctx, "Attempt")
	defer unlock()
	if err != nil {
		return mediagate.Attempt{}, err
	}
	_, a, err := s.attempt(taskID, n)
	if err != nil {
		return mediagate.Attempt{}, err
	}
	return a.Attempt, nil
}

// Refusals counts a task's rejected attempts.
func (s *Store) Refusals(ctx context.Context, taskID string) (map[string]int, error) {
	unlock, err := s.lock(ctx, "Refusals")
	defer unlock()
	if err != nil {
		return nil, err
	}
	by := make(map[string]int)
	if r, ok := s.tasks[taskID]; ok {
		for _, a := range r.attempts {
			if a.State == mediagate.AttemptRejected {
				by[a.Channel]++
			}
		}
	}
	return by, nil
}

// OpenAttempt stores an intent, on a task that is open, not to be cancelled,
// and without a later attempt (D3).
func (s *Store) OpenAttempt(ctx context.Context, in mediagate.Attempt, slots mediagate.Slots) (mediagate.Attempt, bool, error) {
	unlock, err := s.lock(ctx, "OpenAttempt")
	defer unlock()
	if err != nil {
		return mediagate.Attempt{}, false, err
	}
	r, found, err := s.attempt(in.TaskID, in.N)
	switch {
	case r == nil:
		return mediagate.Attempt{}, false, err
	case found != nil:
		return found.Attempt, false, nil
	}
	if err := s.mayOpen(r, in.N); err != nil {
		return mediagate.Attempt{}, false, err
	}
	if err := s.takeSlot(r, in.Channel, slots); err != nil {
		return mediagate.Attempt{}, false, err
	}
	s.leaveQueue(r)
	in.Sends, in.State, in.SendBefore = 1, mediagate.AttemptIntent, in.SendBefore.UTC().Truncate(time.Microsecond)
	if in.CreatedAt.IsZero() {
		in.CreatedAt = s.clock()
	}
	r.attempts, r.seen = append(r.attempts, &attempt{Attempt: in}), true
	if in.Route.Sync {
		s.begin(r)
	}
	return in, true, nil
}

// mayOpen tells whether attempt n may be made.
func (s *Store) mayOpen(r *record, n int) error {
	id := r.task.ID
	switch {
	case len(r.attempts) > 0 && r.attempts[len(r.attempts)-1].N > n:
		return conflict("task %s has a later attempt", id)
	case len(r.attempts) > 0 && !over(r.attempts[len(r.attempts)-1].State):
		return conflict("the attempt before is open")
	case r.task.Status.Terminal():
		return conflict("task %s has ended", id)
	case !r.task.CancelRequestedAt.IsZero():
		return conflict("task %s is to be cancelled", id)
	case s.late(r):
		return conflict("nobody waits for task %s any more", id)
	}
	return nil
}

// begin notes that the vendor works, once.
func (s *Store) begin(r *record) {
	if r.task.Status == mediagate.StatusPending {
		r.task.Status = mediagate.StatusProcessing
		if r.task.StartedAt.IsZero() {
			r.task.StartedAt = s.clock()
		}
		r.task.Version++
	}
}

// late reports that the waiting for the vendor has ended.
func (s *Store) late(r *record) bool {
	return !s.clock().Before(r.task.WaitsUntil(s.clock()))
}

func over(s mediagate.AttemptState) bool {
	return s == mediagate.AttemptRejected || s == mediagate.AttemptEnded
}

// AcceptAttempt stores the vendor's id. A job that nobody waits for is
// recorded only, and ended is true (D5).
func (s *Store) AcceptAttempt(ctx context.Context, taskID string, n int, sub mediagate.Submission, firstPollAt time.Time) (bool, error) {
	unlock, err := s.lock(ctx, "AcceptAttempt")
	defer unlock()
	if err != nil {
		return false, err
	}
	r, a, err := s.attempt(taskID, n)
	if err != nil {
		return false, err
	}
	ended := r.task.Status.Terminal()
	switch {
	case a.State == mediagate.AttemptRejected:
		return ended, conflict("attempt %d of task %s was rejected", n, taskID)
	case a.Ref != mediagate.JobRef{}:
		return ended, nil
	}
	a.Ref, a.AcceptedAt = sub.Ref, s.clock()
	if ended || a.State == mediagate.AttemptEnded {
		a.State = mediagate.AttemptEnded
		switch {
		case a.Outcome == nil && sub.Outcome == nil: // it runs on
			a.EndedAt, a.slotUntil = time.Time{}, s.slotUntil(r)
		case a.Outcome == nil:
			a.Outcome = sub.Outcome
			fallthrough
		default:
			if a.EndedAt.IsZero() {
				a.EndedAt = s.clock()
			}
		}
		return true, nil
	}
	a.State, a.Outcome, a.Error, a.slotUntil = mediagate.AttemptAccepted, sub.Outcome, "", time.Time{}
	if sub.Outcome == nil {
		s.wait(r, a, firstPollAt)
	} else {
		a.State, a.EndedAt = mediagate.AttemptEnded, s.clock()
	}
	s.begin(r)
	if r.task.ParkReason == mediagate.ParkSubmissionUnknown {
		s.unpark(r)
	}
	return false, nil
}

// RejectAttempt stores a proven refusal of the intent with that sendBefore.
func (s *Store) RejectAttempt(ctx context.Context, taskID string, n int, sendBefore time.Time, f mediagate.Failure, detail string) error {
	return s.change(ctx, "RejectAttempt", taskID, n, func(_ *record, a *attempt) error {
		if (a.State == mediagate.AttemptIntent || a.State == mediagate.AttemptUnknown) && a.SendBefore.Equal(sendBefore) {
			a.State, a.rejection, a.Error, a.EndedAt = mediagate.AttemptRejected, &f, detail, s.clock()
		}
		return nil
	})
}

// MarkUnknown notes that the fate of the intent with that sendBefore is open.
func (s *Store) MarkUnknown(ctx context.Context, taskID string, n int, sendBefore time.Time, detail string) error {
	return s.change(ctx, "MarkUnknown", taskID, n, func(r *record, a *attempt) error {
		if a.State == mediagate.AttemptIntent && a.SendBefore.Equal(sendBefore) {
			a.State, a.Error, a.slotUntil = mediagate.AttemptUnknown, detail, s.slotUntil(r)
		}
		return nil
	})
}

// DoubtRefusal keeps a refusal that may mean that the vendor has the job.
func (s *Store) DoubtRefusal(ctx context.Context, taskID string, n int, sendBefore time.Time, f mediagate.Failure, detail string) error {
	return s.change(ctx, "DoubtRefusal", taskID, n, func(r *record, a *attempt) error {
		if a.State == mediagate.AttemptIntent && a.SendBefore.Equal(sendBefore) {
			a.State, a.Refusal, a.Error, a.slotUntil = mediagate.AttemptUnknown, &f, detail, s.slotUntil(r)
		}
		return nil
	})
}

// NoteAbsent keeps the first two times that a lookup found nothing: the second
// counts when it began gap after the first was noted.
func (s *Store) NoteAbsent(ctx context.Context, taskID string, n int, sendBefore, asked time.Time, gap time.Duration) (first time.Time, proven bool, err error) {
	err = s.change(ctx, "NoteAbsent", taskID, n, func(_ *record, a *attempt) error {
		if a.State != mediagate.AttemptUnknown || !a.SendBefore.Equal(sendBefore) {
			return conflict("attempt %d of task %s is %s", n, taskID, a.State)
		}
		switch {
		case a.AbsentAt.IsZero():
			a.AbsentAt = s.clock()
		case a.AgainAt.IsZero() && !asked.Before(a.AbsentAt.Add(gap)):
			a.AgainAt = s.clock()
		}
		first, proven = a.AbsentAt, !a.AgainAt.IsZero()
		return nil
	})
	return first, proven, err
}

// ReopenIntent lets the same external id be sent again.
func (s *Store) ReopenIntent(ctx context.Context, taskID string, n int, lost, sendBefore time.Time) (reopened bool, err error) {
	err = s.change(ctx, "ReopenIntent", taskID, n, func(r *record, a *attempt) error {
		if r.task.Status.Terminal() || !r.task.CancelRequestedAt.IsZero() || a.State != mediagate.AttemptUnknown ||
			a.AgainAt.IsZero() || a.Refusal != nil || !a.SendBefore.Equal(lost) || s.late(r) {
			return nil
		}
		a.State, a.SendBefore, a.AbsentAt, a.AgainAt, a.Error = mediagate.AttemptIntent, sendBefore, time.Time{}, time.Time{}, ""
		a.slotUntil = time.Time{}
		a.Sends++
		reopened = true
		return nil
	})
	return reopened, err
}

// GiveUpAttempt ends an attempt whose fate is unknown, if a retry was ordered
// since it was made.
func (s *Store) GiveUpAttempt(ctx context.Context, taskID string, n int, detail string) error {
	return s.change(ctx, "GiveUpAttempt", taskID, n, func(_ *record, a *attempt) error {
		ordered := slices.ContainsFunc(s.actions, func(o *mediagate.Action) bool {
			return o.TaskID == taskID && o.Action == mediagate.ActionRetry && o.State == "taken" && o.At.After(a.CreatedAt)
		})
		if a.State == mediagate.AttemptUnknown && ordered {
			a.State, a.Error, a.EndedAt = mediagate.AttemptEnded, detail, s.clock()
		}
		return nil
	})
}

// RecordOutcome stores how an attempt ended: the first to tell counts.
func (s *Store) RecordOutcome(ctx context.Context, taskID string, n int, o mediagate.Outcome) (won bool, err error) {
	err = s.change(ctx, "RecordOutcome", taskID, n, func(_ *record, a *attempt) error {
		s.drop(taskID, n)
		won = s.outcome(a, o)
		return nil
	})
	return won, err
}

func (s *Store) outcome(a *attempt, o mediagate.Outcome) bool {
	if a.Outcome != nil {
		return false
	}
	a.Outcome, a.State, a.Trouble, a.EndedAt = &o, mediagate.AttemptEnded, "", s.clock()
	return true
}

// StoreMirrored stores an attempt's files.
func (s *Store) StoreMirrored(ctx context.Context, taskID string, n int, results []mediagate.Result) error {
	return s.change(ctx, "StoreMirrored", taskID, n, func(_ *record, a *attempt) error {
		a.Results = append([]mediagate.Result{}, results...)
		return nil
	})
}

// change runs f on an attempt's row.
func (s *Store) change(ctx context.Context, method, taskID string, n int, f func(*record, *attempt) error) error {
	unlock, err := s.lock(ctx, method)
	defer unlock()
	if err != nil {
		return err
	}
	r, a, err := s.attempt(taskID, n)
	if err != nil {
		return err
	}
	return f(r, a)
}

// Producer reads the attempt that made what a completed task shows.
func (s *Store) Producer(ctx context.Context, taskID string) (mediagate.Attempt, error) {
	unlock, err := s.lock(ctx, "Producer")
	defer unlock()
	if err != nil {
		return mediagate.Attempt{}, err
	}
	if r, ok := s.tasks[taskID]; ok && r.task.Status == mediagate.StatusCompleted {
		for _, a := range slices.Backward(r.attempts) {
			if a.Outcome != nil && a.Outcome.Succeeded && a.Results != nil {
				return a.Attempt, nil
			}
		}
	}
	return mediagate.Attempt{}, missing("attempt", taskID)
}
