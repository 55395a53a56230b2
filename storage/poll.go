package storage

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// StorePolls stores what a round of polling found, and gives the rows back.
// Only rows that the claim still holds, and whose end is not stored, are
// written (D8). It returns the rows whose end this call has stored: their
// workflows are to be signalled now. A caller that dies before it does is
// healed by the rows coming up again, as Ended.
func (s *Store) StorePolls(ctx context.Context, channel, claim string, results []mediagate.PollResult) ([]mediagate.Await, error) {
	// Most polls find nothing new. Those touch only the polling table, all in
	// one statement; what changes a task's story locks the tasks first.
	seen, err := s.claimed(s.on(ctx), channel, claim, results)
	if err != nil {
		return nil, dbError(err, "store polls")
	}
	var quiet, loud []mediagate.PollResult
	for _, r := range results {
		row, mine := seen[key{r.TaskID, r.N}]
		switch {
		case !mine:
		case r.Outcome != nil || r.Trouble != "" || r.Waiting || r.Progress > row.Progress:
			loud = append(loud, r)
		default:
			quiet = append(quiet, r)
		}
	}
	if err := s.rescheduleAll(s.on(ctx), claim, quiet); err != nil {
		return nil, dbError(err, "store polls")
	}
	return s.storeLoud(ctx, channel, claim, loud)
}

type key struct {
	taskID string
	n      int
}

// claimed reads those rows of the results that the claim holds.
func (s *Store) claimed(db *gorm.DB, channel, claim string, results []mediagate.PollResult) (map[key]awaitRow, error) {
	if len(results) == 0 {
		return nil, nil
	}
	ids, err := jsonText(convert(results, func(r mediagate.PollResult) string { return r.TaskID }))
	if err != nil {
		return nil, err
	}
	var rows []awaitRow
	err = read(db, &rows, "SELECT "+columnsOf[awaitRow]().text+" FROM awaits WHERE task_id IN "+s.inList()+" AND channel = ? AND claim = ? AND NOT owed",
		ids, channel, claim)
	if err != nil {
		return nil, err
	}
	seen := make(map[key]awaitRow, len(rows))
	for _, row := range rows {
		seen[key{row.TaskID, row.N}] = row
	}
	return seen, nil
}

// scheduled is a line of the JSON list that rescheduleAll passes.
type scheduled struct {
	TaskID   string `json:"task_id"`
	N        int    `json:"n"`
	NextUs   int64  `json:"next_us"`
	Heard    bool   `json:"heard"`
	Missing  int    `json:"missing"`
	Progress int    `json:"progress"`
}

// rescheduleAll gives claimed rows back with their next time: now for a row
// that was hinted during the claim.
func (s *Store) rescheduleAll(db *gorm.DB, claim string, results []mediagate.PollResult) error {
	if len(results) == 0 {
		return nil
	}
	text, err := jsonText(convert(results, func(r mediagate.PollResult) scheduled {
		return scheduled{r.TaskID, r.N, r.NextPollAt.UnixMicro(), r.Answered, r.Missing, r.Progress}
	}))
	if err != nil {
		return err
	}
	list, next := `json_to_recordset(CAST(? AS json)) AS v (task_id text, n integer, next_us bigint, heard boolean, missing integer, progress integer)`,
		"timestamptz 'epoch' + v.next_us * interval '1 microsecond'"
	if s.lite {
		list, next = `(SELECT value ->> 'task_id' AS task_id, value ->> 'n' AS n, value ->> 'next_us' AS next_us,
			value ->> 'heard' AS heard, value ->> 'missing' AS missing, value ->> 'progress' AS progress FROM json_each(?)) AS v`, "v.next_us"
	}
	_, err = exec(db, `UPDATE awaits SET claim = '', claimed_until = NULL, missing = v.missing, unheard = awaits.unheard AND NOT v.heard,
			progress = CASE WHEN v.progress > awaits.progress THEN v.progress ELSE awaits.progress END,
			next_poll_at = CASE WHEN awaits.hinted_at > awaits.claimed_at THEN CAST(? AS timestamptz) ELSE `+next+` END
		FROM `+list+`
		WHERE awaits.task_id = v.task_id AND awaits.n = v.n AND awaits.claim = ? AND NOT awaits.owed`,
		at(s.clock()), text, claim)
	return err
}

// maxOpenProgress is what an unfinished task may show at most.
const maxOpenProgress = 99

// storeLoud stores progress, outcomes and trouble in one transaction, with the
// tasks locked in the order of their ids.
func (s *Store) storeLoud(ctx context.Context, channel, claim string, results []mediagate.PollResult) (ended []mediagate.Await, err error) {
	if len(results) == 0 {
		return nil, nil
	}
	results = slices.Clone(results)
	slices.SortFunc(results, func(a, b mediagate.PollResult) int { return cmp.Compare(a.TaskID, b.TaskID) })
	ids, err := jsonText(convert(results, func(r mediagate.PollResult) string { return r.TaskID }))
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, "store polls", func(tx *gorm.DB) error {
		ended = nil
		var locked []lockedTask
		if err := read(tx, &locked, "SELECT "+columnsOf[lockedTask]().text+" FROM tasks WHERE id IN "+s.inList()+" ORDER BY id"+s.forUpdate("tasks"), ids); err != nil {
			return err
		}
		tasks := make(map[string]lockedTask, len(locked))
		for _, t := range locked {
			tasks[t.ID] = t
		}
		mine, err := s.claimed(tx, channel, claim, results) // again: before the locks it was only a look
		if err != nil {
			return err
		}
		var again []mediagate.PollResult
		for _, r := range results {
			row, ok := mine[key{r.TaskID, r.N}]
			if !ok {
				continue
			}
			waits := false
			if r.Waiting && r.Outcome == nil && r.Trouble == "" {
				waits, err = s.beginModal(tx, tasks[r.TaskID], r.N)
				if unreadable(err) { // it is asked for again, until somebody mends its row or its time is up
					s.log.ErrorContext(ctx, "a wait for modal parameters does not begin: the task's row cannot be read", "task", r.TaskID, "error", err)
					waits, err = false, nil
				}
				if err != nil {
					return err
				}
			}
			if r.Outcome == nil && r.Trouble == "" && !waits {
				r.Progress = min(r.Progress, maxOpenProgress)
				again = append(again, r)
				continue
			}
			row, held, err := s.storeEnd(tx, tasks[r.TaskID], row, r)
			if err != nil {
				return err
			}
			if !held {
				continue
			}
			a, err := row.await()
			if err != nil {
				return err
			}
			ended = append(ended, a)
		}
		if err := s.advanceAll(tx, tasks, again); err != nil {
			return err
		}
		return s.rescheduleAll(tx, claim, again)
	})
	if err != nil {
		return nil, err
	}
	return ended, nil
}

// advanceAll raises the tasks' progress, in one statement; it never falls.
func (s *Store) advanceAll(tx *gorm.DB, tasks map[string]lockedTask, results []mediagate.PollResult) error {
	raised := make(map[string]int, len(results)) // two attempts of a task may be polled at once
	for _, r := range results {
		if t := tasks[r.TaskID]; t.ID != "" && !t.Status.Terminal() && r.Progress > max(t.Progress, raised[t.ID]) {
			raised[t.ID] = r.Progress
		}
	}
	if len(raised) == 0 {
		return nil
	}
	text, err := jsonText(raised)
	if err != nil {
		return err
	}
	list := "(SELECT key AS id, CAST(value AS integer) AS progress FROM json_each_text(CAST(? AS json)))"
	if s.lite {
		list = "(SELECT key AS id, value AS progress FROM json_each(?))"
	}
	_, err = exec(tx, "UPDATE tasks SET progress = v.progress, version = version + 1 FROM "+list+" AS v WHERE tasks.id = v.id", text)
	return err
}

// storeEnd stores an outcome or a trouble and keeps the row for the signal
// that is outstanding now. It tells false, and stores nothing, when the claim was lost
// at the last moment: to a newer epoch, which no lock of ours keeps away.
func (s *Store) storeEnd(tx *gorm.DB, task lockedTask, row awaitRow, r mediagate.PollResult) (awaitRow, bool, error) {
	now := s.clock()
	next := at(now.Add(signalAgain))
	n, err := exec(tx, `UPDATE awaits SET owed = ?, claim = '', claimed_until = NULL, next_poll_at = ?, missing = ?
		WHERE task_id = ? AND n = ? AND claim = ?`, true, next, r.Missing, r.TaskID, r.N, row.Claim)
	if err != nil || n == 0 {
		return row, false, err
	}
	row.Owed, row.Claim, row.NextPollAt, row.Missing = true, "", next, r.Missing
	if r.Outcome == nil && r.Trouble == "" {
		return row, true, nil // the wait that has begun is on the task
	}
	if r.Outcome == nil {
		_, err := exec(tx, "UPDATE attempts SET trouble = ?, slot_until = COALESCE(slot_until, ?) WHERE task_id = ? AND n = ? AND outcome IS NULL",
			r.Trouble, s.slotUntil(fromMicros(row.ExpectedUs)), r.TaskID, r.N)
		return row, true, err
	}
	_, err = storeOutcome(tx, task, r.N, r.Outcome, now)
	return row, true, err
}

func sortByDue(rows []claimedRow) {
	slices.SortFunc(rows, func(a, b claimedRow) int {
		return cmp.Or(a.NextPollAt.Compare(b.NextPollAt.Time), cmp.Compare(a.TaskID, b.TaskID))
	})
}

// texts reads one column of text.
func (s *Store) texts(ctx context.Context, what, query string, args ...any) ([]string, error) {
	var out []string
	if err := s.on(ctx).Raw(query, args...).Scan(&out).Error; err != nil {
		return nil, dbError(err, what)
	}
	return out, nil
}

// ago is the time that lies d back.
func (s *Store) ago(d time.Duration) stamp { return at(s.clock().Add(-d)) }
