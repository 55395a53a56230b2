package storage

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// sweepAfter is how long after a task's end files may still be copied for it:
// a copy that began before the end, and whatever delays its last write.
const sweepAfter = 2 * mediagate.CopyLimit

// aSuccess is how the stored outcome of a job that has files begins.
const aSuccess = `{"succeeded":true%`

// aSyncRoute is what the stored route of an attempt holds whose vendor may hand
// files over before it has an outcome.
const aSyncRoute = `%"sync":true%`

// Settle ends a task, once, in one transaction: its row, its money, its
// callback's first round, and all that was still to be polled (D13). A task
// that has ended already stays as it is: the story tells how, and won is
// false. Returns KindInternal for an end that cannot be: a state that is
// none, a cost above the hold or without success, a failure without reason.
// One that is given up for want of an outcome stays open when there is one, or
// when the vendor has come to wait for the client.
// One whose run has not decided on the end stays open where an operator's fail is on
// record, or a later attempt.
// A task whose client was promised a cancel does not complete: it ends as
// cancelled, and costs nothing. Where its account wishes that, its inputs are
// erased.
func (s *Store) Settle(ctx context.Context, end mediagate.Settlement) (story mediagate.Story, won bool, err error) {
	if err := checkSettlement(end); err != nil {
		return mediagate.Story{}, false, err
	}
	if end.EndedAt.IsZero() {
		end.EndedAt = s.clock()
	}
	err = s.writeFor(ctx, end.AccountID, "settle", func(tx *gorm.DB) error {
		won = false
		task, err := s.lock(tx, end.TaskID)
		if mediagate.Is(err, mediagate.KindNotFound) {
			story = mediagate.Story{Missing: true}
			return nil
		}
		if err != nil {
			return err
		}
		known, err := outcomeOnRecord(tx, end)
		if err != nil {
			return err
		}
		known = known || end.WithoutOutcome && task.ArtState == mediagate.ModalWaiting
		overtaken, err := overtaken(tx, end)
		if err != nil {
			return err
		}
		if !task.Status.Terminal() && !known && !overtaken {
			won = true
			if end.Status == mediagate.StatusCompleted && !task.CancelRequestedAt.IsZero() {
				end = mediagate.Settlement{
					TaskID: end.TaskID, AccountID: end.AccountID, N: end.N, Status: mediagate.StatusCancelled, EndedAt: end.EndedAt, RunUntold: end.RunUntold,
				}
			}
			if err := s.end(tx, task, end); err != nil {
				return err
			}
		}
		story, err = s.readStory(tx, end.TaskID)
		return err
	})
	if err != nil {
		return mediagate.Story{}, false, err
	}
	return story, won, nil
}

// outcomeOnRecord reports that the outcome is on record for want of which the
// task was to be given up.
func outcomeOnRecord(tx *gorm.DB, end mediagate.Settlement) (bool, error) {
	if !end.WithoutOutcome {
		return false, nil
	}
	row, err := one[struct{ N int }](tx, "SELECT n FROM attempts WHERE task_id = ? AND n = ? AND outcome IS NOT NULL", end.TaskID, end.N)
	return row != nil, err
}

// overtaken reports that something else came of the task than the end for which
// nothing else was to have come.
func overtaken(tx *gorm.DB, end mediagate.Settlement) (bool, error) {
	if !end.UnlessOvertaken {
		return false, nil
	}
	row, err := one[struct{ ID string }](tx, `SELECT id FROM actions WHERE task_id = ? AND action = ?
		UNION ALL SELECT task_id FROM attempts WHERE task_id = ? AND n > ? LIMIT 1`, end.TaskID, mediagate.ActionFail, end.TaskID, end.N)
	return row != nil, err
}

func checkSettlement(end mediagate.Settlement) error {
	switch {
	case !end.Status.Terminal():
		return mediagate.Errorf(mediagate.KindInternal, "a task does not end as %q", end.Status)
	case end.Cost < 0 || (end.Cost != 0 && end.Status != mediagate.StatusCompleted):
		return mediagate.Errorf(mediagate.KindInternal, "%s tasks do not cost %s", end.Status, end.Cost)
	case (end.Failure != nil) != (end.Status == mediagate.StatusFailed):
		return mediagate.Errorf(mediagate.KindInternal, "exactly failed tasks have a failure")
	default:
		return nil
	}
}

// end ends the task. Files that it does not show are looked for later: those of
// other attempts, and of calls that had not reported when their attempt ended.
func (s *Store) end(tx *gorm.DB, task lockedTask, end mediagate.Settlement) error {
	if end.Cost > task.Hold {
		return mediagate.Errorf(mediagate.KindInternal, "the cost of %s is above the hold of %s", end.Cost, task.Hold)
	}
	inputsGo, err := erasesInputs(tx, task.AccountID)
	if err != nil {
		return err
	}
	if inputsGo {
		if end, err = withoutInputs(end); err != nil {
			return err
		}
	}
	failure, err := jsonOrNull(end.Failure)
	if err != nil {
		return err
	}
	var results, made document
	progress, kind := task.Progress, mediagate.EntryVoid
	winner := 0
	if end.Status == mediagate.StatusCompleted {
		progress, kind, winner = 100, mediagate.EntryPost, end.N
		if results, err = jsonText(end.Results); err != nil {
			return err
		}
		if made, err = jsonOrNull(end.Made); err != nil {
			return err
		}
	}
	about, err := one[struct{ Model, Provider string }](tx, `UPDATE tasks SET status = ?, progress = ?, cost = ?, results = ?, made = ?, failure = ?, ended_at = ?,
			parked_at = NULL, park_reason = '', queued_at = NULL, version = version + 1,
			sweep_at = CASE WHEN EXISTS (SELECT 1 FROM attempts WHERE task_id = ? AND n <> ? AND (outcome LIKE ? OR route LIKE ?))
				OR EXISTS (SELECT 1 FROM attempt_parts p JOIN attempts a ON a.task_id = p.task_id AND a.n = p.n
					WHERE p.task_id = ? AND (p.ended_at IS NULL OR p.ended_at > a.ended_at)) THEN ? ELSE sweep_at END
		WHERE id = ? RETURNING model, provider`,
		end.Status, progress, end.Cost, results, made, failure, at(end.EndedAt),
		task.ID, winner, aSuccess, aSyncRoute, task.ID, at(s.clock().Add(sweepAfter)), task.ID)
	if err != nil {
		return err
	}
	if task.WebhookState == mediagate.WebhookPending {
		if err := s.firstRound(tx, task, end); err != nil {
			return err
		}
	}
	if end.Status == mediagate.StatusCompleted {
		if err := noteMakers(tx, task, end.Made, end.Results); err != nil {
			return err
		}
	}
	if _, err := exec(tx, "DELETE FROM awaits WHERE task_id = ? AND NOT (owed AND ?)", task.ID, end.RunUntold); err != nil {
		return err
	}
	if !task.QueuedAt.IsZero() {
		if _, err := exec(tx, "DELETE FROM queue WHERE task_id = ?", task.ID); err != nil {
			return err
		}
	}
	if err := s.endAttempts(tx, task, end.EndedAt); err != nil {
		return err
	}
	if inputsGo {
		if err := s.eraseInputs(tx, task); err != nil {
			return err
		}
	}
	if _, err := exec(tx, "UPDATE idempotency SET expires_at = ? WHERE task_id = ?", at(s.clock().Add(idempotencyTTL)), task.ID); err != nil {
		return err
	}
	return s.resolve(tx, holding{
		id: task.ID, accountID: task.AccountID, keyID: task.KeyID, amount: task.Hold, tasks: 1,
		model: about.Model, provider: about.Provider, status: end.Status,
	}, kind, end.Cost)
}

// endAttempts ends the attempts of a task that ends. A job that may run on, as
// its end is not known and the vendor has not stopped it, keeps its slot for a
// while: until then the attempt has no ended_at.
func (s *Store) endAttempts(tx *gorm.DB, task lockedTask, endedAt time.Time) error {
	expected, err := task.expected()
	if err != nil {
		return err
	}
	const runsOn = "outcome IS NULL AND state IN ('accepted', 'unknown') AND (slot_until IS NULL OR slot_until > ?)"
	now := at(s.clock())
	_, err = exec(tx, `UPDATE attempts SET state = 'ended',
			ended_at = CASE WHEN `+runsOn+` THEN NULL ELSE COALESCE(ended_at, ?) END,
			slot_until = CASE WHEN `+runsOn+` THEN COALESCE(slot_until, ?) ELSE slot_until END
		WHERE task_id = ? AND state NOT IN ('rejected', 'ended')`,
		now, at(endedAt), now, s.slotUntil(expected), task.ID)
	return err
}

// firstRound begins the callback's first delivery round, or drops the callback
// of a task that has nothing to tell.
func (s *Store) firstRound(tx *gorm.DB, task lockedTask, end mediagate.Settlement) error {
	reason := ""
	switch {
	case end.Status == mediagate.StatusCancelled:
		reason = "task cancelled"
	case len(end.WebhookBody) == 0:
		reason = "nothing to send"
	}
	if reason != "" {
		_, err := exec(tx, "UPDATE tasks SET webhook_state = 'dropped', webhook_reason = ? WHERE id = ?", reason, task.ID)
		return err
	}
	now := at(s.clock())
	_, err := exec(tx, `UPDATE tasks SET webhook_round = 1, webhook_body = ?, webhook_body_at = ?, webhook_checked_at = ?,
			rescues = 0, rescue_at = NULL WHERE id = ?`,
		end.WebhookBody, now, now, task.ID)
	return err
}
