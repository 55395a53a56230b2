package catalog

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// rule is what one value must be: the keywords of the schema that refused it, together with those
// of the other schemas for the same value. A conditional branch comes after what always holds, so
// that the message reports the bound that was broken.
type rule struct {
	words     string // x-rule: the rule in words, if keywords cannot express it
	missing   string // x-missing: instead of "is required"
	types     []string
	format    string
	enum      []any
	constant  any
	minimum   json.Number
	maximum   json.Number
	minLength int64
	maxLength int64 // 0: none
	minItems  int64
	maxItems  int64 // 0: none
}

// layers are the schemas that validate one value, from the general to the particular. The last
// one is the broken one. A layer is a map, true or false.
type layers []any

// ruleOf merges layers into the rule that the value must keep.
func ruleOf(l layers) rule {
	var r rule
	for _, layer := range l {
		node, ok := layer.(yaml.MapSlice)
		if !ok {
			continue
		}
		for _, entry := range node { // an x-rule of an earlier layer does not describe the bounds of this one
			if bounds[fmt.Sprint(entry.Key)] && !refusesAll(node) {
				r.words = ""
			}
		}
		for _, entry := range node {
			r.read(fmt.Sprint(entry.Key), entry.Value)
		}
	}
	return r
}

// bounds are the keywords that make up a rule.
var bounds = map[string]bool{
	"type": true, "format": true, "enum": true, "const": true, "minimum": true, "maximum": true,
	"minLength": true, "maxLength": true, "minItems": true, "maxItems": true, "not": true,
}

func (r *rule) read(key string, value any) {
	switch key {
	case "x-rule":
		r.words = fmt.Sprint(value)
	case "x-missing":
		r.missing = fmt.Sprint(value)
	case "type":
		r.types = stringsOf(value)
	case "format":
		r.format = fmt.Sprint(value)
	case "enum":
		r.enum, _ = jsonValue(value).([]any)
		r.constant = nil
	case "const":
		r.constant = jsonValue(value)
	case "minimum":
		r.minimum, r.enum, r.constant = numberOf(value), nil, nil
	case "maximum":
		r.maximum, r.enum, r.constant = numberOf(value), nil, nil
	case "minLength":
		r.minLength, _ = int64Of(numberOf(value))
	case "maxLength":
		r.maxLength, _ = int64Of(numberOf(value))
	case "minItems":
		r.minItems, _ = int64Of(numberOf(value))
	case "maxItems":
		r.maxItems, _ = int64Of(numberOf(value))
	}
}

// layersAt follows a validator's location, such as schema.json#/then/properties/n.
func layersAt(doc yaml.MapSlice, location string) layers {
	_, pointer, _ := strings.Cut(location, "#")
	at := withRefs(doc, doc, 0)
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := 0; i < len(steps) && len(at) > 0; i++ {
		switch step := steps[i]; step {
		case "":
		case "if", "then", "else", "not":
			at = append(at, withRefs(doc, child(at[len(at)-1], step), 0)...)
		case "allOf", "anyOf", "oneOf":
			i++
			if list, _ := child(at[len(at)-1], step).([]any); i < len(steps) {
				at = append(at, withRefs(doc, itemAt(list, steps[i]), 0)...)
			}
		case "properties":
			i++
			if i < len(steps) {
				at = at.field(doc, pointerName(steps[i]))
			}
		case "items":
			at = at.below(doc, func(node any) any { return child(node, "items") })
		case "prefixItems":
			i++
			if i < len(steps) {
				at = at.below(doc, func(node any) any {
					list, _ := child(node, "prefixItems").([]any)
					return itemAt(list, steps[i])
				})
			}
		case "$defs":
			i++
			if i < len(steps) {
				at = withRefs(doc, child(child(doc, "$defs"), pointerName(steps[i])), 0)
			}
		default: // a keyword without a schema
			return at
		}
	}
	return at
}

// field returns the layers of a property.
func (l layers) field(doc yaml.MapSlice, name string) layers {
	return l.below(doc, func(node any) any { return child(child(node, "properties"), name) })
}

func (l layers) below(doc yaml.MapSlice, step func(any) any) layers {
	var next layers
	for _, layer := range l {
		if node := step(layer); node != nil {
			next = append(next, withRefs(doc, node, 0)...)
		}
	}
	return next
}

// withRefs returns a schema, preceded by the one that it refers to.
func withRefs(doc yaml.MapSlice, node any, depth int) layers {
	if node == nil {
		return nil
	}
	ref, ok := child(node, "$ref").(string)
	if !ok || depth > maxShapeDepth {
		return layers{node}
	}
	target, err := resolve(doc, ref)
	if err != nil { // Load has reported it
		return layers{node}
	}
	return append(withRefs(doc, target, depth+1), node)
}

func child(node any, key string) any {
	if m, ok := node.(yaml.MapSlice); ok {
		if i := indexOf(m, key); i >= 0 {
			return m[i].Value
		}
	}
	return nil
}

func itemAt(items []any, index string) any {
	for i, item := range items {
		if fmt.Sprint(i) == index {
			return item
		}
	}
	return nil
}

// pointerName unescapes a name in a location.
func pointerName(step string) string {
	if plain, err := url.PathUnescape(step); err == nil {
		step = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
}

func (r rule) is(kind string) bool { return slices.Contains(r.types, kind) }

// text says what the value must be, in words that follow the field's name.
func (r rule) text() string {
	switch {
	case r.words != "":
		return r.words
	case r.constant != nil:
		return fmt.Sprintf("must be %v", r.constant)
	case len(r.enum) > 0:
		words := make([]string, len(r.enum))
		for i, v := range r.enum {
			words[i] = fmt.Sprint(v)
		}
		return "must be " + list(words, "or")
	case r.is("boolean"):
		return "must be true or false"
	case r.is("integer"):
		return "must be an integer" + r.rangeText()
	case r.is("number"):
		return "must be a number" + r.rangeText()
	case r.is("array"):
		return "must be an array" + sizeText(r.minItems, r.maxItems, "item")
	case r.is("object"):
		return "must be an object"
	case r.format == formatMediaURL:
		return fmt.Sprintf("must be an http or https URL of at most %d characters", r.maxLength)
	case r.is("string"):
		return "must be a string" + sizeText(r.minLength, r.maxLength, "character")
	default:
		return "breaks a rule of the model's schema"
	}
}

// wantsNumber reports whether a text in place of the value was probably meant as a number.
func (r rule) wantsNumber() bool {
	if len(r.enum) > 0 {
		_, isNumber := r.enum[0].(json.Number)
		return isNumber
	}
	return r.is("integer") || r.is("number")
}

func (r rule) rangeText() string {
	switch {
	case r.minimum != "" && r.maximum != "":
		return fmt.Sprintf(" between %s and %s", r.minimum, r.maximum)
	case r.minimum != "":
		return fmt.Sprintf(" of at least %s", r.minimum)
	case r.maximum != "":
		return fmt.Sprintf(" of at most %s", r.maximum)
	default:
		return ""
	}
}

func sizeText(low, high int64, unit string) string {
	plural := func(n int64) string {
		if n == 1 {
			return unit
		}
		return unit + "s"
	}
	switch {
	case high > 0 && low > 0:
		return fmt.Sprintf(" of %d to %d %s", low, high, plural(high))
	case high > 0:
		return fmt.Sprintf(" of at most %d %s", high, plural(high))
	case low > 0:
		return fmt.Sprintf(" of at least %d %s", low, plural(low))
	default:
		return ""
	}
}
