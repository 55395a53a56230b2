package storage

import (
	"context"
	"encoding/json"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// taskRow is the row of a task: what statements ask for, and one document with the rest.
type taskRow struct {
	ID                string
	AccountID         string
	KeyID             string
	GroupName         string // only a submit writes it
	Model             string
	Type              mediagate.Type
	Params            document
	Reference         string
	TraceParent       string
	SourceID          string
	Hold              mediagate.Micros
	CreatedAt         stamp
	Status            mediagate.Status
	Progress          int
	Version           int64
	StartedAt         stamp
	DeadlineAt        stamp
	Wait              mediagate.WaitWhy
	WaitReason        mediagate.ParkReason
	WaitSince         stamp
	TryAt             stamp
	WaitEndsAt        stamp
	FailsAt           stamp
	CancelRequestedAt stamp
	FailRequestedAt   stamp
	RestoredAt        stamp
	TailLost          bool
	Channel           string
	Provider          string
	EndedAt           stamp
	Results           document
	Cost              mediagate.Micros
	WebhookURL        string
	WebhookState      mediagate.WebhookState
	WebhookReason     string
	WebhookRound      int
	InputsErasedAt    stamp
	ErasedAt          stamp
	Document          document
}

// state returns the task as its row has it, without its attempts. With an error it has
// those parts that can be read.
func (r taskRow) state() (task.State, error) {
	var st task.State
	err := fromJSON("tasks.document", r.Document, &st)
	st.ID, st.AccountID, st.KeyID, st.Model, st.Type = r.ID, r.AccountID, r.KeyID, r.Model, r.Type
	st.Params, st.Reference, st.TraceParent = json.RawMessage(r.Params), r.Reference, r.TraceParent
	st.Status, st.Progress, st.Version = r.Status, r.Progress, r.Version
	st.Hold, st.Cost = r.Hold, r.Cost
	st.CreatedAt, st.StartedAt, st.EndedAt = r.CreatedAt.Time, r.StartedAt.Time, r.EndedAt.Time
	st.DeadlineAt, st.CancelRequestedAt, st.FailRequestedAt = r.DeadlineAt.Time, r.CancelRequestedAt.Time, r.FailRequestedAt.Time
	st.Wait = mediagate.Wait{
		Why: r.Wait, Reason: r.WaitReason, Since: r.WaitSince.Time, TryAt: r.TryAt.Time, EndsAt: r.WaitEndsAt.Time,
	}
	st.RestoredAt, st.TailLost = r.RestoredAt.Time, r.TailLost
	st.Webhook = mediagate.Webhook{URL: r.WebhookURL, State: r.WebhookState, Reason: r.WebhookReason, Round: r.WebhookRound}
	st.InputsErasedAt, st.ErasedAt = r.InputsErasedAt.Time, r.ErasedAt.Time
	if unreadable := fromJSON("tasks.results", r.Results, &st.Results); err == nil {
		err = unreadable
	}
	return st, err
}

// task returns the task, with an error also those parts that can be read.
func (r taskRow) task() (mediagate.Task, error) {
	st, err := r.state()
	return st.Task, err
}

// newTaskRow returns the row of a task.
func newTaskRow(st *task.State) (r taskRow, err error) {
	r = taskRow{
		ID: st.ID, AccountID: st.AccountID, KeyID: st.KeyID, Model: st.Model, Type: st.Type,
		Params: document(st.Params), Reference: st.Reference, TraceParent: st.TraceParent,
		Status: st.Status, Progress: st.Progress, Version: st.Version, Hold: st.Hold, Cost: st.Cost,
		CreatedAt: at(st.CreatedAt), StartedAt: at(st.StartedAt), EndedAt: at(st.EndedAt),
		DeadlineAt: at(st.DeadlineAt), CancelRequestedAt: at(st.CancelRequestedAt), FailRequestedAt: at(st.FailRequestedAt),
		Wait: st.Wait.Why, WaitReason: st.Wait.Reason, WaitSince: at(st.Wait.Since), TryAt: at(st.Wait.TryAt), WaitEndsAt: at(st.Wait.EndsAt),
		RestoredAt: at(st.RestoredAt), TailLost: st.TailLost,
		WebhookURL: st.Webhook.URL, WebhookState: st.Webhook.State, WebhookReason: st.Webhook.Reason, WebhookRound: st.Webhook.Round,
		InputsErasedAt: at(st.InputsErasedAt), ErasedAt: at(st.ErasedAt),
	}
	if st.Plan.Source != nil {
		r.SourceID = st.Plan.Source.TaskID
	}
	if !st.Status.Terminal() {
		r.FailsAt = at(st.FailsAt())
	}
	if a := st.Last(); a != nil {
		r.Channel, r.Provider = a.Channel, a.Provider
	}
	if st.Results != nil {
		if r.Results, err = jsonText(st.Results); err != nil {
			return r, err
		}
	}
	r.Document, err = jsonText(st)
	return r, err
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
	ended := func(_ *gorm.DB, t mediagate.Task) (bool, error) {
		if t.Status.Terminal() {
			return false, conflict("the task has ended: %s", t.Status)
		}
		return true, nil
	}
	_, err := s.change(ctx, id, &changing{events: []task.Event{task.CancelRequested{}}, owner: accountID, first: ended})
	if err != nil {
		return mediagate.Task{}, err
	}
	return s.TaskByID(ctx, id)
}

// SubmitModal takes the modal parameters of a task in: the idempotency record when
// there is a key, and the event, all or nothing (D15). A repetition returns replayed,
// also when both arrive at once; of two different calls one is taken.
//
// Returns KindNotFound, also for someone else's task; KindConflict when the task
// does not wait for parameters, and with code idempotency_conflict when the key
// belongs to another request.
func (s *Store) SubmitModal(ctx context.Context, m mediagate.ModalCall) (replayed bool, err error) {
	once := func(tx *gorm.DB, _ mediagate.Task) (bool, error) {
		replayed = false
		if m.IdempotencyKey == "" {
			return true, nil
		}
		now := at(s.clock())
		first, err := remember(tx, &idempotencyRow{
			AccountID: m.AccountID, Key: m.IdempotencyKey, Path: m.Path, BodySHA256: m.BodySHA256[:],
			TaskID: m.TaskID, CreatedAt: now,
		}, now)
		replayed = err == nil && !first
		return first, err
	}
	_, err = s.change(ctx, m.TaskID, &changing{events: []task.Event{task.ModalGiven{Input: m.Input}}, owner: m.AccountID, first: once})
	if err != nil || !replayed {
		return false, err
	}
	taskID, found, err := s.Replay(ctx, m.AccountID, m.IdempotencyKey, m.Path, m.BodySHA256)
	if err == nil && (!found || taskID != m.TaskID) {
		err = mediagate.Errorf(mediagate.KindUnavailable, "the idempotency record keeps changing")
	}
	return true, err
}
