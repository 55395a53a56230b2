package storage

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// attemptRow is the row of an attempt: what statements ask for, and one document with the
// rest.
type attemptRow struct {
	TaskID      string `gorm:"primaryKey"`
	N           int    `gorm:"primaryKey"`
	AccountID   string
	State       mediagate.AttemptState
	Channel     string
	Provider    string
	Fingerprint string
	JobID       string // the vendor's
	CreatedAt   stamp
	AcceptedAt  stamp
	GivenUpAt   stamp
	EndedAt     stamp
	SlotUntil   stamp
	Succeeded   bool // its outcome
	Document    document

	VendorAmount      *mediagate.Micros
	VendorUnit        string
	VendorUncountedAt stamp
}

// TableName tells GORM.
func (attemptRow) TableName() string { return "attempts" }

// attempt returns the attempt, with an error also those parts that can be read.
func (r attemptRow) attempt() (task.Attempt, error) {
	var a task.Attempt
	err := fromJSON("attempts.document", r.Document, &a)
	a.TaskID, a.N, a.State, a.Channel, a.Provider, a.Fingerprint = r.TaskID, r.N, r.State, r.Channel, r.Provider, r.Fingerprint
	a.CreatedAt, a.AcceptedAt, a.GivenUpAt = r.CreatedAt.Time, r.AcceptedAt.Time, r.GivenUpAt.Time
	a.EndedAt, a.SlotUntil = r.EndedAt.Time, r.SlotUntil.Time
	return a, err
}

// newAttemptRow returns the row of a task's attempt, with what the row of the task allows.
func newAttemptRow(t mediagate.Task, a task.Attempt) (r attemptRow, err error) {
	a = allowed(t, a)
	r = attemptRow{
		TaskID: t.ID, N: a.N, AccountID: t.AccountID, State: a.State, Channel: a.Channel, Provider: a.Provider,
		Fingerprint: a.Fingerprint, JobID: a.Ref.JobID, CreatedAt: at(a.CreatedAt), AcceptedAt: at(a.AcceptedAt),
		GivenUpAt: at(a.GivenUpAt), EndedAt: at(a.EndedAt), SlotUntil: at(a.SlotUntil),
		Succeeded: a.Outcome != nil && a.Outcome.Succeeded,
	}
	r.Document, err = jsonText(a)
	return r, err
}

// Attempts reads all attempts of a task, the first one first.
func (s *Store) Attempts(ctx context.Context, taskID string) ([]task.Attempt, error) {
	var rows []attemptRow
	if err := read(s.on(ctx), &rows, "SELECT "+columnsOf[attemptRow]().text+" FROM attempts WHERE task_id = ? ORDER BY n", taskID); err != nil {
		return nil, dbError(err, "read attempts")
	}
	return convertAll(rows, attemptRow.attempt)
}

// Attempt reads one attempt. Returns KindNotFound.
func (s *Store) Attempt(ctx context.Context, taskID string, n int) (task.Attempt, error) {
	row, err := readAttempt(s.on(ctx), taskID, n)
	if err != nil {
		return task.Attempt{}, dbError(err, "read attempt")
	}
	return row.attempt()
}

// Producer reads the attempt that made what a completed task shows. Returns
// KindNotFound where there is none.
func (s *Store) Producer(ctx context.Context, taskID string) (task.Attempt, error) {
	var rows []attemptRow
	if err := read(s.on(ctx), &rows, "SELECT "+columnsOf[attemptRow]().of("a")+` FROM attempts a JOIN tasks t ON t.id = a.task_id
		WHERE a.task_id = ? AND t.status = 'completed' AND a.succeeded ORDER BY a.n DESC`, taskID); err != nil {
		return task.Attempt{}, dbError(err, "read attempt")
	}
	for _, row := range rows {
		if a, err := row.attempt(); err != nil || a.Mirrored() {
			return a, err
		}
	}
	return task.Attempt{}, notFound("attempt", taskID)
}

// Refusals counts the attempts of a task that were rejected, by channel.
func (s *Store) Refusals(ctx context.Context, taskID string) (byChannel map[string]int, err error) {
	var rows []struct {
		Channel string
		N       int
	}
	if err := read(s.on(ctx), &rows, "SELECT channel, COUNT(*) AS n FROM attempts WHERE task_id = ? AND state = 'rejected' GROUP BY channel", taskID); err != nil {
		return nil, dbError(err, "count refusals")
	}
	byChannel = make(map[string]int, len(rows))
	for _, r := range rows {
		byChannel[r.Channel] = r.N
	}
	return byChannel, nil
}

func readAttempt(db *gorm.DB, taskID string, n int) (attemptRow, error) {
	row, err := one[attemptRow](db, "SELECT "+columnsOf[attemptRow]().text+" FROM attempts WHERE task_id = ? AND n = ?", taskID, n)
	if err != nil {
		return attemptRow{}, err
	}
	if row == nil {
		return attemptRow{}, mediagate.Errorf(mediagate.KindNotFound, "no attempt %d of task %q", n, taskID)
	}
	return *row, nil
}

// A cancelled task is not paid for, and its job may run on at a vendor that cannot stop it.
// As long as it may, its attempt is abandoned. Those attempts are counted where somebody
// asks, in the rows themselves: there is no counter that could be wrong. A submit that
// waits for its account's row does not see those that were abandoned meanwhile, so as many
// may be too many as submits of an account write at once.

// abandoned selects the abandoned attempts l of cancelled tasks lt of an account. One that
// an operator gave up is none: that its job runs on is not the client's doing.
func abandoned(what, account string) string {
	return "(SELECT " + what + " FROM attempts AS l JOIN tasks AS lt ON lt.id = l.task_id WHERE l.state = 'abandoned' AND l.given_up_at IS NULL AND lt.status = 'cancelled' AND l.account_id = " + account
}

const (
	abandonedJobs = "COUNT(*)"
	abandonedCost = "CAST(COALESCE(SUM(lt.hold), 0) AS bigint)"
)

// unpaidRetry is when a client whose account has too much unpaid may try again: jobs end
// within minutes.
const unpaidRetry = time.Minute

// Abandoned tells of the jobs of an account's cancelled tasks that may still run.
func (s *Store) Abandoned(ctx context.Context, accountID string) (mediagate.Abandoned, error) {
	row, err := one[mediagate.Abandoned](s.on(ctx), "SELECT jobs, cost FROM "+abandoned(abandonedJobs+" AS jobs, "+abandonedCost+" AS cost", "?")+") AS of_account", accountID)
	if err != nil || row == nil {
		return mediagate.Abandoned{}, dbError(err, "count abandoned jobs")
	}
	return *row, nil
}

// checkUnpaid refuses another task of an account of whose abandoned jobs more is unpaid
// than may be.
func (s *Store) checkUnpaid(ctx context.Context, account accountRow) error {
	limit := account.limits().Or(s.defaults).Unpaid
	if limit == nil {
		return nil
	}
	have, err := s.Abandoned(ctx, account.ID)
	if err != nil || have.Cost <= *limit {
		return err
	}
	return &mediagate.Error{
		Kind: mediagate.KindRateLimited, Code: "rate_limited", RetryAfter: unpaidRetry,
		Message: fmt.Sprintf("too many requests: %d jobs of cancelled tasks may still run and are not paid for; their cost of %s is above the account's unpaid of %s",
			have.Jobs, have.Cost, *limit),
	}
}
