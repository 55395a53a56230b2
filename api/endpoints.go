package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mediagate/mediagate"
)

const (
	endpointsPath  = "/v1/webhooks/endpoints"
	endpointPrefix = "ep_"
)

var (
	errEndpointID = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "endpoint not found", Param: "endpoint_id"}
	errEventID    = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "delivery not found", Param: "event_id"}
)

// endpointView is an endpoint of an account. Secret is shown only once.
type endpointView struct {
	ID             string                `json:"id"`
	URL            string                `json:"url"`
	Events         []mediagate.EventType `json:"events"`
	Enabled        bool                  `json:"enabled"`
	Description    *string               `json:"description"`
	BalanceLow     *string               `json:"balance_low"`
	FailingSince   *int64                `json:"failing_since"`
	DisabledAt     *int64                `json:"disabled_at"`
	DisabledReason *string               `json:"disabled_reason"`
	Created        int64                 `json:"created"`
	Secret         string                `json:"secret,omitempty"`
}

func viewEndpoint(e mediagate.Endpoint) endpointView {
	return endpointView{
		ID:             e.ID,
		URL:            e.URL,
		Events:         e.Events,
		Enabled:        e.Enabled,
		Description:    orNull(e.Description),
		BalanceLow:     amountOrNull(e.BalanceLow),
		FailingSince:   unixOrNull(e.FailingSince),
		DisabledAt:     unixOrNull(e.DisabledAt),
		DisabledReason: orNull(string(e.DisabledReason)),
		Created:        e.CreatedAt.Unix(),
	}
}

// endpointDelivery is an event on its way to an endpoint, with its last attempt. Its id is the
// event's id, which is the webhook-id of all attempts.
type endpointDelivery struct {
	ID            string                  `json:"id"`
	Type          mediagate.EventType     `json:"type"`
	Task          *string                 `json:"task"`
	State         mediagate.EndpointState `json:"state"`
	Attempts      int                     `json:"attempts"`
	At            int64                   `json:"at"`
	NextAttemptAt *int64                  `json:"next_attempt_at"` // null if none follows
	Body          *string                 `json:"body"`            // null before the first attempt
	LastAttempt   *endpointAttempt        `json:"last_attempt"`
}

// endpointAttempt is one attempt to deliver an event.
type endpointAttempt struct {
	At         int64             `json:"at"`
	Status     *int              `json:"status"` // null without an answer
	Error      *string           `json:"error"`
	Answer     *string           `json:"answer"` // the first kilobyte
	Headers    map[string]string `json:"headers"`
	DurationMs int64             `json:"duration_ms"`
}

func viewEndpointDelivery(d mediagate.EndpointDelivery) endpointDelivery {
	v := endpointDelivery{
		ID: d.EventID, Type: d.Type, Task: orNull(d.TaskID), State: d.State, Attempts: d.Attempts,
		At: d.CreatedAt.Unix(), NextAttemptAt: unixOrNull(d.NextAt), Body: orNull(string(d.Body)),
	}
	if last := d.Last; !last.At.IsZero() {
		v.LastAttempt = &endpointAttempt{
			At: last.At.Unix(), Error: orNull(last.Error), Answer: orNull(last.Answer), Headers: last.Headers,
			DurationMs: last.Duration.Milliseconds(),
		}
		if last.Status != 0 {
			v.LastAttempt.Status = &last.Status
		}
		if last.Headers == nil {
			v.LastAttempt.Headers = map[string]string{}
		}
	}
	return v
}

// handleEndpoints lists the endpoints of the caller's account, or of the account in an operator's
// path.
func (s *Server) handleEndpoints(c *call) error {
	account, err := accountOf(c)
	if err != nil {
		return err
	}
	after, limit, err := page(c, endpointPrefix)
	if err != nil {
		return err
	}
	if c.isOperators() {
		if _, err := s.cfg.Store.Account(c.ctx, account); err != nil {
			return notFoundAs(err, errAccountID)
		}
	}
	rows, more, err := s.cfg.Store.Endpoints(c.ctx, account, after, limit)
	return answerList(c, rows, more, err, viewEndpoint)
}

func (s *Server) handleEndpointCreation(c *call) error {
	_, apply, err := readFields(s, c, settingsFields, func(f *fields) func(*mediagate.Endpoint) error {
		for _, name := range []string{"url", "events"} {
			if !f.has(name) {
				f.refuse(mediagate.ReasonRequired, name, "%s is required", name)
			}
		}
		return s.readEndpoint(f)
	})
	if err != nil {
		return err
	}
	endpoint := mediagate.Endpoint{AccountID: c.caller.key.AccountID, Enabled: true}
	if err := apply(&endpoint); err != nil {
		return err
	}
	endpoint, secret, err := s.cfg.Store.CreateEndpoint(c.ctx, endpoint)
	if err != nil {
		return notFoundAs(err, errUnknownKey)
	}
	view := viewEndpoint(endpoint)
	view.Secret = secret.Reveal()
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.json(http.StatusCreated, view)
}

func pathEndpoint(c *call) (string, error) {
	return pathID(c, "endpoint_id", endpointPrefix, errEndpointID)
}

// readPathEndpoint reads the endpoint in the path, if it belongs to the caller's account.
func (s *Server) readPathEndpoint(c *call) (mediagate.Endpoint, error) {
	id, err := pathEndpoint(c)
	if err != nil {
		return mediagate.Endpoint{}, err
	}
	endpoint, err := s.cfg.Store.Endpoint(c.ctx, c.caller.key.AccountID, id)
	return endpoint, notFoundAs(err, errEndpointID)
}

func (s *Server) handleEndpoint(c *call) error {
	endpoint, err := s.readPathEndpoint(c)
	return answerOne(c, http.StatusOK, endpoint, err, viewEndpoint)
}

func (s *Server) handleEndpointChange(c *call) error {
	id, err := pathEndpoint(c)
	if err != nil {
		return err
	}
	_, apply, err := readFields(s, c, settingsFields, s.readEndpoint)
	if err != nil {
		return err
	}
	endpoint, err := s.cfg.Store.UpdateEndpoint(c.ctx, c.caller.key.AccountID, id, apply)
	return answerOne(c, http.StatusOK, endpoint, notFoundAs(err, errEndpointID), viewEndpoint)
}

func (s *Server) handleEndpointDeletion(c *call) error {
	id, err := pathEndpoint(c)
	if err != nil {
		return err
	}
	if err := s.cfg.Store.DeleteEndpoint(c.ctx, c.caller.key.AccountID, id); err != nil {
		return notFoundAs(err, errEndpointID)
	}
	return c.NoContent(http.StatusNoContent)
}

// handleEndpointTest sends an event of type test, in the same way as other events.
func (s *Server) handleEndpointTest(c *call) error {
	id, err := pathEndpoint(c)
	if err != nil {
		return err
	}
	d, err := s.cfg.Store.SendTest(c.ctx, c.caller.key.AccountID, id)
	return answerOne(c, http.StatusAccepted, d, notFoundAs(err, errEndpointID), viewEndpointDelivery)
}

// handleEndpointSecretRotation is handleWebhookSecretRotation for an endpoint.
func (s *Server) handleEndpointSecretRotation(c *call) error {
	id, err := pathEndpoint(c)
	if err != nil {
		return err
	}
	force, err := oneOfQuery(c.query(), "force", yesNo...)
	if err != nil {
		return err
	}
	secrets, err := s.cfg.Store.RotateEndpointSecret(c.ctx, c.caller.key.AccountID, id, force == yes)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return errEndpointID
	}
	return answerSecret(c, secrets, err)
}

func (s *Server) handleEndpointDeliveries(c *call) error {
	after, limit, err := page(c, mediagate.EventPrefix)
	if err != nil {
		return err
	}
	state, err := oneOfQuery(c.query(), "state", words(mediagate.EndpointStates())...)
	if err != nil {
		return err
	}
	endpoint, err := s.readPathEndpoint(c)
	if err != nil {
		return err
	}
	rows, more, err := s.cfg.Store.EndpointDeliveries(c.ctx, endpoint.ID, mediagate.EndpointState(state), after, limit)
	return answerList(c, rows, more, err, viewEndpointDelivery)
}

// handleEventRedelivery sends an event to its endpoint again.
func (s *Server) handleEventRedelivery(c *call) error {
	endpoint, err := s.readPathEndpoint(c)
	if err != nil {
		return err
	}
	event, err := pathID(c, "event_id", mediagate.EventPrefix, errEventID)
	if err != nil {
		return err
	}
	d, err := s.cfg.Store.Redeliver(c.ctx, endpoint.AccountID, endpoint.ID, event)
	return answerOne(c, http.StatusAccepted, d, notFoundAs(err, errEventID), viewEndpointDelivery)
}

// readEndpoint reads the fields of an endpoint and returns the function that applies them. Null
// removes the description and balance_low. The function refuses a change after which the endpoint
// would receive balance.low events without having a balance_low.
func (s *Server) readEndpoint(f *fields) (apply func(e *mediagate.Endpoint) error) {
	url, events, enabled, description := s.webhookAddress(f, "url"), f.events(), f.flag("enabled"), f.description()
	low := f.balanceLow()
	return func(e *mediagate.Endpoint) error {
		if f.has("url") {
			e.URL = url
		}
		if f.has("events") {
			e.Events = events
		}
		if f.has("enabled") {
			e.Enabled = enabled
		}
		if f.given("description") {
			e.Description = description
		}
		if f.given("balance_low") {
			e.BalanceLow = low
		}
		if e.BalanceLow == nil && slices.Contains(e.Events, mediagate.EventBalanceLow) {
			return mediagate.Invalid(
				"balance_low", "balance_low is required for %s: the available amount below which it is sent",
				mediagate.EventBalanceLow,
			).Because(mediagate.ReasonRequired)
		}
		return nil
	}
}

// events reads the event types that an endpoint receives, and returns them in the order of the
// list of all types.
func (f *fields) events() []mediagate.EventType {
	if !f.has("events") {
		return nil
	}
	list, ok := f.body["events"].([]any)
	all := mediagate.EventTypes()
	switch {
	case !ok:
		f.refuse(mediagate.ReasonWrongType, "events", "events must be an array of strings")
		return nil
	case len(list) == 0:
		f.refuse(mediagate.ReasonTooShort, "events", "events must name at least one type of events")
		return nil
	}
	named := map[mediagate.EventType]bool{}
	for i, entry := range list {
		text, ok := entry.(string)
		param := item("events", i)
		switch {
		case !ok:
			f.refuse(mediagate.ReasonWrongType, param, "%s must be a string", param)
			return nil
		case !slices.Contains(all, mediagate.EventType(text)):
			f.refuse(mediagate.ReasonNotOneOf, param, "%s must be one of %s", param, strings.Join(words(all), ", "))
			return nil
		}
		named[mediagate.EventType(text)] = true
	}
	return slices.DeleteFunc(all, func(t mediagate.EventType) bool { return !named[t] })
}

// description reads a string that may be blank. A blank string removes the description, as null
// does.
func (f *fields) description() string {
	if text, ok := f.body["description"].(string); ok && strings.TrimSpace(text) == "" {
		return ""
	}
	return f.text("description")
}

func (f *fields) balanceLow() *mediagate.Micros {
	low := f.decimal("balance_low")
	if low != nil && *low == 0 {
		f.refuse(mediagate.ReasonOutOfRange, "balance_low", "balance_low must be above 0")
	}
	return low
}
