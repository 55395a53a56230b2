package storage

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// claimedRow is an await row, before the vendor's reference is decoded. Ref hides the field of
// mediagate.Await.
type claimedRow struct {
	mediagate.Await
	Ref document
}

// claimedColumns are the columns of a claimedRow: the fields of mediagate.Await in their order,
// then the reference. The column expected_us has microseconds, and a time.Duration nanoseconds.
// The model is in the task's row; pollers read it without a lock.
const claimedColumns = `awaits.task_id,
	awaits.n,
	awaits.channel,
	awaits.fingerprint,
	COALESCE((SELECT model FROM tasks WHERE tasks.id = awaits.task_id), ''),
	awaits.expected_us * 1000,
	awaits.accepted_at,
	awaits.next_poll_at,
	awaits.claim,
	awaits.claimed_at,
	awaits.hinted_at IS NOT NULL,
	awaits.progress,
	awaits.missing,
	awaits.ref`

// saveAwait inserts, updates or deletes the attempt's await row. An erased task gets no row,
// since nothing may name its job.
//
// The caller holds the lock of the task's row, but the poller writes await rows without it. So
// the row may have been claimed or released since the state was loaded. Each case below is
// right for whatever the row has become.
func (s *Store) saveAwait(tx *gorm.DB, a task.Attempt, was *task.Await, after *task.State) (err error) {
	switch is := a.Await; {
	case is == nil && was == nil:
	case is == nil:
		// The polling is over. If a poller is asking right now, it will find no row: of its answer
		// only an end still counts.
		_, err = exec(tx, "DELETE FROM awaits WHERE task_id = ? AND n = ?", after.ID, a.N)
	case was == nil && !after.ErasedAt.IsZero():
	case was == nil:
		return insertAwait(tx, a, after)
	case *is == *was:
	case is.Claim == was.Claim:
		// An event wants the job polled now, for example the last poll at the deadline (D10). If
		// the row is claimed, hinted_at makes the row due at once when the claim is released.
		_, err = exec(tx, "UPDATE awaits SET next_poll_at = ?, hinted_at = ? WHERE task_id = ? AND n = ?",
			at(is.NextPollAt), at(s.clock()), after.ID, a.N)
	default: // the poller releases the row; a hint may have come since the row was read (D8)
		// If no row matches, a newer epoch has taken the row over, or its lease has ended and the
		// row was claimed again. The newer claim then sets the time. The vendor has answered with a
		// state of the job, so the count of answers without one begins anew.
		next := at(is.NextPollAt)
		_, err = exec(tx, `UPDATE awaits SET claim = '', claimed_until = NULL, missing = 0,
				next_poll_at = CASE WHEN hinted_at > claimed_at AND hinted_at < ? THEN hinted_at
					ELSE CAST(? AS timestamptz) END
			WHERE task_id = ? AND n = ? AND claim = ?`, next, next, after.ID, a.N, was.Claim)
	}
	return err
}

// insertAwait inserts the await row of an accepted attempt. The transaction that stores the
// vendor's id also inserts this row, so a crash between the two cannot leave a job without
// polls.
func insertAwait(tx *gorm.DB, a task.Attempt, after *task.State) error {
	ref, err := jsonText(a.Ref)
	if err != nil {
		return err
	}
	_, err = exec(tx, `INSERT INTO awaits
			(task_id, n, channel, fingerprint, ref, expected_us, progress, accepted_at, next_poll_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		after.ID, a.N, a.Channel, a.Fingerprint, ref, micros(after.Plan.Expected),
		after.Progress, at(a.AcceptedAt), at(a.Await.NextPollAt))
	return err
}

// BeginEpoch begins a new epoch of the channel's polling and returns its number. Pollers of
// earlier epochs are fenced: they can claim no more rows, and take part in no grants of slots.
// Every start of a poller calls BeginEpoch first (D8).
//
// Example: worker A polls with epoch 7 and loses its connection to Temporal. Temporal starts
// the poller again on worker B, which begins epoch 8. B may claim at once the rows that A has
// claimed. From B's claim of a row on, A's answer for that row changes nothing, unless the job
// has ended.
func (s *Store) BeginEpoch(ctx context.Context, channel string) (int64, error) {
	row, err := one[struct{ Epoch int64 }](s.on(ctx), `INSERT INTO channels (name, epoch) VALUES (?, 1)
		ON CONFLICT (name) DO UPDATE SET epoch = channels.epoch + 1 RETURNING epoch`, channel)
	if err != nil {
		return 0, dbError(err, "begin epoch")
	}
	return row.Epoch, nil
}

// ClaimDue claims due await rows of the channel for the caller, the longest due first, and
// commits before it returns (D8). It is event Claimed of package task for many rows.
//
// A row can be claimed if it has no claim, if its lease has ended, or if its claim is of an
// earlier epoch, whose results are then refused. ClaimDue leaves out a row that cannot be read:
// the row becomes due again after the lease, until it is mended or its task's time is over.
// Returns KindConflict with code fenced when a newer epoch has begun.
//
// claim is the token of this claim, and lease the time that the caller has to ask and to store
// the answers. If the caller dies, the rows are claimed again after the lease, or earlier by a
// new epoch. The vendor is then asked twice at worst.
func (s *Store) ClaimDue(
	ctx context.Context, channel string, epoch int64, claim string, lease time.Duration, limit int,
) ([]mediagate.Await, error) {
	now := s.clock()
	var rows []claimedRow
	err := s.write(ctx, "claim due rows", func(tx *gorm.DB) error {
		// The share lock keeps a new epoch from beginning before this commits. So once the new
		// epoch has begun, no earlier one claims a row.
		current, err := one[struct{ Epoch int64 }](tx,
			"SELECT epoch FROM channels WHERE name = ?"+s.lock("FOR SHARE"), channel)
		if err != nil {
			return err
		}
		if current == nil || current.Epoch != epoch {
			return fenced(channel)
		}
		// The index awaits_due finds the due rows in their order. SKIP LOCKED passes over rows that
		// a hint or a task's change is writing right now: the next claim gets them. MATERIALIZED
		// makes PostgreSQL select and lock the rows once, within the limit.
		rows = nil
		return read(tx, &rows, `WITH due AS MATERIALIZED (
				SELECT task_id, n FROM awaits
				WHERE channel = ? AND next_poll_at <= ?
					AND (claimed_until IS NULL OR claimed_until <= ? OR claim_epoch < ?)
				ORDER BY next_poll_at LIMIT ?`+s.skipLocked("awaits")+`)
			UPDATE awaits SET claim = ?, claim_epoch = ?, claimed_at = ?, claimed_until = ?
			FROM due WHERE awaits.task_id = due.task_id AND awaits.n = due.n
			RETURNING `+claimedColumns,
			channel, at(now), at(now), epoch, limit,
			claim, epoch, at(now), at(now.Add(lease)))
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b claimedRow) int { // RETURNING has no order
		return cmp.Or(a.NextPollAt.Compare(b.NextPollAt), cmp.Compare(a.TaskID, b.TaskID))
	})
	due := make([]mediagate.Await, 0, len(rows))
	for _, row := range rows {
		if err := fromJSON("awaits.ref", row.Ref, &row.Await.Ref); err != nil {
			s.log.ErrorContext(ctx, "a job is not polled for: its row cannot be read",
				"channel", channel, "task", row.TaskID, "attempt", row.N, "error", err)
			continue
		}
		due = append(due, row.Await)
	}
	return due, nil
}

// fenced returns the error of a poller whose epoch is over. The poller ends.
func fenced(channel string) error {
	return &mediagate.Error{
		Kind:    mediagate.KindConflict,
		Code:    "fenced",
		Message: "a newer run polls the channel " + channel,
	}
}

// AwaitStats counts a channel's await rows and returns the time when the next unclaimed row is
// due, zero if there is none. A claimed row counts as unclaimed once its lease has ended. Both
// subqueries use the index awaits_due, and the second one reads rows only up to the first that
// is unclaimed. Pollers call it several times a second, so it takes no lock.
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

// hintEvery is the least time between two polls of a row that hints make due. So a forged or
// repeated callback costs the vendor's account at most one poll a second and job (ADR 8).
const hintEvery = time.Second

// Hint makes the attempt's next poll due now, or hintEvery after the last hint if that is later
// (D8). If the row is claimed, it is polled once more after the claim. Hint returns false if it
// changes nothing: a hinted poll is due already, or the attempt has no await row. It locks only
// this row.
//
// Example: a vendor calls back at 12:00:00.0, and the poller claims the row at 12:00:00.1. A
// second callback at 12:00:00.3 may be about a newer change than the poller will see. It sets
// hinted_at to 12:00:01.0, and the release of the claim makes the row due then. A third
// callback at 12:00:00.6 changes nothing: a poll after it is scheduled already.
func (s *Store) Hint(ctx context.Context, taskID string, n int) (due bool, err error) {
	// next is the time of the hinted poll. The row's own next poll is only moved to an earlier
	// time.
	now, recent := at(s.clock()), s.ago(hintEvery)
	next := "CASE WHEN hinted_at > ? THEN " + s.later("hinted_at", hintEvery) + " ELSE CAST(? AS timestamptz) END"
	count, err := exec(s.on(ctx), "UPDATE awaits SET hinted_at = "+next+`,
			next_poll_at = CASE WHEN next_poll_at > `+next+" THEN "+next+` ELSE next_poll_at END
		WHERE task_id = ? AND n = ? AND (hinted_at IS NULL OR hinted_at <= ? AND (claim <> '' OR next_poll_at > ?))`,
		recent, now, recent, now, recent, now, taskID, n, now, now)
	return count > 0, dbError(err, "note a hint")
}

// AwaitChannels returns the names of the channels that have await rows or queued tasks. Each of
// them needs a poller, even if no worker's settings have its name any more (D2).
func (s *Store) AwaitChannels(ctx context.Context) ([]string, error) {
	return s.texts(ctx, "list channels with waiting rows",
		"SELECT channel FROM awaits UNION SELECT channel FROM queue ORDER BY channel")
}

// StorePolls stores the vendor's answers that change at most the progress, and releases their
// rows. It is event Progressed of package task for many rows (D8).
//
// StorePolls returns the other answers for Change, with their rows still claimed: ends,
// troubles, waits for modal parameters, and answers for tasks that are parked or past their
// deadline. It drops answers whose claim is lost, except ends, which always count.
//
// A quiet answer takes no lock of a task's row, and needs none: it changes only the await row,
// under its claim.
func (s *Store) StorePolls(
	ctx context.Context, channel, claim string, results []mediagate.PollResult,
) (left []mediagate.PollResult, err error) {
	held, err := s.claimed(ctx, channel, claim, results)
	if err != nil {
		return nil, dbError(err, "store polls")
	}
	var quiet, risen []mediagate.PollResult
	for _, r := range results {
		row, isClaimed := held[key{r.TaskID, r.N}]
		switch {
		// An end counts without a claim (D8). Of two ends of an attempt the first one counts (D9).
		case r.Outcome != nil:
			left = append(left, r)
		// The row was claimed again, or deleted. A new claim asks the vendor again.
		case !isClaimed:
		case r.Trouble != "" || r.Waiting || row.Heeds && r.Answered:
			left = append(left, r)
		case r.Progress > row.Progress:
			// The task's row shows progress to clients, so it is written too.
			r.Progress = min(r.Progress, maxOpenProgress)
			risen = append(risen, r)
		default:
			quiet = append(quiet, r)
		}
	}
	// Most polls find nothing new and write only the table awaits.
	if err := s.releaseAwaits(s.on(ctx), claim, quiet); err != nil {
		return nil, dbError(err, "store polls")
	}
	return left, s.storeRisen(ctx, claim, risen)
}

// key names an attempt.
type key struct {
	taskID string
	n      int
}

// heldRow is an await row that the claim holds. Progress is the await row's copy of the task's
// progress.
type heldRow struct {
	TaskID   string
	N        int
	Progress int
	Heeds    bool // the task is parked or past its deadline, so that any answer may change it
}

// claimed reads the await rows of the results that the claim still holds. It locks nothing:
// each statement that stores an answer checks the claim again.
func (s *Store) claimed(
	ctx context.Context, channel, claim string, results []mediagate.PollResult,
) (map[key]heldRow, error) {
	if len(results) == 0 {
		return nil, nil
	}
	ids, err := jsonText(convert(results, func(r mediagate.PollResult) string { return r.TaskID }))
	if err != nil {
		return nil, err
	}
	var rows []heldRow
	if err := read(s.on(ctx), &rows, `SELECT w.task_id, w.n, w.progress,
			t.wait_reason <> '' OR t.deadline_at <= ? AND t.`+isOpen+`
		FROM awaits w JOIN tasks t ON t.id = w.task_id
		WHERE w.task_id IN `+s.inList()+" AND w.channel = ? AND w.claim = ?",
		at(s.clock()), ids, channel, claim); err != nil {
		return nil, err
	}
	held := make(map[key]heldRow, len(rows))
	for _, row := range rows {
		held[key{row.TaskID, row.N}] = row
	}
	return held, nil
}

// scheduled is an answer in the JSON list that is a statement's parameter. NextUs is the time
// of the next poll in microseconds since 1970, the same number on both databases.
type scheduled struct {
	TaskID   string `json:"task_id"`
	N        int    `json:"n"`
	NextUs   int64  `json:"next_us"`
	Missing  int    `json:"missing"`
	Progress int    `json:"progress"`
}

// answerRows are the columns of that list, for rowsOf. Their names are those of the JSON
// fields.
const answerRows = "task_id text, n integer, next_us bigint, missing integer, progress integer"

// answerList renders answers as that list.
func answerList(results []mediagate.PollResult) (document, error) {
	return jsonText(convert(results, func(r mediagate.PollResult) scheduled {
		return scheduled{r.TaskID, r.N, r.NextPollAt.UnixMicro(), r.Missing, r.Progress}
	}))
}

// releaseAwaits releases claimed rows and sets the time of their next poll. A hint that came
// during the claim decides that time: the vendor may have answered before the change that the
// hint reports. If the hint is for a time in the future, the row becomes due then, and
// otherwise now.
//
// Rows that the claim no longer holds do not match, and keep what their new claim has set. The
// progress of a row never falls.
func (s *Store) releaseAwaits(db *gorm.DB, claim string, results []mediagate.PollResult) error {
	if len(results) == 0 {
		return nil
	}
	list, err := answerList(results)
	if err != nil {
		return err
	}
	now := at(s.clock())
	_, err = exec(db, `UPDATE awaits SET claim = '', claimed_until = NULL, missing = v.missing,
			progress = CASE WHEN v.progress > awaits.progress THEN v.progress ELSE awaits.progress END,
			next_poll_at = CASE
				WHEN awaits.hinted_at > awaits.claimed_at AND awaits.hinted_at > ? THEN awaits.hinted_at
				WHEN awaits.hinted_at > awaits.claimed_at THEN CAST(? AS timestamptz)
				ELSE `+s.timeOf("v.next_us")+` END
		FROM `+s.rowsOf(answerRows)+`
		WHERE awaits.task_id = v.task_id AND awaits.n = v.n AND awaits.claim = ?`,
		now, now, list, claim)
	return err
}

// maxOpenProgress is the highest progress of a task that has not ended. The table's constraint
// tasks_full_progress keeps 100 for completed tasks.
const maxOpenProgress = 99

// storeRisen raises the progress of tasks and releases the await rows. Progress never falls. It
// counts only for the newest attempt of an open task, under its claim. The tasks are locked in
// the order of their ids.
//
// The tasks are locked before the await rows, as in every transaction (see doc.go). Streams
// show the progress because of the new version (D19). A task that has ended meanwhile keeps its
// progress: the condition on the status leaves it out.
func (s *Store) storeRisen(ctx context.Context, claim string, results []mediagate.PollResult) error {
	if len(results) == 0 {
		return nil
	}
	list, err := answerList(results)
	if err != nil {
		return err
	}
	return s.write(ctx, "store progress", func(tx *gorm.DB) error {
		if _, err := exec(tx, `WITH risen AS MATERIALIZED (
				SELECT t.id, v.progress FROM tasks t JOIN `+s.rowsOf(answerRows)+` ON v.task_id = t.id
				WHERE t.`+isOpen+` AND t.progress < v.progress
					AND EXISTS (SELECT 1 FROM awaits w WHERE w.task_id = t.id AND w.n = v.n AND w.claim = ?)
					AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.task_id = t.id AND a.n > v.n)
				ORDER BY t.id`+s.forUpdate("t")+`)
			UPDATE tasks SET progress = risen.progress, version = version + 1
			FROM risen WHERE tasks.id = risen.id`, list, claim); err != nil {
			return err
		}
		return s.releaseAwaits(tx, claim, results)
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

// ago returns the time d before now.
func (s *Store) ago(d time.Duration) stamp { return at(s.clock().Add(-d)) }
