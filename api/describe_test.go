package api

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/api/openapi"
	"github.com/mediagate/mediagate/api/openapitest"
	"github.com/mediagate/mediagate/catalog"
)

// Each public route is described, each description has a route, and it says
// all that the document needs.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	about, ids, operations := descriptions(), map[string]bool{}, map[string]bool{}
	braces := regexp.MustCompile(`:(\w+)`)
	for _, r := range routes() {
		name := r.method + " " + r.path
		d := about[name]
		delete(about, name)
		switch {
		case r.access == accessAdmin, r.access == accessVendors:
			if d != nil {
				t.Errorf("%s is no client's, and described", name)
			}
			continue
		case d == nil:
			t.Errorf("%s has no description", name)
			continue
		}
		if d.id == "" || d.summary == "" || strings.HasSuffix(d.summary, ".") {
			t.Errorf("%s: id %q, summary %q", name, d.id, d.summary)
		}
		if ids[d.id] {
			t.Errorf("%s: the id %s is there twice", name, d.id)
		}
		ids[d.id] = true
		operations[braces.ReplaceAllString(name, "{$1}")] = true
		if !slices.ContainsFunc(tags, func(tag openapi.Tag) bool { return tag.Name == string(d.tag) }) {
			t.Errorf("%s: tag %q", name, d.tag)
		}
		if !slices.ContainsFunc(d.answers, func(a answer) bool { return a.status/100 == 2 }) {
			t.Errorf("%s has no answer but errors", name)
		}
	}
	for name := range about {
		t.Errorf("%s is described and no route", name)
	}
	models, err := catalog.Load("")
	if err != nil {
		t.Fatal(err)
	}
	text, err := describe(models, "", "")
	if err != nil {
		t.Fatal(err)
	}
	contract, err := openapitest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(operations)), contract.Operations()); diff != "" {
		t.Errorf("the document (-routes +described):\n%s", diff)
	}
	for kind, r := range renderings {
		if words := errorWords[kind]; (words.about == "" || words.message == "") && r.status != 405 && kind != 0 {
			t.Errorf("a %d has no words", r.status)
		}
	}
}

// What the handlers read is what is described: they see no other parameter.
func TestUndescribedParametersAreNotRead(t *testing.T) {
	t.Parallel()
	r := route{about: &description{query: []parameter{textParameter("known", "")}}}
	if !r.reads("known") || r.reads("other") || r.reads(keyParameter) {
		t.Errorf("a route reads known %t, other %t, key %t", r.reads("known"), r.reads("other"), r.reads(keyParameter))
	}
	r.access = accessLists
	if !r.reads(keyParameter) {
		t.Error("a model list does not read the key")
	}
	if !(route{}).reads("other") {
		t.Error("a route of operators does not read its parameters")
	}
}

// Every property of an answer has a description, and every word describes
// something.
func TestWords(t *testing.T) {
	t.Parallel()
	var words openapi.Words
	if err := yaml.UnmarshalWithOptions(wordsFile, &words, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	models, err := catalog.Load("")
	if err != nil {
		t.Fatal(err)
	}
	text, err := describe(models, "", "")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Description string
				Properties  map[string]map[string]any
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	// Of envelopes that no route has today.
	unused := []string{"ErrorB", "ErrorUpload"}
	for name, w := range words {
		schema, ok := doc.Components.Schemas[name]
		if !ok {
			if !slices.Contains(unused, name) {
				t.Errorf("%s is no schema of the document", name)
			}
			continue
		}
		if schema.Description == "" {
			t.Errorf("%s has no description", name)
		}
		for property := range w.Properties {
			if schema.Properties[property] == nil {
				t.Errorf("%s has no property %s", name, property)
			}
		}
		for property, keywords := range schema.Properties {
			if keywords["description"] == nil && keywords["const"] == nil {
				t.Errorf("%s.%s has no description", name, property)
			}
		}
	}
	// What is in no component has no words.
	var inline func(where string, v any)
	inline = func(where string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if v["properties"] != nil && v["additionalProperties"] == nil && !strings.Contains(where, "/allOf/") && !strings.Contains(where, "/examples/") {
				t.Errorf("%s is an object without words", where)
			}
			for key, value := range v {
				inline(where+"/"+key, value)
			}
		case []any:
			for _, item := range v {
				inline(where+"/", item)
			}
		}
	}
	var answers struct {
		Paths map[string]map[string]struct {
			Responses map[string]any
		}
	}
	if err := json.Unmarshal(text, &answers); err != nil {
		t.Fatal(err)
	}
	for path, item := range answers.Paths {
		for method, o := range item {
			for status, response := range o.Responses {
				inline(method+" "+path+" "+status, response)
			}
		}
	}
}

// Every model that we ship has an example of its requests.
func TestModelsHaveExamples(t *testing.T) {
	t.Parallel()
	models, err := catalog.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range models.Models() {
		for _, o := range m.Operations() {
			if exampleBody(o) == nil {
				t.Errorf("%s at %s has none", m.ID, o.Endpoint)
			}
		}
	}
}

// An example holds what a model must be given. Where that does not make a
// request that is taken, there is none.
func TestExampleBody(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ schema, want string }{
		"prompt": {`
        prompt: {title: P, description: P., type: string, examples: [a lighthouse, a boat]}
      required: [prompt]`, `{"model":"toy","prompt":"a lighthouse"}`},
		"a prompt that is not required": {`
        prompt: {title: P, description: P., type: string, examples: [a lighthouse]}
        size: {title: S, description: S., type: string, enum: [small, large]}
      anyOf: [{required: [prompt]}, {required: [size]}]`, `{"model":"toy","prompt":"a lighthouse"}`},
		"other values": {`
        size: {title: S, description: S., type: string, enum: [small, large]}
        loop: {title: L, description: L., type: boolean, default: true}
        tags: {title: T, description: T., type: array, items: {type: string}, examples: [[a, b]]}
      required: [size, loop, tags]`, `{"model":"toy","size":"small","loop":true,"tags":["a","b"]}`},
		"a value that the schema does not give": {`
        loop: {title: L, description: L., type: boolean}
      required: [loop]`, ""},
		"one of several besides": {`
        prompt: {title: P, description: P., type: string, examples: [a lighthouse]}
        size: {title: S, description: S., type: string, enum: [small, large]}
      required: [prompt]
      anyOf: [{required: [size]}]`, `{"model":"toy","prompt":"a lighthouse","size":"small"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := `id: toy
type: video
description: A toy.
operations:
  - endpoint: /v1/videos/generations
    schema:
      properties:` + test.schema + `
    price: {unit: song, rows: [{price: "1"}]}
    routes: [{provider: p, upstream: u, operation: o}]
    expected: 1s
    timeout: 1m
    on_unknown: park
    max_bytes: 1MiB
`
			if err := os.WriteFile(filepath.Join(dir, "toy.yaml"), []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			models, err := catalog.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			m, _ := models.Model("toy")
			if got := string(exampleBody(m.Operations()[0])); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
