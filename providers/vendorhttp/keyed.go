package vendorhttp

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

// apiKey is the credential of accounts that have one.
const apiKey = "api_key"

// Keyed is the vendor account of a channel that one API key opens. Adapters
// embed it.
type Keyed struct {
	HTTP *Client
	Key  mediagate.Secret
}

// OpenKeyed opens the account of a channel whose one credential is an API key.
// Errors name channel and field; options are those that the channel may have.
func OpenKeyed(ch mediagate.Channel, opt Options, publicURL string, options ...string) (Keyed, error) {
	check := Check(ch)
	check.Known([]string{apiKey}, options)
	base, key := check.BaseURL(publicURL), check.Credential(apiKey)
	if err := check.Err(); err != nil {
		return Keyed{}, err
	}
	return Keyed{HTTP: New(Config{BaseURL: base, Secrets: []mediagate.Secret{key}}, opt), Key: key}, nil
}

// Close drops idle connections.
func (k Keyed) Close() { k.HTTP.Close() }

// SubmitJSON makes the call that submits the job, with the body as JSON, within a
// time. Path and header are the adapter's.
func (k Keyed) SubmitJSON(ctx context.Context, job mediagate.Job, call Call, body any, within time.Duration) (Answer, error) {
	text, err := Encode(body)
	if err != nil {
		return Answer{}, mediagate.Errorf(mediagate.KindInvalid, "the request cannot be written: %w", err)
	}
	call.Effect, call.Body, call.SendBefore, call.Limits = Submits, JSON(text), job.SendBefore, Limits{Total: within}
	return k.HTTP.Do(ctx, call)
}

// KeyAccount names the vendor account of such a channel: there is nothing else
// that could.
func KeyAccount(ch mediagate.Channel) string { return ch.Credentials[apiKey].Reveal() }
