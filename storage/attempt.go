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
// The document holds every field without a column. attemptRow leaves out the columns of the
// vendor's charge: noteVendorCharge writes them, and CountVendorCharges marks them as counted.
type attemptRow struct {
	task.Attempt
	// AccountID is the account of the task. With this copy, the index attempts_abandoned_account
	// finds the abandoned attempts of an account without its tasks.
	AccountID string
	JobID     string // the vendor's id of the job
	Succeeded bool   // whether its outcome is a success
	Document  document
}

// columns lists the columns of the table attempts with the addresses of their values. The order
// counts only within a statement: reads and inserts both take their columns from this list.
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

// newAttemptRow returns the row of a task's attempt. Where the task or its inputs are erased,
// allowed removes what must not be stored. Every write of an attempt's document goes through
// newAttemptRow, so a report that comes after the erasure cannot bring the erased words back.
func newAttemptRow(t mediagate.Task, a task.Attempt) (r attemptRow, err error) {
	r.Attempt = allowed(t, a)
	r.TaskID, r.AccountID = t.ID, t.AccountID
	r.JobID = r.Ref.JobID
	r.Succeeded = r.Outcome != nil && r.Outcome.Succeeded
	r.Document, err = jsonText(r.Attempt)
	return r, err
}

// attempt returns the attempt. With an error, it returns the parts that can be read: the fields
// that have columns.
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

// polledAttempt is an attempt's row with its await row. If Polled is false, there is no await
// row, and Poll is zero.
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
// order of their numbers. Together they are all that an event needs: a task may have many
// attempts, and a change must not read them all.
//
// The lock of the task's row protects the attempts, but not the await rows: the poller claims
// and releases those without the task's lock, and a hint writes them too. So the await row may
// change between this read and the commit. saveAwait allows for that.
func (s *Store) loadAttempts(tx *gorm.DB, st *task.State, named []int) error {
	numbers, err := jsonText(append([]int{}, named...)) // an empty list, not null
	if err != nil {
		return err
	}
	// The numbers are one parameter, so that one prepared statement serves lists of any length.
	list := "(SELECT CAST(value AS integer) FROM json_array_elements_text(CAST(? AS json)))"
	if s.lite {
		list = "(SELECT value FROM json_each(?))"
	}
	// The primary keys of attempts and awaits serve the statement. After the columns of the attempt
	// come those of its await row, in the order of polledAttempt. A released row keeps the time of
	// its last claim, so claimed_at counts only while there is a claim. The last column is Again: a
	// hint came after the claim, so the answer that the claim will bring may be too old (D8).
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
		// One document that cannot be decoded makes the whole state Unreadable: the task then only
		// parks and ends, and no event is applied to half of an attempt.
		st.Unreadable = st.Unreadable || err != nil
		st.Attempts = append(st.Attempts, a)
	}
	return nil
}

// saveAttempts writes the attempts that differ between two states, and their await rows. An
// attempt is written before its await row, which refers to it by a foreign key. The vendor's
// charge is stored apart from the attempt's columns, since only the first charge counts.
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
// one. The primary key (task_id, n) refuses a second attempt with the same number (D3).
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

// updateAttempt writes changed columns of an attempt. The caller has locked the task's row.
func updateAttempt(tx *gorm.DB, taskID string, n int, changes map[string]any) error {
	if len(changes) == 0 {
		return nil
	}
	return tx.Table("attempts").Where("task_id = ? AND n = ?", taskID, n).Updates(changes).Error
}

// attemptsOf returns the numbers of the attempts that the events name: each event about an
// attempt has its number in a field N, its own or that of an embedded Sending. The loaded state
// must have these attempts, and the last one is always loaded.
func attemptsOf(events []task.Event) []int {
	numbers := []int{}
	for _, e := range events {
		if field := reflect.ValueOf(e).FieldByName("N"); field.IsValid() {
			numbers = append(numbers, int(field.Int()))
		}
	}
	return numbers
}

// Attempts reads all attempts of a task, the first one first. It locks nothing, and reads no
// await rows: Attempt.Await is nil.
func (s *Store) Attempts(ctx context.Context, taskID string) ([]task.Attempt, error) {
	rows, err := readAttempts(s.on(ctx), "WHERE a.task_id = ? ORDER BY a.n", taskID)
	if err != nil {
		return nil, dbError(err, "read attempts")
	}
	return convertAll(rows, attemptRow.attempt)
}

// Attempt reads one attempt, without its await row. Returns KindNotFound.
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
// where there is none, for example after the task was erased.
//
// Several attempts of a task may have succeeded: after a reroute, the late success of the old
// attempt is only recorded (D9). Its files are not copied. So the producer is the newest
// successful attempt whose files are in the bucket.
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

// Refusals counts the attempts of a task that were rejected, by channel. A channel that has
// rejected none is not in the map. The next attempt tries the channels with the fewest refusals
// first.
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

// readAttempts reads the rows of attempts a that the rest of the statement selects. The rest
// begins after the table's name: with a JOIN, or with WHERE.
func readAttempts(db *gorm.DB, which string, args ...any) (rows []attemptRow, err error) {
	err = read(db, &rows, "SELECT "+columnsOf[attemptRow]().of("a")+" FROM attempts a "+which, args...)
	return rows, err
}

// The client does not pay for a cancelled task, but its job may run on at a vendor that cannot
// stop it. As long as the job may run, its attempt is abandoned. Abandoned attempts are counted
// in their own rows when the count is needed, so no counter can be wrong. A submit that waits
// for its account's row does not see attempts that were abandoned during the wait. The limit
// can therefore be exceeded by as many tasks as the account submits at the same time.

// abandoned selects an account's abandoned attempts l whose tasks lt were cancelled. Attempts that
// an operator gave up do not count, since the client did not cause their jobs to run on.
//
// what is the selected expression. account is an expression too: a parameter, or the column of
// an outer statement. The partial index attempts_abandoned_account serves the condition. The
// subquery lacks its closing parenthesis, so that callers can add conditions.
func abandoned(what, account string) string {
	return "(SELECT " + what + ` FROM attempts AS l JOIN tasks AS lt ON lt.id = l.task_id
		WHERE l.state = 'abandoned' AND l.given_up_at IS NULL AND lt.status = 'cancelled' AND l.account_id = ` + account
}

const (
	// These are the expressions for the parameter what. The cost of a job is its task's hold, by
	// our prices. PostgreSQL's sum of bigints is a numeric, and NULL without rows: hence CAST and
	// COALESCE.
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
// limit. Returns KindRateLimited. It only explains a refusal: the statement that takes the hold
// has decided under the lock of the account's row (submission.able). If the cost has fallen
// since, checkUnpaid returns nil, and the caller tries the hold again.
//
// Example: with a limit of 10.00, a client submits ten tasks of 1.20 each at a vendor that
// cannot stop jobs, and cancels them all. The abandoned jobs come to 12.00, so the next submit
// is refused until two of them have ended.
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
