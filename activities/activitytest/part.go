package activitytest

import (
	"context"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// Parts are the calls of an attempt whose intent was stored, in order.
func (s *Store) Parts(ctx context.Context, taskID string, n int) ([]mediagate.Part, error) {
	unlock, err := s.lock(ctx, "Parts")
	defer unlock()
	if err != nil {
		return nil, err
	}
	_, a, err := s.attempt(taskID, n)
	if err != nil {
		return nil, err
	}
	return slices.Clone(a.parts), nil
}

// OpenPart stores the intent of one call (D3).
func (s *Store) OpenPart(ctx context.Context, p mediagate.Part) (opened bool, err error) {
	err = s.change(ctx, "OpenPart", p.TaskID, p.N, func(r *record, a *attempt) error {
		switch {
		case r.task.Status.Terminal(), !r.task.CancelRequestedAt.IsZero(), s.late(r):
			return conflict("nobody waits for task %s any more", p.TaskID)
		case a.State != mediagate.AttemptIntent:
			return conflict("attempt %d of task %s is %s", p.N, p.TaskID, a.State)
		}
		p.State, p.SendBefore = mediagate.PartIntent, p.SendBefore.Truncate(time.Microsecond)
		at := slices.IndexFunc(a.parts, func(x mediagate.Part) bool { return x.Part == p.Part })
		switch {
		case p.Sends == 0 && at < 0:
			p.Sends, opened = 1, true
			a.parts = append(a.parts, p)
			slices.SortFunc(a.parts, func(x, y mediagate.Part) int { return x.Part - y.Part })
		case p.Sends > 0 && at >= 0 && a.parts[at].Sends == p.Sends && a.parts[at].State == mediagate.PartRefused && a.parts[at].Submission == nil:
			p.Sends, opened = p.Sends+1, true
			a.parts[at] = p
		}
		return nil
	})
	return opened, err
}

// EndPart stores what came of the intent with that SendBefore.
func (s *Store) EndPart(ctx context.Context, p mediagate.Part) error {
	return s.change(ctx, "EndPart", p.TaskID, p.N, func(_ *record, a *attempt) error {
		for i, x := range a.parts {
			if x.Part == p.Part && x.SendBefore.Equal(p.SendBefore.Truncate(time.Microsecond)) &&
				(x.State == mediagate.PartIntent || x.State == mediagate.PartUnknown) {
				x.State, x.Submission, x.Failure, x.Error = p.State, p.Submission, p.Failure, p.Error
				a.parts[i], a.latePart = x, a.latePart || over(a.State)
			}
		}
		return nil
	})
}

// openPart reports that the call may still store a file.
func openPart(p mediagate.Part) bool {
	return p.State == mediagate.PartIntent || p.State == mediagate.PartUnknown
}

// EditParts changes the calls of an attempt to set a scene.
func (s *Store) EditParts(id string, n int, f func([]mediagate.Part) []mediagate.Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, a, err := s.attempt(id, n); err == nil {
		a.parts = f(a.parts)
	}
}
