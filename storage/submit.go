package storage

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// idempotencyTTL counts from the end of the task.
const idempotencyTTL = 24 * time.Hour

// Submit takes a task in: the idempotency record when there is a key, the
// pending row, and the hold on key and account, all or nothing. A repetition
// of an earlier submit returns that one's task id and replayed, also when both
// arrive at once.
//
// Returns KindPayment when key or account is short, KindUnauthenticated when
// the key was deleted or has expired meanwhile, KindConflict with code
// idempotency_conflict when the idempotency key belongs to another request.
func (s *Store) Submit(ctx context.Context, n mediagate.NewTask) (taskID string, replayed bool, err error) {
	row, err := s.newSubmission(n)
	if err != nil {
		return "", false, err
	}
	for range 3 { // a record may end between the insert that saw it and the look at it
		var stored bool
		if s.lite {
			stored, err = s.submitSteps(ctx, row)
		} else {
			stored, err = s.submitAtOnce(ctx, row)
		}
		if err != nil {
			return "", false, dbError(err, "submit")
		}
		if stored {
			return n.Task.ID, false, nil
		}
		taskID, found, err := s.Replay(ctx, n.Task.AccountID, n.IdempotencyKey, n.Path, n.BodySHA256)
		if err != nil || found {
			return taskID, found, err
		}
	}
	return "", false, mediagate.Errorf(mediagate.KindUnavailable, "the idempotency record keeps changing")
}

type idempotencyRow struct {
	Path       string
	BodySHA256 []byte `gorm:"column:body_sha256"`
	TaskID     string
}

// Replay looks for an earlier submit with the idempotency key. Returns
// KindConflict with code idempotency_conflict when it was another request.
func (s *Store) Replay(ctx context.Context, accountID, idemKey, path string, body [32]byte) (taskID string, found bool, err error) {
	row, err := one[idempotencyRow](s.on(ctx), `SELECT path, body_sha256, task_id FROM idempotency
		WHERE account_id = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?)`, accountID, idemKey, at(s.clock()))
	if err != nil {
		return "", false, dbError(err, "read idempotency record")
	}
	if row == nil {
		return "", false, nil
	}
	if row.Path != path || subtle.ConstantTimeCompare(row.BodySHA256, body[:]) == 0 {
		return "", false, &mediagate.Error{
			Kind: mediagate.KindConflict, Code: "idempotency_conflict",
			Message: "idempotency key reused with a different request",
		}
	}
	return row.TaskID, true, nil
}

// submission is a new task as columns.
type submission struct {
	mediagate.NewTask
	now           time.Time
	plan, charges string
	webhook       mediagate.Webhook
	transferID    string
}

func (s *Store) newSubmission(n mediagate.NewTask) (submission, error) {
	row := submission{NewTask: n, now: s.clock(), transferID: s.newID("txn_")}
	if row.Task.CreatedAt.IsZero() {
		row.Task.CreatedAt = row.now
	}
	if n.Task.Webhook != nil {
		row.webhook = *n.Task.Webhook
	}
	var err error
	if row.plan, err = jsonText(n.Task.Plan); err != nil {
		return row, err
	}
	row.charges, err = jsonText(n.Task.Charges)
	return row, err
}

// submitSteps is Submit as a transaction of single statements, for a database
// in the same process.
func (s *Store) submitSteps(ctx context.Context, n submission) (stored bool, err error) {
	t := n.Task
	err = s.write(ctx, "submit", func(tx *gorm.DB) error {
		stored = false
		if n.IdempotencyKey != "" {
			inserted, err := exec(tx, `INSERT INTO idempotency (account_id, key, path, body_sha256, task_id, created_at) VALUES (?, ?, ?, ?, ?, ?)
				ON CONFLICT (account_id, key) DO UPDATE SET path = excluded.path, body_sha256 = excluded.body_sha256,
					task_id = excluded.task_id, created_at = excluded.created_at, expires_at = NULL
				WHERE idempotency.expires_at <= ?`,
				t.AccountID, n.IdempotencyKey, n.Path, n.BodySHA256[:], t.ID, at(n.now), at(n.now))
			if err != nil || inserted == 0 {
				return err
			}
		}
		_, err := exec(tx, `INSERT INTO tasks (id, account_id, key_id, model, type, status, params, reference, request_id, plan, charges,
				hold, created_at, deadline_at, checked_at, webhook_url, webhook_state, webhook_reason)
			VALUES (?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			t.ID, t.AccountID, t.KeyID, t.Model, t.Type, string(t.Params), t.Reference, t.RequestID, n.plan, n.charges,
			t.Hold, at(t.CreatedAt), at(t.DeadlineAt), at(n.now), n.webhook.URL, n.webhook.State, n.webhook.Reason)
		if isDuplicate(err) {
			return conflict("task %s exists", t.ID)
		}
		if err != nil {
			return err
		}
		if err := s.hold(tx, n); err != nil {
			return err
		}
		stored = true
		return nil
	})
	return stored, err
}

func (s *Store) hold(tx *gorm.DB, n submission) error {
	t := n.Task
	if _, err := record(tx, mediagate.Transfer{
		ID: n.transferID, Kind: mediagate.EntryHold, AccountID: t.AccountID, KeyID: t.KeyID, TaskID: t.ID, Amount: t.Hold, At: n.now,
	}, t.Hold); err != nil {
		return err
	}
	live := "id = ? AND account_id = ? AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"
	held, err := exec(tx, "UPDATE keys SET held = held + ? WHERE "+live+" AND (unlimited OR quota - held - spent >= ?)",
		t.Hold, t.KeyID, t.AccountID, at(n.now), t.Hold)
	if err != nil {
		return err
	}
	if held == 0 {
		row, err := one[keyRow](tx, "SELECT id FROM keys WHERE "+live, t.KeyID, t.AccountID, at(n.now))
		if err != nil {
			return err
		}
		if row == nil {
			return errKeyGone()
		}
		return errShort("the key's quota is used up")
	}
	held, err = exec(tx, "UPDATE accounts SET available = available - ?, held = held + ? WHERE id = ? AND available >= ?",
		t.Hold, t.Hold, t.AccountID, t.Hold)
	if err == nil && held == 0 {
		return errShort("insufficient balance")
	}
	return err
}

func errKeyGone() error {
	return mediagate.Errorf(mediagate.KindUnauthenticated, "the key is no longer valid")
}

func errShort(message string) error {
	return &mediagate.Error{Kind: mediagate.KindPayment, Code: "quota_not_enough", Message: message}
}

// submitChain is Submit as one statement, hence one round trip and one
// commit, in which the busy account row is locked no longer than the commit
// takes. What must not be, the tables refuse: CHECK constraints refuse a
// shortage, and a transfer without its account, which the chain of updates
// leaves empty when the key is gone.
const submitChain = `
t AS (
	INSERT INTO tasks (id, account_id, key_id, model, type, status, params, reference, request_id, plan, charges,
		hold, created_at, deadline_at, checked_at, webhook_url, webhook_state, webhook_reason)
	SELECT i.task_id, $2, $3, $4, $5, 'pending', $6, $7, $8, $9, $10, CAST($11 AS bigint), $12, $13, CAST($14 AS timestamptz), $15, $16, $17 FROM i
	RETURNING id),
k AS (
	UPDATE keys SET held = held + CAST($11 AS bigint) FROM t
	WHERE keys.id = $3 AND keys.account_id = $2 AND keys.deleted_at IS NULL AND (keys.expires_at IS NULL OR keys.expires_at > CAST($14 AS timestamptz))
	RETURNING keys.id),
a AS (
	UPDATE accounts SET available = available - CAST($11 AS bigint), held = accounts.held + CAST($11 AS bigint) FROM k
	WHERE accounts.id = $2
	RETURNING accounts.id),
l AS (
	INSERT INTO ledger_transfers (id, kind, account_id, key_id, task_id, amount, at)
	SELECT $18, 'hold', (SELECT id FROM a), $3, t.id, CAST($11 AS bigint), CAST($14 AS timestamptz) FROM t
	RETURNING id)
INSERT INTO ledger_entries (transfer_id, bucket, account_id, key_id, amount)
SELECT l.id, e.bucket, $2, $3, e.amount
FROM l, (VALUES ('available', -CAST($11 AS bigint)), ('held', CAST($11 AS bigint))) AS e (bucket, amount)`

const submitPlain = `WITH i AS (SELECT CAST($1 AS text) AS task_id),` + submitChain

const submitIdempotent = `WITH i AS (
	INSERT INTO idempotency (account_id, key, path, body_sha256, task_id, created_at)
	VALUES ($2, $19, $20, $21, $1, CAST($14 AS timestamptz))
	ON CONFLICT (account_id, key) DO UPDATE SET path = excluded.path, body_sha256 = excluded.body_sha256,
		task_id = excluded.task_id, created_at = excluded.created_at, expires_at = NULL
	WHERE idempotency.expires_at <= CAST($14 AS timestamptz)
	RETURNING task_id),` + submitChain

func (s *Store) submitAtOnce(ctx context.Context, n submission) (stored bool, err error) {
	t := n.Task
	query := submitPlain
	args := []any{
		t.ID, t.AccountID, t.KeyID, t.Model, string(t.Type), string(t.Params), t.Reference, t.RequestID, n.plan, n.charges,
		int64(t.Hold), at(t.CreatedAt), at(t.DeadlineAt), at(n.now), n.webhook.URL, string(n.webhook.State), n.webhook.Reason, n.transferID,
	}
	if n.IdempotencyKey != "" {
		query, args = submitIdempotent, append(args, n.IdempotencyKey, n.Path, n.BodySHA256[:])
	}
	for range 4 {
		result, err := s.sql.ExecContext(ctx, query, args...)
		if isVictim(err) {
			continue
		}
		if err != nil {
			return false, submitError(err)
		}
		changed, err := result.RowsAffected()
		return changed > 0, err
	}
	return false, mediagate.Errorf(mediagate.KindUnavailable, "submits keep getting into each other's way")
}

// submitError reads a refusal of the one statement.
func submitError(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch {
	case pg.ConstraintName == "keys_within_quota":
		return errShort("the key's quota is used up")
	case pg.ConstraintName == "accounts_not_short":
		return errShort("insufficient balance")
	case pg.TableName == "ledger_transfers" && pg.ColumnName == "account_id":
		return errKeyGone()
	case pg.ConstraintName == "tasks_pkey":
		return mediagate.Errorf(mediagate.KindConflict, "the task id is taken")
	default:
		return err
	}
}
