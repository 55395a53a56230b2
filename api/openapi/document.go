package openapi

import (
	"bytes"
	"encoding/json"
)

// Version is the version of the specification that documents follow.
const Version = "3.1.1"

// Document is a whole description of an API.
type Document struct {
	OpenAPI    string               `json:"openapi"`
	Info       Info                 `json:"info"`
	Servers    []Server             `json:"servers"`
	Security   []Requirement        `json:"security"`
	Tags       []Tag                `json:"tags"`
	Paths      Map[Map[*Operation]] `json:"paths"`
	Webhooks   Map[Map[*Operation]] `json:"webhooks"`
	Components Components           `json:"components"`
}

// Info says what is described.
type Info struct {
	Title       string  `json:"title"`
	Summary     string  `json:"summary,omitempty"`
	Description string  `json:"description,omitempty"`
	Version     string  `json:"version"`
	License     License `json:"license"`
}

// License names a license by its SPDX identifier.
type License struct {
	Name       string `json:"name"`
	Identifier string `json:"identifier"`
}

// Server is where the API is.
type Server struct {
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
}

// Tag groups operations.
type Tag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Requirement names the security schemes of which a call must satisfy all. An
// empty list of them is for everybody.
type Requirement map[string][]string

// Operation is one method of a path.
type Operation struct {
	ID          string         `json:"operationId"`
	Tags        []string       `json:"tags"`
	Summary     string         `json:"summary"`
	Description string         `json:"description,omitempty"`
	Parameters  []Parameter    `json:"parameters,omitempty"`
	RequestBody *RequestBody   `json:"requestBody,omitempty"`
	Responses   Map[*Response] `json:"responses"`
	Security    *[]Requirement `json:"security,omitempty"` // nil: the document's
}

// The places of a parameter.
const (
	InPath   = "path"
	InQuery  = "query"
	InHeader = "header"
)

// Parameter is what a call takes beside its body.
type Parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Description string  `json:"description"`
	Required    bool    `json:"required,omitempty"`
	Schema      *Schema `json:"schema"`
}

// RequestBody is the body of a call.
type RequestBody struct {
	Description string          `json:"description,omitempty"`
	Required    bool            `json:"required,omitempty"`
	Content     Map[*MediaType] `json:"content"`
}

// MediaType is a body in one format.
type MediaType struct {
	Schema   *Schema       `json:"schema"`
	Examples Map[*Example] `json:"examples,omitempty"`
	Encoding Map[Encoding] `json:"encoding,omitempty"`
}

// Encoding says what a part of a form is.
type Encoding struct {
	ContentType string `json:"contentType"`
}

// Example is a body as it may be.
type Example struct {
	Summary string          `json:"summary,omitempty"`
	Value   json.RawMessage `json:"value"`
}

// Response is an answer, or a reference to one.
type Response struct {
	Ref         string          `json:"$ref,omitempty"`
	Description string          `json:"description,omitempty"`
	Headers     Map[*Header]    `json:"headers,omitempty"`
	Content     Map[*MediaType] `json:"content,omitempty"`
}

// Header is a header of an answer, or a reference to one.
type Header struct {
	Ref         string  `json:"$ref,omitempty"`
	Description string  `json:"description,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Schema      *Schema `json:"schema,omitempty"`
}

// SecurityScheme is a way to show a key.
type SecurityScheme struct {
	Type        string `json:"type"`
	Description string `json:"description"`
	Scheme      string `json:"scheme,omitempty"`
	Name        string `json:"name,omitempty"`
	In          string `json:"in,omitempty"`
}

// Components are the parts that others refer to.
type Components struct {
	Schemas         Map[*Schema]        `json:"schemas"`
	Responses       Map[*Response]      `json:"responses"`
	Headers         Map[*Header]        `json:"headers"`
	SecuritySchemes Map[SecurityScheme] `json:"securitySchemes"`
}

// JSON is the media type of JSON.
const JSON = "application/json"

// Content is a body of one media type.
func Content(mediaType string, m *MediaType) Map[*MediaType] {
	return Map[*MediaType]{{mediaType, m}}
}

// JSONContent is a body of JSON.
func JSONContent(m *MediaType) Map[*MediaType] { return Content(JSON, m) }

// Binary is the schema of a file. Generators know it by its format.
func Binary() *Schema { return &Schema{Type: "string", Format: "binary"} }

// Map is a JSON object that keeps the order in which it was made.
type Map[T any] []Entry[T]

// Entry is a member of a Map.
type Entry[T any] struct {
	Name  string
	Value T
}

// Get finds a member.
func (m Map[T]) Get(name string) (value T, ok bool) {
	for _, e := range m {
		if e.Name == name {
			return e.Value, true
		}
	}
	return value, false
}

// Set adds a member, or replaces it.
func (m *Map[T]) Set(name string, value T) {
	for i := range *m {
		if (*m)[i].Name == name {
			(*m)[i].Value = value
			return
		}
	}
	*m = append(*m, Entry[T]{name, value})
}

// MarshalJSON writes the members in their order.
func (m Map[T]) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, e := range m {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := Marshal(e.Name)
		if err != nil {
			return nil, err
		}
		value, err := Marshal(e.Value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// Marshal is json.Marshal without the escaping that is meant for HTML.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}
