package client

import (
	"encoding/json"
	"net/http"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// VerifyWebhook reads the task of a webhook, if its signature is one by the account's
// secret (whsec_…, of GET /v1/webhooks/secret) and not older than five minutes
// (https://www.standardwebhooks.com). The body is that of the request, byte for byte.
func VerifyWebhook(secret string, header http.Header, body []byte) (Task, error) {
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return Task{}, err
	}
	if err := hook.Verify(body, header); err != nil {
		return Task{}, err
	}
	var t Task
	err = json.Unmarshal(body, &t)
	return t, err
}
