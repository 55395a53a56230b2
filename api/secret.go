package api

import "github.com/mediagate/mediagate"

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
