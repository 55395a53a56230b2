package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/billing"
)

// Request is a submit that was accepted.
type Request struct {
	Params  json.RawMessage    // the known fields with their defaults, without model, webhook and metadata
	Charges []mediagate.Charge // what the task would cost at its quoted quantity
	Plan    mediagate.Plan     // how it can be produced

	// Uploads are fields whose media came within the request, as data URIs.
	// Params lacks them.
	Uploads map[string]string

	Webhook   string // as sent; empty for none
	Reference string // metadata.reference
}

// WithFactor is the request at the prices of a group.
func (r Request) WithFactor(f billing.Factor) Request {
	r.Charges = f.Charges(r.Charges)
	return r
}

// Accept judges the body of a submit, as parsed JSON with its numbers as
// json.Number, and turns it into what a task needs. The body is not changed.
//
// Each error is a *mediagate.Error of KindInvalid that names the field and
// the rule: of several broken rules the first in the order of the schema's
// fields, then of the named checks, then of the routes.
func (m *Model) Accept(body map[string]any) (Request, error) {
	params, _ := m.shape.take(m.present(body)).(map[string]any)
	if err := m.validate(params); err != nil {
		return Request{}, err
	}
	m.shape.fill(params)

	var r Request
	r.Webhook, _ = params["webhook"].(string)
	if metadata, ok := params["metadata"].(map[string]any); ok {
		r.Reference, _ = metadata["reference"].(string)
	}
	for _, name := range []string{"model", "webhook", "metadata"} {
		delete(params, name)
	}

	for _, check := range m.checks {
		if err := check(params); err != nil {
			return Request{}, err
		}
	}
	// Routes are chosen by what the client sent, before it is rewritten.
	routes, err := m.possibleRoutes(params)
	if err != nil {
		return Request{}, err
	}
	for _, rewrite := range m.rewrites {
		if err := rewrite(params); err != nil {
			return Request{}, err
		}
	}
	r.Plan = m.plan
	if r.Charges, err = m.quote(params); err != nil {
		return Request{}, err
	}
	if r.Plan.Routes, r.Params, err = write(routes, params); err != nil {
		return Request{}, err
	}
	return r, nil
}

// present is the body without the fields that count as absent: nulls, empty
// lists where a list is expected, and what the model ignores. It is a copy,
// of the known fields. (An empty webhook reads as none by itself.)
func (m *Model) present(body map[string]any) map[string]any {
	out := make(map[string]any, len(m.shape.names))
	for _, name := range m.shape.names {
		v, ok := body[name]
		if !ok || v == nil {
			continue
		}
		if items, isList := v.([]any); isList && len(items) == 0 && m.shape.properties[name].is("array") {
			continue
		}
		out[name] = v
	}
	for _, rule := range m.ignored {
		for name, wanted := range rule.unless {
			v, ok := out[name]
			if !ok {
				v = m.shape.properties[name].fallback
			}
			if n, isNumber := v.(json.Number); isNumber {
				v = normalNumber(n)
			}
			if !equalScalar(v, wanted) {
				for _, field := range rule.fields {
					delete(out, field)
				}
				break
			}
		}
	}
	return out
}

// equalScalar compares with a scalar; lists and maps equal none.
func equalScalar(v, scalar any) bool {
	switch v.(type) {
	case string, bool, json.Number:
		return v == scalar
	default:
		return false
	}
}

func (m *Model) validate(params map[string]any) error {
	err := m.validator.Validate(params)
	if err == nil {
		return nil
	}
	var verdict *jsonschema.ValidationError
	if !errors.As(err, &verdict) {
		return &mediagate.Error{Kind: mediagate.KindInternal, Message: "the schema cannot judge the request", Err: err}
	}
	return firstProblem(m.shape, verdict).err()
}

// possibleRoutes are the model's routes whose vendors have all that the
// request uses. When there is none, the error is what
// stood in the way of the route that came nearest.
func (m *Model) possibleRoutes(params map[string]any) ([]route, error) {
	var (
		possible []route
		obstacle *mediagate.Error
		nearest  = -1
	)
	for _, r := range m.routes {
		passed, err := r.judge(params)
		if err != nil {
			if passed > nearest {
				nearest, obstacle = passed, err
			}
			continue
		}
		possible = append(possible, r)
	}
	if len(possible) == 0 {
		return nil, obstacle
	}
	return possible, nil
}

// write puts the parameters as the first route wants them, whose rewrites
// they fit. They are stored once, so a route after it that wants them
// otherwise is left out. When they fit none, the error is the first route's.
func write(routes []route, params map[string]any) ([]mediagate.Route, json.RawMessage, error) {
	var (
		possible []mediagate.Route
		written  json.RawMessage
		obstacle *mediagate.Error
	)
	for _, r := range routes {
		own, err := r.rewrite(params)
		if err != nil {
			obstacle = cmp.Or(obstacle, err)
			continue
		}
		text, wrong := plainJSON(own)
		if wrong != nil {
			return nil, nil, &mediagate.Error{Kind: mediagate.KindInternal, Message: "parameters cannot be written", Err: wrong}
		}
		if written == nil {
			written = text
		}
		if bytes.Equal(written, text) {
			possible = append(possible, r.Route)
		}
	}
	if len(possible) == 0 {
		return nil, nil, obstacle
	}
	return possible, written, nil
}

// rewrite is params as the route wants them.
func (r route) rewrite(params map[string]any) (map[string]any, *mediagate.Error) {
	params = maps.Clone(params)
	for _, rewrite := range r.rewrites {
		if err := rewrite(params); err != nil {
			return nil, err
		}
	}
	return params, nil
}

// judge runs the route's checks and counts those that passed.
func (r route) judge(params map[string]any) (passed int, _ *mediagate.Error) {
	for i, check := range r.requires {
		if err := check(params); err != nil {
			return i, err
		}
	}
	return len(r.requires), nil
}

// quote prices the request.
func (m *Model) quote(params map[string]any) ([]mediagate.Charge, error) {
	text, ok := m.price.table.find(params)
	if !ok {
		return nil, missingRow(m.ID, "price")
	}
	unitPrice, err := mediagate.ParseMicros(text)
	if err != nil {
		return nil, missingRow(m.ID, "price")
	}
	quantity := int64(1)
	if m.price.quantity != "" {
		quantity, _ = int64Of(params[m.price.quantity])
	}
	return []mediagate.Charge{{Item: m.item(params), Unit: m.price.unit, Quantity: quantity, UnitPrice: unitPrice}}, nil
}

// item names what is charged, as "alpha-v3 pro audio": the model and what
// its price depends on.
func (m *Model) item(params map[string]any) string {
	words := []string{m.Canonical}
	for _, name := range m.price.table.by {
		switch v := params[name].(type) {
		case bool:
			if v {
				words = append(words, strings.ReplaceAll(name, "_", " "))
			}
		default:
			words = append(words, fmt.Sprint(v))
		}
	}
	return strings.Join(words, " ")
}

// missingRow cannot happen with a catalog that was loaded: Load demands
// complete tables.
func missingRow(model, table string) *mediagate.Error {
	return mediagate.Errorf(mediagate.KindInternal, "%s has no row in its table of %s", model, table)
}
