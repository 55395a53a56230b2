package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Schema is a JSON Schema of the 2020-12 draft.
type Schema struct {
	Ref         string       `json:"$ref,omitempty"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	Type        any          `json:"type,omitempty"` // a word, or a list of them
	Format      string       `json:"format,omitempty"`
	Const       any          `json:"const,omitempty"`
	Enum        []any        `json:"enum,omitempty"`
	Properties  Map[*Schema] `json:"properties,omitempty"`
	Required    []string     `json:"required,omitempty"`
	Items       *Schema      `json:"items,omitempty"`
	AllOf       []*Schema    `json:"allOf,omitempty"`
	OneOf       []*Schema    `json:"oneOf,omitempty"`
	Default     any          `json:"default,omitempty"`
	Minimum     *int         `json:"minimum,omitempty"`
	Maximum     *int         `json:"maximum,omitempty"`

	More map[string]any  `json:"-"` // further keywords
	raw  json.RawMessage // instead of all else
}

// MarshalJSON writes the further keywords after the others, or in their place, and
// all of it plain.
func (s *Schema) MarshalJSON() ([]byte, error) {
	if s.raw != nil {
		return plain(s.raw)
	}
	type bare Schema
	b, err := Marshal((*bare)(s))
	if err != nil {
		return nil, err
	}
	keywords, err := members(b)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.More)) {
		value, err := Marshal(s.More[name])
		if err != nil {
			return nil, err
		}
		keywords.Set(name, value)
	}
	b, err = Marshal(keywords)
	if err != nil {
		return nil, err
	}
	return plain(b)
}

// Never is what no value satisfies: a property that is not there.
var Never = &Schema{raw: json.RawMessage("false")}

const schemasPrefix = "#/components/schemas/"

// RefTo refers to a schema of the components.
func RefTo(name string) *Schema { return &Schema{Ref: schemasPrefix + name} }

// Words are what types cannot say: the keywords of each schema, and of its
// properties. A type that has no words is described where it is used.
type Words map[string]struct {
	Keywords   map[string]any            `yaml:"schema"`
	Properties map[string]map[string]any `yaml:"properties"`
}

// Reflector makes schemas of Go values as encoding/json writes them. A struct
// becomes a component with the name of its type if there are words for it.
type Reflector struct {
	Words      Words
	Enums      map[reflect.Type][]any // of types that have a closed list of values
	Unions     map[reflect.Type][]any // of interfaces: one value of each shape
	Components *Map[*Schema]
}

var (
	numberType = reflect.TypeFor[json.Number]()
	rawType    = reflect.TypeFor[json.RawMessage]()
)

// Of is the schema of a value. What stands in an interface is described as
// what it is.
func (r *Reflector) Of(v any) *Schema { return r.of(reflect.ValueOf(v)) }

func (r *Reflector) of(v reflect.Value) *Schema {
	if !v.IsValid() {
		return &Schema{}
	}
	t := v.Type()
	if values, ok := r.Enums[t]; ok {
		return &Schema{Type: "string", Enum: values}
	}
	if t == rawType {
		return &Schema{}
	}
	switch t.Kind() {
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &Schema{Type: "integer"}
	case reflect.Float64:
		return number()
	case reflect.String:
		if t == numberType {
			return number()
		}
		return &Schema{Type: "string"}
	case reflect.Interface:
		if shapes, ok := r.Unions[t]; ok {
			one := &Schema{}
			for _, shape := range shapes {
				one.OneOf = append(one.OneOf, r.of(reflect.ValueOf(shape)))
			}
			return one
		}
		return r.of(v.Elem())
	case reflect.Pointer:
		if v.IsNil() {
			return r.of(reflect.Zero(t.Elem()))
		}
		return r.of(v.Elem())
	case reflect.Slice:
		item := reflect.Zero(t.Elem())
		if v.Len() > 0 {
			item = v.Index(0)
		}
		return &Schema{Type: "array", Items: r.of(item)}
	case reflect.Array:
		return &Schema{Type: "array", Items: r.of(v.Index(0)), More: map[string]any{"minItems": t.Len(), "maxItems": t.Len()}}
	case reflect.Map:
		return &Schema{Type: "object"}
	case reflect.Struct:
		return r.structure(v)
	default:
		panic(fmt.Sprintf("openapi: no schema for %s", t))
	}
}

// number is the schema of one that needs all the digits of a float64: generators
// take a float32 otherwise.
func number() *Schema { return &Schema{Type: "number", Format: "double"} }

// structure is the schema of a struct, or a reference to it.
func (r *Reflector) structure(v reflect.Value) *Schema {
	name := exported(v.Type().Name())
	words, named := r.Words[name]
	if !named {
		return r.object(v, nil)
	}
	if _, known := r.Components.Get(name); !known {
		s := &Schema{More: words.Keywords}
		r.Components.Set(name, s) // before what is in it, so that it stands before that
		o := r.object(v, words.Properties)
		s.Type, s.Properties, s.Required = o.Type, o.Properties, o.Required
	}
	return RefTo(name)
}

func (r *Reflector) object(v reflect.Value, words map[string]map[string]any) *Schema {
	s := &Schema{Type: "object"}
	for field, value := range v.Fields() {
		if field.Anonymous && field.Tag.Get("json") == "" { // its fields stand with ours
			inner := r.object(value, words)
			s.Properties = append(s.Properties, inner.Properties...)
			s.Required = append(s.Required, inner.Required...)
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		property := r.of(value)
		if field.Type.Kind() == reflect.Pointer && !optional {
			property = nullable(property)
		}
		if more := words[name]; more != nil {
			property.More = more
		}
		s.Properties.Set(name, property)
		if !optional && !slices.Contains(s.Required, name) { // an outer field hides an inner one
			s.Required = append(s.Required, name)
		}
	}
	return s
}

// nullable is a schema that takes null too.
func nullable(s *Schema) *Schema {
	if s.Ref != "" {
		return &Schema{OneOf: []*Schema{s, {Type: "null"}}}
	}
	s.Type = []any{s.Type, "null"}
	return s
}

// exported is the name of a type with a capital letter, and without what it is
// a type of.
func exported(name string) string {
	name, _, _ = strings.Cut(name, "[")
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(first)) + name[size:]
}

const defsPrefix = "#/$defs/"

// Library takes JSON Schemas that stand by themselves into a document. The
// definitions within them become components: those that say the same under the
// same name become one.
type Library struct {
	Components *Map[*Schema]

	meanings map[string]string // of the components made here
}

// Embed is the schema as one of the document: without $schema and $defs. owner
// names it where a definition needs a name of its own.
func (l *Library) Embed(text json.RawMessage, owner string) (*Schema, error) {
	top, err := members(text)
	if err != nil {
		return nil, err
	}
	var defs Map[json.RawMessage]
	if text, ok := top.Get("$defs"); ok {
		if defs, err = members(text); err != nil {
			return nil, err
		}
	}
	names, err := l.place(defs, owner)
	if err != nil {
		return nil, err
	}
	var rest Map[json.RawMessage]
	for _, e := range top {
		switch e.Name {
		case "$schema", "$defs", "anyOf", "allOf":
		default:
			rest.Set(e.Name, e.Value)
		}
	}
	if all := conditions(top); len(all) > 0 {
		list, err := Marshal(all)
		if err != nil {
			return nil, err
		}
		rest.Set("allOf", list)
	}
	whole, err := Marshal(rest)
	if err != nil {
		return nil, err
	}
	raw, refs, err := withRefs(whole, names)
	for _, ref := range refs {
		if err == nil && names[ref] == "" {
			err = fmt.Errorf("openapi: there is no definition %s", ref)
		}
	}
	return &Schema{raw: raw}, err
}

// conditions are what a schema demands beside its properties, its anyOf as one
// of its allOf. It means the same there, but generators of clients take an anyOf
// for a choice between it and the properties.
func conditions(top Map[json.RawMessage]) (all []json.RawMessage) {
	if list, ok := top.Get("allOf"); ok {
		_ = json.Unmarshal(list, &all) // what is no list is no schema, and was refused before
	}
	if list, ok := top.Get("anyOf"); ok {
		all = append(all, json.RawMessage(`{"anyOf":`+string(list)+`}`))
	}
	return all
}

// place makes components of the definitions and returns their names.
func (l *Library) place(defs Map[json.RawMessage], owner string) (map[string]string, error) {
	if l.meanings == nil {
		l.meanings = map[string]string{}
	}
	names := map[string]string{}
	for _, def := range defs {
		meaning, err := meaningOf(def.Name, defs)
		if err != nil {
			return nil, err
		}
		name := exported(def.Name)
		if _, taken := l.Components.Get(name); taken && l.meanings[name] != meaning {
			name = owner + "." + def.Name
		}
		names[def.Name], l.meanings[name] = name, meaning
	}
	for _, def := range defs {
		value, _, err := withRefs(def.Value, names)
		if err != nil {
			return nil, err
		}
		l.Components.Set(names[def.Name], &Schema{raw: value})
	}
	return names, nil
}

// meaningOf is the text of a definition and of all that it refers to.
func meaningOf(name string, defs Map[json.RawMessage]) (string, error) {
	meaning, seen := "", map[string]bool{name: true}
	for open := []string{name}; len(open) > 0; open = open[1:] {
		text, ok := defs.Get(open[0])
		if !ok {
			return "", fmt.Errorf("openapi: there is no definition %s", open[0])
		}
		meaning += open[0] + string(text)
		_, refs, err := withRefs(text, nil)
		if err != nil {
			return "", err
		}
		for _, ref := range refs {
			if !seen[ref] {
				seen[ref] = true
				open = append(open, ref)
			}
		}
	}
	return meaning, nil
}

// members are those of an object, in their order.
func members(text json.RawMessage) (Map[json.RawMessage], error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	if token.Kind() != '{' {
		return nil, errors.New("openapi: a schema is no object")
	}
	var m Map[json.RawMessage]
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		m.Set(name, json.RawMessage(value.Clone()))
	}
	_, err = d.ReadToken()
	return m, err
}

// withRefs is the text with its references to definitions turned into those
// to components, and the definitions that it refers to.
func withRefs(text json.RawMessage, names map[string]string) (out json.RawMessage, refs []string, err error) {
	var buf bytes.Buffer
	d, e := jsontext.NewDecoder(bytes.NewReader(text)), jsontext.NewEncoder(&buf)
	for isRef := false; ; {
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimRight(buf.Bytes(), "\n"), refs, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if token.Kind() == '"' {
			word := token.String()
			kind, count := d.StackIndex(d.StackDepth())
			isName := kind == '{' && count%2 == 1
			if def, ok := strings.CutPrefix(word, defsPrefix); ok && isRef && !isName {
				refs = append(refs, def)
				word = schemasPrefix + names[def]
			}
			token = jsontext.String(word)
			isRef = isName && word == "$ref"
		} else {
			isRef = false
		}
		if err := e.WriteToken(token); err != nil {
			return nil, nil, err
		}
	}
}
