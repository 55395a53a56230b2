package mediagate

import (
	"encoding/json"
	"time"
)

// Object is the public shape of a task: what the status endpoint wraps, lists
// hold and callbacks carry.
type Object struct {
	ID              string         `json:"id"`
	Status          Status         `json:"status"`
	Model           string         `json:"model"`
	Type            Type           `json:"type"`
	Progress        int            `json:"progress"`
	Created         int64          `json:"created"`
	Completed       int64          `json:"completed,omitempty"` // the time of any end
	EstimatedTime   float64        `json:"estimated_time,omitempty"`
	ActualTime      *float64       `json:"actual_time,omitempty"`
	Cost            json.Number    `json:"cost"`
	CreditsCost     json.Number    `json:"credits_cost"`
	EstimatedCost   json.Number    `json:"estimated_cost,omitempty"` // the hold, until settled
	Result          *ObjectResult  `json:"result,omitempty"`
	Error           *Failure       `json:"error,omitempty"`
	Reference       string         `json:"reference,omitempty"`
	CancelRequested bool           `json:"cancel_requested,omitempty"` // until the end
	Webhook         *ObjectWebhook `json:"webhook,omitempty"`
}

// ObjectResult holds the list that the task's type fills.
type ObjectResult struct {
	Images []ObjectItem `json:"images,omitempty"`
	Videos []ObjectItem `json:"videos,omitempty"`
	Audios []ObjectItem `json:"audios,omitempty"`
}

// ObjectItem is one result file.
type ObjectItem struct {
	URL       []string `json:"url"`
	ExpiresAt int64    `json:"expires_at"` // when the link stops working
	Width     int      `json:"width,omitempty"`
	Height    int      `json:"height,omitempty"`
	Duration  float64  `json:"duration,omitempty"`
	SizeBytes int64    `json:"size_bytes,omitempty"`
	MimeType  string   `json:"mime_type,omitempty"`
}

// ObjectWebhook is the state of the task's callback.
type ObjectWebhook struct {
	State  WebhookState `json:"state"`
	Reason string       `json:"reason,omitempty"`
}

// Link is a signed address of a stored object.
type Link struct {
	URL       string
	ExpiresAt time.Time
}

// Object renders the task. creditsPerUnit is the rate of credits to the
// currency unit; links are those of t.Results, in their order.
func (t *Task) Object(creditsPerUnit int64, links []Link) Object {
	o := Object{
		ID: t.ID, Status: t.Status, Model: t.Model, Type: t.Type, Progress: t.Progress,
		Created:       t.CreatedAt.Unix(),
		EstimatedTime: t.Plan.Expected.Seconds(),
		Cost:          t.Cost.Number(), CreditsCost: t.Cost.Credits(creditsPerUnit),
		Reference: t.Reference,
	}
	if t.Webhook != nil {
		o.Webhook = &ObjectWebhook{State: t.Webhook.State, Reason: t.Webhook.Reason}
	}
	if !t.Status.Terminal() {
		o.EstimatedCost = t.Hold.Number()
		o.CancelRequested = !t.CancelRequestedAt.IsZero()
		return o
	}
	o.Completed = t.EndedAt.Unix()
	actual := t.EndedAt.Sub(t.CreatedAt).Round(time.Millisecond).Seconds()
	o.ActualTime = &actual
	if t.Status == StatusFailed {
		o.Error = t.Failure
	}
	if t.Status == StatusCompleted {
		o.Result = t.resultObject(links)
	}
	return o
}

func (t *Task) resultObject(links []Link) *ObjectResult {
	items := make([]ObjectItem, 0, len(t.Results))
	for i, r := range t.Results {
		item := ObjectItem{
			URL: []string{}, Width: r.Width, Height: r.Height,
			Duration: r.Duration, SizeBytes: r.Size, MimeType: r.MimeType,
		}
		if i < len(links) {
			item.URL = []string{links[i].URL}
			item.ExpiresAt = links[i].ExpiresAt.Unix()
		}
		items = append(items, item)
	}
	facts, _ := t.Type.Facts()
	switch facts.List {
	case ListVideos:
		return &ObjectResult{Videos: items}
	case ListAudios:
		return &ObjectResult{Audios: items}
	default:
		return &ObjectResult{Images: items}
	}
}
