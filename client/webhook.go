package client

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Event is the content of a webhook: an event of the account, which an endpoint receives, or the
// end of a task, which the task's callback receives.
type Event struct {
	// Type is task.completed, task.failed, task.cancelled, balance.low, key.quota_low or test.
	// There may be more types in the future.
	Type      string
	Timestamp time.Time       // when it happened; zero in a callback
	Task      *Task           // for types that begin with "task."
	Data      json.RawMessage // a JSON object; for types that begin with "task.", the task
}

var errSecret = errors.New("the secret is not whsec_ with Base64 behind it")

var errEvent = errors.New("the webhook is neither an event nor a task")

// VerifyWebhook returns the event of a webhook if the webhook is signed with the secret and not
// older than five minutes (https://www.standardwebhooks.com). The secret (whsec_…) of a callback
// is the account's, from GET /v1/webhooks/secret. An endpoint has a secret of its own. The body
// must be the request's, byte for byte.
func VerifyWebhook(secret string, header http.Header, body []byte) (Event, error) {
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil || strings.TrimPrefix(secret, "whsec_") == "" { // anybody can sign with an empty secret
		return Event{}, errSecret
	}
	if err := hook.Verify(body, header); err != nil {
		return Event{}, err
	}
	return readEvent(body)
}

func readEvent(body []byte) (Event, error) {
	var read struct {
		Type, Status string
		Timestamp    time.Time
		Data         json.RawMessage
	}
	if err := json.Unmarshal(body, &read); err != nil {
		return Event{}, errors.Join(errEvent, err)
	}
	e := Event{Type: read.Type, Timestamp: read.Timestamp, Data: read.Data}
	if e.Data == nil { // a callback, which is the task alone
		e = Event{Type: "task." + read.Status, Data: slices.Clone(body)}
	}
	if e.Type == "" || e.Data[0] != '{' {
		return Event{}, errEvent
	}
	if strings.HasPrefix(e.Type, "task.") {
		e.Task = &Task{}
		if err := json.Unmarshal(e.Data, e.Task); err != nil || e.Task.ID == "" || e.Task.Status == "" {
			return Event{}, errors.Join(errEvent, err)
		}
	}
	return e, nil
}
