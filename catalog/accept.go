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

// Request is a validated submit in our own form, which depends on no vendor.
type Request struct {
	Params  json.RawMessage    // the known fields with defaults, without model, webhook and Uploads; metadata has only the inputs
	Uploads map[string]string  // data URIs in the request, by field
	Media   []mediagate.Input  // the fields that name a file, with the file's bounds
	Folded  map[string]string  // for each field of Params that was derived, the field that the client sent
	Prose   []string           // the texts in Params that the client wrote itself: no files, and no values of an enum
	Source  *Source            // the earlier result that the request names; nil for none
	Charges []mediagate.Charge // the price at the quoted quantity
	Plan    mediagate.Plan     // how the task can be produced, with all routes of the operation

	// Instead has the price of each route that makes something other than the request asks for, by the
	// route's index in the plan.
	Instead map[int][]mediagate.Charge

	Webhook   string // as sent; empty for none
	Reference string // metadata.reference
}

// WithFactor returns the request at the prices of a group.
func (r Request) WithFactor(f price.Factor) Request {
	r.Charges = f.Charges(r.Charges)
	r.Instead = maps.Clone(r.Instead)
	for i, charges := range r.Instead {
		r.Instead[i] = f.Charges(charges)
	}
	return r
}

// Accept validates the body of a submit, parsed JSON with its numbers as json.Number, and
// converts it to what a task needs. It does not change the body. Find must have returned this
// operation for the body.
//
// Each error is a *mediagate.Error of KindInvalid that names the field and the rule. If several
// rules are broken, it is the first in the order of the schema's fields, then of the named
// checks.
func (o *Operation) Accept(body map[string]any) (Request, error) {
	given, dropped := o.withoutAbsent(body)
	params, _ := o.schema.shape.copyKnown(given).(map[string]any)
	if err := o.validate(params); err != nil {
		return Request{}, err
	}
	if name, ok := o.schema.shape.emptyText(given, params); ok {
		return Request{}, mediagate.Invalid(
			name, "%s must be a string of at least %d character, or left out", name, o.schema.shape.properties[name].minLength,
		)
	}
	if _, given := params[metadataField]; !given && len(o.inputs) > 0 {
		params[metadataField] = map[string]any{} // the inputs in it have defaults
	}
	o.schema.shape.fillDefaults(params)
	for _, name := range dropped { // ignored fields get no defaults
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
		if err := check.run(params); err != nil {
			return Request{}, err
		}
	}
	var err error
	if r.Charges, err = o.quote(params); err != nil {
		return Request{}, err
	}
	if r.Source = o.source.extract(params); r.Source != nil {
		if owner := o.Model.ownerOf(r.Source.Button); owner != nil && owner != o {
			return owner.Accept(owner.source.withoutButtonFields(body))
		}
		r.Folded = maps.Clone(r.Folded)
		if r.Folded == nil {
			r.Folded = map[string]string{}
		}
		r.Folded[mediagate.SourceParam] = r.Source.Field()
	}
	r.Media = o.media(params)
	inputs := withBounds(r.Media)
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

// inputsOf returns the model's inputs in the metadata.
func (o *Operation) inputsOf(metadata map[string]any) map[string]any {
	inputs := map[string]any{}
	for _, name := range o.inputs {
		if v, ok := metadata[name]; ok {
			inputs[name] = v
		}
	}
	return inputs
}

// takeUploads moves the fields that hold a file out of the parameters, which never contain files.
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

// withoutAbsent returns a copy of the known fields without those that count as absent: nulls,
// empty strings, empty lists, and ignored fields, whose names it returns. It adds the values that
// follow from other fields.
func (o *Operation) withoutAbsent(body map[string]any) (out map[string]any, dropped []string) {
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
		out["model"] = o.Model.ID // Find found the model, however the body names it
	}
	infer(o.infer, out)
	for _, rule := range o.ignored {
		if rule.applies(shape, out) {
			for _, field := range rule.Fields {
				delete(out, field)
			}
			dropped = append(dropped, rule.Fields...)
		}
	}
	return out, dropped
}

func (r ignoredFile) applies(s *shape, given map[string]any) bool {
	for name, wanted := range r.Unless {
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
	return slices.ContainsFunc(r.With, func(name string) bool { _, ok := given[name]; return ok })
}

// equalScalar compares v with a scalar. Lists and maps are never equal.
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
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return &mediagate.Error{Kind: mediagate.KindInternal, Message: "the schema cannot validate the request", Err: err}
	}
	return o.schema.firstProblem(invalid).err()
}
