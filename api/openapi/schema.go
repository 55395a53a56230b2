package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const schemasPrefix = "#/components/schemas/"

// RefTo returns a reference to a schema of the components.
func RefTo(name string) json.RawMessage {
	return json.RawMessage(`{"$ref":"` + schemasPrefix + name + `"}`)
}

// NameOf returns the name in a reference to a schema of the components.
func NameOf(ref string) string { return strings.TrimPrefix(ref, schemasPrefix) }

// exported returns the name with a capital first letter.
func exported(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(first)) + name[size:]
}

const defsPrefix = "#/$defs/"

// Library adds self-contained JSON Schemas to a document. Their definitions become components.
// Definitions with the same name and meaning become one component.
type Library struct {
	Components *Map[json.RawMessage]

	meanings map[string]string // by component
}

// Embed returns the schema for use in the document, without $schema and $defs. owner prefixes a
// definition whose name is taken.
func (l *Library) Embed(text json.RawMessage, owner string) (json.RawMessage, error) {
	top, err := Members(text)
	if err != nil {
		return nil, err
	}
	var defs Map[json.RawMessage]
	if text, ok := top.Get("$defs"); ok {
		if defs, err = Members(text); err != nil {
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
	if err != nil {
		return nil, err
	}
	return raw, nil
}

// conditions returns what a schema demands apart from its properties, with its anyOf as one entry
// of allOf. The meaning stays the same, but generators of clients take a top-level anyOf for an
// alternative to the properties.
func conditions(top Map[json.RawMessage]) (all []json.RawMessage) {
	if list, ok := top.Get("allOf"); ok {
		_ = json.Unmarshal(list, &all) // an allOf that is no list was refused before
	}
	if list, ok := top.Get("anyOf"); ok {
		all = append(all, json.RawMessage(`{"anyOf":`+string(list)+`}`))
	}
	return all
}

// place adds the definitions to the components and returns their names there.
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
		l.Components.Set(names[def.Name], value)
	}
	return names, nil
}

// meaningOf returns the text of a definition and of all definitions that it refers to.
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

// Members returns the members of an object, in their order.
func Members(text json.RawMessage) (Map[json.RawMessage], error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	if token.Kind() != '{' {
		return nil, errors.New("openapi: a schema is not an object")
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

// withRefs returns the text with references to components in place of those to definitions, and
// the definitions that it refers to.
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
