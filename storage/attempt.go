package storage

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

type attemptRow struct {
	TaskID      string `gorm:"primaryKey"`
	N           int    `gorm:"primaryKey"`
	Channel     string
	Provider    string
	Fingerprint string
	Route       document
	ExternalID  string
	SendBefore  stamp
	Ref         document
	State       mediagate.AttemptState
	Outcome     document
	Failure     document
	Results     document
	Trouble     mediagate.ParkReason
	Error       string
	AbsentAt    stamp
	AgainAt     stamp `gorm:"column:absent_again_at"`
	Sends       int
	Refusal     document
	CreatedAt   stamp
	AcceptedAt  stamp
	EndedAt     stamp
	SlotUntil   stamp

	CallEnds     stamp
	CanStop      bool
	Lost         bool
	UnknownSince stamp
	Lookups      int
	LookedAt     stamp
	Elsewhere    bool
	GivenUpAt    stamp
	LastAskedAt  stamp
	StopTried    bool
	Unusable     document

	VendorAmount      *mediagate.Micros
	VendorUnit        string
	VendorUncountedAt stamp
}

// TableName tells GORM.
func (attemptRow) TableName() string { return "attempts" }

func (r attemptRow) attempt() (mediagate.Attempt, error) {
	a := mediagate.Attempt{
		TaskID: r.TaskID, N: r.N, Channel: r.Channel, Provider: r.Provider, Fingerprint: r.Fingerprint,
		ExternalID: r.ExternalID, SendBefore: r.SendBefore.Time, State: r.State, Trouble: r.Trouble, Error: r.Error,
		AbsentAt: r.AbsentAt.Time, AgainAt: r.AgainAt.Time, Sends: r.Sends, CreatedAt: r.CreatedAt.Time, AcceptedAt: r.AcceptedAt.Time, EndedAt: r.EndedAt.Time,
	}
	for _, column := range []struct {
		name string
		text document
		to   any
	}{
		{"attempts.route", r.Route, &a.Route},
		{"attempts.ref", r.Ref, &a.Ref},
		{"attempts.outcome", r.Outcome, &a.Outcome},
		{"attempts.results", r.Results, &a.Results},
		{"attempts.refusal", r.Refusal, &a.Refusal},
	} {
		if err := fromJSON(column.name, column.text, column.to); err != nil {
			return mediagate.Attempt{}, err
		}
	}
	return a, nil
}

// Attempts reads all attempts of a task, the first one first.
func (s *Store) Attempts(ctx context.Context, taskID string) ([]mediagate.Attempt, error) {
	var rows []attemptRow
	if err := read(s.on(ctx), &rows, "SELECT "+columnsOf[attemptRow]().text+" FROM attempts WHERE task_id = ? ORDER BY n", taskID); err != nil {
		return nil, dbError(err, "read attempts")
	}
	return convertAll(rows, attemptRow.attempt)
}

// Attempt reads one attempt. Returns KindNotFound.
func (s *Store) Attempt(ctx context.Context, taskID string, n int) (mediagate.Attempt, error) {
	row, err := readAttempt(s.on(ctx), taskID, n)
	if err != nil {
		return mediagate.Attempt{}, dbError(err, "read attempt")
	}
	return row.attempt()
}

// Producer reads the attempt that made what a completed task shows. Returns
// KindNotFound where there is none.
func (s *Store) Producer(ctx context.Context, taskID string) (mediagate.Attempt, error) {
	row, err := one[attemptRow](s.on(ctx), "SELECT "+columnsOf[attemptRow]().of("a")+` FROM attempts a JOIN tasks t ON t.id = a.task_id
		WHERE a.task_id = ? AND t.status = 'completed' AND a.outcome LIKE ? AND a.results IS NOT NULL ORDER BY a.n DESC LIMIT 1`, taskID, aSuccess)
	if err != nil {
		return mediagate.Attempt{}, dbError(err, "read attempt")
	}
	if row == nil {
		return mediagate.Attempt{}, notFound("attempt", taskID)
	}
	return row.attempt()
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

// OpenAttempt stores the intent to submit (D3). With a vendor that answers in
// the submitting call the task is processing from then on. An attempt with that number
// is returned as it is found, with opened false. Returns KindConflict when the
// task has ended, is to be cancelled, is past the end of its waiting, has a
// later attempt, or one before whose fate is open; KindCapacity when no slot of
// the account is free, or others wait for one (D7); and KindNotFound.
func (s *Store) OpenAttempt(ctx context.Context, a mediagate.Attempt, slots mediagate.Slots) (row mediagate.Attempt, opened bool, err error) {
	route, err := jsonText(a.Route)
	if err != nil {
		return mediagate.Attempt{}, false, err
	}
	err = s.write(ctx, "open attempt", func(tx *gorm.DB) error {
		opened = false
		task, err := s.lock(tx, a.TaskID)
		if err != nil {
			return err
		}
		last, err := s.lastAttempt(tx, a.TaskID, a.N)
		if err != nil {
			return err
		}
		if last != nil && last.N == a.N {
			row, err = last.attempt()
			return err
		}
		if err := s.mayOpen(task, last, a.N); err != nil {
			return err
		}
		if err := s.takeSlot(tx, task, a.Channel, slots); err != nil {
			return err
		}
		if err := s.leaveQueue(tx, task); err != nil {
			return err
		}
		row = a
		row.Sends = 1
		row.State, row.SendBefore = mediagate.AttemptIntent, at(a.SendBefore).UTC().Truncate(time.Microsecond)
		if row.CreatedAt.IsZero() {
			row.CreatedAt = s.clock()
		}
		row.CreatedAt = row.CreatedAt.UTC().Truncate(time.Microsecond)
		if err := tx.Create(&attemptRow{
			TaskID: a.TaskID, N: a.N, Channel: a.Channel, Provider: a.Provider, Fingerprint: a.Fingerprint, Route: route,
			ExternalID: a.ExternalID, SendBefore: at(a.SendBefore), State: row.State, Sends: row.Sends, CreatedAt: at(row.CreatedAt),
		}).Error; err != nil {
			return err
		}
		opened = true
		begin, args := "", []any{a.Channel, a.Provider, at(s.clock())}
		if a.Route.Sync && task.Status == mediagate.StatusPending { // the vendor works while the call lasts
			begin, args = ", status = 'processing', started_at = ?, version = version + 1", append(args, at(s.clock()))
		}
		_, err = exec(tx, "UPDATE tasks SET channel = ?, provider = ?, run_seen_at = ?"+begin+" WHERE id = ?", append(args, a.TaskID)...)
		return err
	})
	if err != nil {
		return mediagate.Attempt{}, false, err
	}
	return row, opened, nil
}

// lastAttempt reads attempt n of the task, else its newest; nil when there is
// none.
func (s *Store) lastAttempt(tx *gorm.DB, taskID string, n int) (*attemptRow, error) {
	return one[attemptRow](tx, "SELECT "+columnsOf[attemptRow]().text+" FROM attempts WHERE task_id = ? ORDER BY n = ? DESC, n DESC LIMIT 1", taskID, n)
}

// mayOpen tells whether attempt n may be made after the last one: nil, or a
// conflict.
func (s *Store) mayOpen(task lockedTask, last *attemptRow, n int) error {
	switch {
	case last != nil && last.N > n:
		return conflict("task %s has a later attempt than %d", task.ID, n)
	case last != nil && last.State != mediagate.AttemptRejected && last.State != mediagate.AttemptEnded:
		return conflict("attempt %d of task %s is %s", last.N, task.ID, last.State)
	case task.Status.Terminal():
		return conflict("task %s has ended", task.ID)
	case !task.CancelRequestedAt.IsZero():
		return conflict("task %s is to be cancelled", task.ID)
	case task.late(s.clock()):
		return conflict("nobody waits for task %s any more", task.ID)
	}
	return nil
}

// slotUntil is until when a job has its slot of which nobody can tell from now
// on whether it runs.
func (s *Store) slotUntil(expected time.Duration) stamp {
	return at(s.clock().Add(mediagate.SlotsLost * expected))
}

// AcceptAttempt stores that the vendor has the job, and makes the channel poll
// for it from firstPollAt on, unless the submission brought the outcome
// itself. ended says that nobody waits for the job any more: the task has
// ended or the attempt was given up; then its id is recorded all the same, so
// that the job can be cancelled (D5), and it has a slot as a job that runs on. Of a task
// that is erased only the slot is noted. An attempt that is accepted already
// stays as it is. Returns KindConflict for a rejected attempt, KindNotFound.
func (s *Store) AcceptAttempt(ctx context.Context, taskID string, n int, sub mediagate.Submission, firstPollAt time.Time) (ended bool, err error) {
	ref, err := jsonText(sub.Ref)
	if err != nil {
		return false, err
	}
	err = s.write(ctx, "accept attempt", func(tx *gorm.DB) error {
		task, err := s.lock(tx, taskID)
		if err != nil {
			return err
		}
		outcome, err := jsonOrNull(task.leavesOf(sub.Outcome))
		if err != nil {
			return err
		}
		row, err := readAttempt(tx, taskID, n)
		if err != nil {
			return err
		}
		ended = task.Status.Terminal()
		now := at(s.clock())
		switch {
		case row.State == mediagate.AttemptRejected:
			return conflict("attempt %d of task %s was rejected", n, taskID)
		case len(row.Ref) > 0:
			return nil
		case ended || row.State == mediagate.AttemptEnded:
			ended = true
			endedAt, slotUntil := row.EndedAt, row.SlotUntil
			switch {
			case outcome == nil && len(row.Outcome) == 0: // it runs on
				expected, err := task.expected()
				if err != nil {
					return err
				}
				endedAt, slotUntil = stamp{}, s.slotUntil(expected)
			case endedAt.IsZero():
				endedAt = now
			}
			if len(row.Outcome) == 0 {
				if err := noteVendorCharge(tx, taskID, n, sub.Outcome, now); err != nil {
					return err
				}
			}
			if !task.ErasedAt.IsZero() {
				_, err := exec(tx, "UPDATE attempts SET state = 'ended', ended_at = ?, slot_until = ? WHERE task_id = ? AND n = ?", endedAt, slotUntil, taskID, n)
				return err
			}
			_, err := exec(tx, `UPDATE attempts SET ref = ?, accepted_at = ?, state = 'ended', outcome = COALESCE(outcome, ?),
				ended_at = ?, slot_until = ? WHERE task_id = ? AND n = ?`, ref, now, outcome, endedAt, slotUntil, taskID, n)
			return err
		}
		if err := noteVendorCharge(tx, taskID, n, sub.Outcome, now); err != nil {
			return err
		}
		return s.accept(tx, task, row, ref, outcome, firstPollAt)
	})
	return ended, err
}

func (s *Store) accept(tx *gorm.DB, task lockedTask, row attemptRow, ref, outcome document, firstPollAt time.Time) error {
	now := at(s.clock())
	state, endedAt := mediagate.AttemptAccepted, stamp{}
	if outcome != nil {
		state, endedAt = mediagate.AttemptEnded, now
	}
	if _, err := exec(tx, "UPDATE attempts SET state = ?, ref = ?, accepted_at = ?, outcome = ?, ended_at = ?, error = '', slot_until = NULL WHERE task_id = ? AND n = ?",
		state, ref, now, outcome, endedAt, row.TaskID, row.N); err != nil {
		return err
	}
	if outcome == nil {
		expected, err := task.expected()
		if err != nil {
			return err
		}
		if err := insertAwait(tx, row, ref, now, micros(expected), task.Progress, firstPollAt, false); err != nil {
			return err
		}
	}
	if task.Status == mediagate.StatusPending {
		if _, err := exec(tx, "UPDATE tasks SET status = 'processing', started_at = COALESCE(started_at, ?), version = version + 1 WHERE id = ?", now, task.ID); err != nil {
			return err
		}
	}
	if !task.ParkedAt.IsZero() && task.ParkReason == mediagate.ParkSubmissionUnknown {
		return s.unpark(tx, task)
	}
	return nil
}

// RejectAttempt stores that the vendor provably has no job. Only the intent
// that the caller sent under counts, named by its sendBefore: a late sender
// says nothing of an intent that was opened again after it.
func (s *Store) RejectAttempt(ctx context.Context, taskID string, n int, sendBefore time.Time, f mediagate.Failure, detail string) error {
	failure, err := jsonText(f)
	if err != nil {
		return err
	}
	return s.underLock(ctx, taskID, "reject attempt", func(tx *gorm.DB, _ lockedTask) error {
		_, err := exec(tx, `UPDATE attempts SET state = 'rejected', failure = ?, error = ?, ended_at = ?
			WHERE task_id = ? AND n = ? AND state IN ('intent', 'unknown') AND send_before = ?`,
			failure, detail, at(s.clock()), taskID, n, at(sendBefore))
		return err
	})
}

// MarkUnknown stores that the vendor may or may not have the job, for the
// intent with that sendBefore only.
func (s *Store) MarkUnknown(ctx context.Context, taskID string, n int, sendBefore time.Time, detail string) error {
	return s.underLock(ctx, taskID, "mark attempt unknown", func(tx *gorm.DB, task lockedTask) error {
		expected, err := task.expected()
		if err != nil {
			return err
		}
		_, err = exec(tx, `UPDATE attempts SET state = 'unknown', error = ?, slot_until = ?
			WHERE task_id = ? AND n = ? AND state = 'intent' AND send_before = ?`, detail, s.slotUntil(expected), taskID, n, at(sendBefore))
		return err
	})
}

// DoubtRefusal is MarkUnknown for an intent that was sent again and refused in
// a way that may mean that the vendor has the first: the refusal is kept, and
// proves something once the vendor turns out to have no job (D4).
func (s *Store) DoubtRefusal(ctx context.Context, taskID string, n int, sendBefore time.Time, f mediagate.Failure, detail string) error {
	refusal, err := jsonText(f)
	if err != nil {
		return err
	}
	return s.underLock(ctx, taskID, "doubt a refusal", func(tx *gorm.DB, task lockedTask) error {
		expected, err := task.expected()
		if err != nil {
			return err
		}
		_, err = exec(tx, `UPDATE attempts SET state = 'unknown', error = ?, refusal = ?, slot_until = ?
			WHERE task_id = ? AND n = ? AND state = 'intent' AND send_before = ?`, detail, refusal, s.slotUntil(expected), taskID, n, at(sendBefore))
		return err
	})
}

// NoteAbsent stores that a lookup, begun at asked, found no job of the intent
// with that sendBefore. It returns when that was first found; proven says that
// a second lookup, begun at least gap after the first one's record, has found
// it too (D4). Returns KindNotFound; and KindConflict for an attempt whose fate
// is not unknown, or that was sent again meanwhile: the lookup proves nothing
// for it.
func (s *Store) NoteAbsent(ctx context.Context, taskID string, n int, sendBefore, asked time.Time, gap time.Duration) (first time.Time, proven bool, err error) {
	err = s.underLock(ctx, taskID, "note absence", func(tx *gorm.DB, _ lockedTask) error {
		row, err := readAttempt(tx, taskID, n)
		if err != nil {
			return err
		}
		if row.State != mediagate.AttemptUnknown {
			return conflict("attempt %d of task %s is %s", n, taskID, row.State)
		}
		if !row.SendBefore.Equal(at(sendBefore).Time) {
			return conflict("attempt %d of task %s was sent again", n, taskID)
		}
		first, proven = row.AbsentAt.Time, !row.AgainAt.IsZero()
		switch {
		case first.IsZero():
			first = s.clock()
			_, err = exec(tx, "UPDATE attempts SET absent_at = ? WHERE task_id = ? AND n = ?", at(first), taskID, n)
		case !proven && !asked.Before(first.Add(gap)):
			proven = true
			_, err = exec(tx, "UPDATE attempts SET absent_again_at = ? WHERE task_id = ? AND n = ?", at(s.clock()), taskID, n)
		}
		return err
	})
	return first, proven, err
}

// ReopenIntent lets an attempt that the vendor provably did not get be sent
// again under the same external id, until sendBefore. The proof is of the
// intent that was to be sent before lost. It tells false when that attempt is
// not unknown and twice noted as absent any more, was refused, or the task has
// ended, is to be cancelled, or is past the end of its waiting (D3).
func (s *Store) ReopenIntent(ctx context.Context, taskID string, n int, lost, sendBefore time.Time) (reopened bool, err error) {
	err = s.underLock(ctx, taskID, "reopen intent", func(tx *gorm.DB, task lockedTask) error {
		reopened = false
		if task.Status.Terminal() || !task.CancelRequestedAt.IsZero() || task.late(s.clock()) {
			return nil
		}
		changed, err := exec(tx, `UPDATE attempts SET state = 'intent', send_before = ?, sends = sends + 1,
			absent_at = NULL, absent_again_at = NULL, error = '', slot_until = NULL
			WHERE task_id = ? AND n = ? AND state = 'unknown' AND absent_again_at IS NOT NULL AND refusal IS NULL AND send_before = ?`, at(sendBefore), taskID, n, at(lost))
		reopened = changed > 0
		return err
	})
	return reopened, err
}

// GiveUpAttempt ends an attempt whose fate is unknown, at an operator's word: a
// late acceptance of it is only recorded. One whose fate is known by now stays
// as it is, and so does one that no operator has ordered a retry for since it
// was made: a command that arrives late was about something else, and must not
// lead to a second job (D6).
func (s *Store) GiveUpAttempt(ctx context.Context, taskID string, n int, detail string) error {
	return s.underLock(ctx, taskID, "give up attempt", func(tx *gorm.DB, _ lockedTask) error {
		_, err := exec(tx, `UPDATE attempts SET state = 'ended', error = ?, ended_at = ?
			WHERE task_id = ? AND n = ? AND state = 'unknown' AND EXISTS (SELECT 1 FROM actions
				WHERE actions.task_id = attempts.task_id AND actions.action = ? AND actions.state = 'taken' AND actions.at > attempts.created_at)`,
			detail, at(s.clock()), taskID, n, mediagate.ActionRetry)
		return err
	})
}

// RecordOutcome stores how an attempt ended, unless that is known already or its
// task is erased, and ends its polling. won says that this outcome is the one
// that counts. Returns KindNotFound.
func (s *Store) RecordOutcome(ctx context.Context, taskID string, n int, o mediagate.Outcome) (won bool, err error) {
	err = s.underLock(ctx, taskID, "record outcome", func(tx *gorm.DB, task lockedTask) error {
		if _, err := readAttempt(tx, taskID, n); err != nil {
			return err
		}
		if _, err := exec(tx, "DELETE FROM awaits WHERE task_id = ? AND n = ?", taskID, n); err != nil {
			return err
		}
		won, err = storeOutcome(tx, task, n, &o, s.clock())
		return err
	})
	return won, err
}

// storeOutcome is the one place that writes outcomes: the first one stays. Of one
// whose task is erased there stays what the vendor charged.
func storeOutcome(tx *gorm.DB, task lockedTask, n int, o *mediagate.Outcome, now time.Time) (bool, error) {
	if !task.ErasedAt.IsZero() {
		open, err := one[struct{ N int }](tx, "SELECT n FROM attempts WHERE task_id = ? AND n = ? AND outcome IS NULL", task.ID, n)
		if err == nil && open != nil {
			err = noteVendorCharge(tx, task.ID, n, o, at(now))
		}
		return false, err
	}
	outcome, err := jsonText(task.leaves(*o))
	if err != nil {
		return false, err
	}
	changed, err := exec(tx, `UPDATE attempts SET outcome = ?, state = 'ended', trouble = '', ended_at = COALESCE(ended_at, ?)
		WHERE task_id = ? AND n = ? AND outcome IS NULL`, outcome, at(now), task.ID, n)
	if err != nil || changed == 0 {
		return false, err
	}
	return true, noteVendorCharge(tx, task.ID, n, o, at(now))
}

// StoreMirrored stores the files that were copied for an attempt, none where it
// made something else. Of a task that is erased it stores nothing. Returns
// KindNotFound.
func (s *Store) StoreMirrored(ctx context.Context, taskID string, n int, results []mediagate.Result) error {
	if results == nil {
		results = []mediagate.Result{} // null would be read as not mirrored yet
	}
	text, err := jsonText(results)
	if err != nil {
		return err
	}
	return s.underLock(ctx, taskID, "store mirrored files", func(tx *gorm.DB, task lockedTask) error {
		if !task.ErasedAt.IsZero() {
			return nil
		}
		changed, err := exec(tx, "UPDATE attempts SET results = ? WHERE task_id = ? AND n = ?", text, taskID, n)
		if err == nil && changed == 0 {
			return mediagate.Errorf(mediagate.KindNotFound, "no attempt %d of task %q", n, taskID)
		}
		return err
	})
}

// underLock runs f in a transaction that holds the task's row.
func (s *Store) underLock(ctx context.Context, taskID, what string, f func(tx *gorm.DB, task lockedTask) error) error {
	return s.write(ctx, what, func(tx *gorm.DB) error {
		task, err := s.lock(tx, taskID)
		if err != nil {
			return err
		}
		return f(tx, task)
	})
}
