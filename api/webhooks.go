package api

import (
	"github.com/mediagate/mediagate"
)

const redeliverPath = "/v1/tasks/:task_id/redeliver"

// deliveryAttempt is one attempt to deliver a callback. Attempts count from 1 in each
// round: the end of the task begins the first one, each redelivery another.
type deliveryAttempt struct {
	Round         int     `json:"round"`
	Attempt       int     `json:"attempt"`
	At            int64   `json:"at"`
	Status        *int    `json:"status"` // null where no answer came
	Error         *string `json:"error"`
	DurationMs    int64   `json:"duration_ms"`
	NextAttemptAt *int64  `json:"next_attempt_at"` // null where none follows
}

func viewDelivery(d mediagate.Delivery) deliveryAttempt {
	v := deliveryAttempt{
		Round: d.Round, Attempt: d.Attempt, At: d.At.Unix(), Error: orNull(d.Error), DurationMs: d.Duration.Milliseconds(), NextAttemptAt: unixOrNull(d.NextAttemptAt),
	}
	if d.Status != 0 {
		v.Status = &d.Status
	}
	return v
}

// deliveryList is those of a task, the first one first.
type deliveryList adminList[deliveryAttempt]

// handleDeliveries lists the newest attempts, in their order.
func (s *Server) handleDeliveries(c *call) error {
	limit, err := intQuery(c.query(), "limit", 1, maxLimit, maxLimit)
	if err != nil {
		return err
	}
	t, err := s.pathTask(c)
	if err != nil {
		return err
	}
	deliveries, err := s.cfg.Store.Deliveries(c.ctx, t.ID)
	if err != nil {
		return err
	}
	cut := max(0, len(deliveries)-limit)
	return c.ok(deliveryList(listOf(deliveries[cut:], cut > 0, viewDelivery)))
}

// handleRedelivery begins another round of the task's callback. The wake scan starts it
// within seconds.
func (s *Server) handleRedelivery(c *call) error {
	t, err := s.pathTask(c)
	if err != nil {
		return err
	}
	a := mediagate.Action{ID: s.newID("act_"), TaskID: t.ID, AccountID: t.AccountID, Action: mediagate.ActionRedeliver, By: c.asActor().By}
	if err := s.command(c, a); err != nil {
		return maskTask(err)
	}
	if t, err = s.readTask(c, t.ID); err != nil {
		return err
	}
	return s.answerAccepted(c, &t)
}

// webhookSecret is the account's signing secret and the end of the one before
// it, where that still signs.
type webhookSecret struct {
	Secret            string `json:"secret"`
	PreviousExpiresAt *int64 `json:"previous_expires_at"`
}

func (s *Server) handleWebhookSecret(c *call) error {
	secrets, err := s.cfg.Store.WebhookSecrets(c.ctx, c.caller.key.AccountID)
	return answerSecret(c, secrets, err)
}

// handleWebhookSecretRotation refuses what would end a secret that is promised to
// sign for a day, unless the caller insists.
func (s *Server) handleWebhookSecretRotation(c *call) error {
	force, err := oneOfQuery(c.query(), "force", yesNo...)
	if err != nil {
		return err
	}
	secrets, err := s.cfg.Store.RotateWebhookSecret(c.ctx, c.caller.key.AccountID, force == yes)
	return answerSecret(c, secrets, err)
}

func answerSecret(c *call, secrets []mediagate.WebhookSecret, err error) error {
	switch {
	case mediagate.Is(err, mediagate.KindNotFound):
		return errUnknownKey // the account is gone
	case err != nil:
		return err
	case len(secrets) == 0:
		return mediagate.Errorf(mediagate.KindInternal, "account %s has no webhook secret", c.caller.key.AccountID)
	}
	answer := webhookSecret{Secret: secrets[0].Secret.Reveal()}
	if len(secrets) > 1 {
		at := secrets[1].ExpiresAt.Unix()
		answer.PreviousExpiresAt = &at
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.ok(answer)
}
