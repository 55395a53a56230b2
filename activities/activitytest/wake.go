package activitytest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// The leases of D2.
const (
	startLease   = 5 * time.Second
	stepLease    = 10 * time.Minute
	leaseMargin  = 30 * time.Second // of a sleep
	signalLease  = 2 * time.Second
	roundLease   = time.Minute
	firstAgain   = time.Minute // after a try; doubles
	lastAgain    = time.Hour
	untriedAgain = 5 * time.Second
)

func (e *entry) wake(kind mediagate.WakeKind, w mediagate.Wake) {
	w.Kind, w.TaskID, w.AccountID = kind, e.task.ID, e.task.AccountID
	e.wakes[kind] = w
}

// soon brings the wake of the task's run forward.
func (e *entry) soon(at time.Time) {
	if w, ok := e.wakes[mediagate.WakeRun]; !ok || at.Before(w.At) {
		w.At = at
		e.wake(mediagate.WakeRun, w)
	}
}

// keepWakes sets the times by which the run has to ask, and the callback's round to
// record an attempt (D2).
func (e *entry) keepWakes(before *task.State, events []task.Event, changed task.Changed) {
	now := changed.At
	asked := slices.ContainsFunc(events, func(e task.Event) bool { _, ok := e.(task.Asked); return ok })
	switch {
	case asked && changed.Step.Kind == task.Done:
		delete(e.wakes, mediagate.WakeRun)
	case asked && changed.Step.Kind == task.Sleep:
		e.wake(mediagate.WakeRun, mediagate.Wake{At: changed.Step.Until.Add(leaseMargin), Asked: true})
	case asked:
		e.wake(mediagate.WakeRun, mediagate.Wake{At: now.Add(stepLease), Asked: true})
	case changed.Effects.Wake && !before.Status.Terminal():
		e.soon(now.Add(signalLease))
	}
	switch was, is := before.WebhookRound, changed.State.WebhookRound; {
	case changed.State.WebhookState != mediagate.WebhookPending:
		delete(e.wakes, mediagate.WakeRound)
	case is > was && is == 1:
		e.wake(mediagate.WakeRound, mediagate.Wake{At: now.Add(roundLease), Round: is})
	case is > was:
		e.wake(mediagate.WakeRound, mediagate.Wake{At: now.Add(signalLease), Round: is})
	}
}

// Wakes are those of the task, by kind.
func (s *Store) Wakes(id string) map[mediagate.WakeKind]mediagate.Wake {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.tasks[id]; e != nil {
		return maps.Clone(e.wakes)
	}
	return nil
}

// DueWakes lists wakes that are past their time, accounts in turns.
func (s *Store) DueWakes(ctx context.Context, limit int) ([]mediagate.Wake, error) {
	return under(ctx, s, "DueWakes", func() (due []mediagate.Wake, err error) {
		for _, e := range s.tasks {
			for _, w := range e.wakes {
				if !w.At.After(s.clock()) {
					due = append(due, w)
				}
			}
		}
		slices.SortFunc(due, func(a, b mediagate.Wake) int {
			return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.TaskID, b.TaskID), cmp.Compare(a.Kind, b.Kind))
		})
		before, turn := map[string]int{}, map[mediagate.Wake]int{} // wakes of the same account
		for _, w := range due {
			turn[w] = before[w.AccountID]
			before[w.AccountID]++
		}
		slices.SortStableFunc(due, func(a, b mediagate.Wake) int { return cmp.Compare(turn[a], turn[b]) })
		return due[:min(limit, len(due))], nil
	})
}

// PutOff sets the next try of wakes that nobody has set since.
func (s *Store) PutOff(ctx context.Context, wakes []mediagate.Wake, tried bool) error {
	return s.run(ctx, "PutOff", func() error {
		for _, w := range wakes {
			e := s.tasks[w.TaskID]
			if e == nil || e.wakes[w.Kind] != w {
				continue
			}
			pause := untriedAgain
			if tried {
				pause = min(firstAgain<<min(w.Tries, 10), lastAgain)
				w.Tries++
			}
			w.At = s.clock().Add(pause)
			e.wake(w.Kind, w)
		}
		return nil
	})
}

// OldestOpen is when the oldest open task was created.
func (s *Store) OldestOpen(ctx context.Context) (time.Time, error) {
	return under(ctx, s, "OldestOpen", func() (oldest time.Time, err error) {
		for _, e := range s.tasks {
			if at := e.task.CreatedAt; e.open() && (oldest.IsZero() || at.Before(oldest)) {
				oldest = at
			}
		}
		return oldest, nil
	})
}

// RetryParked applies BreakerClosed to tasks that would try again later, the first of
// them first.
func (s *Store) RetryParked(ctx context.Context, p mediagate.Parked, limit int) (int, error) {
	return under(ctx, s, "RetryParked", func() (retried int, err error) {
		all := slices.DeleteFunc(s.entries(), func(e *entry) bool {
			a, st := e.state.Last(), &e.state
			return !e.open() || st.ParkedAt.IsZero() || st.ParkReason == mediagate.ParkSubmissionUnknown || !slices.Contains(p.Reasons, st.ParkReason) ||
				!st.RetryAt.After(s.clock()) || p.Channel != "" && (a == nil || a.Channel != p.Channel) ||
				p.Provider != "" && !slices.ContainsFunc(e.task.Plan.Routes, func(r mediagate.Route) bool { return r.Provider == p.Provider })
		})
		slices.SortStableFunc(all, func(a, b *entry) int { return a.state.RetryAt.Compare(b.state.RetryAt) })
		all = all[:min(limit, len(all))]
		for _, e := range all {
			if _, err := s.change(e.task.ID, []task.Event{task.BreakerClosed{Reasons: p.Reasons}}); err != nil {
				return 0, err
			}
		}
		return len(all), nil
	})
}

// ExpireSlots closes abandoned attempts whose time is over.
func (s *Store) ExpireSlots(ctx context.Context) error {
	return s.run(ctx, "ExpireSlots", func() error {
		for id, e := range s.tasks {
			for _, a := range e.state.Attempts {
				if _, err := s.change(id, []task.Event{task.SlotExpired{N: a.N}}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// DueSweeps lists tasks whose files are to be looked for.
func (s *Store) DueSweeps(ctx context.Context, limit int) ([]mediagate.Sweep, error) {
	return under(ctx, s, "DueSweeps", func() ([]mediagate.Sweep, error) {
		due, now := []mediagate.Sweep{}, s.clock()
		for id, e := range s.tasks {
			if e.sweepAt.IsZero() || !e.sweepAt.Before(now) {
				continue
			}
			sweep := mediagate.Sweep{TaskID: id, DueAt: e.sweepAt}
			if last := e.state.EndedAt.Add(sweepAfter); now.Before(last) {
				sweep.Again = last
			}
			due = append(due, sweep)
		}
		slices.SortFunc(due, func(a, b mediagate.Sweep) int {
			return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.TaskID, b.TaskID))
		})
		return due[:min(limit, len(due))], nil
	})
}

// SetSweep notes when to look again; the zero time ends it.
func (s *Store) SetSweep(ctx context.Context, due mediagate.Sweep, next time.Time) error {
	return s.run(ctx, "SetSweep", func() error {
		if e := s.tasks[due.TaskID]; e != nil && !e.sweepAt.IsZero() && e.sweepAt.Equal(due.DueAt) {
			e.sweepAt = next
		}
		return nil
	})
}

// CountVendorCharges has nothing to count: this store knows no accounts.
func (s *Store) CountVendorCharges(ctx context.Context, _ int) (int, error) {
	return under(ctx, s, "CountVendorCharges", func() (int, error) { return 0, nil })
}

// WebhookTarget reads what a round sends.
func (s *Store) WebhookTarget(ctx context.Context, taskID string, round int) (mediagate.WebhookTarget, error) {
	return under(ctx, s, "WebhookTarget", func() (mediagate.WebhookTarget, error) {
		e := s.tasks[taskID]
		if e == nil || e.task.Webhook == nil || e.state.WebhookState == "" || e.state.WebhookRound < round {
			return mediagate.WebhookTarget{}, missing("round of", taskID)
		}
		return mediagate.WebhookTarget{
			AccountID: e.task.AccountID, URL: e.task.Webhook.URL, Body: e.body, BodyAt: e.bodyAt,
			Secrets: []mediagate.WebhookSecret{{Secret: mediagate.NewSecret("whsec_" + Secret)}},
			State:   e.state.WebhookState, Round: e.state.WebhookRound,
		}, nil
	})
}

// StoreWebhookBody stores the callback's body, once.
func (s *Store) StoreWebhookBody(ctx context.Context, taskID string, body []byte) ([]byte, error) {
	return under(ctx, s, "StoreWebhookBody", func() ([]byte, error) {
		e, err := s.entry(taskID)
		if err != nil {
			return nil, err
		}
		if e.body == nil {
			e.body, e.bodyAt = slices.Clone(body), s.clock()
		}
		return e.body, nil
	})
}

// Deliveries lists the delivery attempts.
func (s *Store) Deliveries(ctx context.Context, taskID string) ([]mediagate.Delivery, error) {
	return under(ctx, s, "Deliveries", func() ([]mediagate.Delivery, error) {
		e, err := s.entry(taskID)
		if err != nil {
			return nil, err
		}
		return slices.SortedFunc(slices.Values(e.deliveries), func(a, b mediagate.Delivery) int {
			return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.Attempt, b.Attempt))
		}), nil
	})
}

// RecordDelivery stores a delivery attempt, in place of the same one, and how its round
// stands.
func (s *Store) RecordDelivery(ctx context.Context, d mediagate.Delivery, state mediagate.WebhookState, reason string) error {
	return s.run(ctx, "RecordDelivery", func() error {
		e, err := s.entry(d.TaskID)
		if err != nil {
			return err
		}
		e.deliveries = slices.DeleteFunc(e.deliveries, func(o mediagate.Delivery) bool { return o.Round == d.Round && o.Attempt == d.Attempt })
		e.deliveries = append(e.deliveries, d)
		if _, err = s.change(d.TaskID, []task.Event{task.Delivered{Round: d.Round, State: state, Reason: reason}}); err != nil {
			return err
		}
		if w, ok := e.wakes[mediagate.WakeRound]; ok && w.Round == d.Round {
			next := d.NextAttemptAt
			if now := s.clock(); next.Before(now) {
				next = now
			}
			e.wake(mediagate.WakeRound, mediagate.Wake{At: next.Add(roundLease), Round: d.Round})
		}
		return nil
	})
}
