package api

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/mediagate/mediagate/api/openapi"
	"github.com/mediagate/mediagate/catalog"
)

// addBody adds what the route takes: the body of each model of its endpoint,
// or of all endpoints for the quote.
func (d *describer) addBody(r route, o *openapi.Operation) error {
	if r.body == bodyNone {
		return nil
	}
	if r.body == bodyForm {
		o.RequestBody = uploadBody()
		return nil
	}
	media := &openapi.MediaType{}
	var err error
	switch {
	case r.about.body != nil:
		err = d.plain(r, media)
	case r.path == quotePath:
		err = d.quoted(r, media)
	default:
		err = d.submitted(r, media)
	}
	o.RequestBody = &openapi.RequestBody{
		Required: r.body != bodyMaybe, Content: openapi.JSONContent(media),
		Description: "JSON, whatever the Content-Type says.",
	}
	return err
}

// plain is a body of which the description has an example.
func (d *describer) plain(r route, media *openapi.MediaType) error {
	media.Schema = d.reflector.Of(r.about.body)
	value, err := openapi.Marshal(r.about.body)
	media.Examples.Set("example1", &openapi.Example{Value: value})
	return err
}

// uploadBody is a form with one file.
func uploadBody() *openapi.RequestBody {
	file := openapi.Binary()
	file.Description = "The image. Exactly one; other fields are ignored."
	return &openapi.RequestBody{
		Required: true, Description: "A form whose Content-Type names its boundary.",
		Content: openapi.Map[*openapi.MediaType]{{Name: "multipart/form-data", Value: &openapi.MediaType{
			Schema: &openapi.Schema{
				Type: "object", Required: []string{uploadField},
				Properties: openapi.Map[*openapi.Schema]{{Name: uploadField, Value: file}},
			},
			Encoding: openapi.Map[openapi.Encoding]{{Name: uploadField, Value: openapi.Encoding{ContentType: strings.Join(words(uploadFormats), ", ")}}},
		}}},
	}
}

// oneOfTheModels says which bodies there are. Models that are passed on to a
// vendor are for the keys that name them, so this document does not.
const oneOfTheModels = "One of the models' requests, told apart by model. A model of no catalog, which a key must name, takes what its contract says."

// submitted is the body of a submit: one of the models' schemas.
func (d *describer) submitted(r route, media *openapi.MediaType) error {
	name := r.about.schemaName()
	media.Schema = openapi.RefTo(name)
	one := &openapi.Schema{Description: oneOfTheModels}
	var operations []*catalog.Operation
	for _, m := range d.models.Models() {
		if operation, ok := m.Operation(r.path); ok {
			operations = append(operations, operation)
		}
	}
	if len(operations) != 1 { // else its schema has that name
		d.doc.Components.Schemas.Set(name, one)
	}
	for _, operation := range operations {
		component, id := name, operation.Model.ID
		if len(operations) > 1 {
			component = d.free(name + "." + componentName(id))
		}
		schema, err := d.library.Embed(operation.Schema(), component)
		if err != nil {
			return err
		}
		d.doc.Components.Schemas.Set(component, schema)
		one.OneOf = append(one.OneOf, openapi.RefTo(component))
		if value := exampleBody(operation); value != nil {
			media.Examples.Set(id, &openapi.Example{Summary: "The least that " + id + " takes.", Value: value})
		}
	}
	if len(operations) == 0 { // no model is switched on
		one.Type = "object"
	}
	return nil
}

// quoted is the body of a quote: a submit's, with its path.
func (d *describer) quoted(r route, media *openapi.MediaType) error {
	one := &openapi.Schema{Description: "The body of a submit, with the path that it is for."}
	for _, endpoint := range d.models.Endpoints() {
		submit, ok := d.submits[endpoint.Path]
		if !ok {
			continue
		}
		one.OneOf = append(one.OneOf, &openapi.Schema{AllOf: []*openapi.Schema{
			{
				Type: "object", Required: []string{"endpoint"},
				Properties: openapi.Map[*openapi.Schema]{{Name: "endpoint", Value: &openapi.Schema{
					Const: endpoint.Path, Description: "The path of the submit.",
				}}},
			},
			openapi.RefTo(submit),
		}})
	}
	name := r.about.schemaName()
	d.doc.Components.Schemas.Set(name, one)
	media.Schema = openapi.RefTo(name)
	return nil
}

// componentName is a model's id in the letters that a component's name may
// have.
func componentName(id string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		default:
			return '_'
		}
	}, id)
}

// free is the name of a component that is not there yet.
func (d *describer) free(name string) string {
	for {
		if _, taken := d.doc.Components.Schemas.Get(name); !taken {
			return name
		}
		name += "_"
	}
}

// exampleBody is a request with as little as the operation takes, written from
// its schema: nil where the schema does not say enough.
func exampleBody(o *catalog.Operation) json.RawMessage {
	var schema struct {
		Properties map[string]exampleSchema `json:"properties"`
		Required   []string                 `json:"required"`
		AnyOf      []struct {
			Required []string `json:"required"`
		} `json:"anyOf"`
	}
	if err := json.Unmarshal(o.Schema(), &schema); err != nil {
		return nil
	}
	names := schema.Required
	if len(schema.AnyOf) > 0 { // one of which is needed besides
		names = append(names, schema.AnyOf[0].Required...)
	}
	names = append(names, "prompt") // where it is not required, something else would be
	var body openapi.Map[json.RawMessage]
	for _, name := range names {
		property, ok := schema.Properties[name]
		if !ok {
			continue
		}
		value := property.value()
		if value == nil {
			return nil
		}
		body.Set(name, value)
	}
	raw, err := openapi.Marshal(body)
	if err != nil {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil
	}
	if _, err := o.Accept(object); err != nil {
		return nil
	}
	return raw
}

// exampleSchema is what a schema says of values that it takes.
type exampleSchema struct {
	Const    json.RawMessage   `json:"const"`
	Examples []json.RawMessage `json:"examples"`
	Default  json.RawMessage   `json:"default"`
	Enum     []json.RawMessage `json:"enum"`
}

func (s exampleSchema) value() json.RawMessage {
	switch {
	case s.Const != nil:
		return s.Const
	case len(s.Examples) > 0:
		return s.Examples[0]
	case s.Default != nil:
		return s.Default
	case len(s.Enum) > 0:
		return s.Enum[0]
	default:
		return nil
	}
}
