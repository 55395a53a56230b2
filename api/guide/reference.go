package guide

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/mediagate/mediagate/api/openapi"
)

// document is the part of an OpenAPI document that the reference shows.
type document struct {
	Tags []struct {
		Name        string
		Description string
	}
	Paths      json.RawMessage
	Components struct {
		Schemas    map[string]schema
		Parameters map[string]parameter
		Responses  map[string]response
	}
}

type operation struct {
	Method, Path string `json:"-"`
	Tags         []string
	OperationID  string `json:"operationId"`
	Summary      string
	Description  string
	Parameters   []parameter
	RequestBody  struct {
		Description string
		Content     map[string]struct{ Schema schema }
	} `json:"requestBody"`
	Responses map[string]response
}

type parameter struct {
	Ref         string `json:"$ref"`
	Name        string
	In          string
	Description string
	Required    bool
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]struct{ Schema schema }
}

type schema struct {
	Ref         string `json:"$ref"`
	Type        any
	Description string
	Properties  json.RawMessage
	Required    []string
}

// field is a property of a schema.
type field struct {
	Name, Kind, Description string
	Required                bool
}

// section holds the operations of a tag.
type section struct {
	Name, Description string
	Operations        []shown
}

type shown struct {
	operation
	Fields  []field
	Answers []answer
}

type answer struct {
	Status, Description string
	Fields              []field
}

// Reference renders an OpenAPI document: its operations by tag, in the document's order.
func (g *Guide) Reference(text []byte) ([]byte, error) {
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	operations, err := doc.operations()
	if err != nil {
		return nil, err
	}
	var sections []section
	for _, tag := range doc.Tags {
		s := section{Name: tag.Name, Description: tag.Description}
		for _, o := range operations {
			if slices.Contains(o.Tags, tag.Name) {
				s.Operations = append(s.Operations, doc.shown(o))
			}
		}
		sections = append(sections, s)
	}
	var out bytes.Buffer
	if err := referenceLayout.Execute(&out, sections); err != nil {
		return nil, err
	}
	return g.page("Every call", template.HTML(out.String())) //nolint:gosec // a template made it
}

// operations returns the operations of all paths, in their order.
func (d document) operations() ([]operation, error) {
	paths, err := openapi.Members(d.Paths)
	if err != nil {
		return nil, err
	}
	var all []operation
	for _, path := range paths {
		methods, err := openapi.Members(path.Value)
		if err != nil {
			return nil, err
		}
		for _, method := range methods {
			o := operation{Method: strings.ToUpper(method.Name), Path: path.Name}
			if err := json.Unmarshal(method.Value, &o); err != nil {
				return nil, fmt.Errorf("%s %s: %w", o.Method, o.Path, err)
			}
			all = append(all, o)
		}
	}
	return all, nil
}

func (d document) shown(o operation) shown {
	for i, p := range o.Parameters {
		if p.Ref != "" {
			o.Parameters[i] = d.Components.Parameters[openapi.NameOf(p.Ref)]
		}
	}
	s := shown{operation: o, Fields: d.fields(o.RequestBody.Content["application/json"].Schema)}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		r := o.Responses[status]
		if r.Ref != "" {
			r = d.Components.Responses[openapi.NameOf(r.Ref)]
		}
		a := answer{Status: status, Description: r.Description}
		if status < "300" {
			a.Fields = d.fields(r.Content["application/json"].Schema)
		}
		s.Answers = append(s.Answers, a)
	}
	return s
}

// fields returns the properties of a schema. A schema that is one of several has none.
func (d document) fields(s schema) []field {
	if s.Ref != "" {
		s = d.Components.Schemas[openapi.NameOf(s.Ref)]
	}
	properties, err := openapi.Members(s.Properties)
	if err != nil {
		return nil
	}
	fields := make([]field, 0, len(properties))
	for _, p := range properties {
		var of schema
		if json.Unmarshal(p.Value, &of) != nil {
			continue
		}
		f := field{Name: p.Name, Description: of.Description, Required: slices.Contains(s.Required, p.Name)}
		switch {
		case of.Ref != "":
			f.Kind = openapi.NameOf(of.Ref)
		case of.Type != nil:
			f.Kind = fmt.Sprint(of.Type)
		}
		fields = append(fields, f)
	}
	return fields
}

var referenceLayout = template.Must(template.New("reference").Parse(`<h1>Every call</h1>
<p>The same as <a href="/openapi.json">OpenAPI</a>, for people. What a submit takes depends on its model: see the <a href="` + Root + `/models">models</a>.</p>
{{define "fields"}}{{if .}}<table><thead><tr><th>field</th><th>type</th><th>meaning</th></tr></thead><tbody>
{{range .}}<tr><td><code>{{.Name}}</code>{{if .Required}} *{{end}}</td><td>{{.Kind}}</td><td>{{.Description}}</td></tr>
{{end}}</tbody></table>{{end}}{{end}}
{{range .}}{{if .Operations}}<h2>{{.Name}}</h2>
<p>{{.Description}}</p>
{{range .Operations}}<h3 id="{{.OperationID}}">{{.Summary}}</h3>
<p><code>{{.Method}} {{.Path}}</code></p>
{{with .Description}}<p>{{.}}</p>{{end}}
{{if .Parameters}}<table><thead><tr><th>parameter</th><th>in</th><th>meaning</th></tr></thead><tbody>
{{range .Parameters}}<tr><td><code>{{.Name}}</code>{{if .Required}} *{{end}}</td><td>{{.In}}</td><td>{{.Description}}</td></tr>
{{end}}</tbody></table>{{end}}
{{template "fields" .Fields}}
<table><thead><tr><th>answer</th><th>meaning</th></tr></thead><tbody>
{{range .Answers}}<tr><td>{{.Status}}</td><td>{{.Description}}{{template "fields" .Fields}}</td></tr>
{{end}}</tbody></table>
{{end}}{{end}}{{end}}`))
