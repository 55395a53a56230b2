package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schema validates the requests for one operation of a model.
type schema struct {
	doc       yaml.MapSlice   // keeps the order of the keys
	served    json.RawMessage // doc as JSON
	validator *jsonschema.Schema
	compile   func(pointer string) (*jsonschema.Schema, error) // compiles a part of it
	shape     *shape
}

// The formats with our own checks.
const (
	formatMediaURL  = "uri-reference" // of media fields: a URL, or the path of a task's file
	formatImageData = "image-data"
)

// newSchema makes the schema of an operation from the file's own, the fields that every operation
// has, and the shared definitions.
func newSchema(m *Model, row Endpoint, own, shared yaml.MapSlice, check MediaURLCheck) (*schema, error) {
	own, err := withShared(own, shared)
	if err != nil {
		return nil, err
	}
	s := new(schema)
	if s.doc, err = document(m, row, own); err != nil {
		return nil, err
	}
	if s.served, err = appendJSON(nil, s.doc); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if s.compile, err = compilerOf(s.served, check); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if s.validator, err = s.compile(""); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s.shape, err = shapeOf(s.doc)
	return s, err
}

// document adds the fields that every operation has.
func document(m *Model, row Endpoint, own yaml.MapSlice) (yaml.MapSlice, error) {
	doc := yaml.MapSlice{
		{Key: "$schema", Value: "https://json-schema.org/draft/2020-12/schema"},
		{Key: "title", Value: m.Canonical},
	}
	if m.Description != "" {
		doc = append(doc, yaml.MapItem{Key: "description", Value: m.Description})
	}
	doc = append(doc, yaml.MapItem{Key: "type", Value: "object"})
	var (
		properties yaml.MapSlice
		required   []any
	)
	if !row.Fixed {
		properties = yaml.MapSlice{{Key: "model", Value: yaml.MapSlice{
			{Key: "const", Value: m.ID},
			{Key: "title", Value: "Model"},
			{Key: "description", Value: "The model's id."},
		}}}
	}
	if !row.Fixed && row.Model == "" {
		required = []any{"model"}
	}
	var rest yaml.MapSlice
	common := commonFields()
	if facts, _ := m.Type.Facts(); !facts.Task { // there is no task to keep them with
		common = nil
	}
	for _, entry := range own {
		switch key := fmt.Sprint(entry.Key); key {
		case "properties":
			fields, ok := entry.Value.(yaml.MapSlice)
			if !ok {
				return nil, fmt.Errorf("schema: properties must be a map")
			}
			for _, field := range fields {
				switch name := fmt.Sprint(field.Key); {
				case name == metadataField:
					var err error
					if common, err = withMetadata(common, field.Value); err != nil {
						return nil, err
					}
				case slices.Contains(everywhere, name):
					return nil, fmt.Errorf("schema: every model has the field %s, leave it out", name)
				default:
					properties = append(properties, field)
				}
			}
		case "required":
			fields, ok := entry.Value.([]any)
			if !ok {
				return nil, fmt.Errorf("schema: required must be a list")
			}
			required = append(required, fields...)
		case "$schema", "$id", "title", "description", "type", "additionalProperties":
			return nil, fmt.Errorf("schema: %s is the same for every model, leave it out", key)
		default:
			rest = append(rest, entry)
		}
	}
	properties = append(properties, common...)
	doc = append(doc, yaml.MapItem{Key: "properties", Value: properties})
	if len(required) > 0 {
		doc = append(doc, yaml.MapItem{Key: "required", Value: required})
	}
	doc = append(doc, rest...)
	return append(doc, yaml.MapItem{Key: "additionalProperties", Value: true}), nil
}

// metadataField holds the client's own data, and the inputs of some models.
const metadataField = "metadata"

// referenceField is the field in metadata that every request may have.
const referenceField = "reference"

// everywhere are the fields of all requests that do not affect the result, except for the inputs
// of a model in metadata.
var everywhere = []string{"model", "webhook", metadataField}

// commonFields are the fields that every submit of a task takes in addition to the model's own.
func commonFields() yaml.MapSlice {
	return yaml.MapSlice{
		{Key: "webhook", Value: yaml.MapSlice{
			{Key: "type", Value: "string"},
			{Key: "title", Value: "Webhook"},
			{Key: "description", Value: "Base URL; the finished task is posted to it with /callback appended."},
			{Key: "examples", Value: []any{"https://example.com/hooks"}},
		}},
		{Key: metadataField, Value: yaml.MapSlice{
			{Key: "type", Value: "object"},
			{Key: "title", Value: "Metadata"},
			{Key: "description", Value: "What is to be kept with the task; it does not change the result."},
			{Key: "examples", Value: []any{yaml.MapSlice{{Key: referenceField, Value: "order-1234"}}}},
			{Key: "properties", Value: yaml.MapSlice{{Key: referenceField, Value: yaml.MapSlice{
				{Key: "type", Value: "string"},
				{Key: "maxLength", Value: 255},
				{Key: "title", Value: "Reference"},
				{Key: "description", Value: "Your own reference; tasks can be listed by it."},
				{Key: "examples", Value: []any{"order-1234"}},
			}}}},
			{Key: "additionalProperties", Value: true},
		}},
	}
}

// withMetadata adds an operation's inputs in metadata. The file may only have properties there.
func withMetadata(common yaml.MapSlice, own any) (yaml.MapSlice, error) {
	if common == nil {
		return nil, fmt.Errorf("schema: metadata: there is no task to keep it with")
	}
	node, _ := own.(yaml.MapSlice)
	inputs, ok := child(node, "properties").(yaml.MapSlice)
	if !ok || len(node) != 1 || len(inputs) == 0 {
		return nil, fmt.Errorf("schema: metadata takes properties and nothing else: the rest is the same for every model")
	}
	at := indexOf(common, metadataField)
	metadata, _ := common[at].Value.(yaml.MapSlice)
	i := indexOf(metadata, "properties")
	all, _ := metadata[i].Value.(yaml.MapSlice)
	for _, input := range inputs {
		if name := fmt.Sprint(input.Key); indexOf(all, name) >= 0 {
			return nil, fmt.Errorf("schema: metadata: every model has %s, leave it out", name)
		}
		all = append(all, input)
	}
	metadata[i].Value = all
	metadata[indexOf(metadata, "description")].Value = "What is to be kept with the task, and what the model takes here."
	common[at].Value = metadata
	return common, nil
}

// compilerOf returns a function that compiles the schema or a part of it. check checks media
// URLs.
func compilerOf(raw json.RawMessage, check MediaURLCheck) (func(pointer string) (*jsonschema.Schema, error), error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	const location = "mem:///schema.json"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	for name, checkText := range map[string]func(string) error{formatMediaURL: check, formatImageData: checkImageData} {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(v any) error {
			if text, ok := v.(string); ok {
				return checkText(text)
			}
			return nil
		}})
	}
	if err := c.AddResource(location, doc); err != nil {
		return nil, err
	}
	return func(pointer string) (*jsonschema.Schema, error) { return c.Compile(location + "#" + pointer) }, nil
}

// appendJSON writes a decoded YAML value as JSON with its keys in order.
func appendJSON(b []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case yaml.MapSlice:
		b = append(b, '{')
		for i, entry := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, fmt.Sprint(entry.Key)); err != nil {
				return nil, err
			}
			if b, err = appendJSON(append(b, ':'), entry.Value); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, item); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	default:
		text, err := plainJSON(v)
		return append(b, text...), err
	}
}

// plainJSON is json.Marshal without escaping for HTML: prompts contain < and >.
func plainJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// jsonValue converts a decoded YAML value to what a JSON decoder would return.
func jsonValue(v any) any {
	switch v := v.(type) {
	case yaml.MapSlice:
		out := make(map[string]any, len(v))
		for _, entry := range v {
			out[fmt.Sprint(entry.Key)] = jsonValue(entry.Value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = jsonValue(v[i])
		}
		return out
	case int, int64, uint64, float64:
		return numberOf(v)
	default:
		return v
	}
}

func numberOf(v any) json.Number {
	if f, ok := v.(float64); ok {
		return normalNumber(json.Number(strconv.FormatFloat(f, 'g', -1, 64)))
	}
	return normalNumber(json.Number(fmt.Sprint(v)))
}

func stringsOf(v any) []string {
	list, ok := v.([]any)
	if !ok {
		return []string{fmt.Sprint(v)}
	}
	out := make([]string, len(list))
	for i := range list {
		out[i] = fmt.Sprint(list[i])
	}
	return out
}
