package storage

import (
	"encoding/json"
	"reflect"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

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
	Wait              mediagate.WaitWhy
	WaitReason        mediagate.ParkReason
	WaitSince         stamp
	TryAt             stamp
	WaitEndsAt        stamp
	FailsAt           stamp
	Refusals          int
	RerouteTo         string
	RestoredAt        stamp
	TailLost          bool
	Channel           string
	Provider          string
	ArtState          mediagate.ModalState
	ModalN            int
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

// stateColumns are those of a task's row that loadState reads.
type stateColumns struct {
	stateRow
	ID             string
	AccountID      string
	KeyID          string
	Model          string
	Type           mediagate.Type
	CreatedAt      stamp
	Hold           mediagate.Micros
	Plan           document
	Charges        document
	InputsErasedAt stamp
	ErasedAt       stamp
}

// stateTask is a task's row with its run's lease.
type stateTask struct {
	stateColumns
	leaseRow
}

// locked is the row as other statements of the transaction know it.
func (r stateTask) locked() lockedTask {
	return lockedTask{ID: r.ID, AccountID: r.AccountID, Status: r.Status, Plan: r.Plan, Failure: r.Failure, InputsErasedAt: r.InputsErasedAt, ErasedAt: r.ErasedAt}
}

// stateAttempt is an attempt's row with its await row.
type stateAttempt struct {
	attemptRow
	Polled    bool
	PollAt    stamp
	Claim     string
	ClaimedAt stamp
	Again     bool
}

// loadState reads the state, under the lock of the task's row where it is to be
// changed: the row, then its last attempt and those that are named, then queue rows
// where there are any. A JSON column that cannot be decoded makes the state
// Unreadable, and is no error.
func (s *Store) loadState(tx *gorm.DB, id, owner string, named []int, lock bool) (stateTask, task.State, error) {
	locking := ""
	if lock {
		locking = s.forUpdate("t")
	}
	row, err := one[stateTask](tx, "SELECT "+columnsOf[stateColumns]().of("t")+`, w.wake_at, COALESCE(w.tries, 0), COALESCE(w.asked, false)
		FROM tasks t LEFT JOIN wakes w ON w.task_id = t.id AND w.kind = 'run' WHERE t.id = ?`+locking, id)
	if err != nil {
		return stateTask{}, task.State{}, err
	}
	if row == nil || owner != "" && row.isNot(owner) {
		return stateTask{}, task.State{}, notFound("task", id)
	}
	state, err := row.state()
	if unreadable(err) {
		state.Unreadable = true
	} else if err != nil {
		return stateTask{}, task.State{}, err
	}
	numbers, err := jsonText(append([]int{}, named...)) // an empty list, not null
	if err != nil {
		return stateTask{}, task.State{}, err
	}
	list := "(SELECT CAST(value AS integer) FROM json_array_elements_text(CAST(? AS json)))"
	if s.lite {
		list = "(SELECT value FROM json_each(?))"
	}
	var attempts []stateAttempt
	if err := read(tx, &attempts, "SELECT "+columnsOf[attemptRow]().of("a")+`, w.task_id IS NOT NULL AS polled, w.next_poll_at, COALESCE(w.claim, ''),
			CASE WHEN w.claim <> '' THEN w.claimed_at END,
			COALESCE(w.claim <> '' AND w.hinted_at > w.claimed_at, false)
		FROM attempts a LEFT JOIN awaits w ON w.task_id = a.task_id AND w.n = a.n
		WHERE a.task_id = ? AND (a.n = (SELECT MAX(n) FROM attempts WHERE task_id = ?) OR a.n IN `+list+") ORDER BY a.n", id, id, numbers); err != nil {
		return stateTask{}, task.State{}, err
	}
	for _, r := range attempts {
		a, err := r.state()
		if unreadable(err) {
			state.Unreadable = true
		} else if err != nil {
			return stateTask{}, task.State{}, err
		}
		state.Attempts = append(state.Attempts, a)
	}
	if state.Wait.Why == mediagate.WhySlot {
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
		CancelRequestedAt: r.CancelRequestedAt.Time, FailRequestedAt: r.FailRequestedAt.Time,
		Wait:     mediagate.Wait{Why: r.Wait, Reason: r.WaitReason, Since: r.WaitSince.Time, TryAt: r.TryAt.Time, EndsAt: r.WaitEndsAt.Time},
		Refusals: r.Refusals, RerouteTo: r.RerouteTo, Cost: r.Cost,
		RestoredAt: r.RestoredAt.Time, TailLost: r.TailLost,
		Modal:        mediagate.Modal{State: r.ArtState, N: r.ModalN, Input: json.RawMessage(r.ModalInput)},
		WebhookRound: r.WebhookRound, WebhookState: r.WebhookState, WebhookReason: r.WebhookReason, Erased: !r.ErasedAt.IsZero(),
	}
	var plan mediagate.Plan
	err := readAll(
		column{"tasks.plan", r.Plan, &plan}, column{"tasks.charges", r.Charges, &st.Terms.Charges}, column{"tasks.judgement", r.Judgement, &st.Inputs},
		column{"tasks.failure", r.Failure, &st.Failure}, column{"tasks.results", r.Results, &st.Results}, column{"tasks.made", r.Made, &st.Made},
	)
	st.Terms = task.TermsOf(plan, st.Terms.Charges, r.Hold)
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
		CancelRequestedAt: at(st.CancelRequestedAt), FailRequestedAt: at(st.FailRequestedAt),
		Wait: st.Wait.Why, WaitReason: st.Wait.Reason, WaitSince: at(st.Wait.Since), TryAt: at(st.Wait.TryAt), WaitEndsAt: at(st.Wait.EndsAt),
		Refusals: st.Refusals, RerouteTo: st.RerouteTo,
		RestoredAt: at(st.RestoredAt), TailLost: st.TailLost,
		ArtState: st.Modal.State, ModalN: st.Modal.N, ModalInput: document(st.Modal.Input), Cost: st.Cost,
		WebhookRound: st.WebhookRound, WebhookState: st.WebhookState, WebhookReason: st.WebhookReason,
	}
	if !st.Status.Terminal() {
		r.FailsAt = at(st.FailsAt())
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
		EndedAt: r.EndedAt.Time, SlotUntil: r.SlotUntil.Time, SenderLost: r.Lost, Lookups: r.Lookups, LookedAt: r.LookedAt.Time,
		AbsentAt: r.AbsentAt.Time, AbsentAgainAt: r.AgainAt.Time, Elsewhere: r.Elsewhere, GivenUpAt: r.GivenUpAt.Time, Trouble: r.Trouble,
		StopTried: r.StopTried, Error: r.Error,
	}
	if r.Polled {
		a.Await = &task.Await{NextPollAt: r.PollAt.Time, Claim: r.Claim, ClaimedAt: r.ClaimedAt.Time, Again: r.Again}
	}
	return a, readAll(
		column{"attempts.route", r.Route, &a.Route}, column{"attempts.ref", r.Ref, &a.Ref}, column{"attempts.refusal", r.Refusal, &a.Refusal},
		column{"attempts.failure", r.Failure, &a.Failure}, column{"attempts.outcome", r.Outcome, &a.Outcome}, column{"attempts.results", r.Results, &a.Results},
		column{"attempts.unusable", r.Unusable, &a.Unusable},
	)
}

// attemptRow is the row of an attempt, without the vendor's words once the task's inputs
// or the task itself are erased.
func (t lockedTask) attemptRow(a task.Attempt) (attemptRow, error) {
	r := attemptRow{
		TaskID: t.ID, N: a.N, Channel: a.Channel, Provider: a.Provider, Fingerprint: a.Fingerprint, ExternalID: a.ExternalID, SendBefore: at(a.SendBefore), AccountID: &t.AccountID,
		State: a.State, Trouble: a.Trouble, Error: a.Error, AbsentAt: at(a.AbsentAt), AgainAt: at(a.AbsentAgainAt), Sends: a.Sends, CreatedAt: at(a.CreatedAt),
		AcceptedAt: at(a.AcceptedAt), EndedAt: at(a.EndedAt), SlotUntil: at(a.SlotUntil), CallEnds: at(a.CallEnds), CanStop: a.CanStop, Lost: a.SenderLost,
		Lookups: a.Lookups, LookedAt: at(a.LookedAt), Elsewhere: a.Elsewhere, GivenUpAt: at(a.GivenUpAt),
		StopTried: a.StopTried,
	}
	failure, refusal, unusable := a.Failure, a.Refusal, a.Unusable
	if !t.InputsErasedAt.IsZero() {
		failure, refusal, unusable, r.Error = failure.Wordless(), refusal.Wordless(), unusable.Wordless(), ""
	}
	if !t.ErasedAt.IsZero() { // that the job ended stays, and how: the first end counts
		r.ExternalID, a.Ref, a.Results, failure, refusal, unusable = "", mediagate.JobRef{}, nil, nil, nil, nil
	}
	outcome := t.leaves(a.Outcome)
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
		{&r.Unusable, unusable, unusable == nil},
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
