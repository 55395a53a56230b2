package storage

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// StorePolls stores answers that are no ends, for the rows that the claim still holds,
// and gives these back: it is Progressed of package task for many (D8). It returns what
// it leaves to Change, with the rows still claimed: ends, troubles, waits for modal
// parameters, and answers for tasks that are parked. An end is returned also where the
// claim is lost, since it counts in any case; whatever else comes without a claim is
// dropped.
func (s *Store) StorePolls(ctx context.Context, channel, claim string, results []mediagate.PollResult) (left []mediagate.PollResult, err error) {
	held, err := s.claimed(ctx, channel, claim, results)
	if err != nil {
		return nil, dbError(err, "store polls")
	}
	var quiet, risen []mediagate.PollResult
	for _, r := range results {
		row, mine := held[key{r.TaskID, r.N}]
		switch {
		case r.Outcome != nil:
			left = append(left, r)
		case !mine:
		case r.Trouble != "" || r.Waiting || row.Parked && r.Answered:
			left = append(left, r)
		case r.Progress > row.Progress:
			r.Progress = min(r.Progress, maxOpenProgress)
			risen = append(risen, r)
		default:
			quiet = append(quiet, r)
		}
	}
	// Most polls find nothing new: they write the polling table alone.
	if err := s.giveBack(s.on(ctx), claim, quiet); err != nil {
		return nil, dbError(err, "store polls")
	}
	return left, s.storeRisen(ctx, claim, risen)
}

type key struct {
	taskID string
	n      int
}

// heldRow is an await row that the claim holds.
type heldRow struct {
	TaskID   string
	N        int
	Progress int
	Parked   bool // its task
}

// claimed reads those rows of the results that the claim holds.
func (s *Store) claimed(ctx context.Context, channel, claim string, results []mediagate.PollResult) (map[key]heldRow, error) {
	if len(results) == 0 {
		return nil, nil
	}
	ids, err := jsonText(convert(results, func(r mediagate.PollResult) string { return r.TaskID }))
	if err != nil {
		return nil, err
	}
	var rows []heldRow
	if err := read(s.on(ctx), &rows, `SELECT w.task_id, w.n, w.progress, t.parked_at IS NOT NULL FROM awaits w JOIN tasks t ON t.id = w.task_id
		WHERE w.task_id IN `+s.inList()+" AND w.channel = ? AND w.claim = ?", ids, channel, claim); err != nil {
		return nil, err
	}
	held := make(map[key]heldRow, len(rows))
	for _, row := range rows {
		held[key{row.TaskID, row.N}] = row
	}
	return held, nil
}

// scheduled is a line of the JSON list of answers that statements take.
type scheduled struct {
	TaskID   string `json:"task_id"`
	N        int    `json:"n"`
	NextUs   int64  `json:"next_us"`
	Missing  int    `json:"missing"`
	Progress int    `json:"progress"`
}

// answerRows are its columns.
const answerRows = "task_id text, n integer, next_us bigint, missing integer, progress integer"

func answerList(results []mediagate.PollResult) (document, error) {
	return jsonText(convert(results, func(r mediagate.PollResult) scheduled {
		return scheduled{r.TaskID, r.N, r.NextPollAt.UnixMicro(), r.Missing, r.Progress}
	}))
}

// giveBack gives claimed rows back with their next time: now for a row that was asked
// for during the claim, or the time that a hint gave it.
func (s *Store) giveBack(db *gorm.DB, claim string, results []mediagate.PollResult) error {
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
			next_poll_at = CASE WHEN awaits.hinted_at > awaits.claimed_at THEN CASE WHEN awaits.hinted_at > ? THEN awaits.hinted_at ELSE CAST(? AS timestamptz) END
				ELSE `+s.timeOf("v.next_us")+` END
		FROM `+s.rowsOf(answerRows)+`
		WHERE awaits.task_id = v.task_id AND awaits.n = v.n AND awaits.claim = ?`,
		now, now, list, claim)
	return err
}

// maxOpenProgress is what an unfinished task may show at most.
const maxOpenProgress = 99

// storeRisen raises the progress of tasks, and gives the rows back. Progress never
// falls, and counts only for the newest attempt of an open task, under its claim. The
// tasks are locked in the order of their ids.
func (s *Store) storeRisen(ctx context.Context, claim string, results []mediagate.PollResult) error {
	if len(results) == 0 {
		return nil
	}
	list, err := answerList(results)
	if err != nil {
		return err
	}
	return s.write(ctx, "store progress", func(tx *gorm.DB) error {
		if _, err := exec(tx, `WITH risen AS MATERIALIZED (SELECT t.id, v.progress FROM tasks t JOIN `+s.rowsOf(answerRows)+` ON v.task_id = t.id
				WHERE t.`+isOpen+` AND t.progress < v.progress AND EXISTS (SELECT 1 FROM awaits w WHERE w.task_id = t.id AND w.n = v.n AND w.claim = ?)
					AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.task_id = t.id AND a.n > v.n)
				ORDER BY t.id`+s.forUpdate("t")+`)
			UPDATE tasks SET progress = risen.progress, version = version + 1 FROM risen WHERE tasks.id = risen.id`, list, claim); err != nil {
			return err
		}
		return s.giveBack(tx, claim, results)
	})
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
