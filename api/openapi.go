package api

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/openapi"
	"github.com/mediagate/mediagate/catalog"
)

// openAPIFile is the document without the parts that follow from the catalog: the request schemas
// of the submits and of the quote.
//
//go:embed openapi.yaml
var openAPIFile []byte

// adminOpenAPIFile is the document of the admin API. It takes the components that it lacks from
// openAPIFile.
//
//go:embed openapi_admin.yaml
var adminOpenAPIFile []byte

// openAPIText is the document as JSON. Parsing the YAML takes far longer than adding a catalog,
// so it is done only once.
var openAPIText = sync.OnceValues(func() ([]byte, error) { return yaml.YAMLToJSON(openAPIFile) })

type object map[string]any

// describe adds a catalog to the document. Passed-through models are not in it, since only keys
// that name them may use them. An empty address stands for the server that serves the document.
func describe(models *catalog.Catalog, version, address string) ([]byte, error) {
	text, err := openAPIText()
	if err != nil {
		return nil, err
	}
	doc, err := openapi.Members(text)
	if err != nil {
		return nil, err
	}
	info, _ := doc.Get("info")
	paths, _ := doc.Get("paths")
	components, _ := doc.Get("components")
	d := &describer{models: models}
	d.library.Components = &d.schemas
	if d.paths, err = openapi.Members(paths); err != nil {
		return nil, err
	}
	if info, err = openapi.Edit(
		info, func(json.RawMessage) (any, error) { return cmp.Or(version, "dev"), nil }, "version",
	); err != nil {
		return nil, err
	}
	components, err = openapi.Edit(components, func(schemas json.RawMessage) (any, error) {
		if d.schemas, err = openapi.Members(schemas); err == nil {
			err = d.requests()
		}
		return d.schemas, err
	}, "schemas")
	if err != nil {
		return nil, err
	}
	if paths, err = openapi.Marshal(d.paths); err != nil {
		return nil, err
	}
	servers, err := openapi.Marshal([]any{object{"url": cmp.Or(address, "/")}})
	if err != nil {
		return nil, err
	}
	doc.Set("info", info)
	doc.Set("paths", paths)
	doc.Set("components", components)
	doc.Set("servers", servers)
	return openapi.Marshal(doc)
}

type describer struct {
	models  *catalog.Catalog
	paths   openapi.Map[json.RawMessage]
	schemas openapi.Map[json.RawMessage] // components.schemas
	library openapi.Library
}

// requests describes the bodies of the submits and of the quote.
func (d *describer) requests() error {
	var quotes []any
	for _, endpoint := range catalog.Endpoints() {
		name, err := d.submitted(endpoint.Path)
		if err != nil {
			return err
		}
		quotes = append(quotes, object{"allOf": []any{
			object{"type": "object", "required": []string{"endpoint"}, "properties": object{
				"endpoint": object{"const": endpoint.Path, "description": "The path of the submit."},
			}},
			openapi.RefTo(name),
		}})
	}
	name, err := d.bodyOf(quotePath, nil)
	if err != nil {
		return err
	}
	return d.component(name, object{"description": "The body of a submit, with the path that it is for.", "oneOf": quotes})
}

// bodyOf names the component for the body of a POST, and adds the examples to that body.
func (d *describer) bodyOf(path string, examples openapi.Map[any]) (name string, err error) {
	item, _ := d.paths.Get(path)
	item, err = openapi.Edit(item, func(text json.RawMessage) (any, error) {
		var body struct {
			Schema struct {
				Ref string `json:"$ref"`
			} `json:"schema"`
			Examples openapi.Map[any] `json:"examples,omitempty"`
		}
		err := json.Unmarshal(text, &body)
		name, body.Examples = openapi.NameOf(body.Schema.Ref), examples
		return body, err
	}, "post", "requestBody", "content", "application/json")
	d.paths.Set(path, item)
	return name, err
}

// component adds a schema to the components.
func (d *describer) component(name string, schema any) error {
	text, err := openapi.Marshal(schema)
	d.schemas.Set(name, text)
	return err
}

// submitted adds the component that describes the body of an endpoint, and returns its name. The body
// matches the schema of one of the endpoint's models.
func (d *describer) submitted(path string) (name string, err error) {
	var operations []*catalog.Operation
	var examples openapi.Map[any]
	for _, m := range d.models.Models() {
		operation, ok := m.Operation(path)
		if !ok {
			continue
		}
		operations = append(operations, operation)
		if value := exampleBody(operation); value != nil {
			examples.Set(m.ID, object{"summary": "The least that " + m.ID + " takes.", "value": value})
		}
	}
	if name, err = d.bodyOf(path, examples); err != nil {
		return "", err
	}
	var one []json.RawMessage
	for _, operation := range operations {
		component := name
		if len(operations) > 1 {
			component += "." + componentName(operation.Model.ID)
		}
		schema, err := d.library.Embed(operation.Schema(), component)
		if err != nil {
			return "", err
		}
		d.schemas.Set(component, schema)
		one = append(one, openapi.RefTo(component))
	}
	about := object{"description": "One of the models' requests, told apart by model. " +
		"A model of no catalog, which a key must name, takes what its contract says."}
	switch len(operations) {
	case 0: // all models are switched off
		about["type"] = "object"
	case 1: // the component is the model's own schema
		return name, nil
	default:
		about["oneOf"] = one
	}
	return name, d.component(name, about)
}

// componentName replaces the characters of a model id that the name of a component must not have.
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

// exampleBody builds a minimal request from the operation's schema, or returns nil if the schema
// does not say enough.
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
	if len(schema.AnyOf) > 0 { // one of these is required, too
		names = append(names, schema.AnyOf[0].Required...)
	}
	names = append(names, "prompt") // even where it is optional: a request without a prompt would need some other field
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

// exampleSchema holds the keywords of a schema from which a value can be taken.
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

// publishedDocument renders the OpenAPI document of a catalog.
func (s *Server) publishedDocument(models *catalog.Catalog) (*published, error) {
	text, err := describe(models, s.cfg.Version, s.cfg.PublicURL)
	if err != nil {
		return nil, &mediagate.Error{Kind: mediagate.KindInternal, Message: "writing the OpenAPI document", Err: err}
	}
	return publish(text), nil
}

// describeAdmin returns the document of the admin API.
func describeAdmin(version string) ([]byte, error) {
	shared, err := openAPIText()
	if err != nil {
		return nil, err
	}
	own, err := yaml.YAMLToJSON(adminOpenAPIFile)
	if err != nil {
		return nil, err
	}
	doc, err := openapi.Complete(own, shared)
	if err != nil {
		return nil, err
	}
	doc, err = openapi.Edit(
		doc, func(json.RawMessage) (any, error) { return cmp.Or(version, "dev"), nil }, "info", "version",
	)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(doc)
}

// publishedAdminDocument renders the document of the admin API.
func (s *Server) publishedAdminDocument() (*published, error) {
	text, err := describeAdmin(s.cfg.Version)
	if err != nil {
		return nil, &mediagate.Error{
			Kind: mediagate.KindInternal, Message: "writing the admin API's OpenAPI document", Err: err,
		}
	}
	p := publish(text)
	p.format, p.caching = "application/yaml", "private, max-age=60"
	return p, nil
}

func (s *Server) handleAdminOpenAPI(c *call) error {
	text, err := s.adminDocument()
	if err != nil {
		return err
	}
	c.publish(text)
	return nil
}

func (s *Server) handleOpenAPI(c *call) error {
	text, err := c.models.document()
	if err != nil {
		return err
	}
	c.publish(text)
	return nil
}
