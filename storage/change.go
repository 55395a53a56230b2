package storage

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// Defaults of plans that do not set them.
const (
	defaultParkTimeout  = 24 * time.Hour
	defaultParkRetry    = 5 * time.Minute
	defaultQueueTimeout = 24 * time.Hour
	absentGap           = 30 * time.Second // D4
)

// Changed is what came of a task's events: the task after them, its next step, and
// what is to be done outside of the database.
type Changed struct {
	State   task.State
	Step    task.Step
	Effects task.Effects
}

// Change applies events to a task in one transaction: it locks the task's row, loads
// the state, applies the events, and writes what differs, the ledger and the counters
// with it. It is how a task changes, except where rows are moved in bulk.
//
// The returned state has the last attempt and those that the events name. If one event
// is refused, none of them changes anything. Returns KindConflict for a refused event,
// KindNotFound for an unknown task.
func (s *Store) Change(ctx context.Context, id string, events ...task.Event) (Changed, error) {
	return s.change(ctx, id, nil, events)
}

// OpenIntent is Change for the intent of an attempt. It takes a slot of the channel in
// the same transaction: a free one, or the one that was granted to the task. Returns
// KindCapacity if there is none (D7).
func (s *Store) OpenIntent(ctx context.Context, id string, slots mediagate.Slots, intent task.IntentStored) (Changed, error) {
	return s.change(ctx, id, func(tx *gorm.DB, row stateTask) error {
		return s.takeSlot(tx, lockedTask{ID: id, AccountID: row.AccountID}, intent.Channel, slots)
	}, []task.Event{intent})
}

func (s *Store) change(ctx context.Context, id string, first func(*gorm.DB, stateTask) error, events []task.Event) (changed Changed, err error) {
	run := func(tx *gorm.DB) error {
		changed = Changed{}
		row, before, err := s.loadState(tx, id, events)
		if err != nil {
			return err
		}
		if first != nil {
			if err := first(tx, row); err != nil {
				return err
			}
		}
		after, now := before, s.clock()
		after.Attempts = cloneAttempts(before.Attempts)
		for _, event := range events {
			effects, err := after.Apply(event, now)
			if err != nil {
				return err
			}
			changed.Effects = both(changed.Effects, effects)
		}
		if err := s.saveState(tx, row, before, &after, changed.Effects, now); err != nil {
			return err
		}
		changed.State, changed.Step = after, after.Advance(now)
		return nil
	}
	if !slices.ContainsFunc(events, mayEnd) {
		return changed, s.write(ctx, "change task", run)
	}
	owner, err := one[struct{ AccountID string }](s.on(ctx), "SELECT account_id FROM tasks WHERE id = ?", id)
	switch {
	case err != nil:
		return Changed{}, dbError(err, "change task")
	case owner == nil:
		return Changed{}, notFound("task", id)
	}
	return changed, s.writeFor(ctx, owner.AccountID, "change task", run)
}

// mayEnd reports an event that may end the task, and then writes the account's row.
func mayEnd(e task.Event) bool {
	switch e.(type) {
	case task.EndDue, task.Mirrored:
		return true
	default:
		return false
	}
}

// both joins the effects of two events, of which b came second.
func both(a, b task.Effects) task.Effects {
	a.Wake, a.Sweep = a.Wake || b.Wake, a.Sweep || b.Sweep
	a.Entry = cmp.Or(a.Entry, b.Entry)
	a.Stop = append(a.Stop, b.Stop...)
	for n, charge := range b.Charged {
		if a.Charged == nil {
			a.Charged = map[int]*mediagate.VendorCharge{}
		}
		a.Charged[n] = charge
	}
	return a
}

// stateRow has the columns of a task that Apply may change.
type stateRow struct {
	Status            mediagate.Status
	Progress          int
	Version           int64
	StartedAt         stamp
	EndedAt           stamp
	DeadlineAt        stamp
	CancelRequestedAt stamp
	FailRequestedAt   stamp
	ParkedAt          stamp
	ParkReason        mediagate.ParkReason
	RetryAt           stamp
	Refusals          int
	QueuedAt          stamp
	RerouteTo         string
	Channel           string
	Provider          string
	ArtState          mediagate.ModalState
	ModalN            int
	ModalUntil        stamp
	ModalInput        document
	Judgement         document
	Failure           document
	Results           document
	Made              document
	Cost              mediagate.Micros
	WebhookRound      int
	WebhookState      mediagate.WebhookState
	WebhookReason     string
}

// stateTask is a task's row as loadState reads it.
type stateTask struct {
	stateRow
	ID             string
	AccountID      string
	KeyID          string
	Model          string
	Hold           mediagate.Micros
	Plan           document
	Charges        document
	InputsErasedAt stamp
	ErasedAt       stamp
}

// locked is the row as other statements of the transaction know it.
func (r stateTask) locked() lockedTask {
	return lockedTask{
		ID: r.ID, AccountID: r.AccountID, KeyID: r.KeyID, Hold: r.Hold, Plan: r.Plan, InputsErasedAt: r.InputsErasedAt, ErasedAt: r.ErasedAt,
	}
}

// stateAttempt is an attempt's row with its await row.
type stateAttempt struct {
	attemptRow
	Polled  bool
	PollAt  stamp
	Claim   string
	Unheard bool
}

// loadState locks the task's row and reads the state: the row, then its last attempt
// and those that the events name, then parts and queue rows where there are any. A JSON
// column that cannot be decoded makes the state Unreadable, and is no error.
func (s *Store) loadState(tx *gorm.DB, id string, events []task.Event) (stateTask, task.State, error) {
	row, err := one[stateTask](tx, "SELECT "+columnsOf[stateTask]().text+" FROM tasks WHERE id = ?"+s.forUpdate("tasks"), id)
	if err != nil {
		return stateTask{}, task.State{}, err
	}
	if row == nil {
		return stateTask{}, task.State{}, notFound("task", id)
	}
	state, err := row.state()
	if unreadable(err) {
		state.Unreadable = true
	} else if err != nil {
		return stateTask{}, task.State{}, err
	}
	named, err := jsonText(attemptsOf(events))
	if err != nil {
		return stateTask{}, task.State{}, err
	}
	list := "(SELECT CAST(value AS integer) FROM json_array_elements_text(CAST(? AS json)))"
	if s.lite {
		list = "(SELECT value FROM json_each(?))"
	}
	var attempts []stateAttempt
	if err := read(tx, &attempts, "SELECT "+columnsOf[attemptRow]().of("a")+`, w.task_id IS NOT NULL AS polled, w.next_poll_at, COALESCE(w.claim, ''), COALESCE(w.unheard, false)
		FROM attempts a LEFT JOIN awaits w ON w.task_id = a.task_id AND w.n = a.n AND NOT w.owed
		WHERE a.task_id = ? AND (a.n = (SELECT MAX(n) FROM attempts WHERE task_id = ?) OR a.n IN `+list+") ORDER BY a.n", id, id, named); err != nil {
		return stateTask{}, task.State{}, err
	}
	for _, r := range attempts {
		a, err := r.state()
		if unreadable(err) {
			state.Unreadable = true
		} else if err != nil {
			return stateTask{}, task.State{}, err
		}
		if a.Route.Parts > 1 {
			if a.Parts, err = loadParts(tx, id, a.N); unreadable(err) {
				state.Unreadable = true
			} else if err != nil {
				return stateTask{}, task.State{}, err
			}
		}
		state.Attempts = append(state.Attempts, a)
	}
	if !state.QueuedAt.IsZero() {
		if err := s.loadQueue(tx, &state); err != nil {
			return stateTask{}, task.State{}, err
		}
	}
	return *row, state, nil
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

func (r stateTask) state() (task.State, error) {
	st := task.State{
		ID: r.ID, Status: r.Status, Progress: r.Progress, Version: r.Version, StartedAt: r.StartedAt.Time, EndedAt: r.EndedAt.Time, DeadlineAt: r.DeadlineAt.Time,
		CancelRequestedAt: r.CancelRequestedAt.Time, FailRequestedAt: r.FailRequestedAt.Time, ParkedAt: r.ParkedAt.Time, ParkReason: r.ParkReason,
		RetryAt: r.RetryAt.Time, Refusals: r.Refusals, QueuedAt: r.QueuedAt.Time, RerouteTo: r.RerouteTo, Cost: r.Cost,
		Modal:        mediagate.Modal{State: r.ArtState, N: r.ModalN, Until: r.ModalUntil.Time, Input: json.RawMessage(r.ModalInput)},
		WebhookRound: r.WebhookRound, WebhookState: r.WebhookState, WebhookReason: r.WebhookReason,
	}
	var plan mediagate.Plan
	err := readAll(
		column{"tasks.plan", r.Plan, &plan}, column{"tasks.charges", r.Charges, &st.Terms.Charges}, column{"tasks.judgement", r.Judgement, &st.Inputs},
		column{"tasks.failure", r.Failure, &st.Failure}, column{"tasks.results", r.Results, &st.Results}, column{"tasks.made", r.Made, &st.Made},
	)
	provider := ""
	if len(plan.Routes) > 0 {
		provider = plan.Routes[0].Provider
	}
	st.Terms = task.Terms{
		Provider: provider, Expected: plan.Expected, Timeout: plan.Timeout, OnUnknown: plan.OnUnknown, ModalTimeout: plan.Modal, AbsentGap: absentGap,
		ParkTimeout: cmp.Or(plan.ParkTimeout, defaultParkTimeout), ParkRetry: cmp.Or(plan.ParkRetry, defaultParkRetry),
		QueueTimeout: cmp.Or(plan.QueueTimeout, defaultQueueTimeout),
		CheckInputs:  len(plan.Inputs) > 0, Charges: st.Terms.Charges, Hold: r.Hold,
	}
	return st, err
}

// column is a JSON column and its destination.
type column struct {
	name string
	text document
	into any
}

// readAll decodes all columns that can be decoded, and returns the first error.
func readAll(columns ...column) (first error) {
	for _, c := range columns {
		if err := fromJSON(c.name, c.text, c.into); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// stateRow returns the columns of a state.
func (s *Store) stateRow(st *task.State) (stateRow, error) {
	r := stateRow{
		Status: st.Status, Progress: st.Progress, Version: st.Version, StartedAt: at(st.StartedAt), EndedAt: at(st.EndedAt), DeadlineAt: at(st.DeadlineAt),
		CancelRequestedAt: at(st.CancelRequestedAt), FailRequestedAt: at(st.FailRequestedAt), ParkedAt: at(st.ParkedAt), ParkReason: st.ParkReason,
		RetryAt: at(st.RetryAt), Refusals: st.Refusals, QueuedAt: at(st.QueuedAt), RerouteTo: st.RerouteTo,
		ArtState: st.Modal.State, ModalN: st.Modal.N, ModalUntil: at(st.Modal.Until), ModalInput: document(st.Modal.Input), Cost: st.Cost,
		WebhookRound: st.WebhookRound, WebhookState: st.WebhookState, WebhookReason: st.WebhookReason,
	}
	if a := st.Last(); a != nil {
		r.Channel, r.Provider = a.Channel, a.Provider
	}
	var err error
	if !reflect.ValueOf(st.Inputs).IsZero() {
		if r.Judgement, err = jsonText(st.Inputs); err != nil {
			return r, err
		}
	}
	if st.Results != nil {
		if r.Results, err = jsonText(st.Results); err != nil {
			return r, err
		}
	}
	if r.Failure, err = jsonOrNull(st.Failure); err != nil {
		return r, err
	}
	r.Made, err = jsonOrNull(st.Made)
	return r, err
}

func (r stateAttempt) state() (task.Attempt, error) {
	a := task.Attempt{
		N: r.N, Channel: r.Channel, Provider: r.Provider, Fingerprint: r.Fingerprint, CanStop: r.CanStop, ExternalID: r.ExternalID,
		State: r.State, SendBefore: r.SendBefore.Time, CallEnds: r.CallEnds.Time, Sends: r.Sends, CreatedAt: r.CreatedAt.Time, AcceptedAt: r.AcceptedAt.Time,
		EndedAt: r.EndedAt.Time, SlotUntil: r.SlotUntil.Time, SenderLost: r.Lost, UnknownSince: r.UnknownSince.Time, Lookups: r.Lookups, LookedAt: r.LookedAt.Time,
		AbsentAt: r.AbsentAt.Time, AbsentAgainAt: r.AgainAt.Time, Elsewhere: r.Elsewhere, GivenUpAt: r.GivenUpAt.Time, Trouble: r.Trouble,
		LastAskedAt: r.LastAskedAt.Time, StopTried: r.StopTried, Error: r.Error,
	}
	if r.Polled {
		a.Await = &task.Await{NextPollAt: r.PollAt.Time, Claim: r.Claim, Unanswered: r.Unheard}
	}
	return a, readAll(
		column{"attempts.route", r.Route, &a.Route}, column{"attempts.ref", r.Ref, &a.Ref}, column{"attempts.refusal", r.Refusal, &a.Refusal},
		column{"attempts.failure", r.Failure, &a.Failure}, column{"attempts.outcome", r.Outcome, &a.Outcome}, column{"attempts.results", r.Results, &a.Results},
		column{"attempts.unusable", r.Unusable, &a.Unusable},
	)
}

// attemptColumns returns the columns of an attempt, without the vendor's words once the
// task's inputs or the task itself are erased.
func attemptColumns(row stateTask, a task.Attempt) (attemptRow, error) {
	locked := row.locked()
	r := attemptRow{
		TaskID: row.ID, N: a.N, Channel: a.Channel, Provider: a.Provider, Fingerprint: a.Fingerprint, ExternalID: a.ExternalID, SendBefore: at(a.SendBefore),
		State: a.State, Trouble: a.Trouble, Error: a.Error, AbsentAt: at(a.AbsentAt), AgainAt: at(a.AbsentAgainAt), Sends: a.Sends, CreatedAt: at(a.CreatedAt),
		AcceptedAt: at(a.AcceptedAt), EndedAt: at(a.EndedAt), SlotUntil: at(a.SlotUntil), CallEnds: at(a.CallEnds), CanStop: a.CanStop, Lost: a.SenderLost,
		UnknownSince: at(a.UnknownSince), Lookups: a.Lookups, LookedAt: at(a.LookedAt), Elsewhere: a.Elsewhere, GivenUpAt: at(a.GivenUpAt),
		LastAskedAt: at(a.LastAskedAt), StopTried: a.StopTried,
	}
	failure, refusal, outcome := a.Failure, a.Refusal, a.Outcome
	if !row.InputsErasedAt.IsZero() {
		failure, refusal, outcome, r.Error = failure.Wordless(), refusal.Wordless(), locked.leavesOf(outcome), ""
	}
	if !row.ErasedAt.IsZero() { // that the job ended stays, and how: the first end counts
		a.Ref, a.Results, failure, refusal = mediagate.JobRef{}, nil, nil, nil
	}
	for _, c := range []struct {
		to    *document
		value any
		none  bool
	}{
		{&r.Route, a.Route, false},
		{&r.Ref, a.Ref, a.Ref == mediagate.JobRef{}},
		{&r.Failure, failure, failure == nil},
		{&r.Refusal, refusal, refusal == nil},
		{&r.Outcome, outcome, outcome == nil},
		{&r.Results, a.Results, a.Results == nil},
		{&r.Unusable, a.Unusable, a.Unusable == nil},
	} {
		if c.none {
			continue
		}
		text, err := jsonText(c.value)
		if err != nil {
			return r, err
		}
		*c.to = text
	}
	return r, nil
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
	if after.WebhookRound > before.WebhookRound {
		changes["webhook_checked_at"], changes["rescues"], changes["rescue_at"] = at(now), 0, nil
	}
	if len(changes) > 0 {
		if err := tx.Table("tasks").Where("id = ?", row.ID).Updates(changes).Error; err != nil {
			return err
		}
	}
	if err := s.saveAttempts(tx, row, before, *after, effects, now); err != nil {
		return err
	}
	if err := s.saveQueue(tx, row, before, *after); err != nil {
		return err
	}
	if !ended {
		return nil
	}
	if after.Status == mediagate.StatusCompleted {
		if err := noteMakers(tx, row.locked(), after.Made, after.Results); err != nil {
			return err
		}
	}
	if inputsGo {
		if err := s.eraseInputs(tx, row.locked()); err != nil {
			return err
		}
	}
	if _, err := exec(tx, "UPDATE idempotency SET expires_at = ? WHERE task_id = ?", at(now.Add(idempotencyTTL)), row.ID); err != nil {
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
		is, err := attemptColumns(row, a)
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
			was, err := attemptColumns(row, *old)
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
		if err := saveParts(tx, row, a, *old, now); err != nil {
			return err
		}
		if err := saveAwait(tx, row, a, old.Await, after); err != nil {
			return err
		}
	}
	return nil
}

// saveAwait inserts, updates or deletes the attempt's await row.
func saveAwait(tx *gorm.DB, row stateTask, a task.Attempt, was *task.Await, after task.State) error {
	switch is := a.Await; {
	case is == nil && was == nil:
		return nil
	case is == nil:
		_, err := exec(tx, "DELETE FROM awaits WHERE task_id = ? AND n = ?", row.ID, a.N)
		return err
	case was == nil:
		ref, err := jsonText(a.Ref)
		if err != nil {
			return err
		}
		return insertAwait(tx, attemptRow{TaskID: row.ID, N: a.N, Channel: a.Channel, Fingerprint: a.Fingerprint}, ref, at(a.AcceptedAt),
			micros(after.Terms.Expected), after.Progress, is.NextPollAt, is.Unanswered)
	case *is == *was:
		return nil
	default:
		_, err := exec(tx, `UPDATE awaits SET next_poll_at = ?, claim = ?, claimed_until = CASE WHEN ? = '' THEN NULL ELSE claimed_until END, unheard = ?
			WHERE task_id = ? AND n = ?`, at(is.NextPollAt), is.Claim, is.Claim, is.Unanswered, row.ID, a.N)
		return err
	}
}

func loadParts(tx *gorm.DB, id string, n int) (parts []task.Part, err error) {
	var rows []partRow
	if err := read(tx, &rows, "SELECT "+columnsOf[partRow]().text+" FROM attempt_parts WHERE task_id = ? AND n = ? ORDER BY part", id, n); err != nil {
		return nil, err
	}
	for _, r := range rows {
		p := task.Part{Part: r.Part, State: r.State, SendBefore: r.SendBefore.Time, CallEnds: r.CallEnds.Time, Sends: r.Sends, Error: r.Error}
		err = cmp.Or(err, readAll(column{"attempt_parts.submission", r.Submission, &p.Submission}, column{"attempt_parts.failure", r.Failure, &p.Failure}))
		parts = append(parts, p)
	}
	return parts, err
}

// saveParts writes the parts of an attempt that have changed.
func saveParts(tx *gorm.DB, row stateTask, a, was task.Attempt, now time.Time) error {
	for _, p := range a.Parts {
		at1 := slices.IndexFunc(was.Parts, func(old task.Part) bool { return old.Part == p.Part })
		if at1 >= 0 && reflect.DeepEqual(was.Parts[at1], p) || !row.ErasedAt.IsZero() {
			continue
		}
		submission, failure, err := row.locked().leavesOfPart(mediagate.Part{Submission: p.Submission, Failure: p.Failure})
		if err != nil {
			return err
		}
		r := partRow{
			TaskID: row.ID, N: a.N, Part: p.Part, State: p.State, SendBefore: at(p.SendBefore), CallEnds: at(p.CallEnds), Sends: p.Sends,
			Submission: submission, Failure: failure, Error: p.Error, CreatedAt: at(now),
		}
		if !row.InputsErasedAt.IsZero() {
			r.Error = ""
		}
		if p.State == mediagate.PartDone || p.State == mediagate.PartRefused {
			r.EndedAt = at(now)
		}
		if err := tx.Clauses(clause.OnConflict{
			Columns:   []clause.Column{{Name: "task_id"}, {Name: "n"}, {Name: "part"}},
			DoUpdates: clause.AssignmentColumns([]string{"state", "send_before", "call_ends", "sends", "submission", "failure", "error", "ended_at"}),
		}).Create(&r).Error; err != nil {
			return err
		}
	}
	return nil
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
	case after.QueuedAt.IsZero() && before.QueuedAt.IsZero():
		return nil
	case after.QueuedAt.IsZero():
		_, err := exec(tx, "DELETE FROM queue WHERE task_id = ?", row.ID)
		return err
	case before.QueuedAt.Equal(after.QueuedAt) && before.Granted == after.Granted && slices.Equal(before.QueuedFor, after.QueuedFor):
		return nil
	default:
		return s.enqueue(tx, row.ID, row.AccountID, n, after.QueuedFor, at(after.QueuedAt))
	}
}

func cloneAttempts(attempts []task.Attempt) []task.Attempt {
	attempts = slices.Clone(attempts)
	for i := range attempts {
		a := &attempts[i]
		a.Parts = slices.Clone(a.Parts)
		if a.Await != nil {
			await := *a.Await
			a.Await = &await
		}
	}
	return attempts
}
