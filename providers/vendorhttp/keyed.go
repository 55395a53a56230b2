package vendorhttp

import (
	"net/http"

	"github.com/mediagate/mediagate"
)

// apiKey is the credential of accounts that have one.
const apiKey = "api_key"

// Keyed is the vendor account of a channel that one API key opens, which the
// client sends with each call. Adapters embed it.
type Keyed struct {
	HTTP *Client
	Key  mediagate.Secret
}

// OpenKeyed opens the account of a channel whose one credential is an API key. The
// key stands behind the scheme in a header, such as "Bearer " in Authorization.
// Errors name channel and field; options are those that the channel may have.
func OpenKeyed(ch mediagate.Channel, opt Options, publicURL, header, scheme string, options ...string) (Keyed, error) {
	check := Check(ch)
	check.Known([]string{apiKey}, options)
	base, key := check.BaseURL(publicURL), check.Credential(apiKey)
	if err := check.Err(); err != nil {
		return Keyed{}, err
	}
	return Keyed{HTTP: New(Config{
		BaseURL: base, Header: http.Header{header: {scheme + key.Reveal()}}, Secrets: []mediagate.Secret{key},
	}, opt), Key: key}, nil
}

// Close drops idle connections.
func (k Keyed) Close() { k.HTTP.Close() }

// KeyAccount names the vendor account of such a channel: there is nothing else
// that could.
func KeyAccount(ch mediagate.Channel) string { return ch.Credentials[apiKey].Reveal() }
