package storage

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// WebhookTarget reads the address, body and secrets for a round of the task's callback. The body is
// empty until it is stored. Returns KindNotFound when the task has no callback, has not begun that
// round, or is erased.
//
// Each attempt reads the target anew, so it sees a rotated secret and an erasure.
func (s *Store) WebhookTarget(ctx context.Context, taskID string, round int) (mediagate.WebhookTarget, error) {
	row, err := one[struct {
		AccountID string
		URL       string
		Body      []byte
		State     mediagate.WebhookState
		Round     int
	}](s.on(ctx), `SELECT account_id, webhook_url, webhook_body, webhook_state, webhook_round
		FROM tasks WHERE id = ? AND webhook_state <> '' AND erased_at IS NULL`, taskID)
	if err != nil {
		return mediagate.WebhookTarget{}, dbError(err, "read webhook")
	}
	if row == nil || row.Round < round {
		return mediagate.WebhookTarget{}, mediagate.Errorf(mediagate.KindNotFound,
			"no round %d of a callback of task %q", round, taskID)
	}
	secrets, err := s.WebhookSecrets(ctx, row.AccountID)
	return mediagate.WebhookTarget{
		AccountID: row.AccountID,
		URL:       row.URL,
		Body:      row.Body,
		Secrets:   secrets,
		State:     row.State,
		Round:     row.Round,
	}, err
}

// deliveryRow is a row of the table deliveries.
type deliveryRow struct {
	mediagate.Delivery
	At            stamp
	NextAttemptAt stamp
}

// delivery returns the domain type of the row.
func (r deliveryRow) delivery() mediagate.Delivery {
	r.Delivery.At = r.At.Time
	r.Delivery.NextAttemptAt = r.NextAttemptAt.Time
	return r.Delivery
}

// Deliveries lists the newest delivery attempts of a task, oldest first. At most storyRows are read,
// since a client may ask for any number of rounds.
func (s *Store) Deliveries(ctx context.Context, taskID string) ([]mediagate.Delivery, error) {
	var rows []deliveryRow
	if err := read(s.on(ctx), &rows, `SELECT task_id, round, attempt, status, error, duration_us * 1000,
			at, next_attempt_at
		FROM deliveries WHERE task_id = ? ORDER BY round DESC, attempt DESC LIMIT ?`, taskID, storyRows); err != nil {
		return nil, dbError(err, "read deliveries")
	}
	// The newest were read, and are returned oldest first.
	slices.Reverse(rows)
	return convert(rows, deliveryRow.delivery), nil
}

// linksLast is how long the links in a callback's body are used. A round that begins later gets a new
// body, which differs only in its links (D14).
const linksLast = 24 * time.Hour

// StoreWebhookBody stores the body of the task's callback unless it has one, and returns the stored
// body: all attempts send the same (D14). Returns KindNotFound when the task has no callback, has not
// begun a round, or is erased.
func (s *Store) StoreWebhookBody(ctx context.Context, taskID string, body []byte) (stored []byte, err error) {
	// Two attempts may both have made a body. The first UPDATE stores its body; the second one
	// matches no row, and its caller gets the stored body.
	const of = " WHERE id = ? AND webhook_round > 0 AND erased_at IS NULL"
	_, err = exec(s.on(ctx), "UPDATE tasks SET webhook_body = ?, webhook_body_at = ?"+of+" AND webhook_body IS NULL",
		body, at(s.clock()), taskID)
	if err != nil {
		return nil, dbError(err, "store the webhook's body")
	}
	row, err := one[struct{ WebhookBody []byte }](s.on(ctx), "SELECT webhook_body FROM tasks"+of, taskID)
	if err != nil {
		return nil, dbError(err, "read the webhook's body")
	}
	if row == nil {
		return nil, mediagate.Errorf(mediagate.KindNotFound, "no callback of task %q", taskID)
	}
	return row.WebhookBody, nil
}

// RecordDelivery stores a delivery attempt and the state in which it leaves the round; an empty state
// means that another attempt follows. A repeated attempt replaces the stored one. Only the newest
// round changes the callback's state, and a delivered callback stays delivered (D14). Nothing is
// stored for an erased task. Returns KindNotFound for an unknown task.
func (s *Store) RecordDelivery(
	ctx context.Context, d mediagate.Delivery, state mediagate.WebhookState, reason string,
) error {
	// The attempt and the state of the callback change in one transaction, under the lock of the
	// task's row.
	_, err := s.change(ctx, d.TaskID, &changing{
		events:   []task.Event{task.Delivered{Round: d.Round, State: state, Reason: reason}},
		delivery: &d,
		first: func(tx *gorm.DB, t mediagate.Task) (bool, error) {
			// False applies no event either.
			if !t.ErasedAt.IsZero() {
				return false, nil
			}
			// The activity may record the same attempt twice, for example after it lost the answer of the
			// database. The primary key (task_id, round, attempt) finds the stored row.
			_, err := exec(tx, `INSERT INTO deliveries
					(task_id, round, attempt, at, status, error, duration_us, next_attempt_at)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?)
				ON CONFLICT (task_id, round, attempt) DO UPDATE SET
					at = excluded.at, status = excluded.status, error = excluded.error,
					duration_us = excluded.duration_us, next_attempt_at = excluded.next_attempt_at`,
				d.TaskID, d.Round, d.Attempt, at(d.At), d.Status, d.Error, micros(d.Duration), at(d.NextAttemptAt))
			return true, err
		},
	})
	return err
}
