package storage

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

// If a client did not get the answer about its task, adoption gives that task to the next equal
// request. A request that waits for its task has an idempotency record of its own, stored with
// the task. The record opens for adoption when the client leaves or the wait ends without an
// answer. It also opens by itself once the wait must be over: then the process that served the
// request has died. An answer deletes the record. As long as the first of two equal requests
// waits, its record is closed, so two equal requests at the same time make two tasks.

// waiterMark is the prefix of the keys of waiters' records. Clients' keys are ASCII and cannot
// have it. So a client can neither read nor take the record of a waiting request by its own
// key.
const waiterMark = "§"

// newWaiterRow returns the record of a request that makes a new task and waits for it. The
// submit stores the record with the task.
//
// Example: the request comes at 12:00:00 and may wait for 90 s. If the client leaves at
// 12:00:20, Unanswered opens the record at once, until 12:10:20. If the process dies instead,
// nothing opens the record early: it opens by itself at 12:01:30, and expires at 12:11:30
// (AdoptionTTL).
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

// Adopt gives the waiter a task of the account that an equal request made and whose answer no
// client got. Of several such tasks it takes the one whose record opened first. Concurrent waiters
// get different tasks, or none. The waiter's idempotency key is stored with the adoption, for a day
// or longer (see saveEnd), so that a repeated request with the key gets the same task. If another
// request has taken the key meanwhile, Adopt adopts nothing.
//
// The adopted record gets the waiter's own key and closes for the time of its wait. If this
// waiter loses its client too, the record opens again, and the next equal request adopts the
// task.
func (s *Store) Adopt(
	ctx context.Context, accountID string, w mediagate.Waiter,
) (taskID string, found bool, err error) {
	now := s.clock()
	opens := now.Add(w.Wait)
	err = s.write(ctx, "adopt a task", func(tx *gorm.DB) error {
		// The transaction may run again after a deadlock, and must not keep the task of its first
		// run.
		taskID = ""
		// The subquery selects the open record of an equal request that opened first. The partial
		// index idempotency_waiters finds it by the hash of the request. With a TaskID the waiter
		// may only adopt that task. SKIP LOCKED passes over a record that another waiter is
		// adopting right now.
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
		// No row: no record is open. The caller then makes a new task.
		if err != nil || row == nil {
			return err
		}
		// A waiter with a TaskID needs no record: its key names the task already.
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
			// Another request has stored the key since. The error rolls the adoption back, and the
			// waiter's record stays open for others.
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

// errKeyTaken rolls back an adoption whose idempotency key names another task by now. Adopt
// does not return it.
var errKeyTaken = errors.New("the idempotency key is taken")

// Answered records that the waiter's client has the answer. From now on an equal request makes
// a new task. If another waiter has adopted the task meanwhile, the record has that waiter's
// key, so the DELETE matches no row, and the other waiter keeps its record.
func (s *Store) Answered(ctx context.Context, accountID, waiterID string) error {
	_, err := exec(s.on(ctx), "DELETE FROM idempotency WHERE account_id = ? AND key = ?",
		accountID, waiterMark+waiterID)
	return dbError(err, "note an answer")
}

// Unanswered records that the waiter's client did not get the answer. An equal request within
// AdoptionTTL adopts the task. If another waiter has adopted it already, the UPDATE matches no
// row.
func (s *Store) Unanswered(ctx context.Context, accountID, waiterID string) error {
	now := s.clock()
	_, err := exec(s.on(ctx), "UPDATE idempotency SET opens_at = ?, expires_at = ? WHERE account_id = ? AND key = ?",
		at(now), at(now.Add(mediagate.AdoptionTTL)), accountID, waiterMark+waiterID)
	return dbError(err, "note a lost answer")
}
