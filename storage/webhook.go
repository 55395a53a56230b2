package storage

import (
	"context"

	"gorm.io/gorm"

	"github.com/mediagate/mediagate"
)

type targetRow struct {
	AccountID     string
	WebhookURL    string
	WebhookBody   []byte
	WebhookBodyAt stamp
	WebhookState  mediagate.WebhookState
	WebhookRound  int
}

// WebhookTarget reads what a delivery round of the task sends, and where.
// Returns KindNotFound when the task has no callback, or not yet that round.
func (s *Store) WebhookTarget(ctx context.Context, taskID string, round int) (mediagate.WebhookTarget, error) {
	row, err := one[targetRow](s.on(ctx), `SELECT account_id, webhook_url, webhook_body, webhook_body_at, webhook_state, webhook_round
		FROM tasks WHERE id = ? AND webhook_state <> ''`, taskID)
	if err != nil {
		return mediagate.WebhookTarget{}, dbError(err, "read webhook")
	}
	if row == nil || row.WebhookRound < round {
		return mediagate.WebhookTarget{}, mediagate.Errorf(mediagate.KindNotFound, "no round %d of a callback of task %q", round, taskID)
	}
	secrets, err := s.WebhookSecrets(ctx, row.AccountID)
	if err != nil {
		return mediagate.WebhookTarget{}, err
	}
	return mediagate.WebhookTarget{
		URL: row.WebhookURL, Body: row.WebhookBody, BodyAt: row.WebhookBodyAt.Time,
		Secrets: secrets, State: row.WebhookState, Round: row.WebhookRound,
	}, nil
}

type deliveryRow struct {
	TaskID        string
	Round         int
	Attempt       int
	At            stamp
	Status        int
	Error         string
	DurationUs    int64
	NextAttemptAt stamp
}

func (r deliveryRow) delivery() mediagate.Delivery {
	return mediagate.Delivery{
		TaskID: r.TaskID, Round: r.Round, Attempt: r.Attempt, At: r.At.Time, Status: r.Status, Error: r.Error,
		Duration: fromMicros(r.DurationUs), NextAttemptAt: r.NextAttemptAt.Time,
	}
}

// Deliveries lists the delivery attempts of a task in their order.
func (s *Store) Deliveries(ctx context.Context, taskID string) ([]mediagate.Delivery, error) {
	var rows []deliveryRow
	err := read(s.on(ctx), &rows, `SELECT task_id, round, attempt, at, status, error, duration_us, next_attempt_at
		FROM deliveries WHERE task_id = ? ORDER BY round, attempt`, taskID)
	if err != nil {
		return nil, dbError(err, "read deliveries")
	}
	return convert(rows, deliveryRow.delivery), nil
}

// RecordDelivery stores a delivery attempt, and with it how the round ended; an
// empty state says that another attempt follows. A repeated attempt replaces
// what was stored. Of the ends, only the newest round's counts, and what was
// delivered stays delivered (D14). Returns KindNotFound for an unknown task.
func (s *Store) RecordDelivery(ctx context.Context, d mediagate.Delivery, state mediagate.WebhookState, reason string) error {
	return s.underLock(ctx, d.TaskID, "record delivery", func(tx *gorm.DB, _ lockedTask) error {
		if _, err := exec(tx, `INSERT INTO deliveries (task_id, round, attempt, at, status, error, duration_us, next_attempt_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (task_id, round, attempt) DO UPDATE SET at = excluded.at, status = excluded.status, error = excluded.error,
				duration_us = excluded.duration_us, next_attempt_at = excluded.next_attempt_at`,
			d.TaskID, d.Round, d.Attempt, at(d.At), d.Status, d.Error, micros(d.Duration), at(d.NextAttemptAt)); err != nil || state == "" {
			return err
		}
		_, err := exec(tx, `UPDATE tasks SET webhook_state = ?, webhook_reason = ?, version = version + 1
			WHERE id = ? AND webhook_round = ? AND webhook_state NOT IN ('', 'delivered') AND (webhook_state <> ? OR webhook_reason <> ?)`,
			state, reason, d.TaskID, d.Round, state, reason)
		return err
	})
}
