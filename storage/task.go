package storage

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

type taskRow struct {
	ID                string
	AccountID         string
	KeyID             string
	Model             string
	Type              mediagate.Type
	Status            mediagate.Status
	Progress          int
	Version           int64
	Params            []byte
	Reference         string
	RequestID         string
	Plan              []byte
	Charges           []byte
	Hold              mediagate.Micros
	Cost              mediagate.Micros
	CreatedAt         stamp
	StartedAt         stamp
	EndedAt           stamp
	DeadlineAt        stamp
	CancelRequestedAt stamp
	ParkedAt          stamp
	ParkReason        mediagate.ParkReason
	Results           []byte
	Failure           []byte
	WebhookURL        string
	WebhookState      mediagate.WebhookState
	WebhookReason     string
	WebhookRound      int
}

// taskColumns leaves out the callback's body, which only deliveries need.
const taskColumns = `id, account_id, key_id, model, type, status, progress, version, params, reference, request_id, plan, charges,
	hold, cost, created_at, started_at, ended_at, deadline_at, cancel_requested_at, parked_at, park_reason, results, failure,
	webhook_url, webhook_state, webhook_reason, webhook_round`

func (r taskRow) task() (mediagate.Task, error) {
	t := mediagate.Task{
		ID: r.ID, AccountID: r.AccountID, KeyID: r.KeyID, Model: r.Model, Type: r.Type, Status: r.Status,
		Progress: r.Progress, Version: r.Version, Params: r.Params, Reference: r.Reference, RequestID: r.RequestID,
		Hold: r.Hold, Cost: r.Cost, CreatedAt: r.CreatedAt.Time, StartedAt: r.StartedAt.Time, EndedAt: r.EndedAt.Time,
		DeadlineAt: r.DeadlineAt.Time, CancelRequestedAt: r.CancelRequestedAt.Time,
		ParkedAt: r.ParkedAt.Time, ParkReason: r.ParkReason,
	}
	if r.WebhookState != "" {
		t.Webhook = &mediagate.Webhook{URL: r.WebhookURL, State: r.WebhookState, Reason: r.WebhookReason, Round: r.WebhookRound}
	}
	for _, column := range []struct {
		name string
		text []byte
		to   any
	}{
		{"tasks.plan", r.Plan, &t.Plan},
		{"tasks.charges", r.Charges, &t.Charges},
		{"tasks.results", r.Results, &t.Results},
		{"tasks.failure", r.Failure, &t.Failure},
	} {
		if err := fromJSON(column.name, column.text, column.to); err != nil {
			return mediagate.Task{}, err
		}
	}
	return t, nil
}

// Task reads a task of the account. Returns KindNotFound, also for someone
// else's.
func (s *Store) Task(ctx context.Context, accountID, id string) (mediagate.Task, error) {
	return readTask(s.on(ctx), id, "SELECT "+taskColumns+" FROM tasks WHERE id = ? AND account_id = ?", id, accountID)
}

// TaskByID reads a task. Returns KindNotFound.
func (s *Store) TaskByID(ctx context.Context, id string) (mediagate.Task, error) {
	return readTask(s.on(ctx), id, "SELECT "+taskColumns+" FROM tasks WHERE id = ?", id)
}

func readTask(db *gorm.DB, id, query string, args ...any) (mediagate.Task, error) {
	row, err := scanTask(db, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return mediagate.Task{}, notFound("task", id)
	}
	if err != nil {
		return mediagate.Task{}, dbError(err, "read task")
	}
	return row.task()
}

// scanTask reads one row of taskColumns, in their order. This is what clients
// ask for most, and GORM's matching of so many columns with fields is a good
// part of its cost.
func scanTask(db *gorm.DB, query string, args ...any) (r taskRow, err error) {
	rows, err := db.Raw(query, args...).Rows()
	if err != nil {
		return r, err
	}
	defer rows.Close()
	if !rows.Next() {
		return r, cmp.Or(rows.Err(), sql.ErrNoRows)
	}
	err = rows.Scan(&r.ID, &r.AccountID, &r.KeyID, &r.Model, &r.Type, &r.Status, &r.Progress, &r.Version, &r.Params, &r.Reference,
		&r.RequestID, &r.Plan, &r.Charges, &r.Hold, &r.Cost, &r.CreatedAt, &r.StartedAt, &r.EndedAt, &r.DeadlineAt, &r.CancelRequestedAt,
		&r.ParkedAt, &r.ParkReason, &r.Results, &r.Failure, &r.WebhookURL, &r.WebhookState, &r.WebhookReason, &r.WebhookRound)
	return r, cmp.Or(err, rows.Close())
}

// defaultLimit is the length of a list that names none.
const defaultLimit = 20

// Tasks lists tasks of one account, newest first. Returns KindInvalid when
// After names no task of the account.
func (s *Store) Tasks(ctx context.Context, f mediagate.TaskFilter) (tasks []mediagate.Task, hasMore bool, err error) {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	if f.After != "" {
		found, err := one[taskRow](s.on(ctx), "SELECT id FROM tasks WHERE id = ? AND account_id = ?", f.After, f.AccountID)
		if err != nil {
			return nil, false, dbError(err, "list tasks")
		}
		if found == nil {
			return nil, false, mediagate.Invalid("after", "after names no task")
		}
	}
	where, args := []string{"account_id = ?"}, []any{f.AccountID}
	and := func(set bool, condition string, arg any) {
		if set {
			where, args = append(where, condition), append(args, arg)
		}
	}
	and(f.After != "", "id < ?", f.After)
	and(f.Status != "", "status = ?", f.Status)
	and(f.Model != "", "model = ?", f.Model)
	and(f.Type != "", "type = ?", f.Type)
	and(f.Reference != "", "reference = ?", f.Reference)
	// The planner takes the index of references only when it sees this.
	if f.Reference != "" {
		where = append(where, "reference <> ''")
	}
	and(!f.CreatedAfter.IsZero(), "created_at > ?", at(f.CreatedAfter))
	and(!f.CreatedBefore.IsZero(), "created_at < ?", at(f.CreatedBefore))

	var rows []taskRow
	err = read(s.on(ctx), &rows, "SELECT "+taskColumns+" FROM tasks WHERE "+strings.Join(where, " AND ")+" ORDER BY id DESC LIMIT ?",
		append(args, limit+1)...)
	if err != nil {
		return nil, false, dbError(err, "list tasks")
	}
	rows, hasMore = page(rows, limit)
	tasks, err = convertAll(rows, taskRow.task)
	return tasks, hasMore, err
}

// Versions reads the versions of tasks; unknown ids are left out.
func (s *Store) Versions(ctx context.Context, ids []string) (map[string]int64, error) {
	versions := make(map[string]int64, len(ids))
	if len(ids) == 0 {
		return versions, nil
	}
	text, err := jsonText(ids)
	if err != nil {
		return nil, err
	}
	var rows []taskRow
	if err := read(s.on(ctx), &rows, "SELECT id, version FROM tasks WHERE id IN "+s.inList(), text); err != nil {
		return nil, dbError(err, "read versions")
	}
	for _, row := range rows {
		versions[row.ID] = row.Version
	}
	return versions, nil
}

// RequestCancel notes the client's wish, once. Returns KindNotFound, also for
// someone else's task, and KindConflict when the task has ended.
func (s *Store) RequestCancel(ctx context.Context, accountID, id string) (t mediagate.Task, err error) {
	err = s.write(ctx, "request cancel", func(tx *gorm.DB) error {
		locked, err := s.lock(tx, id)
		if err != nil {
			return err
		}
		if locked.AccountID != accountID {
			return notFound("task", id)
		}
		if locked.Status.Terminal() {
			return conflict("the task has ended: %s", locked.Status)
		}
		if locked.CancelRequestedAt.IsZero() {
			if _, err := exec(tx, "UPDATE tasks SET cancel_requested_at = ?, version = version + 1 WHERE id = ?", at(s.clock()), id); err != nil {
				return err
			}
		}
		t, err = readTask(tx, id, "SELECT "+taskColumns+" FROM tasks WHERE id = ?", id)
		return err
	})
	if err != nil {
		return mediagate.Task{}, err
	}
	return t, nil
}

// lockedTask is what decisions on a task's story rest on.
type lockedTask struct {
	ID                string
	AccountID         string
	KeyID             string
	Status            mediagate.Status
	Progress          int
	Hold              mediagate.Micros
	Plan              []byte
	StartedAt         stamp
	DeadlineAt        stamp
	CancelRequestedAt stamp
	ParkedAt          stamp
	ParkReason        mediagate.ParkReason
	WebhookURL        string
	WebhookState      mediagate.WebhookState
}

// late reports that the waiting for the vendor has ended.
func (t lockedTask) late(now time.Time) bool {
	return !now.Before(mediagate.WaitsUntil(t.DeadlineAt.Time, t.ParkedAt.Time, now))
}

// lock takes the task's row for the rest of the transaction. Returns
// KindNotFound.
func (s *Store) lock(tx *gorm.DB, id string) (lockedTask, error) {
	row, err := one[lockedTask](tx, `SELECT id, account_id, key_id, status, progress, hold, plan, started_at, deadline_at,
		cancel_requested_at, parked_at, park_reason, webhook_url, webhook_state FROM tasks WHERE id = ?`+s.forUpdate("tasks"), id)
	if err != nil {
		return lockedTask{}, err
	}
	if row == nil {
		return lockedTask{}, notFound("task", id)
	}
	return *row, nil
}
