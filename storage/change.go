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
	return s.change(ctx, id, &changing{events: []task.Event{intent}, first: func(tx *gorm.DB, t mediagate.Task) (bool, error) {
		return true, s.takeSlot(tx, t.ID, t.AccountID, intent.Channel, slots)
	}})
}

// changing is one change of a task.
type changing struct {
	events []task.Event
	owner  string // whose task it has to be; empty: anybody's
	// first runs before the events are applied, in the same transaction. It may tell
	// that they do not apply.
	first    func(tx *gorm.DB, t mediagate.Task) (apply bool, err error)
	delivery *mediagate.Delivery // of the callback, where the change is about one

	before task.State // as it was
	lease  leaseRow   // likewise
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
		s.observer.TaskEnded(before.Type, after.Status, failure, changed.At.Sub(before.CreatedAt))
	}
	if before.Webhook.Round > 0 && before.Webhook.State == mediagate.WebhookPending && after.Webhook.State != mediagate.WebhookPending {
		s.observer.CallbackEnded(after.Webhook.State)
	}
}

func (s *Store) changeIn(tx *gorm.DB, id string, c *changing) (changed task.Changed, err error) {
	c.before, c.lease, err = s.loadState(tx, id, c.owner, attemptsOf(c.events), true)
	if err != nil {
		return task.Changed{}, err
	}
	changed = task.Changed{State: c.before, At: s.clock()}
	apply := true
	if c.first != nil {
		if apply, err = c.first(tx, c.before.Task); err != nil {
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
		if err := s.saveState(tx, c.before, &changed.State, changed.Effects, changed.At); err != nil {
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

// leasedTask is a task's row with its run's lease.
type leasedTask struct {
	taskRow
	leaseRow
}

// polledAttempt is an attempt's row with its await row.
type polledAttempt struct {
	attemptRow
	Polled    bool
	PollAt    stamp
	Claim     string
	ClaimedAt stamp
	Again     bool
}

func (r polledAttempt) attempt() (task.Attempt, error) {
	a, err := r.attemptRow.attempt()
	if r.Polled {
		a.Await = &task.Await{NextPollAt: r.PollAt.Time, Claim: r.Claim, ClaimedAt: r.ClaimedAt.Time, Again: r.Again}
	}
	return a, err
}

// loadState reads the state, under the lock of the task's row where it is to be
// changed: the row, then its last attempt and those that are named, then queue rows
// where there are any. A document that cannot be decoded makes the state Unreadable, and
// is no error.
func (s *Store) loadState(tx *gorm.DB, id, owner string, named []int, lock bool) (task.State, leaseRow, error) {
	locking := ""
	if lock {
		locking = s.forUpdate("t")
	}
	row, err := one[leasedTask](tx, "SELECT "+columnsOf[taskRow]().of("t")+`, w.wake_at, COALESCE(w.tries, 0), COALESCE(w.asked, false)
		FROM tasks t LEFT JOIN wakes w ON w.task_id = t.id AND w.kind = 'run' WHERE t.id = ?`+locking, id)
	if err != nil {
		return task.State{}, leaseRow{}, err
	}
	if row == nil || owner != "" && (row.AccountID != owner || !row.ErasedAt.IsZero()) {
		return task.State{}, leaseRow{}, notFound("task", id)
	}
	state, err := row.state()
	state.Unreadable = unreadable(err)
	if err != nil && !state.Unreadable {
		return task.State{}, leaseRow{}, err
	}
	attempts, err := s.polledAttempts(tx, id, named)
	if err != nil {
		return task.State{}, leaseRow{}, err
	}
	for _, r := range attempts {
		a, err := r.attempt()
		if err != nil && !unreadable(err) {
			return task.State{}, leaseRow{}, err
		}
		state.Unreadable = state.Unreadable || err != nil
		state.Attempts = append(state.Attempts, a)
	}
	if state.Wait.Why == mediagate.WhySlot {
		err = s.loadQueue(tx, &state)
	}
	return state, row.leaseRow, err
}

// polledAttempts reads the last attempt of a task and those that are named, in the order of
// their numbers.
func (s *Store) polledAttempts(tx *gorm.DB, id string, named []int) (attempts []polledAttempt, err error) {
	numbers, err := jsonText(append([]int{}, named...)) // an empty list, not null
	if err != nil {
		return nil, err
	}
	list := "(SELECT CAST(value AS integer) FROM json_array_elements_text(CAST(? AS json)))"
	if s.lite {
		list = "(SELECT value FROM json_each(?))"
	}
	err = read(tx, &attempts, "SELECT "+columnsOf[attemptRow]().of("a")+`, w.task_id IS NOT NULL AS polled, w.next_poll_at,
			COALESCE(w.claim, ''), CASE WHEN w.claim <> '' THEN w.claimed_at END,
			COALESCE(w.claim <> '' AND w.hinted_at > w.claimed_at, false)
		FROM attempts a LEFT JOIN awaits w ON w.task_id = a.task_id AND w.n = a.n
		WHERE a.task_id = ? AND (a.n = (SELECT MAX(n) FROM attempts WHERE task_id = ?) OR a.n IN `+list+") ORDER BY a.n", id, id, numbers)
	return attempts, err
}

// attemptsOf returns the numbers of the attempts that the events name.
func attemptsOf(events []task.Event) []int {
	numbers := []int{}
	for _, e := range events {
		if field := reflect.ValueOf(e).FieldByName("N"); field.IsValid() {
			numbers = append(numbers, int(field.Int()))
		}
	}
	return numbers
}

// State reads a task with its last attempt, and attempt n where that is another; 0
// names none. It locks nothing. Returns KindNotFound.
func (s *Store) State(ctx context.Context, id string, n int) (task.State, error) {
	state, _, err := s.loadState(s.on(ctx), id, "", []int{n}, false)
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
func (s *Store) saveState(tx *gorm.DB, before task.State, after *task.State, effects task.Effects, now time.Time) error {
	ended := effects.Entry != ""
	inputsGo := false
	if ended {
		var err error
		if inputsGo, err = erasesInputs(tx, after.AccountID); err != nil {
			return err
		}
		if inputsGo {
			s.scrub.due.Store(true)
			eraseInputs(after, now)
		}
	}
	var sweepAt time.Time
	switch {
	case inputsGo && len(before.Plan.Uploads) > 0: // media that came within the request go at once
		sweepAt = now
	case effects.Sweep:
		sweepAt = now.Add(sweepAfter)
	}
	if err := s.saveTask(tx, &before, after, sweepAt); err != nil {
		return err
	}
	if before.Webhook.Round > 0 && after.Webhook.Round > before.Webhook.Round { // the next attempt makes a body with fresh links (D14)
		if _, err := exec(tx, "UPDATE tasks SET webhook_body = NULL, webhook_body_at = NULL WHERE id = ? AND webhook_body_at < ?",
			after.ID, at(now.Add(-linksLast))); err != nil {
			return err
		}
	}
	if err := s.saveAttempts(tx, before, *after, effects, now); err != nil {
		return err
	}
	if err := s.saveQueue(tx, before, *after); err != nil {
		return err
	}
	if err := noteStrays(tx, after.Task, effects.Stray, at(now)); err != nil {
		return err
	}
	if !ended {
		return nil
	}
	if inputsGo {
		if err := forgetWords(tx, after.Task); err != nil {
			return err
		}
	}
	return s.saveEnd(tx, after, effects.Entry, now)
}

// saveTask writes the columns of a task's row in which two states differ.
func (s *Store) saveTask(tx *gorm.DB, before, after *task.State, sweepAt time.Time) error {
	was, err := newTaskRow(before)
	if err != nil {
		return err
	}
	is, err := newTaskRow(after)
	if err != nil {
		return err
	}
	if !after.InputsErasedAt.Equal(before.InputsErasedAt) || !after.ErasedAt.Equal(before.ErasedAt) {
		was.Document = nil // what could not be decoded goes as well
	}
	changes := differing(was, is)
	if !sweepAt.IsZero() {
		changes["sweep_at"] = at(sweepAt)
	}
	if len(changes) == 0 {
		return nil
	}
	return tx.Table("tasks").Where("id = ?", after.ID).Updates(changes).Error
}

// saveEnd writes what comes with the end of a task beside its own rows: what it made, the
// end of its idempotency record, and the money.
func (s *Store) saveEnd(tx *gorm.DB, t *task.State, entry mediagate.EntryKind, now time.Time) error {
	if t.Status == mediagate.StatusCompleted {
		if err := noteAssets(tx, t.Task); err != nil {
			return err
		}
	}
	if _, err := exec(tx, "UPDATE idempotency SET expires_at = ? WHERE task_id = ? AND opens_at IS NULL", at(now.Add(idempotencyTTL)), t.ID); err != nil {
		return err
	}
	provider := ""
	if a := t.Last(); a != nil {
		provider = a.Provider
	}
	return s.resolve(tx, holding{
		id: t.ID, accountID: t.AccountID, keyID: t.KeyID, amount: t.Hold, tasks: 1,
		model: t.Model, provider: provider, status: t.Status,
	}, entry, t.Cost)
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

func (s *Store) saveAttempts(tx *gorm.DB, before, after task.State, effects task.Effects, now time.Time) error {
	for _, a := range after.Attempts {
		is, err := newAttemptRow(after.Task, a)
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
			was, err := newAttemptRow(after.Task, *old)
			if err != nil {
				return err
			}
			if changes := differing(was, is); len(changes) > 0 {
				if err := tx.Table("attempts").Where("task_id = ? AND n = ?", after.ID, a.N).Updates(changes).Error; err != nil {
					return err
				}
			}
		}
		if charge := effects.Charged[a.N]; charge != nil {
			if err := noteVendorCharge(tx, after.ID, a.N, &mediagate.Outcome{VendorCharge: charge}, at(now)); err != nil {
				return err
			}
		}
		if err := s.saveAwait(tx, a, old.Await, after); err != nil {
			return err
		}
	}
	return nil
}

// saveAwait inserts, updates or deletes the attempt's await row. A task that is erased
// gets none, since nothing may name its job.
func (s *Store) saveAwait(tx *gorm.DB, a task.Attempt, was *task.Await, after task.State) error {
	switch is := a.Await; {
	case is == nil && was == nil:
		return nil
	case is == nil:
		_, err := exec(tx, "DELETE FROM awaits WHERE task_id = ? AND n = ?", after.ID, a.N)
		return err
	case was == nil && !after.ErasedAt.IsZero():
		return nil
	case was == nil:
		ref, err := jsonText(a.Ref)
		if err != nil {
			return err
		}
		return tx.Create(&awaitRow{
			TaskID: after.ID, N: a.N, Channel: a.Channel, Fingerprint: a.Fingerprint, Ref: ref, ExpectedUs: micros(after.Plan.Expected),
			Progress: after.Progress, AcceptedAt: at(a.AcceptedAt), NextPollAt: at(is.NextPollAt),
		}).Error
	case *is == *was:
		return nil
	case is.Claim == was.Claim:
		_, err := exec(tx, "UPDATE awaits SET next_poll_at = ?, hinted_at = ? WHERE task_id = ? AND n = ?",
			at(is.NextPollAt), at(s.clock()), after.ID, a.N)
		return err
	default: // the poller gives the row back
		_, err := exec(tx, `UPDATE awaits SET claim = '', claimed_until = NULL, missing = 0, next_poll_at = ?
			WHERE task_id = ? AND n = ? AND claim = ?`, at(is.NextPollAt), after.ID, a.N, was.Claim)
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
func (s *Store) saveQueue(tx *gorm.DB, before, after task.State) error {
	n := 1
	if a := after.Last(); a != nil {
		n = a.N + 1
	}
	switch {
	case after.Wait.Why != mediagate.WhySlot && before.Wait.Why != mediagate.WhySlot:
		return nil
	case after.Wait.Why != mediagate.WhySlot:
		_, err := exec(tx, "DELETE FROM queue WHERE task_id = ?", after.ID)
		return err
	case before.Wait.Why == after.Wait.Why && before.Wait.Since.Equal(after.Wait.Since) &&
		before.Granted == after.Granted && slices.Equal(before.QueuedFor, after.QueuedFor):
		return nil
	default:
		return s.enqueue(tx, after.ID, after.AccountID, n, after.QueuedFor, at(s.clock()))
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
