package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"
)

// shape is what a schema says about one value, put together from all of its
// branches. The validator decides; the shape knows the order of the fields,
// what to keep, what to fill in, and the words for a rule.
type shape struct {
	types       []string
	kinds       []string // the types of all branches
	rule        string   // x-rule: the rule in words, where keywords do not say it
	never       bool     // no branch accepts any value
	format      string
	enum        []any
	constant    any
	minimum     json.Number
	maximum     json.Number
	minLength   int64
	maxLength   int64 // 0: none
	minItems    int64
	maxItems    int64 // 0: none
	fallback    any   // the default
	hasFallback bool
	names       []string // of the properties, in the order of the file
	properties  map[string]*shape
	required    map[string]bool
	items       *shape
}

// maxShapeDepth ends schemas that refer to themselves.
const maxShapeDepth = 16

// shapeOf reads a schema document.
func shapeOf(doc yaml.MapSlice) (*shape, error) {
	s := new(shape)
	return s, s.read(doc, doc, 0)
}

func (s *shape) read(root, node yaml.MapSlice, depth int) error {
	if depth > maxShapeDepth {
		return fmt.Errorf("schema: nested deeper than %d, or refers to itself", maxShapeDepth)
	}
	for _, entry := range node {
		key := fmt.Sprint(entry.Key)
		if err := s.readKeyword(root, key, entry.Value, depth); err != nil {
			return err
		}
	}
	return nil
}

func (s *shape) readKeyword(root yaml.MapSlice, key string, value any, depth int) error {
	switch key {
	case "type":
		s.types = stringsOf(value)
		s.kinds = append(s.kinds, s.types...)
	case "x-rule":
		s.rule = fmt.Sprint(value)
	case "format":
		s.format = fmt.Sprint(value)
	case "enum":
		list, _ := value.([]any)
		if s.enum == nil {
			for _, v := range list {
				s.enum = append(s.enum, jsonValue(v))
			}
		}
	case "const":
		s.constant = jsonValue(value)
	case "minimum":
		s.minimum = numberOf(value)
	case "maximum":
		s.maximum = numberOf(value)
	case "minLength":
		s.minLength, _ = int64Of(numberOf(value))
	case "maxLength":
		s.maxLength, _ = int64Of(numberOf(value))
	case "minItems":
		s.minItems, _ = int64Of(numberOf(value))
	case "maxItems":
		s.maxItems, _ = int64Of(numberOf(value))
	case "default":
		s.fallback, s.hasFallback = jsonValue(value), true
	case "required":
		if s.required == nil {
			s.required = map[string]bool{}
		}
		for _, name := range stringsOf(value) {
			s.required[name] = true
		}
	case "properties":
		return s.readProperties(root, value, depth)
	case "items":
		if s.items == nil {
			s.items = new(shape)
		}
		if node, ok := value.(yaml.MapSlice); ok {
			return s.items.read(root, node, depth+1)
		}
	case "$ref":
		node, err := resolve(root, fmt.Sprint(value))
		if err != nil {
			return err
		}
		return s.read(root, node, depth+1)
	case "then", "else":
		if node, ok := value.(yaml.MapSlice); ok {
			return s.read(root, node, depth+1)
		}
	case "allOf", "anyOf", "oneOf":
		list, _ := value.([]any)
		for _, v := range list {
			if node, ok := v.(yaml.MapSlice); ok {
				if err := s.read(root, node, depth+1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *shape) readProperties(root yaml.MapSlice, value any, depth int) error {
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
			if err := field.read(root, node, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// refusesAll reports whether the schema says "not: {}", which no value passes.
func refusesAll(node yaml.MapSlice) bool {
	return slices.ContainsFunc(node, func(e yaml.MapItem) bool {
		none, ok := e.Value.(yaml.MapSlice)
		return fmt.Sprint(e.Key) == "not" && ok && len(none) == 0
	})
}

// resolve follows a reference within the document.
func resolve(root yaml.MapSlice, ref string) (yaml.MapSlice, error) {
	node := root
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, fmt.Errorf("schema: $ref %q must start with #/", ref)
	}
	for name := range strings.SplitSeq(path, "/") {
		i := slices.IndexFunc(node, func(e yaml.MapItem) bool { return fmt.Sprint(e.Key) == name })
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

// at finds the shape of a place in a document. It is nil for a place that
// the schema does not know.
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

// take copies what the schema knows of a value and leaves the rest behind,
// with numbers normalized and blank required texts left out. It goes no
// deeper than the schema does, and copies no more items than are needed to
// see that there are too many.
func (s *shape) take(v any) any {
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
			if !ok || (s.required[name] && blank(value)) {
				continue
			}
			out[name] = s.properties[name].take(value)
		}
		return out
	case []any:
		if s.items == nil {
			return v
		}
		if s.maxItems > 0 && int64(len(v)) > s.maxItems {
			v = v[:s.maxItems+1]
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.items.take(v[i])
		}
		return out
	default:
		return v
	}
}

// fill puts in the defaults of absent fields, nested ones too.
func (s *shape) fill(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range s.names {
			field := s.properties[name]
			if value, ok := v[name]; ok {
				field.fill(value)
			} else if field.hasFallback {
				v[name] = field.fallback
			}
		}
	case []any:
		for _, item := range v {
			if s.items != nil {
				s.items.fill(item)
			}
		}
	}
}

// blank reports a text without any visible character.
func blank(v any) bool {
	text, ok := v.(string)
	return ok && strings.TrimFunc(text, unicode.IsSpace) == ""
}
