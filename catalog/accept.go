package catalog

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog/price"
)

// Request is a submit that was accepted, in our own words: no vendor's.
type Request struct {
	Params  json.RawMessage    // the known fields with their defaults, without model, webhook and Uploads; of metadata the inputs
	Uploads map[string]string  // fields whose files came within the request, as data URIs
	Media   []mediagate.Input  // all fields that name a file, with what the file has to be
	Folded  map[string]string  // fields of Params that the client did not send, by what it sent in their place
	Prose   []string           // what the client wrote of Params for whoever reads it: texts that are no file and no word of a list
	Source  *Source            // what an earlier task made and it works on, as the client named it; nil for none
	Charges []mediagate.Charge // what the task would cost at its quoted quantity
	Plan    mediagate.Plan     // how it can be produced, by all routes of the operation

	// Instead is what the task would cost by those routes of the plan, by their
	// places, that make another thing than is asked for.
	Instead map[int][]mediagate.Charge

	Webhook   string // as sent; empty for none
	Reference string // metadata.reference
}

// WithFactor is the request at the prices of a group.
func (r Request) WithFactor(f price.Factor) Request {
	r.Charges = f.Charges(r.Charges)
	r.Instead = maps.Clone(r.Instead)
	for i, charges := range r.Instead {
		r.Instead[i] = f.Charges(charges)
	}
	return r
}

// Accept judges the body of a submit, as parsed JSON with its numbers as
// json.Number, and turns it into what a task needs. The body is not changed;
// it is one for which Find returned this operation.
//
// Each error is a *mediagate.Error of KindInvalid that names the field and
// the rule: of several broken rules the first in the order of the schema's
// fields, then of the named checks.
func (o *Operation) Accept(body map[string]any) (Request, error) {
	given, dropped := o.present(body)
	params, _ := o.schema.shape.take(given).(map[string]any)
	if err := o.validate(params); err != nil {
		return Request{}, err
	}
	if name, ok := o.schema.shape.needless(given, params); ok {
		return Request{}, mediagate.Invalid(name, "%s must be a string of at least %d character, or left out", name, o.schema.shape.properties[name].minLength)
	}
	if _, given := params[metadataField]; !given && len(o.inputs) > 0 {
		params[metadataField] = map[string]any{} // its inputs have defaults
	}
	o.schema.shape.complete(params)
	for _, name := range dropped { // a default would say what nobody meant
		delete(params, name)
	}

	var r Request
	r.Webhook, _ = params["webhook"].(string)
	metadata, _ := params[metadataField].(map[string]any)
	r.Reference, _ = metadata[referenceField].(string)
	for _, name := range everywhere {
		delete(params, name)
	}
	if inputs := o.inputsOf(metadata); len(inputs) > 0 {
		params[metadataField] = inputs
	}
	if o.fold != nil {
		folded, err := o.fold.apply(params)
		if err != nil {
			return Request{}, err
		}
		r.Folded = folded
	}
	for _, check := range o.checks {
		if err := check.judge(params); err != nil {
			return Request{}, err
		}
	}
	var err error
	if r.Charges, err = o.quote(params); err != nil {
		return Request{}, err
	}
	if r.Source = o.source.take(params); r.Source != nil {
		if owner := o.Model.presser(r.Source.Button); owner != nil && owner != o {
			return owner.Accept(owner.source.without(body))
		}
		r.Folded = maps.Clone(r.Folded)
		if r.Folded == nil {
			r.Folded = map[string]string{}
		}
		r.Folded[mediagate.SourceParam] = r.Source.Field()
	}
	r.Media = o.media(params)
	inputs := bounded(r.Media)
	r.Uploads = o.takeUploads(params)
	r.Prose = o.schema.shape.prose(params, nil)
	if r.Params, err = plainJSON(params); err != nil {
		return Request{}, &mediagate.Error{Kind: mediagate.KindInternal, Message: "parameters cannot be written", Err: err}
	}
	r.Plan = o.plan
	r.Plan.Routes, r.Plan.Inputs = o.Routes(), inputs
	for i, makes := range o.makes {
		made := maps.Clone(params)
		for name, value := range makes {
			if made[name] = value; equalScalar(params[name], value) {
				continue
			}
			charges, err := o.quote(made)
			if err != nil {
				return Request{}, err
			}
			if r.Instead == nil {
				r.Instead = map[int][]mediagate.Charge{}
			}
			r.Instead[i] = charges
		}
	}
	return r, nil
}

// inputsOf is what a model takes of the metadata.
func (o *Operation) inputsOf(metadata map[string]any) map[string]any {
	inputs := map[string]any{}
	for _, name := range o.inputs {
		if v, ok := metadata[name]; ok {
			inputs[name] = v
		}
	}
	return inputs
}

// takeUploads moves the fields that hold a file out of the parameters, where
// files have no place.
func (o *Operation) takeUploads(params map[string]any) map[string]string {
	var uploads map[string]string
	for name, field := range o.schema.shape.properties {
		if text, ok := params[name].(string); ok && field.data && isData(text) {
			if uploads == nil {
				uploads = map[string]string{}
			}
			uploads[name] = text
			delete(params, name)
		}
	}
	return uploads
}

// present is the body without the fields that count as absent: nulls, empty texts, empty
// lists where a list is expected, and what is ignored, which it names. What
// follows from them is put in. It is a copy, of the known fields.
func (o *Operation) present(body map[string]any) (out map[string]any, dropped []string) {
	shape := o.schema.shape
	out = make(map[string]any, len(shape.names))
	for _, name := range shape.names {
		v, ok := body[name]
		if !ok || v == nil || shape.properties[name].isAbsent(v) {
			continue
		}
		if items, isList := v.([]any); isList && len(items) == 0 && shape.properties[name].is("array") {
			continue
		}
		out[name] = v
	}
	if !o.exact {
		out["model"] = o.Model.ID // by which Find found it, whatever the body says
	}
	infer(o.infer, out)
	for _, rule := range o.ignored {
		if rule.applies(shape, out) {
			for _, field := range rule.fields {
				delete(out, field)
			}
			dropped = append(dropped, rule.fields...)
		}
	}
	return out, dropped
}

func (r ignoredRule) applies(s *shape, given map[string]any) bool {
	for name, wanted := range r.unless {
		v, ok := given[name]
		if !ok {
			v = s.properties[name].fallback
		}
		if n, isNumber := v.(json.Number); isNumber {
			v = normalNumber(n)
		}
		if !equalScalar(v, wanted) {
			return true
		}
	}
	return slices.ContainsFunc(r.with, func(name string) bool { _, ok := given[name]; return ok })
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

func (o *Operation) validate(params map[string]any) error {
	err := o.schema.validator.Validate(params)
	if err == nil {
		return nil
	}
	var verdict *jsonschema.ValidationError
	if !errors.As(err, &verdict) {
		return &mediagate.Error{Kind: mediagate.KindInternal, Message: "the schema cannot judge the request", Err: err}
	}
	return o.schema.firstProblem(verdict).err()
}
