package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
)

// The headers of the Standard Webhooks scheme.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

const (
	secretPrefix    = "whsec_"
	secretBytes     = 32
	signatureScheme = "v1,"
	tolerance       = 5 * time.Minute
)

// ParseSecret returns the key that a secret of the form whsec_BASE64 stands
// for. Its error is of KindInternal and does not repeat the secret.
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

// Sign returns one signature over id, time (to the second) and body, with
// the version of the scheme in front.
func Sign(secret, id string, at time.Time, body []byte) (string, error) {
	key, err := ParseSecret(secret)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return signatureScheme + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

// signAll returns the value of the signature header: one signature a secret,
// so that a receiver may hold either while they rotate.
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

// Verify is the receiver's side: it accepts a request whose headers carry a
// signature of the body by the secret, made within five minutes of now. Its
// errors are of KindInvalid, but KindInternal for a malformed secret.
func Verify(secret string, h http.Header, body []byte, now time.Time) error {
	seconds, err := strconv.ParseInt(h.Get(HeaderTimestamp), 10, 64)
	if err != nil {
		return mediagate.Invalid(HeaderTimestamp, "is missing or no number of seconds")
	}
	at := time.Unix(seconds, 0)
	if now.Sub(at).Abs() > tolerance {
		return mediagate.Invalid(HeaderTimestamp, "is more than %s away", tolerance)
	}
	want, err := Sign(secret, h.Get(HeaderID), at, body)
	if err != nil {
		return err
	}
	for got := range strings.FieldsSeq(h.Get(HeaderSignature)) {
		if hmac.Equal([]byte(got), []byte(want)) {
			return nil
		}
	}
	return mediagate.Invalid(HeaderSignature, "does not match")
}
