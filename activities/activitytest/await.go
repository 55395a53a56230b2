package activitytest

import (
	"context"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// signalAgain is how long a signal that nobody took stays quiet.
const signalAgain = 30 * time.Second

type awaitRow struct {
	mediagate.Await
	unanswered   bool
	hintedAt     time.Time
	claimedUntil time.Time
	epoch        int64
}

func (s *Store) wait(r *record, a *attempt, next time.Time) {
	s.drop(a.TaskID, a.N)
	s.awaits = append(s.awaits, &awaitRow{Await: mediagate.Await{
		TaskID: a.TaskID, N: a.N, Channel: a.Channel, Fingerprint: a.Fingerprint, Model: r.task.Model, Ref: a.Ref,
		Expected: r.task.Plan.Expected, AcceptedAt: a.AcceptedAt, NextPollAt: next, Progress: r.task.Progress,
	}})
}

func (s *Store) drop(taskID string, n int) {
	s.awaits = slices.DeleteFunc(s.awaits, func(w *awaitRow) bool { return w.TaskID == taskID && w.N == n })
}

func (s *Store) channel(name string) *channelRow {
	if s.channels[name] == nil {
		s.channels[name] = &channelRow{state: mediagate.ChannelState{Name: name, Enabled: true}}
	}
	return s.channels[name]
}

// Awaits lists the rows that channels poll for.
func (s *Store) Awaits() []mediagate.Await {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]mediagate.Await, len(s.awaits))
	for i, w := range s.awaits {
		out[i] = w.Await
	}
	return out
}

// SeeChannel notes when a worker last had the channel.
func (s *Store) SeeChannel(name string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channel(name).seenAt = at
}

// BeginEpoch fences all runs before.
func (s *Store) BeginEpoch(ctx context.Context, channel string) (int64, error) {
	unlock, err := s.lock(ctx, "BeginEpoch")
	defer unlock()
	if err != nil {
		return 0, err
	}
	c := s.channel(channel)
	c.epoch++
	for _, w := range s.awaits {
		if w.Channel == channel && w.Ended {
			w.NextPollAt = s.clock()
		}
	}
	for _, q := range s.queue {
		if q.channel == channel && q.granted() {
			q.signalAt = s.clock()
		}
	}
	return c.epoch, nil
}

// ClaimDue takes due rows, for the current epoch only.
func (s *Store) ClaimDue(ctx context.Context, channel string, epoch int64, claim string, lease time.Duration, limit int) ([]mediagate.Await, error) {
	unlock, err := s.lock(ctx, "ClaimDue")
	defer unlock()
	if err != nil {
		return nil, err
	}
	if s.channel(channel).epoch != epoch {
		return nil, &mediagate.Error{Kind: mediagate.KindConflict, Code: "fenced", Message: "a newer run polls"}
	}
	now := s.clock()
	slices.SortStableFunc(s.awaits, func(a, b *awaitRow) int { return a.NextPollAt.Compare(b.NextPollAt) })
	var rows []mediagate.Await
	for _, w := range s.awaits {
		free := w.Claim == "" || !w.claimedUntil.After(now) || w.epoch < epoch
		if w.Channel != channel || w.NextPollAt.After(now) || !free || len(rows) == limit {
			continue
		}
		w.Claim, w.ClaimedAt, w.claimedUntil, w.epoch = claim, now, now.Add(lease), epoch
		row := w.Await
		row.Hinted = !w.hintedAt.IsZero()
		rows = append(rows, row)
		if w.Ended {
			w.NextPollAt = now.Add(signalAgain)
		}
	}
	return rows, nil
}

// AdvancePolls makes rows due now that are due after beyond.
func (s *Store) AdvancePolls(ctx context.Context, channel string, beyond, before time.Time, limit int) (int, error) {
	unlock, err := s.lock(ctx, "AdvancePolls")
	defer unlock()
	if err != nil {
		return 0, err
	}
	now, advanced := s.clock(), 0
	slices.SortStableFunc(s.awaits, func(a, b *awaitRow) int { return a.NextPollAt.Compare(b.NextPollAt) })
	for _, w := range s.awaits {
		if w.Channel == channel && w.NextPollAt.After(beyond) && w.Claim == "" && !w.Ended && w.Missing == 0 && !w.ClaimedAt.After(before) && advanced < limit {
			w.NextPollAt = now
			advanced++
		}
	}
	return advanced, nil
}

// AwaitStats counts a channel's rows.
func (s *Store) AwaitStats(ctx context.Context, channel string) (waiting int, next time.Time, err error) {
	unlock, err := s.lock(ctx, "AwaitStats")
	defer unlock()
	if err != nil {
		return 0, time.Time{}, err
	}
	now := s.clock()
	for _, w := range s.awaits {
		if w.Channel != channel {
			continue
		}
		waiting++
		if !w.claimedUntil.After(now) && (next.IsZero() || w.NextPollAt.Before(next)) {
			next = w.NextPollAt
		}
	}
	return waiting, next, nil
}

// StorePolls stores results of rows that the claim still holds.
func (s *Store) StorePolls(ctx context.Context, channel, claim string, results []mediagate.PollResult) ([]mediagate.Await, error) {
	unlock, err := s.lock(ctx, "StorePolls")
	defer unlock()
	if err != nil {
		return nil, err
	}
	var ended []mediagate.Await
	for _, p := range results {
		i := slices.IndexFunc(s.awaits, func(w *awaitRow) bool {
			return w.TaskID == p.TaskID && w.N == p.N && w.Channel == channel && w.Claim == claim && !w.Ended
		})
		r, a, err := s.attempt(p.TaskID, p.N)
		if i < 0 || err != nil {
			continue
		}
		w := s.awaits[i]
		w.Claim, w.claimedUntil, w.Missing = "", time.Time{}, p.Missing
		switch {
		case p.Outcome != nil:
			s.outcome(a, *p.Outcome)
		case p.Trouble != "":
			a.Trouble = p.Trouble
			s.inDoubt(r, a)
		case p.Waiting && s.beginModal(r, a):
		default:
			w.NextPollAt, w.unanswered = p.NextPollAt, w.unanswered && !p.Answered
			if w.hintedAt.After(w.ClaimedAt) {
				w.NextPollAt = s.clock()
			}
			w.Progress = max(w.Progress, min(p.Progress, 99))
			if !r.task.Status.Terminal() && w.Progress > r.task.Progress {
				r.task.Progress = w.Progress
				r.task.Version++
			}
			continue
		}
		w.Ended, w.NextPollAt = true, s.clock().Add(signalAgain)
		ended = append(ended, w.Await)
	}
	return ended, nil
}

// DropAwait forgets the signal that is outstanding for an attempt.
func (s *Store) DropAwait(ctx context.Context, taskID string, n int) error {
	unlock, err := s.lock(ctx, "DropAwait")
	defer unlock()
	if err == nil {
		s.awaits = slices.DeleteFunc(s.awaits, func(w *awaitRow) bool { return w.TaskID == taskID && w.N == n && w.Ended })
	}
	return err
}

// NoteTrouble ends the polling for an attempt that cannot be asked for.
func (s *Store) NoteTrouble(ctx context.Context, taskID string, n int, trouble mediagate.ParkReason) error {
	return s.change(ctx, "NoteTrouble", taskID, n, func(r *record, a *attempt) error {
		if !r.task.Status.Terminal() && a.State == mediagate.AttemptAccepted && a.Outcome == nil && r.task.Modal.State != mediagate.ModalWaiting {
			a.Trouble = trouble
			s.inDoubt(r, a)
			s.drop(taskID, n)
		}
		return nil
	})
}

// RestoreAwait polls again for an attempt that was in trouble.
func (s *Store) RestoreAwait(ctx context.Context, taskID string, n int, nextPollAt time.Time) error {
	return s.change(ctx, "RestoreAwait", taskID, n, func(r *record, a *attempt) error {
		if r.task.Status.Terminal() || a.State != mediagate.AttemptAccepted || a.Outcome != nil || r.task.Modal.State == mediagate.ModalWaiting {
			return conflict("nothing is to be polled for attempt %d of task %s", n, taskID)
		}
		a.Trouble = ""
		s.wait(r, a, nextPollAt)
		s.awaits[len(s.awaits)-1].unanswered = true
		return nil
	})
}

// HintPoll makes a task's rows due.
func (s *Store) HintPoll(ctx context.Context, taskID string) error {
	unlock, err := s.lock(ctx, "HintPoll")
	defer unlock()
	if err != nil {
		return err
	}
	now := s.clock()
	for _, w := range s.awaits {
		if w.TaskID == taskID && !w.hintedAt.After(now.Add(-time.Second)) {
			w.hintedAt, w.NextPollAt = now, now
		}
	}
	return nil
}

// ParkedTasks names the channel's parked tasks.
func (s *Store) ParkedTasks(ctx context.Context, channel string, reason mediagate.ParkReason, limit int) ([]string, error) {
	return s.find(ctx, "ParkedTasks", limit, func(r *record) time.Time { return r.task.ParkedAt }, func(r *record) bool {
		last := len(r.attempts) - 1
		return !r.task.Status.Terminal() && !r.task.ParkedAt.IsZero() && r.task.ParkReason == reason &&
			last >= 0 && r.attempts[last].Channel == channel
	})
}

// ChannelLastSeen tells when a worker last had the channel.
func (s *Store) ChannelLastSeen(ctx context.Context, name string) (time.Time, error) {
	unlock, err := s.lock(ctx, "ChannelLastSeen")
	defer unlock()
	if err != nil {
		return time.Time{}, err
	}
	c, ok := s.channels[name]
	if !ok || c.seenAt.IsZero() {
		return time.Time{}, missing("channel", name)
	}
	return c.seenAt, nil
}
