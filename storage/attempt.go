package storage

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// attemptRow is the row of an attempt: the attempt, and the columns that are derived from it.
// The document holds every field without a column. Only noteVendorCharge writes the columns
// of the vendor's charge.
type attemptRow struct {
	task.Attempt
	AccountID string
	JobID     string // the vendor's id of the job
	Succeeded bool   // whether its outcome is a success
	Document  document
}

func (r *attemptRow) columns() []column {
	return []column{
		{"task_id", &r.TaskID},
		{"n", &r.N},
		{"account_id", &r.AccountID},
		{"state", &r.State},
		{"channel", &r.Channel},
		{"provider", &r.Provider},
		{"fingerprint", &r.Fingerprint},
		{"job_id", &r.JobID},
		{"created_at", &r.CreatedAt},
		{"accepted_at", &r.AcceptedAt},
		{"given_up_at", &r.GivenUpAt},
		{"ended_at", &r.EndedAt},
		{"slot_until", &r.SlotUntil},
		{"succeeded", &r.Succeeded},
		{"document", &r.Document},
	}
}

// newAttemptRow returns the row of a task's attempt. Where the task is erased, allowed removes
// what must not be stored.
func newAttemptRow(t mediagate.Task, a task.Attempt) (r attemptRow, err error) {
	r.Attempt = allowed(t, a)
	r.TaskID, r.AccountID = t.ID, t.AccountID
	r.JobID = r.Ref.JobID
	r.Succeeded = r.Outcome != nil && r.Outcome.Succeeded
	r.Document, err = jsonText(r.Attempt)
	return r, err
}

// attempt returns the attempt. With an error, it returns the parts that can be read.
func (r attemptRow) attempt() (task.Attempt, error) {
	a := r.Attempt
	err := fromJSON("attempts.document", r.Document, &a)
	// The columns take precedence over the document.
	a.N = r.N
	a.Channel = r.Channel
	a.Provider = r.Provider
	a.Fingerprint = r.Fingerprint
	return a, err
}

// polledAttempt is an attempt's row with its await row.
type polledAttempt struct {
	attemptRow
	Polled bool
	Poll   task.Await
}

func (r *polledAttempt) columns() []column {
	return append(r.attemptRow.columns(),
		column{"polled", &r.Polled},
		column{"next_poll_at", &r.Poll.NextPollAt},
		column{"claim", &r.Poll.Claim},
		column{"claimed_at", &r.Poll.ClaimedAt},
		column{"again", &r.Poll.Again})
}

// loadAttempts reads the last attempt of a task and the attempts with the given numbers, in the
// order of their numbers.
func (s *Store) loadAttempts(tx *gorm.DB, st *task.State, named []int) error {
	numbers, err := jsonText(append([]int{}, named...)) // an empty list, not null
	if err != nil {
		return err
	}
	list := "(SELECT CAST(value AS integer) FROM json_array_elements_text(CAST(? AS json)))"
	if s.lite {
		list = "(SELECT value FROM json_each(?))"
	}
	var rows []polledAttempt
	if err := read(tx, &rows, "SELECT "+columnsOf[attemptRow]().of("a")+`,
			w.task_id IS NOT NULL,
			w.next_poll_at,
			COALESCE(w.claim, ''),
			CASE WHEN w.claim <> '' THEN w.claimed_at END,
			COALESCE(w.claim <> '' AND w.hinted_at > w.claimed_at, false)
		FROM attempts a LEFT JOIN awaits w ON w.task_id = a.task_id AND w.n = a.n
		WHERE a.task_id = ? AND (a.n = (SELECT MAX(n) FROM attempts WHERE task_id = ?) OR a.n IN `+list+`)
		ORDER BY a.n`, st.ID, st.ID, numbers); err != nil {
		return err
	}
	for _, r := range rows {
		a, err := r.attempt()
		if err != nil && !unreadable(err) {
			return err
		}
		if r.Polled {
			a.Await = &r.Poll
		}
		st.Unreadable = st.Unreadable || err != nil
		st.Attempts = append(st.Attempts, a)
	}
	return nil
}

// saveAttempts writes the attempts that differ between two states, and their await rows.
func (s *Store) saveAttempts(tx *gorm.DB, before, after *task.State, effects task.Effects, now time.Time) error {
	for _, a := range after.Attempts {
		old := before.Attempt(a.N)
		if err := saveAttempt(tx, after.Task, old, a); err != nil {
			return err
		}
		charged := &mediagate.Outcome{VendorCharge: effects.Charged[a.N]}
		if err := noteVendorCharge(tx, after.ID, a.N, charged, at(now)); err != nil {
			return err
		}
		var was *task.Await
		if old != nil {
			was = old.Await
		}
		if err := s.saveAwait(tx, a, was, after); err != nil {
			return err
		}
	}
	return nil
}

// saveAttempt inserts an attempt of the task, or updates the columns that differ from the old
// one.
func saveAttempt(tx *gorm.DB, t mediagate.Task, old *task.Attempt, a task.Attempt) error {
	is, err := newAttemptRow(t, a)
	if err != nil {
		return err
	}
	if old == nil {
		return insert("attempts", is, nil).run(tx)
	}
	was, err := newAttemptRow(t, *old)
	if err != nil {
		return err
	}
	return updateAttempt(tx, t.ID, a.N, differing(was, is))
}

func updateAttempt(tx *gorm.DB, taskID string, n int, changes map[string]any) error {
	if len(changes) == 0 {
		return nil
	}
	return tx.Table("attempts").Where("task_id = ? AND n = ?", taskID, n).Updates(changes).Error
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

// Attempts reads all attempts of a task, the first one first.
func (s *Store) Attempts(ctx context.Context, taskID string) ([]task.Attempt, error) {
	rows, err := readAttempts(s.on(ctx), "WHERE a.task_id = ? ORDER BY a.n", taskID)
	if err != nil {
		return nil, dbError(err, "read attempts")
	}
	return convertAll(rows, attemptRow.attempt)
}

// Attempt reads one attempt. Returns KindNotFound.
func (s *Store) Attempt(ctx context.Context, taskID string, n int) (task.Attempt, error) {
	rows, err := readAttempts(s.on(ctx), "WHERE a.task_id = ? AND a.n = ?", taskID, n)
	if err != nil {
		return task.Attempt{}, dbError(err, "read attempt")
	}
	if len(rows) == 0 {
		return task.Attempt{}, mediagate.Errorf(mediagate.KindNotFound, "no attempt %d of task %q", n, taskID)
	}
	return rows[0].attempt()
}

// Producer reads the attempt that made the results of a completed task. Returns KindNotFound
// where there is none.
func (s *Store) Producer(ctx context.Context, taskID string) (task.Attempt, error) {
	rows, err := readAttempts(s.on(ctx), `JOIN tasks t ON t.id = a.task_id
		WHERE a.task_id = ? AND t.status = 'completed' AND a.succeeded
		ORDER BY a.n DESC`, taskID)
	if err != nil {
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
	if err := read(s.on(ctx), &rows, `SELECT channel, COUNT(*) AS n FROM attempts
		WHERE task_id = ? AND state = 'rejected' GROUP BY channel`, taskID); err != nil {
		return nil, dbError(err, "count refusals")
	}
	byChannel = make(map[string]int, len(rows))
	for _, r := range rows {
		byChannel[r.Channel] = r.N
	}
	return byChannel, nil
}

// readAttempts reads the rows of attempts a that the rest of the statement selects.
func readAttempts(db *gorm.DB, which string, args ...any) (rows []attemptRow, err error) {
	err = read(db, &rows, "SELECT "+columnsOf[attemptRow]().of("a")+" FROM attempts a "+which, args...)
	return rows, err
}

// The client does not pay for a cancelled task, but its job may run on at a vendor that cannot
// stop it. As long as the job may run, its attempt is abandoned. Abandoned attempts are counted
// in their own rows when the count is needed, so no counter can be wrong. A submit that waits
// for its account's row does not see attempts that were abandoned during the wait. The limit
// can therefore be exceeded by as many tasks as the account submits at the same time.

// abandoned selects the abandoned attempts l of cancelled tasks lt of an account. Attempts that
// an operator stopped do not count: it is not the client's doing that their jobs run on.
func abandoned(what, account string) string {
	return "(SELECT " + what + ` FROM attempts AS l JOIN tasks AS lt ON lt.id = l.task_id
		WHERE l.state = 'abandoned' AND l.given_up_at IS NULL AND lt.status = 'cancelled' AND l.account_id = ` + account
}

const (
	abandonedJobs = "COUNT(*)"
	abandonedCost = "CAST(COALESCE(SUM(lt.hold), 0) AS bigint)"
)

// unpaidRetry is the Retry-After of a submit that checkUnpaid refuses: jobs end within minutes.
const unpaidRetry = time.Minute

// Abandoned counts the jobs of an account's cancelled tasks that may still run, and their cost.
func (s *Store) Abandoned(ctx context.Context, accountID string) (mediagate.Abandoned, error) {
	counted := abandoned(abandonedJobs+" AS jobs, "+abandonedCost+" AS cost", "?")
	row, err := one[mediagate.Abandoned](s.on(ctx), "SELECT jobs, cost FROM "+counted+") AS of_account", accountID)
	if err != nil || row == nil {
		return mediagate.Abandoned{}, dbError(err, "count abandoned jobs")
	}
	return *row, nil
}

// checkUnpaid refuses a submit while the cost of the account's abandoned jobs is above its
// limit. Returns KindRateLimited.
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
		Kind:       mediagate.KindRateLimited,
		Code:       "rate_limited",
		RetryAfter: unpaidRetry,
		Message: fmt.Sprintf("too many requests: %d jobs of cancelled tasks may still run and are not paid for; "+
			"their cost of %s is above the account's unpaid of %s", have.Jobs, have.Cost, *limit),
	}
}
