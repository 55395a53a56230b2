package mediagate

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// MaxEndpoints is how many endpoints an account may have.
const MaxEndpoints = 10

// EventType says what an event is about.
type EventType string

// The types of events.
const (
	EventTaskCompleted EventType = "task.completed"
	EventTaskFailed    EventType = "task.failed"
	EventTaskCancelled EventType = "task.cancelled"
	EventBalanceLow    EventType = "balance.low"
	EventKeyQuotaLow   EventType = "key.quota_low"
	// EventTest is sent on request, whichever types the endpoint receives.
	EventTest EventType = "test"
)

// EventTypes lists the types that an endpoint may name.
func EventTypes() []EventType {
	return []EventType{EventTaskCompleted, EventTaskFailed, EventTaskCancelled, EventBalanceLow, EventKeyQuotaLow}
}

// EventPrefix begins the ids of events.
const EventPrefix = "evt_"

// TaskEventID returns the id of the event that a task has ended. A task ends once, so the id
// depends on the task alone: receivers recognize the event even after the database was restored.
func TaskEventID(taskID string) string { return EventPrefix + strings.TrimPrefix(taskID, "task_") }

// EventBody returns the body that endpoints receive for an event that happened at that time.
func EventBody(t EventType, at time.Time, data any) ([]byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // links stay as they are
	err := encoder.Encode(struct {
		Type      EventType `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      any       `json:"data"`
	}{t, at.UTC().Truncate(time.Millisecond), data})
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), err
}

// Endpoint is an address that receives events of an account.
type Endpoint struct {
	ID          string
	AccountID   string
	URL         string
	Events      []EventType
	Enabled     bool
	Description string
	BalanceLow  *Micros // the available amount below which balance.low is sent; nil for never

	FailingSince   time.Time // time of the first failure since the last success; zero if it does not fail
	DisabledAt     time.Time // zero while it is enabled
	DisabledReason DisabledReason
	CreatedAt      time.Time
}

// Wants reports whether the endpoint receives this type of event.
func (e Endpoint) Wants(t EventType) bool {
	return e.Enabled && slices.Contains(e.Events, t)
}

// DisabledReason says why an endpoint is disabled.
type DisabledReason string

// Why endpoints are disabled.
const (
	DisabledByOwner DisabledReason = "switched_off"
	DisabledGone    DisabledReason = "gone"    // it answered 410
	DisabledFailing DisabledReason = "failing" // no attempt succeeded for EndpointPatience
)

// EndpointPatience is how long an endpoint may fail before it is disabled.
const EndpointPatience = 5 * 24 * time.Hour

// EndpointDelivery is an event on its way to one endpoint. The event's id identifies it.
type EndpointDelivery struct {
	EventID    string
	EndpointID string
	Type       EventType
	TaskID     string // set for an event about a task
	Body       []byte // nil for an event about a task until the first attempt
	State      EndpointState
	Attempts   int       // since the event, or the last redelivery
	CreatedAt  time.Time // when the event happened
	NextAt     time.Time // time of the next attempt; zero for none
	Last       EndpointAttempt
}

// EndpointAttempt is one attempt to deliver an event.
type EndpointAttempt struct {
	At       time.Time // zero before the first
	Status   int       // HTTP status; 0 without an answer
	Error    string    // why there was no answer, without addresses and secrets
	Answer   string    // the beginning of the answer
	Headers  map[string]string
	Duration time.Duration
}

// EndpointState is how far a delivery to an endpoint has come.
type EndpointState string

// The states of a delivery to an endpoint.
const (
	EndpointPending   EndpointState = "pending"
	EndpointDelivered EndpointState = "delivered"
	EndpointFailed    EndpointState = "failed" // its attempts are used up, or the endpoint was disabled
)

// EndpointStates lists the states of a delivery to an endpoint.
func EndpointStates() []EndpointState {
	return []EndpointState{EndpointPending, EndpointDelivered, EndpointFailed}
}

// EndpointTurn is what a sender has claimed: deliveries of one endpoint, until the claim ends.
type EndpointTurn struct {
	Endpoint   Endpoint
	Secrets    []WebhookSecret
	Deliveries []EndpointDelivery
	Claim      time.Time // the claim's end, which also identifies it
}

// EndpointResult is the result of an attempt under a claim.
type EndpointResult struct {
	EndpointID string
	URL        string // that was called
	EventID    string
	Claim      time.Time
	Attempt    EndpointAttempt
	Delivered  bool
	NextAt     time.Time // time of the next attempt; zero for none
}
