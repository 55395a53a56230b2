package storage

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// Adoption gives the task of a request whose client did not get the answer to the next
// request that is the same. A request that waits for its task has an idempotency record of
// its own, stored with the task. It opens for adoption when the client leaves or the wait
// ends without an answer, and by itself once the wait must be over, since its process has
// died then. An answer removes it. So requests side by side are tasks side by side.

// waiterMark begins the keys of waiters' records. No client's key has it: those are ASCII.
const waiterMark = "§"

func newWaiterRow(n mediagate.NewTask, now time.Time) *idempotencyRow {
	opens := now.Add(n.Waiter.Wait)
	return &idempotencyRow{
		AccountID:  n.Task.AccountID,
		Key:        waiterMark + n.Waiter.ID,
		Path:       n.Path,
		BodySHA256: n.Waiter.Request[:],
		TaskID:     n.Task.ID,
		CreatedAt:  at(now),
		OpensAt:    at(opens),
		ExpiresAt:  at(opens.Add(mediagate.AdoptionTTL)),
	}
}

// Adopt gives the waiter the oldest task of the account that an equal request made, and
// whose answer nobody got. Of several waiters at once each gets another task, or none. The
// waiter's idempotency key is stored with the adoption, for a day or longer (see change): a
// repetition with that key gets the same task. A key that another request has taken meanwhile
// adopts nothing.
func (s *Store) Adopt(
	ctx context.Context, accountID string, w mediagate.Waiter,
) (taskID string, found bool, err error) {
	now := s.clock()
	opens := now.Add(w.Wait)
	err = s.write(ctx, "adopt a task", func(tx *gorm.DB) error {
		taskID = ""
		row, err := one[struct{ TaskID string }](tx, `UPDATE idempotency
			SET key = @key, opens_at = @opens, expires_at = @expires
			WHERE account_id = @account AND key = (SELECT i.key FROM idempotency i
				WHERE i.account_id = @account AND i.body_sha256 = @body AND i.opens_at <= @now AND i.expires_at > @now
					AND (@task = '' OR i.task_id = @task)
				ORDER BY i.opens_at, i.task_id LIMIT 1`+s.lockLeft()+`)
			RETURNING task_id`, map[string]any{
			"key":     waiterMark + w.ID,
			"opens":   at(opens),
			"expires": at(opens.Add(mediagate.AdoptionTTL)),
			"account": accountID,
			"body":    w.Request[:],
			"now":     at(now),
			"task":    w.TaskID,
		})
		if err != nil || row == nil {
			return err
		}
		if w.Key != "" && w.TaskID == "" {
			first, err := storeRecord(tx, &idempotencyRow{
				AccountID:  accountID,
				Key:        w.Key,
				Path:       w.Path,
				BodySHA256: w.BodySHA256[:],
				TaskID:     row.TaskID,
				CreatedAt:  at(now),
				ExpiresAt:  at(now.Add(idempotencyTTL)),
			}, at(now))
			if err != nil {
				return err
			}
			if !first {
				return errKeyTaken
			}
		}
		taskID = row.TaskID
		return nil
	})
	if errors.Is(err, errKeyTaken) {
		return "", false, nil
	}
	return taskID, err == nil && taskID != "", err
}

// errKeyTaken undoes an adoption whose idempotency key names another task by now.
var errKeyTaken = errors.New("the idempotency key is taken")

// Answered notes that the waiter's client has the answer: the same request makes a new
// task from now on.
func (s *Store) Answered(ctx context.Context, accountID, waiterID string) error {
	_, err := exec(s.on(ctx), "DELETE FROM idempotency WHERE account_id = ? AND key = ?",
		accountID, waiterMark+waiterID)
	return dbError(err, "note an answer")
}

// Unanswered notes that the waiter's client did not get the answer: the same request
// adopts the task within AdoptionTTL.
func (s *Store) Unanswered(ctx context.Context, accountID, waiterID string) error {
	now := s.clock()
	_, err := exec(s.on(ctx), "UPDATE idempotency SET opens_at = ?, expires_at = ? WHERE account_id = ? AND key = ?",
		at(now), at(now.Add(mediagate.AdoptionTTL)), accountID, waiterMark+waiterID)
	return dbError(err, "note a lost answer")
}
