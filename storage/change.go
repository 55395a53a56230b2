package storage

import (
	"context"
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// Change applies events to a task in one transaction: it locks the task's row, loads
// the state, applies the events, and writes what differs, the ledger, the counters and
// the wakes with it. It is how a task changes, except where rows are moved in bulk.
//
// The returned state has the last attempt and those that the events name. If one event
// is refused, none of them changes anything. Returns KindConflict for a refused event,
// KindNotFound for an unknown task.
func (s *Store) Change(ctx context.Context, id string, events ...task.Event) (task.Changed, error) {
	return s.change(ctx, id, &changing{events: events})
}

// OpenIntent is Change for the intent of an attempt. It takes a slot of the channel in
// the same transaction: a free one, or the one that was granted to the task. Returns
// KindCapacity if there is none (D7).
func (s *Store) OpenIntent(ctx context.Context, id string, slots mediagate.Slots, intent task.IntentStored) (task.Changed, error) {
	return s.change(ctx, id, &changing{events: []task.Event{intent}, first: func(tx *gorm.DB, row stateTask) (bool, error) {
		return true, s.takeSlot(tx, row.ID, row.AccountID, intent.Channel, slots)
	}})
}

// changing is one change of a task.
type changing struct {
	events []task.Event
	owner  string // whose task it has to be; empty: anybody's
	// first runs before the events are applied, in the same transaction. It may tell
	// that they do not apply.
	first    func(tx *gorm.DB, row stateTask) (apply bool, err error)
	delivery *mediagate.Delivery // of the callback, where the change is about one

	row    stateTask  // as it was
	before task.State // likewise
}

func (s *Store) change(ctx context.Context, id string, c *changing) (changed task.Changed, err error) {
	run := func(tx *gorm.DB) (err error) {
		changed, err = s.changeIn(tx, id, c)
		return err
	}
	if !slices.ContainsFunc(c.events, mayEnd) {
		err = s.write(ctx, "change task", run)
		if err == nil {
			s.observe(c, changed)
		}
		return changed, err
	}
	owner, err := one[struct{ AccountID string }](s.on(ctx), "SELECT account_id FROM tasks WHERE id = ?", id)
	switch {
	case err != nil:
		return task.Changed{}, dbError(err, "change task")
	case owner == nil:
		return task.Changed{}, notFound("task", id)
	}
	err = s.writeFor(ctx, owner.AccountID, "change task", run)
	if err == nil {
		s.observe(c, changed)
	}
	return changed, err
}

// observe tells of ends that were committed.
func (s *Store) observe(c *changing, changed task.Changed) {
	before, after := &c.before, &changed.State
	if after.Status.Terminal() && !before.Status.Terminal() {
		var failure mediagate.FailureCode
		if after.Failure != nil {
			failure = after.Failure.Code
		}
		s.observer.TaskEnded(c.row.Type, after.Status, failure, changed.At.Sub(c.row.CreatedAt.Time))
	}
	if before.WebhookRound > 0 && before.WebhookState == mediagate.WebhookPending && after.WebhookState != mediagate.WebhookPending {
		s.observer.CallbackEnded(after.WebhookState)
	}
}

func (s *Store) changeIn(tx *gorm.DB, id string, c *changing) (changed task.Changed, err error) {
	c.row, c.before, err = s.loadState(tx, id, c.owner, attemptsOf(c.events), true)
	if err != nil {
		return task.Changed{}, err
	}
	changed = task.Changed{State: c.before, At: s.clock()}
	apply := true
	if c.first != nil {
		if apply, err = c.first(tx, c.row); err != nil {
			return task.Changed{}, err
		}
	}
	if apply {
		if changed, err = c.apply(changed.At, false); err != nil && !mediagate.Is(err, mediagate.KindConflict) {
			s.log.ErrorContext(tx.Statement.Context, "events could not be applied: the task counts as one that cannot be read", "task", id, "error", err)
			changed, err = c.apply(changed.At, true)
		}
		if err != nil {
			return task.Changed{}, err
		}
		if err := s.saveState(tx, c.row, c.before, &changed.State, changed.Effects, changed.At); err != nil {
			return task.Changed{}, err
		}
	}
	if !apply {
		changed.Step = changed.State.Advance(changed.At)
		return changed, nil
	}
	return changed, s.saveWakes(tx, c, changed)
}

// apply applies the events to the task as it was. A panic is an error of KindInternal. A
// task whose events cannot be applied counts as unreadable: then it only parks and ends.
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

// State reads a task with its last attempt, and attempt n where that is another; 0
// names none. It locks nothing. Returns KindNotFound.
func (s *Store) State(ctx context.Context, id string, n int) (task.State, error) {
	_, state, err := s.loadState(s.on(ctx), id, "", []int{n}, false)
	return state, dbError(err, "read state")
}

// mayEnd reports an event that may end the task, and then writes the account's row.
func mayEnd(e task.Event) bool {
	switch e := e.(type) {
	case task.EndDue, task.Mirrored:
		return true
	case task.Asked: // it makes an end again that its run has seen
		return e.Status == mediagate.StatusFailed
	default:
		return false
	}
}

// saveState writes what differs between two states of a task, and carries out the
// effects that belong to the same transaction. The hot rows of key and account come
// last.
func (s *Store) saveState(tx *gorm.DB, row stateTask, before task.State, after *task.State, effects task.Effects, now time.Time) error {
	ended := effects.Entry != ""
	inputsGo := false
	if ended {
		var err error
		if inputsGo, err = erasesInputs(tx, row.AccountID); err != nil {
			return err
		}
		if inputsGo {
			after.Failure, after.Made = after.Failure.Wordless(), after.Made.WithoutPrompt()
		}
	}
	was, err := s.stateRow(&before)
	if err != nil {
		return err
	}
	is, err := s.stateRow(after)
	if err != nil {
		return err
	}
	changes := differing(was, is)
	if effects.Sweep {
		changes["sweep_at"] = at(now.Add(sweepAfter))
	}
	if len(changes) > 0 {
		if err := tx.Table("tasks").Where("id = ?", row.ID).Updates(changes).Error; err != nil {
			return err
		}
	}
	if before.WebhookRound > 0 && after.WebhookRound > before.WebhookRound { // the next attempt makes a body with fresh links (D14)
		if _, err := exec(tx, "UPDATE tasks SET webhook_body = NULL, webhook_body_at = NULL WHERE id = ? AND webhook_body_at < ?",
			row.ID, at(now.Add(-linksLast))); err != nil {
			return err
		}
	}
	if err := s.saveAttempts(tx, row, before, *after, effects, now); err != nil {
		return err
	}
	if err := s.saveQueue(tx, row, before, *after); err != nil {
		return err
	}
	if err := noteStrays(tx, row, effects.Stray, at(now)); err != nil {
		return err
	}
	if !ended {
		return nil
	}
	if after.Status == mediagate.StatusCompleted {
		if err := noteAssets(tx, row.locked(), after.Made, after.Results); err != nil {
			return err
		}
	}
	if inputsGo {
		if err := s.eraseInputs(tx, row.locked()); err != nil {
			return err
		}
	}
	if _, err := exec(tx, "UPDATE idempotency SET expires_at = ? WHERE task_id = ? AND opens_at IS NULL", at(now.Add(idempotencyTTL)), row.ID); err != nil {
		return err
	}
	return s.resolve(tx, holding{
		id: row.ID, accountID: row.AccountID, keyID: row.KeyID, amount: row.Hold, tasks: 1,
		model: row.Model, provider: is.Provider, status: after.Status,
	}, effects.Entry, after.Cost)
}

// differing returns the columns in which two rows differ, with the values of the second.
func differing[R any](was, is R) map[string]any {
	c, changes := columnsOf[R](), map[string]any{}
	before, after := reflect.ValueOf(was), reflect.ValueOf(is)
	for i, field := range c.fields {
		a, b := before.FieldByIndex(field).Interface(), after.FieldByIndex(field).Interface()
		if x, ok := a.(stamp); ok {
			if !x.Equal(b.(stamp).Time) {
				changes[c.names[i]] = b
			}
		} else if !reflect.DeepEqual(a, b) {
			changes[c.names[i]] = b
		}
	}
	return changes
}

func (s *Store) saveAttempts(tx *gorm.DB, row stateTask, before, after task.State, effects task.Effects, now time.Time) error {
	for _, a := range after.Attempts {
		is, err := row.locked().attemptRow(a)
		if err != nil {
			return err
		}
		old := before.Attempt(a.N)
		if old == nil {
			if err := tx.Create(&is).Error; err != nil {
				return err
			}
			old = &task.Attempt{}
		} else {
			was, err := row.locked().attemptRow(*old)
			if err != nil {
				return err
			}
			if changes := differing(was, is); len(changes) > 0 {
				if err := tx.Table("attempts").Where("task_id = ? AND n = ?", row.ID, a.N).Updates(changes).Error; err != nil {
					return err
				}
			}
		}
		if charge := effects.Charged[a.N]; charge != nil {
			if err := noteVendorCharge(tx, row.ID, a.N, &mediagate.Outcome{VendorCharge: charge}, at(now)); err != nil {
				return err
			}
		}
		if err := s.saveAwait(tx, row, a, old.Await, after); err != nil {
			return err
		}
	}
	return nil
}

// saveAwait inserts, updates or deletes the attempt's await row. A task that is erased
// gets none, since nothing may name its job.
func (s *Store) saveAwait(tx *gorm.DB, row stateTask, a task.Attempt, was *task.Await, after task.State) error {
	switch is := a.Await; {
	case is == nil && was == nil:
		return nil
	case is == nil:
		_, err := exec(tx, "DELETE FROM awaits WHERE task_id = ? AND n = ?", row.ID, a.N)
		return err
	case was == nil && !row.ErasedAt.IsZero():
		return nil
	case was == nil:
		ref, err := jsonText(a.Ref)
		if err != nil {
			return err
		}
		return tx.Create(&awaitRow{
			TaskID: row.ID, N: a.N, Channel: a.Channel, Fingerprint: a.Fingerprint, Ref: ref, ExpectedUs: micros(after.Terms.Expected),
			Progress: after.Progress, AcceptedAt: at(a.AcceptedAt), NextPollAt: at(is.NextPollAt),
		}).Error
	case *is == *was:
		return nil
	case is.Claim == was.Claim:
		_, err := exec(tx, "UPDATE awaits SET next_poll_at = ?, hinted_at = ? WHERE task_id = ? AND n = ?",
			at(is.NextPollAt), at(s.clock()), row.ID, a.N)
		return err
	default: // the poller gives the row back
		_, err := exec(tx, `UPDATE awaits SET claim = '', claimed_until = NULL, missing = 0, next_poll_at = ?
			WHERE task_id = ? AND n = ? AND claim = ?`, at(is.NextPollAt), row.ID, a.N, was.Claim)
		return err
	}
}

// loadQueue reads the channels that the task is queued for, and whether one of them
// holds a slot for it.
func (s *Store) loadQueue(tx *gorm.DB, st *task.State) error {
	var rows []struct {
		Channel   string
		GrantedAt stamp
	}
	if err := read(tx, &rows, "SELECT channel, granted_at FROM queue WHERE task_id = ? ORDER BY channel", st.ID); err != nil {
		return err
	}
	for _, r := range rows {
		st.QueuedFor = append(st.QueuedFor, r.Channel)
		st.Granted = st.Granted || !r.GrantedAt.IsZero()
	}
	return nil
}

// saveQueue inserts, updates or deletes the task's queue rows.
func (s *Store) saveQueue(tx *gorm.DB, row stateTask, before, after task.State) error {
	n := 1
	if a := after.Last(); a != nil {
		n = a.N + 1
	}
	switch {
	case after.Wait.Why != mediagate.WhySlot && before.Wait.Why != mediagate.WhySlot:
		return nil
	case after.Wait.Why != mediagate.WhySlot:
		_, err := exec(tx, "DELETE FROM queue WHERE task_id = ?", row.ID)
		return err
	case before.Wait.Why == after.Wait.Why && before.Wait.Since.Equal(after.Wait.Since) &&
		before.Granted == after.Granted && slices.Equal(before.QueuedFor, after.QueuedFor):
		return nil
	default:
		return s.enqueue(tx, row.ID, row.AccountID, n, after.QueuedFor, at(s.clock()))
	}
}

func cloneAttempts(attempts []task.Attempt) []task.Attempt {
	attempts = slices.Clone(attempts)
	for i := range attempts {
		a := &attempts[i]
		if a.Await != nil {
			await := *a.Await
			a.Await = &await
		}
	}
	return attempts
}
