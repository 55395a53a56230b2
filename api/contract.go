package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// parameters says what a request to a model may hold, and where it is sent.
type parameters struct {
	Operation     string          `json:"operation"`
	Method        string          `json:"method"`
	Endpoint      string          `json:"endpoint"`
	Endpoints     []string        `json:"endpoints,omitempty"` // only of models that have several
	SchemaVersion string          `json:"schema_version"`
	Source        string          `json:"source"`
	InputSchema   json.RawMessage `json:"input_schema"`
}

// The sources of a contract: the model's own file, or the base contract that all models without a
// file share.
const (
	sourceCatalog = "catalog"
	sourceBase    = "base"
)

// contractOf returns the parameters of an operation, or nil for a model that makes no videos or
// images.
func contractOf(m *catalog.Model, o *catalog.Operation) *parameters {
	facts, _ := m.Type.Facts()
	if facts.Operation == "" {
		return nil
	}
	p := &parameters{
		Operation: facts.Operation, Method: http.MethodPost, Endpoint: o.Endpoint,
		SchemaVersion: o.SchemaVersion(), Source: sourceCatalog, InputSchema: o.Schema(),
	}
	if m.Uncataloged {
		p.Source = sourceBase
	}
	if all := m.Operations(); len(all) > 1 {
		for _, one := range all {
			p.Endpoints = append(p.Endpoints, one.Endpoint)
		}
	}
	return p
}

// contract is all that a client must know to use a model.
type contract struct {
	ID       string   `json:"id"`
	Category string   `json:"category"`
	Tags     []string `json:"capability_tags,omitempty"`
	ending
	parameters
	Idempotency idempotencyRules `json:"idempotency"`
	Response    responseRules    `json:"response"`
	Pricing     pricing          `json:"pricing"`
}

// idempotencyRules say how a client can repeat a submit.
type idempotencyRules struct {
	Supported      bool   `json:"supported"`
	Header         string `json:"header"`
	MaxLength      int    `json:"max_length"`
	TTLSeconds     int    `json:"ttl_seconds"`
	Scope          string `json:"scope"`
	ReplayHeader   string `json:"replay_header"`
	MismatchStatus int    `json:"mismatch_status"`
}

// responseRules say how a client gets the result.
type responseRules struct {
	Mode          string       `json:"mode"`
	Ack           ackRules     `json:"ack"`
	Poll          pollRules    `json:"poll"`
	ResultPointer string       `json:"result_pointer"`
	MediaTypes    []string     `json:"media_types"`
	Webhook       webhookRules `json:"webhook"`
}

type ackRules struct {
	Status        int    `json:"status"`
	TaskIDPointer string `json:"task_id_pointer"`
}

type pollRules struct {
	Method          string   `json:"method"`
	Endpoint        string   `json:"endpoint"`
	IntervalSeconds int      `json:"interval_seconds"`
	Terminal        []string `json:"terminal"`
}

type webhookRules struct {
	Field  string `json:"field"`
	Suffix string `json:"suffix"`
}

// pricing is what a model costs, at the prices of the caller's group and in the terms of a quote.
type pricing struct {
	Currency       string       `json:"currency"`
	CreditsPerUnit int64        `json:"credits_per_unit"`
	Unit           string       `json:"unit"`
	Quantity       []string     `json:"quantity"`       // the fields that are multiplied; empty means 1
	Zero           int64        `json:"zero,omitempty"` // what a quantity of 0 counts as
	Holds          []priceHold  `json:"holds,omitempty"`
	Rows           []pricingRow `json:"rows"`
}

// priceHold says how many units are held beyond those that the request asks for, if the request has
// the list Given. The vendor may count more units for such a request.
type priceHold struct {
	Given string         `json:"given"`
	Where map[string]any `json:"where,omitempty"` // what an item of the list must have
	Least int64          `json:"least,omitempty"` // at least this many units of the first quantity
	More  int64          `json:"more,omitempty"`  // this many more units
}

type pricingRow struct {
	Item      string         `json:"item"`
	When      map[string]any `json:"when"`
	UnitPrice json.Number    `json:"unit_price"`
}

var errNoModel = mediagate.Invalid("model", "model is required")

// errNoContract is the one answer for models without a contract, models that the caller may not
// see, and unknown models.
func errNoContract(id string) error {
	return &mediagate.Error{
		Kind: mediagate.KindNotFound, Message: "model " + mediagate.Quote(id) + " not found, or it has no contract",
		Param: "model",
	}
}

func (s *Server) handleContract(c *call) error { return s.answerContract(c, c.pathText("model")) }

// handleContractByQuery serves model ids that contain a slash.
func (s *Server) handleContractByQuery(c *call) error {
	id := c.query().Get("model")
	if id == "" {
		return errNoModel
	}
	return s.answerContract(c, id)
}

// answerContract answers alike for a model that the caller may not see and for one that does not
// exist.
func (s *Server) answerContract(c *call, id string) error {
	rights := s.rightsOf(c)
	m, ok := c.models.catalog.Model(id)
	if !ok && slices.Contains(c.caller.key.Models, id) {
		m, ok = c.models.catalog.Passthrough(id)
	}
	if !ok || !rights.allow(m.ID, m.Canonical) {
		return errNoContract(id)
	}
	o := m.Operations()[0]
	if endpoint := c.query().Get("endpoint"); endpoint != "" {
		if o, ok = m.Operation(endpoint); !ok {
			return mediagate.Invalid("endpoint", "endpoint must be one of the model's endpoints")
		}
	}
	p := contractOf(m, o)
	if p == nil {
		return errNoContract(id)
	}
	prices, err := s.pricing(o, rights)
	if err != nil {
		return err
	}
	return c.cacheable(contract{
		ID: m.ID, Category: m.Category, Tags: m.Tags, ending: endingOf(m), parameters: *p,
		Idempotency: idempotency(),
		Response:    s.responseRules(o), Pricing: prices,
	})
}

// idempotency returns the rules of all submits.
func idempotency() idempotencyRules {
	return idempotencyRules{
		Supported:      true,
		Header:         idempotencyHeader,
		MaxLength:      maxIdempotencyKey,
		TTLSeconds:     int(idempotencyTTL / time.Second),
		Scope:          "account",
		ReplayHeader:   replayedHeader,
		MismatchStatus: http.StatusConflict,
	}
}

func (s *Server) responseRules(o *catalog.Operation) responseRules {
	facts, _ := o.Model.Type.Facts()
	return responseRules{
		Mode: "async",
		Ack:  ackRules{Status: http.StatusOK, TaskIDPointer: "/data/0/task_id"},
		Poll: pollRules{
			Method: http.MethodGet, Endpoint: "/v1/tasks/{task_id}", IntervalSeconds: pollEvery(o.Expected()),
			Terminal: []string{
				string(mediagate.StatusCompleted), string(mediagate.StatusFailed), string(mediagate.StatusCancelled),
			},
		},
		ResultPointer: "/data/result/" + string(facts.List),
		MediaTypes:    mediaTypes[o.Media()],
		Webhook:       webhookRules{Field: "webhook", Suffix: "/callback"},
	}
}

// mediaTypes are the usual media types of a class of results.
var mediaTypes = map[string][]string{
	"video": {"video/mp4"},
	"image": {"image/png", "image/jpeg", "image/webp"},
}

// pollEvery returns a sensible poll interval in seconds: a twentieth of the expected time, from 2
// to 15 s. A model that takes about 3 minutes is polled every 9 s.
func pollEvery(expected time.Duration) int {
	return int(min(max(expected/20, 2*time.Second), 15*time.Second) / time.Second)
}

func (s *Server) pricing(o *catalog.Operation, r rights) (pricing, error) {
	prices, err := o.Pricing()
	if err != nil {
		return pricing{}, err
	}
	p := pricing{
		Currency:       s.cfg.Currency,
		CreditsPerUnit: s.cfg.CreditsPerUnit,
		Unit:           string(prices.Unit),
		Quantity:       append([]string{}, prices.Quantity...),
		Zero:           prices.Zero,
		Rows:           make([]pricingRow, 0, len(prices.Rows)),
	}
	for _, hold := range prices.Holds {
		p.Holds = append(p.Holds, priceHold(hold))
	}
	for _, row := range prices.Rows {
		charge := r.factor.Charges([]mediagate.Charge{row.Charge})[0]
		p.Rows = append(p.Rows, pricingRow{Item: charge.Item, When: row.When, UnitPrice: charge.UnitPrice.Number()})
	}
	return p, nil
}
