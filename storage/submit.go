package storage

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/semaphore"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/mediagate/mediagate"
)

// idempotencyTTL counts from the end of the task.
const idempotencyTTL = 24 * time.Hour

// Submit takes a task in: the idempotency record when there is a key, the
// pending row with its wake, and the hold on key and account, all or nothing. A repetition
// of an earlier submit returns that one's task id and replayed, also when both
// arrive at once.
//
// Returns KindUnauthenticated when the key was deleted or has expired meanwhile,
// KindPayment when key or account is short, or a cap of the key is reached,
// KindRateLimited with code rate_limited when either has as many tasks in flight
// as it may, KindConflict with code idempotency_conflict when the idempotency key
// belongs to another request, KindRateLimited with code group_saturated when the
// group has no room left, and KindNotFound when the task that the request works on
// was erased meanwhile.
func (s *Store) Submit(ctx context.Context, n mediagate.NewTask) (taskID string, replayed bool, err error) {
	for range 3 { // a record may end between the insert that saw it and the look at it
		row, err := s.newSubmission(n)
		if err != nil {
			return "", false, err
		}
		stored, err := s.store(ctx, row)
		if err != nil && !mediagate.Is(err, mediagate.KindRateLimited) {
			return "", false, dbError(err, "submit")
		}
		if stored {
			s.observer.TaskSubmitted(n.Task.Type)
			return n.Task.ID, false, nil
		}
		if err != nil { // its twin may have taken the last place
			if taskID, found, replay := s.Replay(ctx, n.Task.AccountID, n.IdempotencyKey, n.Path, n.BodySHA256); found || replay != nil {
				return taskID, found, replay
			}
			return "", false, err
		}
		taskID, found, err := s.Replay(ctx, n.Task.AccountID, n.IdempotencyKey, n.Path, n.BodySHA256)
		if err != nil || found {
			return taskID, found, err
		}
		if err := s.sourceStands(s.on(ctx), row.source); err != nil {
			return "", false, dbError(err, "submit")
		}
	}
	return "", false, mediagate.Errorf(mediagate.KindUnavailable, "the idempotency record keeps changing")
}

// holdTries is how often a hold is tried that was refused for a reason that is
// gone when it is looked for.
const holdTries = 8

// store stores what is new and its hold. It tells false where an idempotency
// record of an earlier submit stands against it.
func (s *Store) store(ctx context.Context, n submission) (stored bool, err error) {
	enter := func() (leave func(), err error) { return s.enter(ctx, n.hold.AccountID) }
	inTurn := !s.lite && n.capacity > 0 // the turns of its group bound it, but not the look for a refusal's reason
	if !inTurn {
		leave, err := enter()
		if err != nil {
			return false, err
		}
		defer leave()
		enter = func() (func(), error) { return func() {}, nil }
	}
	for range holdTries {
		if s.lite {
			stored, err = s.submitSteps(ctx, n)
		} else {
			stored, err = s.submitAtOnce(ctx, n)
		}
		if !errors.Is(err, errRefused) {
			return stored, err
		}
		leave, err := enter()
		if err != nil {
			return false, err
		}
		err = s.refusal(ctx, n)
		leave()
		if err != nil {
			return false, err
		}
	}
	return false, mediagate.Errorf(mediagate.KindUnavailable, "the balance keeps changing")
}

type idempotencyRow struct {
	AccountID  string `gorm:"primaryKey"`
	Key        string `gorm:"primaryKey"`
	Path       string
	BodySHA256 []byte `gorm:"column:body_sha256"`
	TaskID     string
	CreatedAt  stamp
	ExpiresAt  stamp
}

// TableName tells GORM.
func (idempotencyRow) TableName() string { return "idempotency" }

// Replay looks for an earlier submit with the idempotency key. Returns
// KindConflict with code idempotency_conflict when it was another request.
func (s *Store) Replay(ctx context.Context, accountID, idemKey, path string, body [32]byte) (taskID string, found bool, err error) {
	row, err := one[struct {
		Path       string
		BodySHA256 []byte `gorm:"column:body_sha256"`
		TaskID     string
	}](s.on(ctx), "SELECT path, body_sha256, task_id FROM idempotency WHERE account_id = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?)",
		accountID, idemKey, at(s.clock()))
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

// submission is a new task, or a speech, as rows.
type submission struct {
	into     func(*statement) *statement // inserts the row itself
	record   *idempotencyRow             // nil without a key
	wake     *wakeRow                    // of a task's run; a speech has none
	source   string                      // the task that it works on, if any
	group    string
	capacity int // of the group; 0: no limit
	hold     mediagate.Transfer
	tasks    int // in flight: a speech is none
	defaults mediagate.AccountLimits
	now      stamp
}

func (s *Store) newSubmission(n mediagate.NewTask) (submission, error) {
	t, now := n.Task, s.clock()
	plan, err := jsonText(t.Plan)
	if err != nil {
		return submission{}, err
	}
	charges, err := jsonText(t.Charges)
	if err != nil {
		return submission{}, err
	}
	if t.CreatedAt.IsZero() {
		t.CreatedAt = now
	}
	task := wholeTask{GroupName: n.Group, taskRow: taskRow{
		lockedTask: lockedTask{ID: t.ID, AccountID: t.AccountID, Status: mediagate.StatusPending, Plan: plan},
		KeyID:      t.KeyID, Model: t.Model, Type: t.Type, Version: 1, Params: document(t.Params), Reference: t.Reference, RequestID: t.RequestID, TraceParent: t.TraceParent,
		Charges: charges, Hold: t.Hold, CreatedAt: at(t.CreatedAt), DeadlineAt: at(t.DeadlineAt),
	}}
	if t.Webhook != nil {
		task.WebhookURL, task.WebhookState, task.WebhookReason = t.Webhook.URL, t.Webhook.State, t.Webhook.Reason
	}
	if t.Plan.Source != nil {
		task.SourceID = t.Plan.Source.TaskID
	}
	sub := submission{
		wake:   &wakeRow{TaskID: t.ID, Kind: mediagate.WakeRun, AccountID: t.AccountID, WakeAt: at(now.Add(startLease))},
		source: task.SourceID, group: n.Group, capacity: n.Capacity,
		into: func(st *statement) *statement { return insert(st, "tasks", task, nil) },
		hold: s.newHold(t.ID, t.AccountID, t.KeyID, t.Hold, now), tasks: 1, now: at(now), defaults: s.defaults,
	}
	if n.IdempotencyKey != "" {
		sub.record = &idempotencyRow{
			AccountID: t.AccountID, Key: n.IdempotencyKey, Path: n.Path, BodySHA256: n.BodySHA256[:], TaskID: t.ID, CreatedAt: at(now),
		}
	}
	return sub, nil
}

// submitSteps is Submit as a transaction of single statements, for a database
// in the same process.
func (s *Store) submitSteps(ctx context.Context, n submission) (stored bool, err error) {
	err = s.write(ctx, "submit", func(tx *gorm.DB) error {
		stored = false
		if n.record != nil {
			if first, err := remember(tx, n.record, n.now); err != nil || !first {
				return err
			}
		}
		if err := s.sourceStands(tx, n.source); err != nil {
			return err
		}
		into := n.into(&statement{})
		_, err := exec(tx, into.text.String(), into.args...)
		if isDuplicate(err) {
			return conflict("%s exists", n.hold.TaskID)
		}
		if err != nil {
			return err
		}
		if err := hold(tx, n); err != nil {
			return err
		}
		if n.wake != nil {
			into := insert(&statement{}, "wakes", *n.wake, nil)
			if _, err := exec(tx, into.text.String(), into.args...); err != nil {
				return err
			}
		}
		if n.capacity > 0 {
			busy, err := one[groupLoad](tx, groupLoadQuery, n.hold.AccountID, n.group)
			if err == nil {
				err = busy.within(n.capacity)
			}
			if err != nil {
				return err
			}
		}
		stored = true
		return nil
	})
	return stored, err
}

// sourceStands reports with KindNotFound that the task that a request works on
// is erased.
func (s *Store) sourceStands(db *gorm.DB, source string) error {
	if source == "" {
		return nil
	}
	row, err := one[struct{ ID string }](db, "SELECT id FROM tasks WHERE id = ? AND erased_at IS NULL", source)
	if err == nil && row == nil {
		err = notFound("task", source)
	}
	return err
}

// remember stores the record of a request. It tells false where another stands
// against it; one that has expired does not.
func remember(tx *gorm.DB, record *idempotencyRow, now stamp) (first bool, err error) {
	inserted := tx.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "account_id"}, {Name: "key"}},
		DoUpdates: clause.AssignmentColumns(columnsOf[idempotencyRow]().names),
		Where:     clause.Where{Exprs: []clause.Expression{gorm.Expr("idempotency.expires_at <= ?", now)}},
	}).Create(record)
	return inserted.RowsAffected > 0, inserted.Error
}

// groupLoad are the tasks in flight of a group, and those of an account among them.
type groupLoad struct{ All, Own int }

const groupLoadQuery = `SELECT COUNT(*) AS "all", COUNT(CASE WHEN account_id = ? THEN 1 END) AS own
	FROM tasks WHERE group_name = ? AND status IN ('pending', 'processing')`

// within tells what is too much of a group with that capacity. As in package limit, an
// account has no more than is free beside all, and its first task as long as any is.
func (l groupLoad) within(capacity int) error {
	switch {
	case l.All > capacity:
		return errSaturated(fmt.Sprintf("as many as %d tasks are in flight", capacity))
	case l.Own > 1 && l.Own > capacity-l.All:
		return errSaturated(fmt.Sprintf("the account has its share of %d tasks in flight", capacity))
	default:
		return nil
	}
}

// saturatedRetry is when a client that found its group saturated may try again:
// the shortest media take about as long.
const saturatedRetry = 5 * time.Second

func errSaturated(how string) error {
	return &mediagate.Error{
		Kind: mediagate.KindRateLimited, Code: "group_saturated", RetryAfter: saturatedRetry,
		Message: "too many requests: the group's capacity is saturated, " + how,
	}
}

// submitAtOnce is Submit as one statement for PostgreSQL, hence one round trip
// and one commit, in which the busy account row is locked no longer than the
// commit takes.
func (s *Store) submitAtOnce(ctx context.Context, n submission) (stored bool, err error) {
	query, args := submitStatement(n)
	for range 4 {
		run := func(db execer) (sql.Result, error) { return db.ExecContext(ctx, query, args...) }
		var result sql.Result
		var err error
		if n.capacity > 0 {
			result, err = s.withinCapacity(ctx, n, run)
		} else {
			result, err = run(s.sql)
		}
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

// execer is a database or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// groupWidth is how many submits of a group with a capacity have a connection at
// once: the one whose turn it is, and the next one.
const groupWidth = 2

// groupPatience is how long a submit waits for its account's row while it has the
// group's lock. Longer than that somebody keeps the row, which is nothing to the
// group's other accounts.
const groupPatience = 200 * time.Millisecond

// withinCapacity is inTurn for a group with a capacity. One whose account's row is
// locked waits for that in its account's turn, and then has another turn.
func (s *Store) withinCapacity(ctx context.Context, n submission, run func(execer) (sql.Result, error)) (sql.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*s.patience)
	defer cancel()
	result, err := s.inTurn(ctx, n, s.writers.Uses, run)
	for errors.Is(err, errKept) {
		if err := s.awaitAccount(ctx, n.hold.AccountID); err != nil {
			return nil, err
		}
		result, err = s.inTurn(ctx, n, func(string) bool { return false }, run)
	}
	return result, err
}

// errKept says that the account's row is locked for longer than a group waits, or
// that others wait for it already.
var errKept = errors.New("the account's row is kept")

// awaitAccount waits until the account's row is not locked.
func (s *Store) awaitAccount(ctx context.Context, account string) error {
	leave, err := s.enter(ctx, account)
	if err != nil {
		return err
	}
	defer leave()
	_, err = s.sql.ExecContext(ctx, "SELECT 1 FROM accounts WHERE id = $1 FOR NO KEY UPDATE", account)
	return err
}

// inTurn runs the statement while nobody else submits for the group, and takes it
// back when the group then has more in flight than it may. The count is a
// statement of its own: it sees what was committed before the lock was free.
// Others of the group wait here, without a connection: while another process keeps
// the lock, those are for everybody else. Who comes to its turn and finds that its
// account is kept leaves it to the next one: errKept.
func (s *Store) inTurn(ctx context.Context, n submission, kept func(account string) bool, run func(execer) (sql.Result, error)) (sql.Result, error) {
	turns, _ := s.groups.LoadOrStore(n.group, semaphore.NewWeighted(groupWidth))
	turn, _ := turns.(*semaphore.Weighted)
	if err := turn.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer turn.Release(1)
	if kept(n.hold.AccountID) {
		return nil, errKept
	}
	tx, err := s.begin(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // of what was not committed
	const lock = "SELECT pg_advisory_xact_lock(hashtextextended('mediagate group ' || $1, 0)), set_config('lock_timeout', $2, true)"
	if _, err := tx.ExecContext(ctx, lock, n.group, groupPatience.String()); err != nil {
		return nil, err
	}
	result, err := run(tx)
	if isLockTimeout(err) {
		return nil, errKept
	}
	if err != nil {
		return nil, err
	}
	var busy groupLoad
	query := strings.NewReplacer("account_id = ?", "account_id = $1", "group_name = ?", "group_name = $2").Replace(groupLoadQuery)
	if err := tx.QueryRowContext(ctx, query, n.hold.AccountID, n.group).Scan(&busy.All, &busy.Own); err != nil {
		return nil, err
	}
	stored, err := result.RowsAffected()
	if err == nil && stored > 0 {
		err = busy.within(n.capacity)
	}
	if err != nil {
		return nil, err
	}
	return result, tx.Commit()
}

// submitStatement chains the same rows so that each is stored only when the
// one before was. What must not be, a table refuses: a transfer without its
// account, which the chain of updates leaves empty when one of them cannot be.
func submitStatement(n submission) (string, []any) {
	s := &statement{numbered: true}
	s.text.Grow(6144)
	s.say("WITH ")
	from := ""
	if n.source != "" { // its row is locked against its erasure until this is committed
		s.with("source AS MATERIALIZED (SELECT 1 FROM tasks WHERE id = ? AND erased_at IS NULL FOR KEY SHARE), ", n.source)
		from = " FROM source"
	}
	s.say("i AS (")
	if n.record == nil {
		s.say("SELECT 1", from)
	} else {
		c := columnsOf[idempotencyRow]()
		insert(s, "idempotency", *n.record, nil).say(from).
			say(" ON CONFLICT (account_id, key) DO UPDATE SET (", c.text, ") = ROW (", c.of("excluded"), ")").
			with(" WHERE idempotency.expires_at <= ? RETURNING 1", n.now)
	}
	n.into(s.say("), t AS ("))
	s.say(" FROM i RETURNING 1), ")
	if n.wake != nil {
		insert(s.say("w AS ("), "wakes", *n.wake, nil).say(" FROM t), ")
	}
	n.holdOnKey(s.say("k AS ("), " FROM t")
	n.holdOnAccount(s.say("), a AS ("), " FROM k")
	transfer := newTransferRow(n.hold)
	insert(s.say("), l AS ("), "ledger_transfers", transfer, map[string]string{"account_id": "(SELECT id FROM a)", "counted_day": "(SELECT day_start FROM k)"}).
		say(" FROM t RETURNING 1), first AS (")
	lines := entries(transfer, transfer.Amount)
	insert(s, "ledger_entries", lines[0], nil).say(" FROM l) ")
	insert(s, "ledger_entries", lines[1], nil).say(" FROM l")
	return s.text.String(), s.args
}

// submitError reads a refusal of the one statement.
func submitError(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch {
	case pg.TableName == "ledger_transfers" && pg.ColumnName == "account_id":
		return errRefused
	case pg.ConstraintName == "tasks_pkey", pg.ConstraintName == "speeches_pkey":
		return mediagate.Errorf(mediagate.KindConflict, "the id is taken")
	default:
		return err
	}
}
