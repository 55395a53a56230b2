package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"
)

// shape is what a schema says about one value, merged from all branches: the order of the fields,
// what to keep, and what to fill in. It does not validate; the validator does.
//
// A branch without a type only narrows, under a condition, what is said elsewhere. Its bounds are
// not the shape's.
type shape struct {
	types       []string // without conditions
	kinds       []string // the types of all branches
	never       bool     // no branch accepts a value
	media       bool     // the text names a file
	data        bool     // the text may be a file itself, a data URI
	enum        []any    // of all branches
	constant    any
	minimum     json.Number
	maximum     json.Number
	minLength   int64 // without conditions
	maxLength   int64 // 0: none
	maxItems    int64 // the largest of all branches; 0: none
	fallback    any   // the default
	hasFallback bool
	standsFor   string   // x-value: the object is kept as this field of it
	names       []string // of the properties, in the order of the file
	properties  map[string]*shape
	required    map[string]bool // required by some branch
	demanded    map[string]bool // required without conditions
	either      map[string]bool // one of these is required
	needs       []string        // the field is refused without each of these fields
	items       *shape
	notes       annotations
	first       int // how many items of a list are kept; 0 for all
}

// maxShapeDepth ends schemas that refer to themselves.
const maxShapeDepth = 16

// shapeOf reads a schema document.
func shapeOf(doc yaml.MapSlice) (*shape, error) {
	s := new(shape)
	if err := (shapeReader{doc: doc}).read(s, doc); err != nil {
		return s, err
	}
	return s, s.check()
}

// check finds an x-value that names no field.
func (s *shape) check() error {
	if s.standsFor != "" && s.properties[s.standsFor] == nil {
		return fmt.Errorf("schema: x-value: %q is no field of the object", s.standsFor)
	}
	for _, name := range s.names {
		if err := s.properties[name].check(); err != nil {
			return err
		}
	}
	if s.items != nil {
		return s.items.check()
	}
	return nil
}

// shapeReader reads one place of a schema document.
type shapeReader struct {
	doc         yaml.MapSlice
	depth       int
	conditional bool // in a branch that not every value has to pass
	either      bool // in one of several branches, one of which a value has to pass
}

func (r shapeReader) read(s *shape, node yaml.MapSlice) error {
	if r.depth > maxShapeDepth {
		return fmt.Errorf("schema: nested deeper than %d, or refers to itself", maxShapeDepth)
	}
	if indexOf(node, "prefixItems") >= 0 && indexOf(node, "items") >= 0 && !isEmptySchema(child(node, "items")) {
		return fmt.Errorf("schema: a list cannot have both prefixItems and items")
	}
	r.depth++
	narrows := r.conditional && indexOf(node, "type") < 0
	for _, entry := range node {
		key := fmt.Sprint(entry.Key)
		if !narrows {
			s.readBound(key, entry.Value, r.conditional)
		}
		if err := r.readKeyword(s, key, entry.Value); err != nil {
			return err
		}
	}
	s.readNeeds(node)
	return nil
}

// readNeeds reads which fields are refused without another one. A schema expresses that as
//
//	if: {required: [other]}
//	else: {properties: {field: {not: {}}}}
func (s *shape) readNeeds(node yaml.MapSlice) {
	condition, _ := child(node, "if").(yaml.MapSlice)
	required, _ := child(condition, "required").([]any)
	refused, _ := child(child(node, "else"), "properties").(yaml.MapSlice)
	if len(condition) != 1 || len(required) == 0 {
		return
	}
	for _, entry := range refused {
		if rule, ok := entry.Value.(yaml.MapSlice); ok && refusesAll(rule) {
			field := s.properties[fmt.Sprint(entry.Key)]
			field.needs = append(field.needs, stringsOf(required)...)
		}
	}
}

// readBound reads a keyword that bounds the value.
func (s *shape) readBound(key string, value any, conditional bool) {
	switch key {
	case "type":
		if !conditional || s.types == nil {
			s.types = stringsOf(value)
		}
		s.kinds = append(s.kinds, stringsOf(value)...)
	case "enum":
		values, _ := jsonValue(value).([]any)
		for _, v := range values {
			if !slices.Contains(s.enum, v) {
				s.enum = append(s.enum, v)
			}
		}
	case "const":
		s.constant = jsonValue(value)
	case "minimum":
		s.minimum = numberOf(value)
	case "maximum":
		s.maximum = numberOf(value)
	case "minLength":
		if n, _ := int64Of(numberOf(value)); !conditional {
			s.minLength = max(s.minLength, n)
		}
	case "maxLength":
		n, _ := int64Of(numberOf(value))
		s.maxLength = max(s.maxLength, n)
	case "maxItems":
		n, _ := int64Of(numberOf(value))
		s.maxItems = max(s.maxItems, n)
	}
}

func (r shapeReader) readKeyword(s *shape, key string, value any) error {
	switch key {
	case "title", "description", "examples", "x-unit", "x-group", "x-media":
		s.notes.annotate(key, value)
	case "format":
		s.data = s.data || value == formatImageData
		s.media = s.media || s.data || value == formatMediaURL
	case "x-value":
		s.standsFor = fmt.Sprint(value)
	case "default":
		s.fallback, s.hasFallback = jsonValue(value), true
	case "required":
		if s.required == nil {
			s.required, s.demanded = map[string]bool{}, map[string]bool{}
		}
		for _, name := range stringsOf(value) {
			s.required[name] = true
			s.demanded[name] = s.demanded[name] || !r.conditional
			if r.either {
				if s.either == nil {
					s.either = map[string]bool{}
				}
				s.either[name] = true
			}
		}
	case "properties":
		return r.readProperties(s, value)
	case "items":
		if s.items == nil {
			s.items = new(shape)
		}
		if node, ok := value.(yaml.MapSlice); ok {
			return r.read(s.items, node)
		}
	case "prefixItems":
		return r.readFirst(s, value)
	case "$ref":
		node, err := resolve(r.doc, fmt.Sprint(value))
		if err != nil {
			return err
		}
		return r.read(s, node)
	case "allOf":
		return r.readAll(s, value)
	case "then", "else":
		r.conditional = true
		return r.readAll(s, []any{value})
	case "anyOf", "oneOf":
		r.conditional, r.either = true, true
		return r.readAll(s, value)
	}
	return nil
}

func (r shapeReader) readAll(s *shape, value any) error {
	list, _ := value.([]any)
	for _, v := range list {
		if node, ok := v.(yaml.MapSlice); ok {
			if err := r.read(s, node); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r shapeReader) readProperties(s *shape, value any) error {
	properties, _ := value.(yaml.MapSlice)
	for _, entry := range properties {
		name := fmt.Sprint(entry.Key)
		field := s.properties[name]
		if field == nil {
			field = &shape{never: true}
			if s.properties == nil {
				s.properties = map[string]*shape{}
			}
			s.properties[name] = field
			s.names = append(s.names, name)
		}
		node, ok := entry.Value.(yaml.MapSlice)
		field.never = field.never && refusesAll(node)
		if ok {
			if err := r.read(field, node); err != nil {
				return err
			}
		}
	}
	return nil
}

// readFirst reads prefixItems, which all have the same shape. Later items are not kept.
func (r shapeReader) readFirst(s *shape, value any) error {
	list, _ := value.([]any)
	s.first = len(list)
	if s.items == nil {
		s.items = new(shape)
	}
	for _, v := range list {
		if node, ok := v.(yaml.MapSlice); ok {
			if err := r.read(s.items, node); err != nil {
				return err
			}
		}
	}
	return nil
}

// refusesAll reports whether the schema is "not: {}", which no value passes.
func refusesAll(node yaml.MapSlice) bool {
	return isEmptySchema(child(node, "not"))
}

// isEmptySchema reports whether the schema is {}, which every value passes.
func isEmptySchema(schema any) bool {
	node, ok := schema.(yaml.MapSlice)
	return ok && len(node) == 0
}

// resolve follows a reference within the document.
func resolve(root yaml.MapSlice, ref string) (yaml.MapSlice, error) {
	node := root
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, fmt.Errorf("schema: $ref %q must start with #/", ref)
	}
	for name := range strings.SplitSeq(path, "/") {
		i := indexOf(node, name)
		if i < 0 {
			return nil, fmt.Errorf("schema: $ref %q leads nowhere", ref)
		}
		if node, ok = node[i].Value.(yaml.MapSlice); !ok {
			return nil, fmt.Errorf("schema: $ref %q leads to no schema", ref)
		}
	}
	return node, nil
}

func (s *shape) is(kind string) bool { return slices.Contains(s.types, kind) }

// at returns the shape of a place in a document, or nil if the schema does not know it.
func (s *shape) at(path []any) *shape {
	for _, step := range path {
		if s == nil {
			return nil
		}
		if name, ok := step.(string); ok {
			s = s.properties[name]
		} else {
			s = s.items
		}
	}
	return s
}

// copyKnown copies what the schema knows of a value, with normalized numbers, and without empty
// texts and blank required ones. It goes no deeper than the schema, and copies only enough items
// to see that there are too many.
func (s *shape) copyKnown(v any) any {
	switch v := v.(type) {
	case json.Number:
		return normalNumber(v)
	case map[string]any:
		if s.properties == nil {
			return v
		}
		out := make(map[string]any, len(s.properties))
		for _, name := range s.names {
			value, ok := v[name]
			if !ok || s.properties[name].isAbsent(value) || (s.blankIsMissing(name) && blank(value)) {
				continue
			}
			out[name] = s.properties[name].copyKnown(value)
		}
		return out
	case []any:
		if s.items == nil {
			return v
		}
		if s.first > 0 && len(v) > s.first {
			v = v[:s.first]
		}
		if s.maxItems > 0 && int64(len(v)) > s.maxItems {
			v = v[:s.maxItems+1]
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.items.copyKnown(v[i])
		}
		return out
	default:
		return v
	}
}

// isAbsent reports whether v is an empty text. It counts as absent unless the schema has a
// minimum length.
func (s *shape) isAbsent(v any) bool {
	return v == "" && s.is("string") && s.minLength == 0
}

// blankIsMissing reports whether a blank text counts as missing: in a field that is required, even
// if only under a condition. Under a condition a blank address is a wrong address, and a blank text
// in place of a list a wrong list. If these counted as missing, the rest might be a different valid
// request.
func (s *shape) blankIsMissing(name string) bool {
	field := s.properties[name]
	return s.demanded[name] || s.required[name] && !field.media && !field.is("array")
}

// fillDefaults sets the defaults of absent fields, also in nested objects, except for fields that
// would be refused without another one. It replaces objects with the field that stands for them.
// It may change v.
func (s *shape) fillDefaults(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range s.names {
			field := s.properties[name]
			if value, ok := v[name]; ok {
				v[name] = field.fillDefaults(value)
			} else if field.hasFallback && field.canDefault(v) {
				v[name] = field.fallback
			}
		}
		if s.standsFor != "" {
			return v[s.standsFor]
		}
	case []any:
		for i, item := range v {
			if s.items != nil {
				v[i] = s.items.fillDefaults(item)
			}
		}
	}
	return v
}

// canDefault reports whether an object has all other fields that the field needs.
func (s *shape) canDefault(object map[string]any) bool {
	return !slices.ContainsFunc(s.needs, func(name string) bool { _, given := object[name]; return !given })
}

// emptyText returns a field with an empty text that was taken for missing, but is not needed
// because another field is present. The schema wants at least one character there.
func (s *shape) emptyText(given, taken map[string]any) (name string, ok bool) {
	for _, name := range s.names {
		_, kept := taken[name]
		if text, is := given[name].(string); is && text == "" && !kept && s.either[name] && s.properties[name].minLength > 0 {
			return name, true
		}
	}
	return "", false
}

// blank reports whether v is a text without a visible character.
func blank(v any) bool {
	text, ok := v.(string)
	return ok && strings.TrimFunc(text, unicode.IsSpace) == ""
}
