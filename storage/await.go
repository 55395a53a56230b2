package storage

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/mediagate/mediagate"
)

const (
	hintGap     = time.Second      // between two hints that count, a row
	signalAgain = 30 * time.Second // until a signal that nobody took is sent anew
)

type awaitRow struct {
	TaskID       string `gorm:"primaryKey"`
	N            int    `gorm:"primaryKey"`
	Channel      string
	Fingerprint  string
	Ref          document
	ExpectedUs   int64
	Progress     int
	AcceptedAt   stamp
	NextPollAt   stamp
	HintedAt     stamp
	Claim        string
	ClaimEpoch   int64
	ClaimedAt    stamp
	ClaimedUntil stamp
	Missing      int
	Owed         bool
	Unheard      bool
}

// TableName tells GORM.
func (awaitRow) TableName() string { return "awaits" }

func (r awaitRow) await() (mediagate.Await, error) {
	a := mediagate.Await{
		TaskID: r.TaskID, N: r.N, Channel: r.Channel, Fingerprint: r.Fingerprint, Expected: fromMicros(r.ExpectedUs),
		AcceptedAt: r.AcceptedAt.Time, NextPollAt: r.NextPollAt.Time, Claim: r.Claim, ClaimedAt: r.ClaimedAt.Time,
		Progress: r.Progress, Missing: r.Missing, Ended: r.Owed,
		Hinted: !r.HintedAt.IsZero(),
	}
	err := fromJSON("awaits.ref", r.Ref, &a.Ref)
	if r.Owed { // nobody asks the vendor any more
		err = nil
	}
	return a, err
}

// claimedRow is an await row with the model of its task.
type claimedRow struct {
	awaitRow
	Model string
}

func (r claimedRow) await() (mediagate.Await, error) {
	a, err := r.awaitRow.await()
	a.Model = r.Model
	return a, err
}

// insertAwait lets the attempt's channel poll for it, anew if it did before;
// unheard says that nothing was seen of the job last.
func insertAwait(tx *gorm.DB, row attemptRow, ref document, acceptedAt stamp, expectedUs int64, progress int, next time.Time, unheard bool) error {
	return tx.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "task_id"}, {Name: "n"}},
		DoUpdates: clause.AssignmentColumns([]string{"next_poll_at", "claim", "claimed_at", "claimed_until", "missing", "unheard", "owed"}),
	}).Create(&awaitRow{
		TaskID: row.TaskID, N: row.N, Channel: row.Channel, Fingerprint: row.Fingerprint, Ref: ref, ExpectedUs: expectedUs,
		Progress: progress, AcceptedAt: acceptedAt, NextPollAt: at(next), Unheard: unheard,
	}).Error
}

// BeginEpoch starts a new run of the channel's polling and fences all before
// it: they can claim no more rows. Signals that are outstanding are due at once: the
// run before may have died before it sent them.
func (s *Store) BeginEpoch(ctx context.Context, channel string) (int64, error) {
	var epoch int64
	err := s.write(ctx, "begin epoch", func(tx *gorm.DB) error {
		row, err := one[struct{ Epoch int64 }](tx, `INSERT INTO channels (name, epoch) VALUES (?, 1)
			ON CONFLICT (name) DO UPDATE SET epoch = channels.epoch + 1 RETURNING epoch`, channel)
		if err != nil {
			return err
		}
		epoch = row.Epoch
		now := at(s.clock())
		// In the order in which the end of a task deletes its rows.
		if _, err := exec(tx, "UPDATE awaits SET next_poll_at = ? WHERE channel = ? AND owed AND next_poll_at > ?", now, channel, now); err != nil {
			return err
		}
		_, err = exec(tx, "UPDATE queue SET signal_at = ? WHERE channel = ? AND granted_at IS NOT NULL AND signal_at > ?", now, channel, now)
		return err
	})
	return epoch, err
}

// ClaimDue takes due rows of the channel for one caller, the longest due
// first, and has that committed before it returns (D8). A row is free when
// nobody claimed it, the lease has run out, or a former epoch holds it, whose
// results then are refused. Rows whose end is stored come with Ended: only the
// signal is outstanding, and they come again until the workflow has taken it. Returns
// KindConflict, code fenced, when a newer epoch has begun. A row that cannot be
// read is left out: it comes up again after the lease, until somebody mends it or its
// task's time is up.
func (s *Store) ClaimDue(ctx context.Context, channel string, epoch int64, claim string, lease time.Duration, limit int) ([]mediagate.Await, error) {
	now := s.clock()
	share := " FOR SHARE"
	if s.lite {
		share = ""
	}
	var rows []claimedRow
	err := s.write(ctx, "claim due rows", func(tx *gorm.DB) error {
		// The share lock keeps a new epoch from beginning before this commits.
		current, err := one[struct{ Epoch int64 }](tx, "SELECT epoch FROM channels WHERE name = ?"+share, channel)
		if err != nil {
			return err
		}
		if current == nil || current.Epoch != epoch {
			return fenced(channel)
		}
		rows = nil
		return read(tx, &rows, `WITH due AS MATERIALIZED (
				SELECT task_id, n FROM awaits
				WHERE channel = ? AND next_poll_at <= ? AND (claimed_until IS NULL OR claimed_until <= ? OR claim_epoch < ?)
				ORDER BY next_poll_at LIMIT ?`+s.skipLocked("awaits")+`)
			UPDATE awaits SET claim = ?, claim_epoch = ?, claimed_at = ?, claimed_until = ?,
				next_poll_at = CASE WHEN owed THEN CAST(? AS timestamptz) ELSE next_poll_at END
			FROM due WHERE awaits.task_id = due.task_id AND awaits.n = due.n
			RETURNING `+columnsOf[awaitRow]().of("awaits")+`,
				COALESCE((SELECT model FROM tasks WHERE tasks.id = awaits.task_id), '') AS model`,
			channel, at(now), at(now), epoch, limit,
			claim, epoch, at(now), at(now.Add(lease)), at(now.Add(signalAgain)))
	})
	if err != nil {
		return nil, err
	}
	sortByDue(rows) // RETURNING has no order
	due := make([]mediagate.Await, 0, len(rows))
	for _, row := range rows {
		one, err := row.await()
		if err != nil {
			s.log.ErrorContext(ctx, "a job is not polled for: its row cannot be read", "channel", channel, "task", row.TaskID, "attempt", row.N, "error", err)
			continue
		}
		due = append(due, one)
	}
	return due, nil
}

func fenced(channel string) error {
	return &mediagate.Error{Kind: mediagate.KindConflict, Code: "fenced", Message: "a newer run polls the channel " + channel}
}

// AwaitStats counts a channel's rows and tells when the next one is due: never
// while rows are claimed and nothing else waits.
func (s *Store) AwaitStats(ctx context.Context, channel string) (waiting int, nextDue time.Time, err error) {
	row, err := one[struct {
		Waiting int
		NextDue stamp
	}](s.on(ctx), `SELECT (SELECT COUNT(*) FROM awaits WHERE channel = ?) AS waiting,
		(SELECT next_poll_at FROM awaits WHERE channel = ? AND (claimed_until IS NULL OR claimed_until <= ?)
			ORDER BY next_poll_at LIMIT 1) AS next_due`, channel, channel, at(s.clock()))
	if err != nil {
		return 0, time.Time{}, dbError(err, "count waiting rows")
	}
	return row.Waiting, row.NextDue.Time, nil
}

// AdvancePolls makes rows of the channel due now, up to limit, that are due
// after beyond, the next ones first, and were last claimed before. Rows keep
// their times that are claimed, that the vendor refused to tell of, or of which
// only a signal is outstanding. It returns how many are due.
func (s *Store) AdvancePolls(ctx context.Context, channel string, beyond, before time.Time, limit int) (int, error) {
	now := at(s.clock())
	n, err := exec(s.on(ctx), `UPDATE awaits SET next_poll_at = ? WHERE claim = '' AND NOT owed AND (task_id, n) IN (
			SELECT task_id, n FROM awaits WHERE channel = ? AND next_poll_at > ? AND claim = '' AND NOT owed AND missing = 0
				AND (claimed_at IS NULL OR claimed_at <= ?)
			ORDER BY next_poll_at LIMIT ?)`, now, channel, at(beyond), at(before), limit)
	return int(n), dbError(err, "advance polls")
}

// DropAwait forgets the signal that is outstanding for an attempt: its workflow knows
// how the waiting ended. A row that is polled for anew stays.
func (s *Store) DropAwait(ctx context.Context, taskID string, n int) error {
	_, err := exec(s.on(ctx), "DELETE FROM awaits WHERE task_id = ? AND n = ? AND owed", taskID, n)
	return dbError(err, "drop awaited row")
}

// NoteTrouble ends the polling for an accepted attempt that cannot be asked
// for, until RestoreAwait. One that has an outcome, or whose task has ended or
// waits for modal parameters, stays as it is.
func (s *Store) NoteTrouble(ctx context.Context, taskID string, n int, trouble mediagate.ParkReason) error {
	return s.underLock(ctx, taskID, "note trouble", func(tx *gorm.DB, task lockedTask) error {
		row, err := readAttempt(tx, taskID, n)
		if err != nil {
			return err
		}
		if task.Status.Terminal() || row.State != mediagate.AttemptAccepted || len(row.Outcome) > 0 || task.ArtState == mediagate.ModalWaiting {
			return nil
		}
		expected, err := task.expected()
		if err != nil {
			return err
		}
		if _, err := exec(tx, "UPDATE attempts SET trouble = ?, slot_until = COALESCE(slot_until, ?) WHERE task_id = ? AND n = ?",
			trouble, s.slotUntil(expected), taskID, n); err != nil {
			return err
		}
		_, err = exec(tx, "DELETE FROM awaits WHERE task_id = ? AND n = ?", taskID, n)
		return err
	})
}

// RestoreAwait clears the trouble of an accepted attempt and polls for it
// again. Returns KindConflict when the task or the attempt has ended or the
// vendor never accepted it, KindNotFound.
func (s *Store) RestoreAwait(ctx context.Context, taskID string, n int, nextPollAt time.Time) error {
	return s.underLock(ctx, taskID, "restore awaited row", func(tx *gorm.DB, task lockedTask) error {
		row, err := readAttempt(tx, taskID, n)
		if err != nil {
			return err
		}
		if task.Status.Terminal() || row.State != mediagate.AttemptAccepted || len(row.Outcome) > 0 || task.ArtState == mediagate.ModalWaiting {
			return conflict("nothing is to be polled for attempt %d of task %s", n, taskID)
		}
		if _, err := exec(tx, "UPDATE attempts SET trouble = '' WHERE task_id = ? AND n = ?", taskID, n); err != nil {
			return err
		}
		expected, err := task.expected()
		if err != nil {
			return err
		}
		return insertAwait(tx, row, row.Ref, row.AcceptedAt, micros(expected), task.Progress, nextPollAt, true)
	})
}

// HintPoll makes a task's rows due now, at most once a second each. A hint
// during a claim counts: the row is due again as soon as the claim is given
// back.
func (s *Store) HintPoll(ctx context.Context, taskID string) error {
	now := s.clock()
	_, err := exec(s.on(ctx), "UPDATE awaits SET hinted_at = ?, next_poll_at = ? WHERE task_id = ? AND (hinted_at IS NULL OR hinted_at <= ?)",
		at(now), at(now), taskID, at(now.Add(-hintGap)))
	return dbError(err, "hint poll")
}

// AwaitChannels names the channels that have rows waiting, or tasks queued.
func (s *Store) AwaitChannels(ctx context.Context) ([]string, error) {
	return s.texts(ctx, "list channels with waiting rows", "SELECT channel FROM awaits UNION SELECT channel FROM queue ORDER BY channel")
}
