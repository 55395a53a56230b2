package vendorhttp

import (
	"net/http"

	"github.com/mediagate/mediagate"
)

// apiKey is the name of the credential that holds an API key.
const apiKey = "api_key"

// Keyed is the vendor account of a channel whose only credential is an API key. The client sends
// the key with each call. Adapters embed Keyed.
type Keyed struct {
	HTTP *Client
	Key  mediagate.Secret
}

// OpenKeyed opens the account of a channel whose only credential is an API key. The key follows the
// scheme in the header, such as "Bearer " in Authorization. options are the names of the options
// that the channel may have. Errors name channel and field.
func OpenKeyed(ch mediagate.Channel, opt Options, publicURL, header, scheme string, options ...string) (Keyed, error) {
	check := Check(ch)
	check.CheckNames([]string{apiKey}, options)
	base, key := check.BaseURL(publicURL), check.Credential(apiKey)
	if err := check.Err(); err != nil {
		return Keyed{}, err
	}
	return Keyed{HTTP: New(Config{
		BaseURL: base, Header: http.Header{header: {scheme + key.Reveal()}}, Secrets: []mediagate.Secret{key},
	}, opt), Key: key}, nil
}

// Close closes idle connections.
func (k Keyed) Close() { k.HTTP.Close() }

// KeyAccount returns the API key as the name of the vendor account. The channel has nothing else
// that identifies the account.
func KeyAccount(ch mediagate.Channel) string { return ch.Credentials[apiKey].Reveal() }
