// Package openapitest checks in tests what the gateway answers and sends against its OpenAPI
// document. It is stricter than clients may be: a status, a header or a field that the document
// does not describe is an error.
package openapitest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Contract is an OpenAPI document to check against.
type Contract struct {
	doc       map[string]any
	templates [][]string // of paths, as segments

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by their pointers
}

const location = "mem:///openapi.json"

// Parse reads a document.
func Parse(document []byte) (*Contract, error) {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	doc, ok := parsed.(map[string]any)
	if !ok {
		return nil, errors.New("openapitest: the document is no object")
	}
	c := &Contract{doc: doc, compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	if err := c.openExtended(document); err != nil {
		return nil, err
	}
	for _, schema := range c.object("components", "schemas") {
		closeObjects(schema)
	}
	for _, response := range c.object("components", "responses") {
		closeContent(response)
	}
	for _, paths := range []string{"paths", "webhooks"} {
		for path, item := range c.object(paths) {
			if paths == "paths" {
				c.templates = append(c.templates, strings.Split(path, "/"))
			}
			for _, operation := range members(item) {
				for _, response := range members(member(operation, "responses")) {
					closeContent(response)
				}
				if paths == "webhooks" {
					closeContent(member(operation, "requestBody"))
				}
			}
		}
	}
	return c, c.compiler.AddResource(location, parsed)
}

// Operations lists the described operations, as "GET /v1/tasks/{task_id}".
func (c *Contract) Operations() []string {
	var list []string
	for path, item := range c.object("paths") {
		for method := range members(item) {
			list = append(list, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(list)
	return list
}

// Answer is what a client got.
type Answer struct {
	Method, Path string // of the request, without its query
	Status       int
	Header       http.Header
	Body         []byte
}

// Check returns an error that lists where an answer differs from the document. It ignores paths
// that the document does not describe.
func (c *Contract) Check(a Answer) error {
	template := c.template(a.Path)
	if template == "" {
		return nil
	}
	method := strings.ToLower(a.Method)
	if method == "head" {
		method = "get"
	}
	operation, ok := c.object("paths", template)[method]
	if !ok {
		if a.Status == http.StatusMethodNotAllowed || method == "options" && a.Status == http.StatusNoContent {
			return nil
		}
		return fmt.Errorf("%s %s is not described, and answers %d", a.Method, a.Path, a.Status)
	}
	at := []string{"paths", template, method, "responses", strconv.Itoa(a.Status)}
	response := member(member(operation, "responses"), at[4])
	if ref, ok := member(response, "$ref").(string); ok {
		at = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
		response = c.object(at...)
	}
	problem := fmt.Errorf("the status is not described")
	if response != nil {
		problem = errors.Join(c.checkHeader(at, response, a.Header), c.checkBody(at, response, a))
	}
	if problem != nil {
		return fmt.Errorf("%s %s answers %d: %w\n%s", a.Method, a.Path, a.Status, problem, clip(a.Body))
	}
	return nil
}

func clip(text []byte) []byte {
	const most = 2000
	return text[:min(len(text), most)]
}

// CheckCallback returns an error that lists where a callback differs from the document.
func (c *Contract) CheckCallback(header http.Header, body []byte) error {
	return c.checkWebhook("taskEnded", header, body)
}

// CheckEvent returns an error that lists where an event for an endpoint differs from the document.
func (c *Contract) CheckEvent(header http.Header, body []byte) error {
	return c.checkWebhook("eventHappened", header, body)
}

func (c *Contract) checkWebhook(name string, header http.Header, body []byte) error {
	at := []string{"webhooks", name, "post"}
	operation := c.object(at...)
	parameters, _ := operation["parameters"].([]any)
	var problems []error
	for _, p := range parameters {
		name, _ := member(p, "name").(string)
		if member(p, "required") == true && len(header.Values(name)) != 1 {
			problems = append(problems, fmt.Errorf("header %s is missing", name))
		}
	}
	problems = append(problems, c.validate(body, append(at, "requestBody", "content", "application/json", "schema")))
	return errors.Join(problems...)
}

// CheckRequest returns an error if the operation refuses the body. It accepts fields that the
// schema does not describe, since clients may send them.
func (c *Contract) CheckRequest(method, path string, body []byte) error {
	return c.validate(
		body, []string{"paths", path, strings.ToLower(method), "requestBody", "content", "application/json", "schema"},
	)
}

// CheckExamples returns an error that names the examples of answers and bodies that their own
// schemas refuse. It also compiles the schemas of bodies without an example.
func (c *Contract) CheckExamples() error {
	var problems []error
	for name, response := range c.object("components", "responses") {
		problems = append(problems, c.checkExamples([]string{"components", "responses", name}, response))
	}
	for _, paths := range []string{"paths", "webhooks"} {
		for path, item := range c.object(paths) {
			for method, operation := range members(item) {
				at := []string{paths, path, method}
				problems = append(problems, c.checkExamples(append(at, "requestBody"), member(operation, "requestBody")))
				for status, response := range members(member(operation, "responses")) {
					problems = append(problems, c.checkExamples([]string{paths, path, method, "responses", status}, response))
				}
			}
		}
	}
	return errors.Join(problems...)
}

// checkExamples checks the examples of the bodies at a place in the document.
func (c *Contract) checkExamples(at []string, v any) error {
	var problems []error
	for name, media := range members(member(v, "content")) {
		place := append(slices.Clone(at), "content", name, "schema")
		if _, err := c.schema(place); err != nil {
			problems = append(problems, err)
		}
		for name, example := range members(member(media, "examples")) {
			text, err := json.Marshal(member(example, "value"))
			if err == nil {
				err = c.validate(text, place)
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("%v, %s: %w", at, name, err))
			}
		}
	}
	return errors.Join(problems...)
}

// ignoredHeaders need no description: they concern the connection, the encoding of the body,
// browsers and proxies.
var ignoredHeaders = []string{
	"Connection", "Content-Encoding", "Content-Length", "Content-Type", "Date", "Transfer-Encoding", "Vary",
	"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "X-Accel-Buffering",
}

func (c *Contract) checkHeader(place []string, response any, header http.Header) error {
	var problems []error
	described := map[string]bool{}
	for name, h := range members(member(response, "headers")) {
		described[http.CanonicalHeaderKey(name)] = true
		at := append(slices.Clone(place), "headers", name)
		if ref, ok := member(h, "$ref").(string); ok {
			at = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
			h = c.object(at...)
		}
		values := header.Values(name)
		switch {
		case len(values) == 0 && member(h, "required") == true:
			problems = append(problems, fmt.Errorf("header %s is missing", name))
		case len(values) > 0:
			text := []byte(values[0])
			if member(member(h, "schema"), "type") == "string" {
				text, _ = json.Marshal(values[0])
			}
			if err := c.validate(text, append(at, "schema")); err != nil {
				problems = append(problems, fmt.Errorf("header %s: %w", name, err))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if !described[name] && !slices.Contains(ignoredHeaders, name) {
			problems = append(problems, fmt.Errorf("header %s is not described", name))
		}
	}
	return errors.Join(problems...)
}

func (c *Contract) checkBody(at []string, response any, a Answer) error {
	content := members(member(response, "content"))
	switch {
	case a.Method == http.MethodHead && len(a.Body) == 0:
		return nil
	case len(content) == 0 && len(a.Body) > 0:
		return errors.New("no body is described")
	case len(content) == 0:
		return nil
	}
	format := a.Header.Get("Content-Type")
	if _, ok := content[format]; !ok {
		return fmt.Errorf("a body of the type %q is not described", format)
	}
	if !strings.HasSuffix(format, "json") {
		return nil // not described further
	}
	body := a.Body
	if a.Header.Get("Content-Encoding") == "gzip" {
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return err
		}
		if body, err = io.ReadAll(r); err != nil {
			return err
		}
	}
	return c.validate(body, append(slices.Clone(at), "content", format, "schema"))
}

// validate checks a JSON text against the schema at a place in the document.
func (c *Contract) validate(text []byte, at []string) error {
	schema, err := c.schema(at)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	return schema.Validate(value)
}

var pointer = strings.NewReplacer("~", "~0", "/", "~1", "%", "%25", "{", "%7B", "}", "%7D")

func (c *Contract) schema(at []string) (*jsonschema.Schema, error) {
	steps := make([]string, len(at))
	for i, step := range at {
		steps[i] = pointer.Replace(step)
	}
	place := location + "#/" + strings.Join(steps, "/")
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.compiled[place]; ok {
		return s, nil
	}
	s, err := c.compiler.Compile(place)
	if err == nil {
		c.compiled[place] = s
	}
	return s, err
}

// template returns the path of the document that matches a request's path, or "" if there is none.
func (c *Contract) template(path string) string {
	segments := strings.Split(path, "/")
	best, open := "", 0
	for _, t := range c.templates {
		if len(t) != len(segments) {
			continue
		}
		fits, parameters := true, 0
		for i := range t {
			if strings.HasPrefix(t[i], "{") {
				parameters++
				fits = fits && segments[i] != ""
			} else {
				fits = fits && t[i] == segments[i]
			}
		}
		if fits && (best == "" || parameters < open) {
			best, open = strings.Join(t, "/"), parameters
		}
	}
	return best
}

func (c *Contract) object(at ...string) map[string]any {
	var v any = c.doc
	for _, step := range at {
		v = member(v, step)
	}
	return members(v)
}

func members(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func member(v any, name string) any { return members(v)[name] }

// openExtended adds an open copy of all schemas to the document, and makes each allOf refer to that
// copy: a schema that another one extends must not refuse the fields that the other one adds. Parse
// later closes the extending schema as a whole.
func (c *Contract) openExtended(document []byte) error {
	copied, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return err
	}
	if components := c.object("components"); components != nil {
		components["open"] = member(member(copied, "components"), "schemas")
	}
	referToOpen(c.doc)
	return nil
}

func referToOpen(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			referToOpen(one)
		}
	case map[string]any:
		all, _ := v["allOf"].([]any)
		for _, one := range all {
			if ref, ok := member(one, "$ref").(string); ok {
				members(one)["$ref"] = strings.Replace(ref, "#/components/schemas/", "#/components/open/", 1)
			}
		}
		for _, one := range v {
			referToOpen(one)
		}
	}
}

func closeContent(v any) {
	for _, media := range members(member(v, "content")) {
		closeObjects(member(media, "schema"))
	}
}

// closeObjects makes each object with described properties refuse all other properties. It does not
// enter the parts of an allOf, since none of them describes the whole object. Instead the whole
// refuses unevaluated properties.
func closeObjects(v any) {
	s := members(v)
	if s == nil {
		return
	}
	_, said := s["additionalProperties"]
	properties := members(s["properties"])
	switch {
	case said:
	case s["allOf"] != nil:
		s["unevaluatedProperties"] = false
	case properties != nil:
		s["additionalProperties"] = false
	}
	for _, property := range properties {
		closeObjects(property)
	}
	closeObjects(s["items"])
	for _, name := range []string{"oneOf", "anyOf"} {
		list, _ := s[name].([]any)
		for _, one := range list {
			closeObjects(one)
		}
	}
}
