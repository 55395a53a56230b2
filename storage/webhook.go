package storage

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

type targetRow struct {
	AccountID     string
	WebhookURL    string
	WebhookBody   []byte
	WebhookBodyAt stamp
	WebhookState  mediagate.WebhookState
	WebhookRound  int
}

// WebhookTarget reads what a delivery round of the task sends, and where. The body is
// empty until it is stored. Returns KindNotFound when the task has no callback, or not yet that round, or is
// erased.
func (s *Store) WebhookTarget(ctx context.Context, taskID string, round int) (mediagate.WebhookTarget, error) {
	row, err := one[targetRow](s.on(ctx), "SELECT "+columnsOf[targetRow]().text+` FROM tasks WHERE id = ? AND webhook_state <> '' AND erased_at IS NULL`, taskID)
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
		AccountID: row.AccountID, URL: row.WebhookURL, Body: row.WebhookBody, BodyAt: row.WebhookBodyAt.Time,
		Secrets: secrets, State: row.WebhookState, Round: row.WebhookRound,
	}, nil
}

type deliveryRow struct {
	TaskID        string `gorm:"primaryKey"`
	Round         int    `gorm:"primaryKey"`
	Attempt       int    `gorm:"primaryKey"`
	At            stamp
	Status        int
	Error         string
	DurationUs    int64
	NextAttemptAt stamp
}

// TableName tells GORM.
func (deliveryRow) TableName() string { return "deliveries" }

func (r deliveryRow) delivery() mediagate.Delivery {
	return mediagate.Delivery{
		TaskID: r.TaskID, Round: r.Round, Attempt: r.Attempt, At: r.At.Time, Status: r.Status, Error: r.Error,
		Duration: fromMicros(r.DurationUs), NextAttemptAt: r.NextAttemptAt.Time,
	}
}

// Deliveries lists the delivery attempts of a task in their order, the newest of them:
// there are as many rounds as a client asks for.
func (s *Store) Deliveries(ctx context.Context, taskID string) ([]mediagate.Delivery, error) {
	var rows []deliveryRow
	if err := s.on(ctx).Where("task_id = ?", taskID).Order("round DESC, attempt DESC").Limit(storyRows).Find(&rows).Error; err != nil {
		return nil, dbError(err, "read deliveries")
	}
	slices.Reverse(rows)
	return convert(rows, deliveryRow.delivery), nil
}

// linksLast is how long the links of a callback's body are sent. A round that begins
// later has a new body, which is the same but for its links (D14).
const linksLast = 24 * time.Hour

// StoreWebhookBody stores the body of the task's callback, once, and returns the one
// that is stored: all attempts send it (D14). Returns KindNotFound when
// the task has no callback, or not yet a round of it, or is erased.
func (s *Store) StoreWebhookBody(ctx context.Context, taskID string, body []byte) (stored []byte, err error) {
	const of = " WHERE id = ? AND webhook_round > 0 AND erased_at IS NULL"
	if _, err := exec(s.on(ctx), "UPDATE tasks SET webhook_body = ?, webhook_body_at = ?"+of+" AND webhook_body IS NULL", body, at(s.clock()), taskID); err != nil {
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

// RecordDelivery stores a delivery attempt, and with it how the round ended; an
// empty state says that another attempt follows. A repeated attempt replaces
// what was stored. Of the ends, only the newest round's counts, and what was
// delivered stays delivered (D14). Of a task that is erased nothing is stored.
// Returns KindNotFound for an unknown task.
func (s *Store) RecordDelivery(ctx context.Context, d mediagate.Delivery, state mediagate.WebhookState, reason string) error {
	_, err := s.change(ctx, d.TaskID, &changing{
		events: []task.Event{task.Delivered{Round: d.Round, State: state, Reason: reason}}, delivery: &d,
		first: func(tx *gorm.DB, t mediagate.Task) (bool, error) {
			if !t.ErasedAt.IsZero() {
				return false, nil
			}
			return true, tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&deliveryRow{
				TaskID: d.TaskID, Round: d.Round, Attempt: d.Attempt, At: at(d.At), Status: d.Status, Error: d.Error,
				DurationUs: micros(d.Duration), NextAttemptAt: at(d.NextAttemptAt),
			}).Error
		},
	})
	return err
}
