package storage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/task/story"
)

// The wakes of a task (D2).
//
// The wake of a task's run is a lease: wake_at is the time by which the run must have asked for its
// next step. While the lease lasts, other processes assume that the run is alive and leave it alone.
// Once the lease is over, the wake scan starts, signals or replaces the run. If the run was alive
// after all, that does no harm, because a run decides nothing: a second run asks the same row, and
// gets the same step or a later one.
//
//	Submit           inserts the lease: startLease, in which the API starts the run
//	a question       renews the lease for as long as the step may take, or deletes it if
//	                 nothing is left to do
//	a first intent   renews it too, if the run was started with its first step and has not
//	                 asked yet. No other change extends the lease
//	other changes    bring it forward to signalLease if they change the next step. The process
//	                 that made the change also signals the run; the lease covers a lost signal.
//	                 A poller that copies the files itself signals after the copy: copyLease
//	a try            of the scan puts it off, by more each time (PutOff)
//
// An example: a video is at its vendor, and the run sleeps until the deadline at 14:00, so
// the lease ends at 14:00:30. At 12:05:00 the poller stores the job's end, and copies the
// files itself: the lease ends at 12:05:10. If the copy fails at 12:05:01, the poller signals
// the run, which asks, and has ten minutes for the copy. If the poller dies, or the signal is
// lost, the scan finds the lease at 12:05:10.
//
// The wake of a callback is the time by which its round must have recorded an attempt.
// Rows of wakes are locked after all others, in the order of their tasks' ids.
const (
	// A lease is as long as the process that will make the run ask may take. A lease that is too
	// short costs a needless signal; one that is too long delays the repair.
	startLease   = 5 * time.Second       // for a new task, whose API process starts the run
	stepLease    = 10 * time.Minute      // for a step that is an activity
	leaseMargin  = 30 * time.Second      // after the end of a sleep
	signalLease  = 2 * time.Second       // for a change, whose process signals the run
	copyLease    = 10 * time.Second      // for an end whose poller copies the files before it signals the run
	roundLease   = time.Minute           // after the time of an attempt at the callback
	untriedAgain = 5 * time.Second       // for a wake when Temporal could not be asked
	retrySpread  = 10 * time.Millisecond // between two of many parked tasks that try again
)

// leaseOf returns the time by which a run that got the step must ask again.
func leaseOf(step task.Step, now time.Time) time.Time {
	if step.Kind == task.Sleep {
		return step.Until.Add(leaseMargin)
	}
	return now.Add(stepLease)
}

// reaches reports whether the present lease fits the step well enough to stay as it is, which saves a
// write.
//
// For an activity, at least half of stepLease must be left. For a sleep the lease must end exactly
// leaseMargin after it. A lease that the scan has put off, or that no run has renewed, never
// fits: the question must reset tries and set asked.
func reaches(lease story.Lease, step task.Step, now time.Time) bool {
	if !lease.Asked || lease.Tries > 0 {
		return false
	}
	until := leaseOf(step, now)
	if step.Kind == task.Sleep {
		return lease.WakeAt.Equal(until.Truncate(time.Microsecond))
	}
	return !lease.WakeAt.After(until) && !lease.WakeAt.Before(until.Add(-stepLease/2))
}

// saveWakes sets the wakes after a change.
//
// saveWakes runs last in the transaction, because wakes are locked after all other rows.
func (s *Store) saveWakes(tx *gorm.DB, c *changing, changed task.Changed) (err error) {
	now := changed.At
	if changed.State.Status.Terminal() && !c.before.Status.Terminal() {
		if err := s.wakeWaiters(tx, c, changed); err != nil {
			return err
		}
	}
	asks := slices.ContainsFunc(c.events, func(e task.Event) bool {
		switch e.(type) {
		case task.Asked:
			return true
		case task.IntentStored: // the first write of the step that a start carries
			return !c.lease.Asked
		default:
			return false
		}
	})
	switch {
	case asks:
		err = renewLease(tx, c, changed.Step, now)
	// The change has a new next step, of which the run does not know.
	case changed.Effects.Wake && !c.before.Status.Terminal():
		lease := signalLease
		if changed.Effects.Copy {
			lease = copyLease
		}
		err = s.wakeRuns(tx, []mediagate.Wake{{
			TaskID:    c.before.ID,
			AccountID: c.before.AccountID,
			At:        now.Add(lease),
		}})
	}
	if err != nil {
		return err
	}
	return saveRound(tx, c, changed.State, now)
}

// wakeWaiters brings forward the wakes of tasks that wait for an ended task, in one statement with the
// ended task's own wake, in the order of ids (D21).
//
// The wake of the ended task is in the list, so that all of them are locked in the order of ids.
func (s *Store) wakeWaiters(tx *gorm.DB, c *changing, changed task.Changed) error {
	wakes, err := waitersOf(tx, changed)
	if err != nil || len(wakes) == 0 {
		return err
	}
	if !c.lease.WakeAt.IsZero() {
		wakes = append(wakes, mediagate.Wake{
			TaskID:    c.before.ID,
			AccountID: c.before.AccountID,
			At:        changed.At.Add(signalLease),
		})
	}
	return s.wakeRuns(tx, wakes)
}

// renewLease sets the run's lease for the step that the run got. If another transaction has brought
// the wake forward since it was read, the wake stays: the run may not know of that change.
func renewLease(tx *gorm.DB, c *changing, step task.Step, now time.Time) (err error) {
	id, lease := c.before.ID, c.lease
	switch {
	// Nothing is left to do: without a row, no scan meets the task again.
	case step.Kind == task.Done:
		if !lease.WakeAt.IsZero() {
			_, err = exec(tx, "DELETE FROM wakes WHERE task_id = ? AND kind = 'run'", id)
		}
	// The row is missing. DO NOTHING keeps a row that another transaction has inserted meanwhile.
	case lease.WakeAt.IsZero():
		_, err = exec(tx, `INSERT INTO wakes (task_id, kind, account_id, wake_at, asked) VALUES (?, 'run', ?, ?, ?)
			ON CONFLICT (task_id, kind) DO NOTHING`, id, c.before.AccountID, at(leaseOf(step, now)), true)
	// Example: the run asks while its lease ends at 12:10. A granted slot has moved wake_at to
	// 12:00:02 since the lease was read. The UPDATE matches no row, and the wake for the slot stays.
	case !reaches(lease, step, now):
		_, err = exec(tx, `UPDATE wakes SET wake_at = ?, tries = 0, asked = ?
			WHERE task_id = ? AND kind = 'run' AND wake_at >= ?`, at(leaseOf(step, now)), true, id, at(lease.WakeAt))
	}
	return err
}

// saveRound sets the wake of the callback's round. The run begins the first round, so its wake leaves
// time for that. Later rounds begin at once. After an attempt of the newest round, the wake is set
// for the next attempt, or deleted if there is none.
//
// If the callback is not pending any more, the wake of the round is deleted.
func saveRound(tx *gorm.DB, c *changing, after task.State, now time.Time) error {
	was, is := c.before.Webhook, after.Webhook
	var next time.Time
	switch {
	case is.Round == 0 || is.State != mediagate.WebhookPending:
		if was.State != mediagate.WebhookPending || is.Round == 0 {
			return nil
		}
		_, err := exec(tx, "DELETE FROM wakes WHERE task_id = ? AND kind = 'round'", after.ID)
		return err
	case is.Round > was.Round && is.Round == 1:
		next = now.Add(roundLease)
	case is.Round > was.Round:
		next = now.Add(signalLease)
	case c.delivery != nil && c.delivery.Round == is.Round:
		next = c.delivery.NextAttemptAt
		if next.Before(now) {
			next = now
		}
		next = next.Add(roundLease)
	default:
		return nil
	}
	_, err := exec(tx, `INSERT INTO wakes (task_id, kind, account_id, wake_at, asked) VALUES (?, 'round', ?, ?, ?)
		ON CONFLICT (task_id, kind) DO UPDATE SET wake_at = excluded.wake_at, tries = 0`,
		after.ID, after.AccountID, at(next), true)
	return err
}

// listedWake is a wake in the JSON list that is a statement's parameter.
//
// The times are in microseconds since 1970. NextUs is only used by PutOff, and AccountID only by
// wakeRuns.
type listedWake struct {
	TaskID    string             `json:"task_id"`
	Kind      mediagate.WakeKind `json:"kind"`
	AccountID string             `json:"account_id"`
	AtUs      int64              `json:"at_us"`
	NextUs    int64              `json:"next_us"`
}

// listedWakes are the columns of that list, for rowsOf.
const listedWakes = "task_id text, kind text, account_id text, at_us bigint, next_us bigint"

// wakeRuns brings the wakes of runs forward to the given times. If a wake is missing because its run
// has ended by mistake, wakeRuns inserts it. The count of tries is kept: otherwise a run that hangs
// would never be replaced while its task is granted a slot again and again.
//
// The last WHERE lets a wake only become earlier: a wake that is due before the given time stays.
// ORDER BY locks the rows in the order of ids.
func (s *Store) wakeRuns(tx *gorm.DB, wakes []mediagate.Wake) error {
	if len(wakes) == 0 {
		return nil
	}
	list, err := jsonText(convert(wakes, func(w mediagate.Wake) listedWake {
		return listedWake{TaskID: w.TaskID, AccountID: w.AccountID, AtUs: w.At.UnixMicro()}
	}))
	if err != nil {
		return err
	}
	_, err = exec(tx, `INSERT INTO wakes (task_id, kind, account_id, wake_at, asked)
		SELECT v.task_id, 'run', v.account_id, `+s.timeOf("v.at_us")+", true FROM "+s.rowsOf(listedWakes)+`
		WHERE true ORDER BY v.task_id
		ON CONFLICT (task_id, kind) DO UPDATE SET wake_at = excluded.wake_at
		WHERE wakes.wake_at > excluded.wake_at`, list)
	return err
}

// A task is new until the scan has tried to start its run. New tasks wait in this table and not in
// Temporal, where they would be ahead of runs that can go on. A start of the scan is unanswered until
// the run's first step begins, for at most a minute.
const (
	isNew          = "NOT asked AND tries = 0"
	isUnanswered   = "NOT asked AND tries = 1"
	goesOn         = "(asked OR tries > 0)"
	mostNew        = 64  // with as many new tasks, API processes leave starts to the scan
	mostUnanswered = 128 // the most unanswered starts of the scan
)

// dueOf returns the query of the due wakes that meet a condition. It finds the first wake of each
// account by the index, takes the accounts whose first wake is longest due, and from each its share
// of the limit. So it reads little more than it returns, however many wakes there are and whichever
// accounts own them. Tasks are looked up one by one, because PostgreSQL might do a join as a merge,
// which reads all tasks up to the newest.
//
// The steps of the query, each a WITH clause:
//
//	accounts  the accounts that have such a wake, by stepping from one to the next
//	firsts    of each account, the time of its first wake
//	due       the accounts whose first wake is due, longest due first
//	lasts     of each of these accounts, the time up to which its share of the limit reaches
//	found     the wakes up to that time, numbered within their account
//
// The result is sorted by these numbers: the first wake of each account, then the second of each,
// and so on.
func dueOf(which string) string {
	return strings.ReplaceAll(`WITH RECURSIVE accounts (account_id) AS (
		SELECT MIN(account_id) FROM wakes WHERE {which}
		UNION ALL SELECT (
			SELECT account_id FROM wakes WHERE {which} AND account_id > accounts.account_id ORDER BY account_id LIMIT 1
		) FROM accounts WHERE account_id IS NOT NULL),
	firsts AS (
		SELECT account_id, (
			SELECT wake_at FROM wakes WHERE {which} AND account_id = accounts.account_id ORDER BY wake_at LIMIT 1
		) AS first_at FROM accounts),
	due AS MATERIALIZED (
		SELECT account_id FROM firsts WHERE first_at <= ? ORDER BY first_at LIMIT ?),
	lasts AS MATERIALIZED (
		SELECT account_id, COALESCE((
			SELECT wake_at FROM wakes WHERE {which} AND account_id = due.account_id AND wake_at <= ?
			ORDER BY wake_at LIMIT 1 OFFSET (SELECT ? / COUNT(*) FROM due)
		), ?) AS last_at FROM due),
	found AS (
		SELECT w.*, row_number() OVER (PARTITION BY w.account_id ORDER BY w.wake_at, w.task_id) AS turn
		FROM lasts JOIN wakes w ON {which} AND w.account_id = lasts.account_id AND w.wake_at <= lasts.last_at
		ORDER BY turn, w.wake_at, w.task_id LIMIT ?)
	SELECT w.task_id, w.account_id, w.kind,
		CASE WHEN w.kind = 'round' THEN COALESCE((SELECT webhook_round FROM tasks WHERE id = w.task_id), 0) ELSE 0 END,
		COALESCE((SELECT trace_parent FROM tasks WHERE id = w.task_id), ''),
		w.wake_at, w.tries, w.asked
	FROM found w ORDER BY turn, wake_at, task_id`, "{which}", which)
}

// The index wakes_due serves dueWakes, and wakes_new serves dueStarts. The texts are fixed, so
// each is prepared once.
var dueWakes, dueStarts = dueOf(goesOn), dueOf(isNew)

// DueWakes lists wakes whose time is over: accounts in round robin, and of each account the longest
// due first, so that an account with many wakes delays no other. New tasks come last: they get a
// quarter of the limit, and what the others leave.
func (s *Store) DueWakes(ctx context.Context, limit int) (wakes []mediagate.Wake, err error) {
	// Example with a limit of 256: at most 192 other wakes, then new tasks up to 256.
	now, most := at(s.clock()), limit-limit/4
	if err = read(s.on(ctx), &wakes, dueWakes, now, most, now, most, now, most); err == nil {
		wakes, err = s.addStarts(s.on(ctx), wakes, now, limit)
	}
	return wakes, dbError(err, "list due wakes")
}

// addStarts adds the due wakes of new tasks that may be started now. As in package limit, an account
// may have no more unanswered starts than are still free, so that other accounts find room even if its
// runs hang.
//
// The unanswered starts are counted in the table, so a scan on another worker goes on with the
// same number. Example: nothing is unanswered, and one account has 500 new tasks. It gets 64
// starts: then it holds as many as are free.
func (s *Store) addStarts(db *gorm.DB, wakes []mediagate.Wake, now stamp, limit int) ([]mediagate.Wake, error) {
	var started []struct{ AccountID string }
	var due []mediagate.Wake
	err := errors.Join(
		read(db, &started, "SELECT account_id FROM wakes WHERE "+isUnanswered),
		read(db, &due, dueStarts, now, mostUnanswered, now, mostUnanswered, now, mostUnanswered))
	free, held := mostUnanswered-len(started), map[string]int{}
	for _, start := range started {
		held[start.AccountID]++
	}
	for _, w := range due {
		if held[w.AccountID] < free && len(wakes) < limit {
			wakes = append(wakes, w)
			held[w.AccountID]++
			free--
		}
	}
	return wakes, err
}

// MayStart reports whether an API process may start the task's run itself. Otherwise it makes the
// task's wake due now, and the scan starts the run when the account's turn comes.
//
// No row matches if the wake was tried, if a run has asked, if the wake is due already, or if
// fewer than mostNew tasks are new. In all these cases the process starts the run: Temporal
// refuses a second start of the same run. The subquery stops counting at mostNew, by the index
// wakes_new.
func (s *Store) MayStart(ctx context.Context, taskID string) (bool, error) {
	now := at(s.clock())
	left, err := exec(s.on(ctx), `UPDATE wakes SET wake_at = ?
		WHERE task_id = ? AND kind = 'run' AND `+isNew+` AND wake_at > ? AND (
			SELECT COUNT(*) FROM (SELECT 1 FROM wakes WHERE `+isNew+` ORDER BY account_id LIMIT ?) AS waiting) >= ?`,
		now, taskID, now, mostNew, mostNew)
	return left == 0, dbError(err, "leave a start to the wake scan")
}

// PutOff sets the time of the next try of wakes: a minute after the first try, doubling up to an hour.
// If Temporal could not be asked, the next try comes in five seconds and this one does not count. A
// wake that was changed since it was listed stays as it is.
//
// The wake is compared by its time: if a question has renewed it meanwhile, this try was not
// needed and must not count. Locked rows are skipped for the same reason.
func (s *Store) PutOff(ctx context.Context, wakes []mediagate.Wake, tried bool) error {
	if len(wakes) == 0 {
		return nil
	}
	now, counted := s.clock(), 0
	if tried {
		counted = 1
	}
	list, err := jsonText(convert(wakes, func(w mediagate.Wake) listedWake {
		next := now.Add(untriedAgain)
		if tried {
			next = now.Add(story.TryAgain(w.Tries))
		}
		return listedWake{TaskID: w.TaskID, Kind: w.Kind, AtUs: w.At.UnixMicro(), NextUs: next.UnixMicro()}
	}))
	if err != nil {
		return err
	}
	_, err = exec(s.on(ctx), `WITH due AS MATERIALIZED (
			SELECT w.task_id, w.kind, `+s.timeOf("v.next_us")+" AS next_at FROM wakes w JOIN "+s.rowsOf(listedWakes)+`
			ON v.task_id = w.task_id AND v.kind = w.kind AND w.wake_at = `+s.timeOf("v.at_us")+s.skipLocked("w")+`)
		UPDATE wakes SET wake_at = due.next_at, tries = tries + ?
		FROM due WHERE wakes.task_id = due.task_id AND wakes.kind = due.kind`, list, counted)
	return dbError(err, "put wakes off")
}

// RetryParked makes up to limit parked tasks try again now, and returns how many. It is event
// BreakerClosed of package task for many rows (D12). It takes the tasks in the order of their next
// tries, so that tasks which park again take turns. It leaves out tasks that try now anyway, tasks
// parked as provider_submission_unknown, and tasks that are locked. The wakes of the retried tasks
// are spread over some seconds.
//
// The UPDATE clears the times of the tasks' next tries and changes nothing else of them: each run
// asks when its wake is due, and gets the next step. The index tasks_parked (channel, try_at) or
// tasks_parked_retry (try_at) serves the selection.
func (s *Store) RetryParked(ctx context.Context, p mediagate.Parked, limit int) (retried int, err error) {
	reasons := slices.DeleteFunc(slices.Clone(p.Reasons), func(r mediagate.ParkReason) bool {
		return r == mediagate.ParkSubmissionUnknown
	})
	if len(reasons) == 0 {
		return 0, nil
	}
	which, args := named("wait_reason", reasons)
	if p.Channel != "" {
		which, args = which+" AND channel = ?", append(args, p.Channel)
	}
	if p.Provider != "" {
		// The plan also names the providers of its source and of skipped routes.
		routes := `%"plan":{"routes":[%"provider":"` + p.Provider + `"%],"expected":%`
		which, args = which+" AND document LIKE ?", append(args, routes)
	}
	err = s.write(ctx, "retry parked tasks", func(tx *gorm.DB) error {
		now := s.clock()
		var rows []struct{ ID, AccountID string }
		if err := read(tx, &rows, `WITH parked AS MATERIALIZED (
				SELECT id FROM tasks
				WHERE `+isOpen+" AND wait_reason <> '' AND "+which+` AND try_at > ?
				ORDER BY try_at LIMIT ?`+s.skipLocked("tasks")+`)
			UPDATE tasks SET try_at = NULL
			FROM parked WHERE tasks.id = parked.id RETURNING tasks.id, tasks.account_id`,
			slices.Concat(args, []any{at(now), limit})...); err != nil {
			return err
		}
		retried = len(rows)
		wakes := make([]mediagate.Wake, len(rows))
		for i, r := range rows {
			// A hundred tasks that try again at once are spread over a second.
			again := now.Add(time.Duration(i) * retrySpread)
			wakes[i] = mediagate.Wake{TaskID: r.ID, AccountID: r.AccountID, At: again}
		}
		return s.wakeRuns(tx, wakes)
	})
	return retried, err
}
