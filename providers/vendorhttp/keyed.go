package vendorhttp

import "github.com/mediagate/mediagate"

// apiKey is the credential of accounts that have one.
const apiKey = "api_key"

// OpenKeyed makes the client of a channel whose one credential is an API key,
// and returns that key. Errors name channel and field; options are those that
// the channel may have.
func OpenKeyed(ch mediagate.Channel, opt Options, publicURL string, options ...string) (*Client, string, error) {
	check := Check(ch)
	check.Known([]string{apiKey}, options)
	base, key := check.BaseURL(publicURL), check.Credential(apiKey)
	if err := check.Err(); err != nil {
		return nil, "", err
	}
	return New(Config{BaseURL: base, Secrets: []string{key}}, opt), key, nil
}

// KeyAccount names the vendor account of such a channel: there is nothing else
// that could.
func KeyAccount(ch mediagate.Channel) string { return ch.Credentials[apiKey] }
