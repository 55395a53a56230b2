package storage

import (
	"context"
	"encoding/json"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// taskRow is what readers see of a task.
type taskRow struct {
	lockedTask
	KeyID             string
	Model             string
	Type              mediagate.Type
	Progress          int
	Version           int64
	Params            document
	Reference         string
	RequestID         string
	TraceParent       string
	Charges           document
	Hold              mediagate.Micros
	Cost              mediagate.Micros
	CreatedAt         stamp
	StartedAt         stamp
	EndedAt           stamp
	DeadlineAt        stamp
	CancelRequestedAt stamp
	Wait              mediagate.WaitWhy
	WaitReason        mediagate.ParkReason
	WaitSince         stamp
	TryAt             stamp
	WaitEndsAt        stamp
	RerouteTo         string
	Results           document
	Made              document
	WebhookURL        string
	WebhookState      mediagate.WebhookState
	WebhookReason     string
	WebhookRound      int
	ArtState          mediagate.ModalState
	ModalN            int
	ModalInput        document
}

// wholeTask is all columns of a task: those too that only decisions and deliveries need.
type wholeTask struct {
	taskRow
	Channel         string
	Provider        string
	WebhookBody     []byte
	WebhookBodyAt   stamp
	SweepAt         stamp
	Judgement       document
	GroupName       string
	SourceID        string
	FailRequestedAt stamp
	FailsAt         stamp
	Refusals        int
	RestoredAt      stamp
	TailLost        bool
}

// task returns the task, with an error also those parts that can be read.
func (r taskRow) task() (mediagate.Task, error) {
	t := mediagate.Task{
		ID: r.ID, AccountID: r.AccountID, KeyID: r.KeyID, Model: r.Model, Type: r.Type, Status: r.Status,
		Progress: r.Progress, Version: r.Version, Params: json.RawMessage(r.Params), Reference: r.Reference, RequestID: r.RequestID, TraceParent: r.TraceParent,
		Hold: r.Hold, Cost: r.Cost, CreatedAt: r.CreatedAt.Time, StartedAt: r.StartedAt.Time, EndedAt: r.EndedAt.Time,
		DeadlineAt: r.DeadlineAt.Time, CancelRequestedAt: r.CancelRequestedAt.Time,
		Wait:           mediagate.Wait{Why: r.Wait, Reason: r.WaitReason, Since: r.WaitSince.Time, TryAt: r.TryAt.Time, EndsAt: r.WaitEndsAt.Time},
		RerouteTo:      r.RerouteTo,
		InputsErasedAt: r.InputsErasedAt.Time, ErasedAt: r.ErasedAt.Time,
		Modal: mediagate.Modal{State: r.ArtState, N: r.ModalN, Input: json.RawMessage(r.ModalInput)},
	}
	if r.WebhookState != "" {
		t.Webhook = &mediagate.Webhook{URL: r.WebhookURL, State: r.WebhookState, Reason: r.WebhookReason, Round: r.WebhookRound}
	}
	return t, readAll(
		column{"tasks.plan", r.Plan, &t.Plan}, column{"tasks.charges", r.Charges, &t.Charges}, column{"tasks.results", r.Results, &t.Results},
		column{"tasks.made", r.Made, &t.Made}, column{"tasks.failure", r.Failure, &t.Failure},
	)
}

// Task reads a task of the account. Returns KindNotFound, also for someone
// else's, and for one that is erased.
func (s *Store) Task(ctx context.Context, accountID, id string) (mediagate.Task, error) {
	return readTask(s.on(ctx), id, "WHERE id = ? AND account_id = ? AND erased_at IS NULL", id, accountID)
}

// TaskByID reads a task, or what is left of one that is erased. Returns
// KindNotFound.
func (s *Store) TaskByID(ctx context.Context, id string) (mediagate.Task, error) {
	return readTask(s.on(ctx), id, "WHERE id = ?", id)
}

// readTask is what clients ask for most.
func readTask(db *gorm.DB, id, where string, args ...any) (mediagate.Task, error) {
	row, err := one[taskRow](db, "SELECT "+columnsOf[taskRow]().text+" FROM tasks "+where, args...)
	if err != nil {
		return mediagate.Task{}, dbError(err, "read task")
	}
	if row == nil {
		return mediagate.Task{}, notFound("task", id)
	}
	return row.task()
}

// Versions reads the versions of tasks; unknown ids, and those of erased ones, are
// left out.
func (s *Store) Versions(ctx context.Context, ids []string) (map[string]int64, error) {
	versions := make(map[string]int64, len(ids))
	if len(ids) == 0 {
		return versions, nil
	}
	text, err := jsonText(ids)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		ID      string
		Version int64
	}
	if err := read(s.on(ctx), &rows, "SELECT id, version FROM tasks WHERE erased_at IS NULL AND id IN "+s.inList(), text); err != nil {
		return nil, dbError(err, "read versions")
	}
	for _, row := range rows {
		versions[row.ID] = row.Version
	}
	return versions, nil
}

// RequestCancel notes the client's wish, once. Returns KindNotFound, also for
// someone else's task, and KindConflict when the task has ended.
func (s *Store) RequestCancel(ctx context.Context, accountID, id string) (mediagate.Task, error) {
	_, err := s.change(ctx, id, &changing{events: []task.Event{task.CancelRequested{}}, owner: accountID, first: func(_ *gorm.DB, row stateTask) (bool, error) {
		if row.Status.Terminal() {
			return false, conflict("the task has ended: %s", row.Status)
		}
		return true, nil
	}})
	if err != nil {
		return mediagate.Task{}, err
	}
	return s.TaskByID(ctx, id)
}

// isNot reports that the task is not one of the account: a task that is erased is
// nobody's.
func (r stateTask) isNot(accountID string) bool {
	return r.AccountID != accountID || !r.ErasedAt.IsZero()
}

// lockedTask is a task's row as it is locked to be erased, or to be written after that.
type lockedTask struct {
	ID             string
	AccountID      string
	Status         mediagate.Status
	Plan           document
	Failure        document
	InputsErasedAt stamp
	ErasedAt       stamp
}

func (t lockedTask) plan() (plan mediagate.Plan, err error) {
	err = fromJSON("tasks.plan", t.Plan, &plan)
	return plan, err
}

// lock takes the task's row for the rest of the transaction. Returns
// KindNotFound.
func (s *Store) lock(tx *gorm.DB, id string) (lockedTask, error) {
	row, err := one[lockedTask](tx, "SELECT "+columnsOf[lockedTask]().text+" FROM tasks WHERE id = ?"+s.forUpdate("tasks"), id)
	if err != nil {
		return lockedTask{}, err
	}
	if row == nil {
		return lockedTask{}, notFound("task", id)
	}
	return *row, nil
}

// SubmitModal takes the modal parameters of a task in: the idempotency record when
// there is a key, and the event, all or nothing (D15). A repetition returns replayed,
// also when both arrive at once; of two different calls one is taken.
//
// Returns KindNotFound, also for someone else's task; KindConflict when the task
// does not wait for parameters, and with code idempotency_conflict when the key
// belongs to another request.
func (s *Store) SubmitModal(ctx context.Context, m mediagate.ModalCall) (replayed bool, err error) {
	_, err = s.change(ctx, m.TaskID, &changing{events: []task.Event{task.ModalGiven{Input: m.Input}}, owner: m.AccountID, first: func(tx *gorm.DB, _ stateTask) (bool, error) {
		replayed = false
		if m.IdempotencyKey == "" {
			return true, nil
		}
		now := at(s.clock())
		first, err := remember(tx, &idempotencyRow{
			AccountID: m.AccountID, Key: m.IdempotencyKey, Path: m.Path, BodySHA256: m.BodySHA256[:], TaskID: m.TaskID, CreatedAt: now,
		}, now)
		replayed = err == nil && !first
		return first, err
	}})
	if err != nil || !replayed {
		return false, err
	}
	taskID, found, err := s.Replay(ctx, m.AccountID, m.IdempotencyKey, m.Path, m.BodySHA256)
	if err == nil && (!found || taskID != m.TaskID) {
		err = mediagate.Errorf(mediagate.KindUnavailable, "the idempotency record keeps changing")
	}
	return true, err
}
