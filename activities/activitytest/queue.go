package activitytest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// queueRow is what the database keeps of a task's wait for a slot beside its state.
type queueRow struct {
	since     time.Time // since it waits, or since a grant was taken back
	grantedBy string    // the channel that holds a slot for it
	grantedAt time.Time
}

// queued are the tasks that wait for a slot of the channel, and those that one is
// granted to, the longest waiting first.
func (s *Store) queued(channel string) []*entry {
	rows := slices.DeleteFunc(s.entries(), func(e *entry) bool { return !slices.Contains(e.state.QueuedFor, channel) })
	slices.SortStableFunc(rows, func(a, b *entry) int { return a.queue.since.Compare(b.queue.since) })
	return rows
}

// slotsTaken counts the jobs of the channels and the grants that are not used, and
// tells since when the oldest job is there (D7).
func (s *Store) slotsTaken(channels []string) (taken int, oldest time.Time) {
	for _, e := range s.tasks {
		if slices.Contains(channels, e.queue.grantedBy) {
			taken++
		}
		for _, a := range e.state.Attempts {
			if !slices.Contains(channels, a.Channel) || !a.EndedAt.IsZero() || !a.SlotUntil.IsZero() && !a.SlotUntil.After(s.clock()) {
				continue
			}
			taken++
			if oldest.IsZero() || a.CreatedAt.Before(oldest) {
				oldest = a.CreatedAt
			}
		}
	}
	return taken, oldest
}

// takeSlot finds the slot that was granted, or one that nobody waits for.
func (s *Store) takeSlot(e *entry, channel string, slots mediagate.Slots) error {
	if slots.Limit <= 0 || slices.Contains(slots.Names, e.queue.grantedBy) {
		return nil
	}
	others := slices.ContainsFunc(slots.Names, func(name string) bool {
		return slices.ContainsFunc(s.queued(name), func(o *entry) bool { return o != e && o.queue.grantedBy != name })
	})
	if taken, _ := s.slotsTaken(slots.Names); others || taken >= slots.Limit {
		return mediagate.Errorf(mediagate.KindCapacity, "the channel %s has no free slot", channel)
	}
	s.serve(channel, e.task.AccountID)
	return nil
}

// serve puts the account behind all others.
func (s *Store) serve(channel, account string) {
	s.served[channel] = append(slices.DeleteFunc(s.served[channel], func(a string) bool { return a == account }), account)
}

// GrantSlots takes grants back that were not used, and gives free slots to accounts in
// turns.
func (s *Store) GrantSlots(ctx context.Context, g mediagate.Granting) (mediagate.Granted, error) {
	return under(ctx, s, "GrantSlots", func() (got mediagate.Granted, err error) {
		if err := s.fence(g.Channel, g.Epoch); err != nil {
			return got, err
		}
		now := s.clock()
		for _, e := range s.queued(g.Channel) {
			if e.queue.grantedBy == g.Channel && !e.queue.grantedAt.After(now.Add(-g.TakeBack)) {
				e.state.Granted, e.queue = false, queueRow{since: now}
			}
		}
		got.InFlight, _ = s.slotsTaken(g.Slots.Names)
		waiting := slices.DeleteFunc(s.queued(g.Channel), func(e *entry) bool { return e.state.Granted })
		for ; len(waiting) > 0 && len(got.Tasks) < g.Most && (g.Slots.Limit <= 0 || got.InFlight < g.Slots.Limit); got.InFlight++ {
			next := slices.MinFunc(waiting, func(a, b *entry) int {
				return cmp.Compare(slices.Index(s.served[g.Channel], a.task.AccountID), slices.Index(s.served[g.Channel], b.task.AccountID))
			})
			waiting = slices.DeleteFunc(waiting, func(e *entry) bool { return e == next })
			next.state.Granted, next.queue.grantedBy, next.queue.grantedAt = true, g.Channel, now
			next.soon(now.Add(signalLease))
			s.serve(g.Channel, next.task.AccountID)
			got.Tasks = append(got.Tasks, next.task.ID)
		}
		got.Waiting = len(waiting)
		return got, nil
	})
}

// QueuedTasks lists tasks that are queued under the name.
func (s *Store) QueuedTasks(ctx context.Context, channel string, limit int) ([]mediagate.Queued, error) {
	return under(ctx, s, "QueuedTasks", func() (rows []mediagate.Queued, err error) {
		for _, e := range s.queued(channel) {
			n := 1
			if a := e.state.Last(); a != nil {
				n = a.N + 1
			}
			rows = append(rows, mediagate.Queued{TaskID: e.task.ID, N: n})
		}
		return rows[:min(limit, len(rows))], nil
	})
}

// ChannelLoad counts the jobs of a channel and the tasks that are queued for it.
func (s *Store) ChannelLoad(ctx context.Context, name string) (inFlight, queued int, oldest time.Time, err error) {
	err = s.run(ctx, "ChannelLoad", func() error {
		inFlight, oldest = s.slotsTaken([]string{name})
		for _, e := range s.queued(name) {
			if e.queue.grantedBy != name {
				queued++
			}
			if oldest.IsZero() || e.queue.since.Before(oldest) {
				oldest = e.queue.since
			}
		}
		return nil
	})
	return inFlight, queued, oldest, err
}
