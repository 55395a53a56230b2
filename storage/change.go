package storage

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/story"
)

// Change applies events to a task in one transaction. It locks the task's row, loads the state,
// applies the events, and writes the differences together with the ledger entries, the counters
// and the wakes. All changes of a task go this way, except erasures and changes of many rows.
//
// The returned state has the last attempt and the attempts that the events name. If one event
// is refused, none of them changes anything. Returns KindConflict for a refused event,
// KindNotFound for an unknown task.
//
// A caller may repeat a call whose result was lost. Package task expects repeated events: of
// two outcomes of a job, for example, the first one counts (D9).
func (s *Store) Change(ctx context.Context, id string, events ...task.Event) (task.Changed, error) {
	return s.change(ctx, id, &changing{events: events})
}

// OpenIntent stores the intent of an attempt, as Change does, and takes a slot of the channel
// in the same transaction: a free one, or the one that was granted to the task. Returns
// KindCapacity if there is none (D7).
func (s *Store) OpenIntent(
	ctx context.Context, id string, slots mediagate.Slots, intent task.IntentStored,
) (task.Changed, error) {
	// The task's row is locked by now. takeSlot locks the channel's row after it, in the same order
	// as every other transaction that locks both.
	take := func(tx *gorm.DB, t mediagate.Task) (bool, error) {
		return true, s.takeSlot(tx, t.ID, t.AccountID, intent.Channel, slots)
	}
	return s.change(ctx, id, &changing{events: []task.Event{intent}, first: take})
}

// changing is one change of a task.
type changing struct {
	// events are applied in their order.
	events []task.Event
	owner  string // the account that must own the task; empty: any
	// first runs before the events are applied, in the same transaction. If it returns false,
	// the events are not applied.
	first    func(tx *gorm.DB, t mediagate.Task) (apply bool, err error)
	delivery *mediagate.Delivery // of the callback, where the change records a delivery

	// changeIn sets these two. They are the state and the lease under the lock of the task's row. A
	// second run after a deadlock overwrites them.
	before task.State  // the state that was loaded
	lease  story.Lease // the lease that was loaded
}

// change runs one change, and reports it to the Observer after the commit. A change that may
// end the task waits for a permit of the account before it takes a connection: the transaction
// writes the account's row, for which other writes of the account wait too (see enter).
func (s *Store) change(ctx context.Context, id string, c *changing) (changed task.Changed, err error) {
	if slices.ContainsFunc(c.events, mayEnd) {
		leave, err := s.enterFor(ctx, id)
		if err != nil {
			return task.Changed{}, err
		}
		defer leave()
	}
	err = s.write(ctx, "change task", func(tx *gorm.DB) (err error) {
		changed, err = s.changeIn(tx, id, c)
		return err
	})
	if err == nil {
		s.observe(c, changed)
	}
	return changed, err
}

// enterFor calls enter for the account of a task. It reads the account without a lock, since a
// task never changes its account.
func (s *Store) enterFor(ctx context.Context, id string) (leave func(), err error) {
	owner, err := one[struct{ AccountID string }](s.on(ctx), "SELECT account_id FROM tasks WHERE id = ?", id)
	if err != nil {
		return nil, dbError(err, "change task")
	}
	if owner == nil {
		return nil, notFound("task", id)
	}
	return s.enter(ctx, owner.AccountID)
}

// observe reports committed ends of tasks and callbacks to the Observer. It compares the states
// before and after, so a repeated event that changes nothing is not counted twice. A process
// that dies after the commit reports nothing: the metrics count less than the database then.
func (s *Store) observe(c *changing, changed task.Changed) {
	before, after := &c.before, &changed.State
	if after.Status.Terminal() && !before.Status.Terminal() {
		var failure mediagate.FailureCode
		if after.Failure != nil {
			failure = after.Failure.Code
		}
		s.observer.TaskEnded(before.Type, after.Status, failure, changed.At.Sub(before.CreatedAt))
	}
	pending := before.Webhook.Round > 0 && before.Webhook.State == mediagate.WebhookPending
	if pending && after.Webhook.State != mediagate.WebhookPending {
		s.observer.CallbackEnded(after.Webhook.State)
	}
}

// changeIn is the transaction of a change. It returns the changed state with the next step.
func (s *Store) changeIn(tx *gorm.DB, id string, c *changing) (changed task.Changed, err error) {
	c.before, c.lease, err = s.loadState(tx, id, c.owner, attemptsOf(c.events), true)
	if err != nil {
		return task.Changed{}, err
	}
	// The time is read under the lock. While the transaction waited for the lock, a deadline may
	// have passed or another change may have been stored.
	now := s.clock()
	// first may refuse the change by an error, or say that nothing is to be applied. In the second
	// case its own writes stay, and the caller gets the present state with its next step.
	if c.first != nil {
		apply, err := c.first(tx, c.before.Task)
		if err != nil {
			return task.Changed{}, err
		}
		if !apply {
			changed = task.Changed{State: c.before, At: now}
			changed.Step = changed.State.Advance(now)
			return changed, nil
		}
	}
	changed, err = c.apply(now, false)
	if err != nil && !mediagate.Is(err, mediagate.KindConflict) {
		// A refused event is KindConflict. Any other error, or a panic, comes from the state
		// itself. The same events would fail again for ever, so the task is treated as unreadable:
		// it may only park and end.
		s.log.ErrorContext(tx.Statement.Context,
			"events could not be applied: the task counts as one that cannot be read", "task", id, "error", err)
		changed, err = c.apply(now, true)
	}
	if err != nil {
		return task.Changed{}, err
	}
	if err := s.saveState(tx, &c.before, &changed.State, changed.Effects, now); err != nil {
		return task.Changed{}, err
	}
	// The wakes are written last, since their rows are locked after all others (D2).
	return changed, s.saveWakes(tx, c, changed)
}

// apply applies the events to a copy of the loaded state. A panic becomes an error of
// KindInternal. With unreadable, the task counts as one whose row cannot be read: it only parks
// and ends. c.before stays as it was loaded, because saveState compares it with the changed
// state and writes only the columns that differ.
func (c *changing) apply(now time.Time, unreadable bool) (changed task.Changed, err error) {
	err = mediagate.Guarded(func() error {
		changed = task.Changed{State: c.before, At: now}
		changed.State.Attempts = cloneAttempts(c.before.Attempts)
		changed.State.Unreadable = changed.State.Unreadable || unreadable
		for _, event := range c.events {
			effects, err := changed.State.Apply(event, now)
			if err != nil {
				return err
			}
			changed.Effects = changed.Effects.And(effects)
		}
		changed.Step = changed.State.Advance(now)
		return nil
	})
	changed.At = now
	return changed, err
}

// cloneAttempts copies the attempts with everything that events change in them. Events change
// the fields of an await row in place, so the row behind the pointer is copied as well.
func cloneAttempts(attempts []task.Attempt) []task.Attempt {
	attempts = slices.Clone(attempts)
	for i := range attempts {
		if await := attempts[i].Await; await != nil {
			attempts[i].Await = new(*await)
		}
	}
	return attempts
}

// mayEnd reports whether the event may end the task. Such a change writes the account's row, so it
// needs a permit of the account first (enter).
func mayEnd(e task.Event) bool {
	switch e := e.(type) {
	case task.EndDue, task.Mirrored, task.ModelRetired:
		return true
	case task.Asked: // repeats an end that the run has seen and the database has lost
		return e.Status == mediagate.StatusFailed
	default:
		return false
	}
}

// saveState writes the differences between two states of a task, and the effects that belong to
// the same transaction. It writes the rows of key and account last, because other transactions
// wait for them.
//
// The order of the writes is the order in which every transaction locks rows (see doc.go): the
// task, its attempts and await rows, its queue rows, then key and account. changeIn writes the
// wakes afterwards. Only an end writes money, and effects.Entry says that there is one.
func (s *Store) saveState(tx *gorm.DB, before, after *task.State, effects task.Effects, now time.Time) error {
	ended := effects.Entry != ""
	var owner endSettings
	if ended {
		var err error
		if owner, err = readEndSettings(tx, after.AccountID); err != nil {
			return err
		}
	}
	// owner is zero unless the task ends, so the inputs go only with the end.
	inputsGo := owner.EraseInputs
	if inputsGo {
		s.scrub.due.Store(true)
		eraseInputs(after, now)
	}
	var sweepAt time.Time
	switch {
	case inputsGo && len(before.Plan.Uploads) > 0: // media that came within the request are removed at once
		sweepAt = now
	case effects.Sweep:
		sweepAt = now.Add(sweepAfter)
	}
	// sweepAt stays zero for most changes; then the column keeps its value.
	if err := saveTask(tx, before, after, sweepAt); err != nil {
		return err
	}
	if err := dropOldBody(tx, before.Webhook, after, now); err != nil {
		return err
	}
	if err := s.saveAttempts(tx, before, after, effects, now); err != nil {
		return err
	}
	if err := s.saveQueue(tx, before, after); err != nil {
		return err
	}
	if err := noteStrays(tx, after.Task, effects.Stray, now); err != nil {
		return err
	}
	if inputsGo {
		if _, err := exec(tx, "DELETE FROM sources WHERE task_id = ?", after.ID); err != nil {
			return err
		}
		// The attempts that were not loaded may quote the request too.
		if err := forgetWords(tx, after.Task); err != nil {
			return err
		}
	}
	if !ended {
		return nil
	}
	if owner.HasEndpoints {
		if err := addEndEvent(tx, after, now); err != nil {
			return err
		}
	}
	return s.saveEnd(tx, after, effects.Entry, now)
}

// dropOldBody removes a callback's body whose links are too old for a new round. The round's
// first attempt then makes a body with fresh links (D14). If the body is younger than
// linksLast, or if there is none, no row matches, and the new round sends the same bytes.
func dropOldBody(tx *gorm.DB, was mediagate.Webhook, after *task.State, now time.Time) error {
	if was.Round == 0 || after.Webhook.Round <= was.Round {
		return nil
	}
	_, err := exec(tx, `UPDATE tasks SET webhook_body = NULL, webhook_body_at = NULL
		WHERE id = ? AND webhook_body_at < ?`, after.ID, at(now.Add(-linksLast)))
	return err
}

// saveEnd writes the rest of a task's end: its assets, the expiry of its idempotency record,
// and the money. resolve writes the rows of key and account as the last ones.
//
// An idempotency record has no expiry while its task is open, so a repeated submit finds the
// task however long it takes. From the end on the record lasts for idempotencyTTL. Records of
// waiters (opens_at) have their own expiry, see Adopt.
func (s *Store) saveEnd(tx *gorm.DB, st *task.State, entry mediagate.EntryKind, now time.Time) error {
	if st.Status == mediagate.StatusCompleted {
		if err := noteAssets(tx, st.Task); err != nil {
			return err
		}
	}
	if _, err := exec(tx, "UPDATE idempotency SET expires_at = ? WHERE task_id = ? AND opens_at IS NULL",
		at(now.Add(idempotencyTTL)), st.ID); err != nil {
		return err
	}
	provider := ""
	// Usage is counted for the provider of the last attempt. A task that ends before its first
	// attempt has none.
	if a := st.Last(); a != nil {
		provider = a.Provider
	}
	return s.resolve(tx, holding{
		id:        st.ID,
		accountID: st.AccountID,
		keyID:     st.KeyID,
		amount:    st.Hold,
		tasks:     1,
		model:     st.Model,
		provider:  provider,
		status:    st.Status,
	}, entry, st.Cost)
}
