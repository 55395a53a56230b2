package webhook

import (
	"encoding/base64"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mediagate/mediagate"
)

// The headers of the Standard Webhooks scheme.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

const (
	secretPrefix = "whsec_"
	secretBytes  = 32
)

// ParseSecret decodes the key of a secret of the form whsec_BASE64. Its error is of KindInternal
// and does not contain the secret.
func ParseSecret(secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, secretPrefix)
	if !ok {
		return nil, mediagate.Errorf(mediagate.KindInternal, "a webhook secret does not begin with %s", secretPrefix)
	}
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(key) != secretBytes {
		return nil, mediagate.Errorf(mediagate.KindInternal, "a webhook secret is not the base64 of %d bytes", secretBytes)
	}
	return key, nil
}

// Sign returns a signature over id, time (to the second) and body, with the version of the scheme
// before it.
func Sign(secret, id string, at time.Time, body []byte) (string, error) {
	key, err := ParseSecret(secret)
	if err != nil {
		return "", err
	}
	webhook, err := standardwebhooks.NewWebhookRaw(key)
	if err != nil {
		return "", mediagate.Errorf(mediagate.KindInternal, "a webhook secret makes no key")
	}
	return webhook.Sign(id, at, body)
}

// signAll returns the value of the signature header. It has one signature for each secret, so that
// a receiver may use either during a rotation.
func signAll(secrets []string, id string, at time.Time, body []byte) (string, error) {
	if len(secrets) == 0 {
		return "", mediagate.Errorf(mediagate.KindInternal, "a webhook cannot be signed without a secret")
	}
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		s, err := Sign(secret, id, at, body)
		if err != nil {
			return "", err
		}
		signatures[i] = s
	}
	return strings.Join(signatures, " "), nil
}
