package openapi

import (
	"bytes"
	"encoding/json"
	"slices"
)

// plain writes a schema without the forms of JSON Schema that generators of
// clients and linters do not read, and means the same: no boolean is a schema, but
// as what may follow the described members; no schema names several types; no array
// is without items. It leaves alone what is no schema.
func plain(text json.RawMessage) (json.RawMessage, error) {
	switch text = bytes.TrimSpace(text); {
	case string(text) == "false":
		return json.RawMessage(`{"not":{}}`), nil
	case string(text) == "true":
		return json.RawMessage(`{}`), nil
	case len(text) == 0 || text[0] != '{':
		return text, nil
	}
	keywords, err := Members(text)
	if err != nil {
		return nil, err
	}
	for i, e := range keywords {
		if keywords[i].Value, err = plainKeyword(e.Name, e.Value); err != nil {
			return nil, err
		}
	}
	var types []json.RawMessage
	if text, ok := keywords.Get("type"); ok && text[0] == '[' {
		if err := json.Unmarshal(text, &types); err != nil {
			return nil, err
		}
	}
	switch len(types) {
	case 0:
		return Marshal(withItems(keywords))
	case 1:
		keywords.Set("type", types[0])
		return Marshal(withItems(keywords))
	default:
		return apart(keywords, types)
	}
}

// plainKeyword makes the schemas plain that a keyword holds.
func plainKeyword(name string, text json.RawMessage) (json.RawMessage, error) {
	switch name {
	case "items", "contains", "propertyNames", "not", "if", "then", "else":
		return plain(text)
	case "additionalProperties", "unevaluatedProperties", "unevaluatedItems":
		if text[0] != '{' {
			return text, nil
		}
		return plain(text)
	case "allOf", "anyOf", "oneOf", "prefixItems":
		var list []json.RawMessage
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, err
		}
		for i := range list {
			var err error
			if list[i], err = plain(list[i]); err != nil {
				return nil, err
			}
		}
		return Marshal(list)
	case "properties", "patternProperties", "dependentSchemas":
		named, err := Members(text)
		if err != nil {
			return nil, err
		}
		for i := range named {
			if named[i].Value, err = plain(named[i].Value); err != nil {
				return nil, err
			}
		}
		return Marshal(named)
	default:
		return text, nil
	}
}

// keywordsOf are the keywords that say something of values of one type alone, by
// the type as it is written.
var keywordsOf = map[string][]string{
	`"array"`:  {"items", "prefixItems", "contains", "minContains", "maxContains", "minItems", "maxItems", "uniqueItems", "unevaluatedItems"},
	`"string"`: {"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"},
	`"object"`: {
		"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties",
		"dependentSchemas", "dependentRequired", "unevaluatedProperties",
	},
	`"number"`:  numeric,
	`"integer"`: numeric,
}

var numeric = []string{"format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}

// apart makes of a schema of several types one with an alternative for each, which
// has what is said of its type.
func apart(keywords Map[json.RawMessage], types []json.RawMessage) (json.RawMessage, error) {
	branches := make([]Map[json.RawMessage], len(types))
	for i, name := range types {
		branches[i].Set("type", name)
	}
	var rest Map[json.RawMessage]
	for _, e := range keywords {
		moved := e.Name == "type"
		for i, name := range types {
			if slices.Contains(keywordsOf[string(name)], e.Name) {
				branches[i].Set(e.Name, e.Value)
				moved = true
			}
		}
		if !moved {
			rest.Set(e.Name, e.Value)
		}
	}
	for i := range branches {
		branches[i] = withItems(branches[i])
	}
	value, err := Marshal(branches)
	if err != nil {
		return nil, err
	}
	if _, taken := rest.Get("anyOf"); !taken {
		rest.Set("anyOf", value)
		return Marshal(rest)
	}
	var all []json.RawMessage
	if list, ok := rest.Get("allOf"); ok {
		if err := json.Unmarshal(list, &all); err != nil {
			return nil, err
		}
	}
	value, err = Marshal(append(all, json.RawMessage(`{"anyOf":`+string(value)+`}`)))
	if err != nil {
		return nil, err
	}
	rest.Set("allOf", value)
	return Marshal(rest)
}

// withItems says of an array that it may hold anything where nothing else says
// what it holds.
func withItems(keywords Map[json.RawMessage]) Map[json.RawMessage] {
	word, _ := keywords.Get("type")
	if _, said := keywords.Get("items"); string(word) == `"array"` && !said {
		keywords.Set("items", json.RawMessage(`{}`))
	}
	return keywords
}
