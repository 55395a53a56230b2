package api

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task/view"
)

const (
	redeliverPath     = "/v1/tasks/:task_id/redeliver"
	webhookSecretPath = "/v1/webhooks/secret" //nolint:gosec // a path, no secret
	webhookTestPath   = "/v1/webhooks/test"
	webhookTestTime   = 15 * time.Second // longer than an attempt may take
)

// Deliverer makes one attempt to deliver a callback. A failure of the receiver is a result, not
// an error.
type Deliverer interface {
	Deliver(ctx context.Context, taskID string, t mediagate.WebhookTarget) (mediagate.DeliveryResult, error)
}

// testTaskID is the id of the made-up task in webhook tests.
const testTaskID = taskPrefix + "00000000000000000000000000"

// webhookTest is the result of a test.
type webhookTest struct {
	URL        string  `json:"url"` // the base address
	Delivered  bool    `json:"delivered"`
	Status     *int    `json:"status"` // null without an answer
	Error      *string `json:"error"`
	DurationMs int64   `json:"duration_ms"`
}

// webhookAddress reads an address for callbacks.
func (s *Server) webhookAddress(f *fields, name string) string {
	if !f.has(name) {
		return ""
	}
	address, ok := f.body[name].(string)
	if !ok {
		f.refuse(mediagate.ReasonWrongType, name, "%s must be a string", name)
	} else if err := s.cfg.CheckWebhookURL(address); err != nil {
		f.refuse(mediagate.ReasonMalformed, name, "%s is not an address for callbacks: %s", name, reasonOf(err))
	}
	return address
}

// handleWebhookTest delivers the callback of a made-up task once, to the address in the body or
// else to the account's, and reports what the receiver did.
func (s *Server) handleWebhookTest(c *call) error {
	f, err := s.fieldsOf(c, settingsFields)
	if err != nil {
		return err
	}
	if s.cfg.Deliverer == nil {
		return mediagate.Errorf(mediagate.KindUnavailable, "callbacks cannot be tested here")
	}
	address := cmp.Or(s.webhookAddress(f, "url"), c.caller.account.Webhook)
	if address == "" {
		f.fail("url", "url is required: the account has no webhook")
	}
	if f.err != nil {
		return f.err
	}
	secrets, err := s.cfg.Store.WebhookSecrets(c.ctx, c.caller.key.AccountID)
	if err != nil {
		return notFoundAs(err, errUnknownKey)
	}
	now := s.cfg.Now()
	v := view.Of(&mediagate.Task{
		ID: testTaskID, Model: "alpha-v3", Type: mediagate.TypeVideo, Status: mediagate.StatusCompleted, Progress: 100,
		Reference: "webhook test", CreatedAt: now.Add(-time.Minute), EndedAt: now,
	}, s.cfg.CreditsPerUnit, nil)
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.setTimeout(webhookTestTime)
	began := time.Now()
	r, err := s.cfg.Deliverer.Deliver(
		c.ctx, testTaskID,
		mediagate.WebhookTarget{AccountID: c.caller.key.AccountID, URL: address, Body: body, Secrets: secrets},
	)
	if err != nil {
		return err
	}
	answer := webhookTest{
		URL:        address,
		Delivered:  r.Outcome == mediagate.DeliveryDone,
		Error:      orNull(cmp.Or(r.Error, r.Reason)),
		DurationMs: time.Since(began).Milliseconds(),
	}
	if r.Status != 0 {
		answer.Status = &r.Status
	}
	return c.ok(answer)
}

// deliveryAttempt is one attempt to deliver a callback. Attempts count from 1 in each round. The
// task's end begins the first round, and each redelivery begins another.
type deliveryAttempt struct {
	Round         int     `json:"round"`
	Attempt       int     `json:"attempt"`
	At            int64   `json:"at"`
	Status        *int    `json:"status"` // null without an answer
	Error         *string `json:"error"`
	DurationMs    int64   `json:"duration_ms"`
	NextAttemptAt *int64  `json:"next_attempt_at"` // null where none follows
}

func viewDelivery(d mediagate.Delivery) deliveryAttempt {
	v := deliveryAttempt{
		Round:         d.Round,
		Attempt:       d.Attempt,
		At:            d.At.Unix(),
		Error:         orNull(d.Error),
		DurationMs:    d.Duration.Milliseconds(),
		NextAttemptAt: unixOrNull(d.NextAttemptAt),
	}
	if d.Status != 0 {
		v.Status = &d.Status
	}
	return v
}

// handleDeliveries lists the last attempts, as many as limit allows, in the order of time.
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
	return c.ok(listOf(deliveries[cut:], cut > 0, viewDelivery))
}

// handleRedelivery begins another round of the task's callback. The wake scan starts it within
// seconds.
func (s *Server) handleRedelivery(c *call) error {
	t, err := s.pathTask(c)
	if err != nil {
		return err
	}
	a := mediagate.Action{
		ID: s.newID("act_"), TaskID: t.ID, AccountID: t.AccountID, Action: mediagate.ActionRedeliver, By: c.asActor().By,
	}
	if err := s.command(c, a); err != nil {
		return notFoundAs(err, errTaskID)
	}
	if t, err = s.readTask(c, t.ID); err != nil {
		return err
	}
	return s.answerAccepted(c, &t)
}

// webhookSecret is the account's signing secret, and when the previous one stops signing.
type webhookSecret struct {
	Secret            string `json:"secret"`
	PreviousExpiresAt *int64 `json:"previous_expires_at"`
}

func (s *Server) handleWebhookSecret(c *call) error {
	secrets, err := s.cfg.Store.WebhookSecrets(c.ctx, c.caller.key.AccountID)
	return answerSecret(c, secrets, err)
}

// handleWebhookSecretRotation makes a new secret. The present one signs alongside it for another
// day. If an earlier secret still signs as well, the call must be forced, since it ends that
// secret.
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
