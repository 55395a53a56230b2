package catalog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// TestFieldCasesAreComplete checks the suite against each operation. It changes each keyword of
// the schema in turn: a bound by one to either side, or a value or requirement removed. It also
// removes each named check and each rule about ignored fields. The verdict of some case must
// change each time. So a bound has an accepted case at it and a refused one beyond it, and a
// check has a case that breaks it. A verdict is Accept's, or that of a client with the served
// schema.
func TestFieldCasesAreComplete(t *testing.T) {
	t.Parallel()
	suite := fieldSuite()
	for _, o := range operations(t) {
		if o.key != o.cases {
			continue // it differs in the id alone
		}
		t.Run(o.key, func(t *testing.T) {
			t.Parallel()
			p := newProbe(t, o.Operation, suite[o.key])
			for _, mutant := range mutantsOf(p.operation.SchemaDocument()) {
				why, idle := saidTwice[o.key+" "+mutant.what]
				switch noticed := p.notices(t, mutant.doc); {
				case !noticed && !idle:
					t.Errorf("no case depends on this: %s", mutant.what)
				case noticed && idle:
					t.Errorf("a case depends on this after all: %s (%s)", mutant.what, why)
				}
			}
			for i, name := range p.operation.Checks() {
				if !p.noticesOperation(p.operation.WithoutCheck(i)) {
					t.Errorf("no case breaks the check %s (%d)", name, i)
				}
			}
			for i := range p.operation.IgnoredRules() {
				if !p.noticesParams(p.operation.WithoutIgnored(i)) {
					t.Errorf("no case depends on ignored[%d]", i)
				}
			}
		})
	}
}

// saidTwice are keywords that no verdict can depend on, since another says the
// same.
var saidTwice = map[string]string{
	"alpha-v3 /then/if/required: shot_type":                                   "shot_type is required where this is asked",
	"gamma2.6 /properties/messages/items/properties/content/then/type: array": "it is asked whether it is one",

	"delta-02 /$defs/mediaURL/type: string":  "a frame is a string already",
	"delta-2.3 /$defs/mediaURL/type: string": "a frame is a string already",

	songs + " /if/anyOf/1":   "every body gives prompt, if only as null",
	samples + " /if/anyOf/1": "every body gives prompt, if only as null",

	songs + " /required: model":                found,
	flowSongs + " /required: model":            found,
	flowStems + " /required: model":            found,
	flowReplacing + " /required: model":        found,
	songs + " /properties/model/const":         found,
	remasters + " /properties/model/const":     found,
	stemsAll + " /properties/model/const":      found,
	voices + " /properties/model/const":        found,
	replacements + " /properties/model/const":  found,
	samples + " /properties/model/const":       found,
	flowSongs + " /properties/model/const":     found,
	flowStems + " /properties/model/const":     found,
	flowReplacing + " /properties/model/const": found,
}

// found is said of the model of operations that are found in any letter case,
// or by the endpoint alone.
const found = "the operation was found, so the model is right"

// TestMinimumAndFullRequest checks that each model has a case with only the required fields, and
// accepted cases named "everything…" that together have each field. There are several if fields
// exclude each other.
func TestMinimumAndFullRequest(t *testing.T) {
	t.Parallel()
	suite := fieldSuite()
	for _, o := range operations(t) {
		minimum := parse(t, body(t, o.key, ""))
		if strings.Contains(o.key, " ") {
			delete(minimum, "model") // of which the endpoint knows
		}
		if bare := maps.Clone(minimum); needed[o.key] != nil { // which may be all that is needed
			delete(bare, "prompt")
			if _, err := o.Accept(bare); err == nil {
				minimum = bare
			}
		}
		if _, err := o.Accept(minimum); err != nil {
			t.Errorf("%s: the minimum is refused: %v", o.key, err)
		}
		for name := range minimum {
			less := maps.Clone(minimum)
			delete(less, name)
			if _, err := o.Accept(less); err == nil {
				t.Errorf("%s: the minimum has %s without need", o.key, name)
			}
		}
		given := map[string]bool{"model": true, "webhook": true, "metadata": true} // of taskCases
		for name, tt := range suite[o.cases] {
			if tt.param != "" || !strings.HasPrefix(name, "everything") {
				continue
			}
			sent := parse(t, body(t, o.key, tt.fields))
			r, err := o.Accept(sent)
			if err != nil {
				t.Errorf("%s: %s: %v", o.key, name, err)
			}
			for field := range parse(t, string(r.Params)) {
				given[field] = given[field] || sent[field] != nil
			}
		}
		for _, field := range o.Fields() {
			if !given[field] {
				t.Errorf("%s: no case named everything… gives %s", o.key, field)
			}
		}
	}
}

// probe judges the cases of a model by changed operations.
type probe struct {
	operation *catalog.Operation
	bodies    []map[string]any
	verdicts  []string // of Accept
	valid     []bool   // by the served schema
}

func newProbe(t *testing.T, o *catalog.Operation, cases map[string]fieldCase) *probe {
	t.Helper()
	p := &probe{operation: o}
	client := clientOf(t, o.Schema())
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		given := parse(t, body(t, keyOf(o, o.Model.ID), cases[name].fields))
		p.bodies = append(p.bodies, given)
		p.verdicts = append(p.verdicts, verdictOf(o, given))
		p.valid = append(p.valid, client.Validate(any(given)) == nil)
	}
	return p
}

// verdictOf returns Accept's verdict on a body: the refused field, or none.
func verdictOf(o *catalog.Operation, given map[string]any) string {
	_, err := o.Accept(given)
	var e *mediagate.Error
	switch {
	case err == nil:
		return "accepted"
	case errors.As(err, &e):
		return e.Param
	default:
		return err.Error()
	}
}

func (p *probe) noticesOperation(changed *catalog.Operation) bool {
	for i, given := range p.bodies {
		if verdictOf(changed, given) != p.verdicts[i] {
			return true
		}
	}
	return false
}

// noticesParams compares what becomes of the accepted bodies, too.
func (p *probe) noticesParams(changed *catalog.Operation) bool {
	for _, given := range p.bodies {
		now, err := changed.Accept(given)
		then, errThen := p.operation.Accept(given)
		if (err == nil) != (errThen == nil) || !bytes.Equal(now.Params, then.Params) {
			return true
		}
	}
	return false
}

func (p *probe) notices(t *testing.T, doc yaml.MapSlice) bool {
	t.Helper()
	changed, err := p.operation.WithSchema(doc)
	if err != nil {
		t.Fatal(err)
	}
	if p.noticesOperation(changed) {
		return true
	}
	client := clientOf(t, changed.Schema())
	for i, given := range p.bodies {
		if (client.Validate(any(given)) == nil) != p.valid[i] {
			return true
		}
	}
	return false
}

// clientOf compiles a served schema the way a client would, without our formats.
func clientOf(t *testing.T, served json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(served))
	if err != nil {
		t.Fatal(err)
	}
	const location = "https://api.example.com/schema"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(location, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(location)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mutant is a schema with one thing changed.
type mutant struct {
	what string
	doc  yaml.MapSlice
}

// mutantsOf returns schemas that each differ in one keyword that can affect a verdict.
func mutantsOf(doc yaml.MapSlice) []mutant {
	w := &mutator{}
	w.schema("", doc, func(changed any) yaml.MapSlice {
		root, _ := changed.(yaml.MapSlice)
		return root
	})
	return w.found
}

type mutator struct{ found []mutant }

// put makes the whole document with another value in a place.
type put func(value any) yaml.MapSlice

func (w *mutator) add(what string, doc yaml.MapSlice) {
	w.found = append(w.found, mutant{what: what, doc: doc})
}

func (w *mutator) schema(at string, node any, put put) {
	if refuses, ok := node.(bool); ok {
		w.add(fmt.Sprintf("%s: %v", at, refuses), put(!refuses))
		return
	}
	m, _ := node.(yaml.MapSlice)
	for i, entry := range m {
		key := fmt.Sprint(entry.Key)
		here := at + "/" + key
		replaced := func(value any) yaml.MapSlice {
			changed := slices.Clone(m)
			changed[i].Value = value
			return put(changed)
		}
		dropped := func() yaml.MapSlice { return put(slices.Delete(slices.Clone(m), i, i+1)) }
		switch key {
		case "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems":
			w.bound(here, entry.Value, m, replaced, dropped)
		case "enum":
			values, _ := entry.Value.([]any)
			for j, value := range values {
				w.add(fmt.Sprintf("%s: %v", here, value), replaced(slices.Delete(slices.Clone(values), j, j+1)))
			}
			w.add(here, dropped())
		case "required":
			names, _ := entry.Value.([]any)
			for j, name := range names {
				w.add(fmt.Sprintf("%s: %v", here, name), replaced(slices.Delete(slices.Clone(names), j, j+1)))
			}
		case "type":
			w.types(here, entry.Value, m, replaced, dropped)
		case "const", "pattern", "format", "not", "$ref":
			w.add(here, dropped())
		case "properties", "$defs":
			fields, _ := entry.Value.(yaml.MapSlice)
			for j, field := range fields {
				in := func(value any) yaml.MapSlice {
					changed := slices.Clone(fields)
					changed[j].Value = value
					return replaced(changed)
				}
				name := fmt.Sprintf("%s/%v", here, field.Key)
				if part, ok := field.Value.(yaml.MapSlice); ok && key == "properties" && !has(part, "not") {
					w.add(name+": given", in(false))
				}
				w.schema(name, field.Value, in)
			}
		case "items", "if", "then", "else":
			w.schema(here, entry.Value, replaced)
		case "allOf", "anyOf", "oneOf", "prefixItems":
			branches, _ := entry.Value.([]any)
			for j, branch := range branches {
				name := fmt.Sprintf("%s/%d", here, j)
				if key != "prefixItems" && len(branches) > 1 {
					w.add(name, replaced(slices.Delete(slices.Clone(branches), j, j+1)))
				}
				w.schema(name, branch, func(value any) yaml.MapSlice {
					changed := slices.Clone(branches)
					changed[j] = value
					return replaced(changed)
				})
			}
			if key != "prefixItems" {
				w.add(here, dropped())
			}
		}
	}
}

// bound moves a bound by one to either side, one with a fraction by a hundredth.
func (w *mutator) bound(at string, value any, beside yaml.MapSlice, replaced func(any) yaml.MapSlice, dropped func() yaml.MapSlice) {
	n, ok := new(big.Int).SetString(fmt.Sprint(value), 10)
	if !ok {
		r, ok := new(big.Rat).SetString(fmt.Sprint(value))
		if !ok {
			panic(fmt.Sprintf("%s: %v is no number", at, value))
		}
		for _, step := range []int64{-1, 1} {
			next := new(big.Rat).Add(r, big.NewRat(step, 100)).FloatString(4)
			w.add(fmt.Sprintf("%s: %v, not %s", at, value, next), replaced(json.Number(next)))
		}
		return
	}
	for _, step := range []int64{-1, 1} {
		next := new(big.Int).Add(n, big.NewInt(step))
		switch {
		case next.Sign() < 0 && !strings.HasSuffix(at, "imum"):
			continue // there is no length below 0
		case strings.HasSuffix(at, "/minLength") && step < 0 && n.Int64() == 1 && has(beside, "pattern"):
			continue // a pattern that wants a character says the same
		case !next.IsInt64() || !exact(next):
			w.add(fmt.Sprintf("%s: %s", at, n), dropped())
		default:
			w.add(fmt.Sprintf("%s: %s, not %s", at, n, next), replaced(json.Number(next.String())))
		}
	}
}

// exact reports whether a float64 holds the number exactly. Beyond that no case can be one beside
// a bound.
func exact(n *big.Int) bool { return n.BitLen() <= 53 }

// types takes types away. Beside a list of values a type says nothing more, nor
// does it of a body, which is an object.
func (w *mutator) types(at string, value any, beside yaml.MapSlice, replaced func(any) yaml.MapSlice, dropped func() yaml.MapSlice) {
	if kinds, many := value.([]any); many {
		for i, kind := range kinds {
			w.add(fmt.Sprintf("%s: %v", at, kind), replaced(slices.Delete(slices.Clone(kinds), i, i+1)))
		}
		return
	}
	if at != "/type" && !has(beside, "enum") && !has(beside, "const") {
		w.add(fmt.Sprintf("%s: %v", at, value), dropped())
	}
}

func has(node yaml.MapSlice, key string) bool {
	return slices.ContainsFunc(node, func(e yaml.MapItem) bool { return fmt.Sprint(e.Key) == key })
}
