package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/mediagate/mediagate"
)

// Task is the public shape of a task, as the status endpoint, lists and callbacks show it.
type Task struct {
	ID              string             `json:"id"`
	Status          mediagate.Status   `json:"status"`
	Model           string             `json:"model"`
	Type            mediagate.Type     `json:"type"`
	Progress        int                `json:"progress"`
	Created         int64              `json:"created"`
	Completed       int64              `json:"completed,omitempty"` // the time of any end
	EstimatedTime   float64            `json:"estimated_time,omitempty"`
	ActualTime      *float64           `json:"actual_time,omitempty"`
	Cost            json.Number        `json:"cost"`
	CreditsCost     json.Number        `json:"credits_cost"`
	EstimatedCost   json.Number        `json:"estimated_cost,omitempty"` // the hold, until settled
	Result          *Result            `json:"result,omitempty"`
	Buttons         []mediagate.Button `json:"buttons,omitempty"` // what can be done with a completed art task next
	Error           *mediagate.Failure `json:"error,omitempty"`
	Reference       string             `json:"reference,omitempty"`
	CancelRequested bool               `json:"cancel_requested,omitempty"` // until the end
	Webhook         *Webhook           `json:"webhook,omitempty"`
	Key             string             `json:"key,omitempty"`      // the id of the key that submitted it; not in callbacks
	Prompt          string             `json:"prompt,omitempty"`   // in lists for readers who ask for it, see Prompt
	Action          string             `json:"action,omitempty"`   // beside Prompt: the operation of an art task
	Endpoint        string             `json:"endpoint,omitempty"` // beside Prompt and Request: the path of the submit
	Request         map[string]any     `json:"request,omitempty"`  // for readers who ask for it, see Request
	Sources         []Source           `json:"sources,omitempty"`  // tasks whose files it uses
}

// Source is an input of the task that is a file of another task.
type Source struct {
	TaskID string `json:"task_id"`
	File   int    `json:"file"`
	Field  string `json:"field"`
	Status string `json:"status"` // of that task, or "erased"
}

func sourcesOf(t *mediagate.Task) []Source {
	var sources []Source
	for _, f := range t.Sources {
		sources = append(sources, Source{f.TaskID, f.N, f.Field, cmp.Or(string(f.Status), "erased")})
	}
	return sources
}

// Webhook is the state of the task's callback.
type Webhook struct {
	State  mediagate.WebhookState `json:"state"`
	Reason string                 `json:"reason,omitempty"`
}

// Of returns the public shape of a task. creditsPerUnit is the number of credits in a currency
// unit. links are those of t.Results, in their order.
func Of(t *mediagate.Task, creditsPerUnit int64, links []mediagate.Link) Task {
	v := Task{
		ID: t.ID, Status: t.Status, Model: t.Model, Type: t.Type, Progress: t.Progress,
		Created:       t.CreatedAt.Unix(),
		EstimatedTime: mediagate.ShownSeconds(t.Plan.Expected.Seconds()),
		Cost:          t.Cost.Number(), CreditsCost: t.Cost.Credits(creditsPerUnit),
		Reference: t.Reference, Sources: sourcesOf(t),
	}
	if t.Webhook.State != "" {
		v.Webhook = &Webhook{State: t.Webhook.State, Reason: t.Webhook.Reason}
	}
	if !t.Status.Terminal() {
		v.EstimatedCost = t.Hold.Number()
		v.CancelRequested = !t.CancelRequestedAt.IsZero()
		return v
	}
	v.Completed = t.EndedAt.Unix()
	actual := mediagate.ShownSeconds(t.EndedAt.Sub(t.CreatedAt).Seconds())
	v.ActualTime = &actual
	switch t.Status {
	case mediagate.StatusFailed:
		v.Error = failureOf(t)
	case mediagate.StatusCompleted:
		v.Result = resultOf(t, links)
		if t.Made != nil {
			v.Buttons = t.Made.Buttons
		}
	default: // nothing came of it
	}
	return v
}

// JSON encodes the task for callbacks. Like the answers of the task endpoint, it does not escape
// &, < and >.
func (v Task) JSON() ([]byte, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("write the task: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// In returns the view with messages in the language. The language is one of Languages, or "" for
// the messages as they are stored.
func (v Task) In(language string) Task {
	if v.Error != nil {
		localized := *v.Error
		localized.Message = message(localized, language)
		v.Error = &localized
	}
	return v
}
