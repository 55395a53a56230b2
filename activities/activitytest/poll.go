package activitytest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// poll is what the database keeps of the polling for an attempt beside its task.Await.
type poll struct {
	missing      int // see mediagate.PollResult
	hinted       bool
	claimedAt    time.Time
	claimedUntil time.Time
	epoch        int64
}

// awaited is an attempt that its channel polls for.
type awaited struct {
	*entry
	*poll
	a *task.Attempt
}

// awaited are the attempts that the channel polls for, the next one first.
func (s *Store) awaited(channel string) (rows []awaited) {
	for _, e := range s.entries() {
		for i := range e.state.Attempts {
			if a := &e.state.Attempts[i]; a.Await != nil && a.Channel == channel {
				rows = append(rows, awaited{e, e.polls[a.N], a})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b awaited) int { return a.a.Await.NextPollAt.Compare(b.a.Await.NextPollAt) })
	return rows
}

func (w awaited) row() mediagate.Await {
	return mediagate.Await{
		TaskID: w.task.ID, N: w.a.N, Channel: w.a.Channel, Fingerprint: w.a.Fingerprint, Model: w.task.Model, Ref: w.a.Ref,
		Expected: w.state.Terms.Expected, AcceptedAt: w.a.AcceptedAt, NextPollAt: w.a.Await.NextPollAt, Claim: w.a.Await.Claim, ClaimedAt: w.claimedAt,
		Hinted: w.hinted, Progress: w.state.Progress, Missing: w.missing,
	}
}

// Awaits lists the attempts that channels poll for, by task.
func (s *Store) Awaits() []mediagate.Await {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []mediagate.Await
	for _, name := range s.awaitChannels() {
		for _, w := range s.awaited(name) {
			rows = append(rows, w.row())
		}
	}
	slices.SortStableFunc(rows, func(a, b mediagate.Await) int { return cmp.Compare(a.TaskID, b.TaskID) })
	return rows
}

func (s *Store) channel(name string) *channelRow {
	if s.channels[name] == nil {
		s.channels[name] = &channelRow{state: mediagate.ChannelState{Name: name, Enabled: true}}
	}
	return s.channels[name]
}

// SeeChannel notes when a worker last had the channel.
func (s *Store) SeeChannel(name string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channel(name).seenAt = at
}

// BeginEpoch fences all pollers before.
func (s *Store) BeginEpoch(ctx context.Context, channel string) (int64, error) {
	return under(ctx, s, "BeginEpoch", func() (int64, error) {
		c := s.channel(channel)
		c.epoch++
		return c.epoch, nil
	})
}

// fence refuses the poller of a former epoch (D8).
func (s *Store) fence(channel string, epoch int64) error {
	if s.channel(channel).epoch != epoch {
		return &mediagate.Error{Kind: mediagate.KindConflict, Code: "fenced", Message: "a newer run polls"}
	}
	return nil
}

// ClaimDue gives due rows to a poller, for the current epoch only.
func (s *Store) ClaimDue(ctx context.Context, channel string, epoch int64, claim string, lease time.Duration, limit int) ([]mediagate.Await, error) {
	return under(ctx, s, "ClaimDue", func() (rows []mediagate.Await, err error) {
		if err := s.fence(channel, epoch); err != nil {
			return nil, err
		}
		now := s.clock()
		for _, w := range s.awaited(channel) {
			free := w.a.Await.Claim == "" || !w.claimedUntil.After(now) || w.epoch < epoch
			if w.a.Await.NextPollAt.After(now) || !free || len(rows) == limit {
				continue
			}
			if _, err := w.state.Apply(task.Claimed{N: w.a.N, Claim: claim}, now); err != nil {
				return nil, err
			}
			w.claimedAt, w.claimedUntil, w.epoch = now, now.Add(lease), epoch
			rows = append(rows, w.row())
		}
		return rows, nil
	})
}

// StorePolls stores quiet answers. Ends, troubles, waits for modal parameters, and answers
// for parked tasks are left to Change; ends also without a claim. A poll without an answer
// only sets the next time.
func (s *Store) StorePolls(ctx context.Context, channel, claim string, results []mediagate.PollResult) ([]mediagate.PollResult, error) {
	return under(ctx, s, "StorePolls", func() (left []mediagate.PollResult, err error) {
		rows := s.awaited(channel)
		for _, r := range results {
			if r.Outcome != nil {
				left = append(left, r)
				continue
			}
			at := slices.IndexFunc(rows, func(w awaited) bool { return w.task.ID == r.TaskID && w.a.N == r.N && w.a.Await.Claim == claim })
			if at < 0 {
				continue
			}
			w, now := rows[at], s.clock()
			if r.Trouble != "" || r.Waiting || r.Answered && w.open() && w.state.Last() == w.a && !w.state.ParkedAt.IsZero() {
				left = append(left, r)
				continue
			}
			w.missing, w.claimedUntil = r.Missing, time.Time{}
			if !r.Answered {
				if w.a.Await.Again {
					r.NextPollAt = now
				}
				*w.a.Await = task.Await{NextPollAt: r.NextPollAt}
			} else if _, err := w.state.Apply(task.Progressed{N: r.N, Claim: claim, Percent: r.Progress, NextAt: r.NextPollAt}, now); err != nil {
				return nil, err
			}
		}
		return left, nil
	})
}

// AwaitStats counts a channel's rows, and tells when the next one is due.
func (s *Store) AwaitStats(ctx context.Context, channel string) (waiting int, next time.Time, err error) {
	err = s.run(ctx, "AwaitStats", func() error {
		rows := s.awaited(channel)
		waiting = len(rows)
		if at := slices.IndexFunc(rows, func(w awaited) bool { return !w.claimedUntil.After(s.clock()) }); at >= 0 {
			next = rows[at].a.Await.NextPollAt
		}
		return nil
	})
	return waiting, next, err
}

// AwaitChannels names the channels that are polled or queued for.
func (s *Store) AwaitChannels(ctx context.Context) ([]string, error) {
	return under(ctx, s, "AwaitChannels", func() ([]string, error) { return s.awaitChannels(), nil })
}

func (s *Store) awaitChannels() []string {
	found := map[string]bool{}
	for _, e := range s.tasks {
		for _, a := range e.state.Attempts {
			if a.Await != nil {
				found[a.Channel] = true
			}
		}
		for _, name := range e.state.QueuedFor {
			found[name] = true
		}
	}
	return names(found)
}

// AwaitAccounts lists the fingerprints of a channel's rows.
func (s *Store) AwaitAccounts(ctx context.Context, channel string) ([]string, error) {
	return under(ctx, s, "AwaitAccounts", func() ([]string, error) {
		found := map[string]bool{}
		for _, w := range s.awaited(channel) {
			found[w.a.Fingerprint] = true
		}
		return names(found), nil
	})
}
