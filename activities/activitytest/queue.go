package activitytest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

type queueRow struct {
	mediagate.Queued
	channel, account    string
	since               time.Time
	grantedAt, signalAt time.Time
}

func (q *queueRow) granted() bool { return !q.grantedAt.IsZero() }

// slotUntil is until when a job has its slot of which nobody can tell.
func (s *Store) slotUntil(r *record) time.Time {
	return s.clock().Add(mediagate.SlotsLost * r.task.Plan.Expected)
}

// inDoubt lets the slot of a job go in a while, once.
func (s *Store) inDoubt(r *record, a *attempt) {
	if a.slotUntil.IsZero() {
		a.slotUntil = s.slotUntil(r)
	}
}

// endAttempt ends an attempt of a task that ends. A job that may run on keeps
// its slot for a while.
func (s *Store) endAttempt(r *record, a *attempt, endedAt time.Time) {
	if over(a.State) {
		return
	}
	held := a.slotUntil.IsZero() || a.slotUntil.After(s.clock())
	if runsOn := a.State == mediagate.AttemptAccepted || a.State == mediagate.AttemptUnknown; runsOn && held && a.Outcome == nil {
		s.inDoubt(r, a)
	} else if a.EndedAt.IsZero() {
		a.EndedAt = endedAt
	}
	a.State = mediagate.AttemptEnded
}

// ReleaseSlot stores that the attempt's job was stopped.
func (s *Store) ReleaseSlot(ctx context.Context, taskID string, n int) error {
	return s.change(ctx, "ReleaseSlot", taskID, n, func(_ *record, a *attempt) error {
		if a.EndedAt.IsZero() {
			a.slotUntil = s.clock()
			if a.State == mediagate.AttemptEnded {
				a.EndedAt = s.clock()
			}
		}
		return nil
	})
}

// EndSlots ends the attempts whose jobs have had their time.
func (s *Store) EndSlots(ctx context.Context) error {
	unlock, err := s.lock(ctx, "EndSlots")
	defer unlock()
	if err != nil {
		return err
	}
	for _, r := range s.tasks {
		for _, a := range r.attempts {
			if a.State == mediagate.AttemptEnded && a.EndedAt.IsZero() && !a.slotUntil.IsZero() && !a.slotUntil.After(s.clock()) {
				a.EndedAt = a.slotUntil
			}
		}
	}
	return nil
}

// slotsTaken counts the jobs of the names, and the grants that are not used.
func (s *Store) slotsTaken(names []string) (taken int, oldest time.Time) {
	for _, r := range s.tasks {
		for _, a := range r.attempts {
			if !slices.Contains(names, a.Channel) || !a.EndedAt.IsZero() || !a.slotUntil.IsZero() && !a.slotUntil.After(s.clock()) {
				continue
			}
			taken++
			if oldest.IsZero() || a.CreatedAt.Before(oldest) {
				oldest = a.CreatedAt
			}
		}
	}
	for _, q := range s.queue {
		if slices.Contains(names, q.channel) && q.granted() {
			taken++
		}
	}
	return taken, oldest
}

func (s *Store) hasGrant(taskID string) bool {
	return slices.ContainsFunc(s.queue, func(q *queueRow) bool { return q.TaskID == taskID && q.granted() })
}

// takeSlot finds the slot that was granted, or one that nobody waits for.
func (s *Store) takeSlot(r *record, channel string, slots mediagate.Slots) error {
	if slots.Limit <= 0 {
		return nil
	}
	others := false
	for _, q := range s.queue {
		switch {
		case !slices.Contains(slots.Names, q.channel):
		case q.TaskID == r.task.ID && q.granted():
			return nil
		case q.TaskID != r.task.ID && !q.granted():
			others = true
		}
	}
	if taken, _ := s.slotsTaken(slots.Names); others || taken >= slots.Limit {
		return mediagate.Errorf(mediagate.KindCapacity, "the channel %s has no free slot", channel)
	}
	s.served(channel, r.task.AccountID)
	return nil
}

// served puts the account behind all others.
func (s *Store) served(channel, account string) {
	turns := slices.DeleteFunc(s.turns[channel], func(a string) bool { return a == account })
	s.turns[channel] = append(turns, account)
}

// Queue lets a task wait for a slot of one of the channels.
func (s *Store) Queue(ctx context.Context, taskID string, n int, channels []string) error {
	unlock, err := s.lock(ctx, "Queue")
	defer unlock()
	if err != nil {
		return err
	}
	r, found, err := s.attempt(taskID, n)
	switch {
	case r == nil:
		return err
	case found != nil:
		return conflict("task %s has an attempt %d", taskID, n)
	}
	if err := s.mayOpen(r, n); err != nil {
		return err
	}
	if r.task.QueuedAt.IsZero() {
		r.task.QueuedAt = s.clock()
	}
	r.seen = true
	s.queue = slices.DeleteFunc(s.queue, func(q *queueRow) bool { return q.TaskID == taskID && !slices.Contains(channels, q.channel) })
	for _, channel := range channels {
		i := slices.IndexFunc(s.queue, func(q *queueRow) bool { return q.TaskID == taskID && q.channel == channel })
		if i < 0 {
			i = len(s.queue)
			s.queue = append(s.queue, &queueRow{channel: channel, account: r.task.AccountID, since: r.task.QueuedAt})
		}
		s.queue[i].Queued, s.queue[i].grantedAt, s.queue[i].signalAt = mediagate.Queued{TaskID: taskID, N: n}, time.Time{}, time.Time{}
	}
	return nil
}

// queuedFor are the channels that the task is queued for.
func (s *Store) queuedFor(taskID string) (names []string) {
	for _, q := range s.queue {
		if q.TaskID == taskID {
			names = append(names, q.channel)
		}
	}
	slices.Sort(names)
	return names
}

func (s *Store) leaveQueue(r *record) {
	if !r.task.QueuedAt.IsZero() {
		if r.task.ParkedAt.IsZero() {
			r.task.DeadlineAt = r.task.DeadlineAt.Add(max(0, s.clock().Sub(r.task.QueuedAt)))
		}
		r.task.QueuedAt = time.Time{}
		s.queue = slices.DeleteFunc(s.queue, func(q *queueRow) bool { return q.TaskID == r.task.ID })
	}
}

// GrantSlots gives free slots to those who wait.
func (s *Store) GrantSlots(ctx context.Context, g mediagate.Granting) (mediagate.Granted, error) {
	unlock, err := s.lock(ctx, "GrantSlots")
	defer unlock()
	if err != nil {
		return mediagate.Granted{}, err
	}
	if s.channel(g.Channel).epoch != g.Epoch {
		return mediagate.Granted{}, &mediagate.Error{Kind: mediagate.KindConflict, Code: "fenced", Message: "a newer run polls"}
	}
	now := s.clock()
	for _, q := range s.queue {
		if q.channel == g.Channel && q.granted() && !q.grantedAt.After(now.Add(-g.TakeBack)) {
			q.grantedAt, q.signalAt, q.since = time.Time{}, time.Time{}, now
		}
	}
	taken, _ := s.slotsTaken(g.Slots.Names)
	free := g.Most
	if g.Slots.Limit > 0 {
		free = min(free, g.Slots.Limit-taken)
	}
	got := mediagate.Granted{InFlight: taken}
	for ; free > 0; free-- {
		next := s.next(g.Channel)
		if next == nil {
			break
		}
		next.grantedAt, next.signalAt = now, now
		s.served(g.Channel, next.account)
		got.InFlight++
	}
	for _, q := range s.queue {
		switch {
		case q.channel != g.Channel:
		case !q.granted():
			got.Waiting++
		case !q.signalAt.After(now):
			q.signalAt = now.Add(g.Again)
			got.Signals = append(got.Signals, q.Queued)
		}
	}
	return got, nil
}

// next is whose turn it is: of the account that was served least recently, who
// has waited longest.
func (s *Store) next(channel string) *queueRow {
	var waiting []*queueRow
	for _, q := range s.queue {
		if q.channel == channel && !s.hasGrant(q.TaskID) {
			waiting = append(waiting, q)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	return slices.MinFunc(waiting, func(a, b *queueRow) int {
		return cmp.Or(
			cmp.Compare(slices.Index(s.turns[channel], a.account), slices.Index(s.turns[channel], b.account)),
			a.since.Compare(b.since), cmp.Compare(a.TaskID, b.TaskID))
	})
}

// QueuedTasks lists tasks that are queued under the name.
func (s *Store) QueuedTasks(ctx context.Context, channel string, limit int) ([]mediagate.Queued, error) {
	unlock, err := s.lock(ctx, "QueuedTasks")
	defer unlock()
	if err != nil {
		return nil, err
	}
	var rows []mediagate.Queued
	for _, q := range s.queue {
		if q.channel == channel && len(rows) < limit {
			rows = append(rows, q.Queued)
		}
	}
	return rows, nil
}

// ChannelLoad counts the jobs of a channel and the tasks that are queued for it.
func (s *Store) ChannelLoad(ctx context.Context, name string) (inFlight, queued int, oldest time.Time, err error) {
	unlock, err := s.lock(ctx, "ChannelLoad")
	defer unlock()
	if err != nil {
		return 0, 0, time.Time{}, err
	}
	inFlight, oldest = s.slotsTaken([]string{name})
	for _, q := range s.queue {
		if q.channel != name {
			continue
		}
		if !q.granted() {
			queued++
		}
		if oldest.IsZero() || q.since.Before(oldest) {
			oldest = q.since
		}
	}
	return inFlight, queued, oldest, nil
}
