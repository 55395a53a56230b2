package openapitest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/api/openapitest"
)

const document = `{
  "openapi": "3.1.1",
  "paths": {
    "/things": {"post": {
      "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
      "responses": {"204": {"description": "Made."}}
    }},
    "/things/{id}": {"get": {"responses": {
      "200": {
        "description": "A thing.",
        "headers": {"X-Id": {"$ref": "#/components/headers/X-Id"}, "Retry-After": {"schema": {"type": "integer"}}},
        "content": {"application/json": {
          "schema": {"type": "object", "properties": {"data": {"$ref": "#/components/schemas/Thing"}}, "required": ["data"]},
          "examples": {"one": {"value": {"data": {"id": "a"}}}}
        }}
      },
      "404": {"$ref": "#/components/responses/Missing"}
    }}},
    "/things/more": {"get": {"responses": {"200": {"description": "More.", "content": {"application/json": {"schema": {
      "allOf": [{"$ref": "#/components/schemas/Thing"}, {"type": "object", "properties": {"more": {"type": "integer"}}}]
    }}}}}}},
    "/things/last": {"get": {"responses": {"204": {"description": "There is none."}}}}
  },
  "webhooks": {"taskEnded": {"post": {
    "parameters": [{"name": "webhook-id", "in": "header", "required": true}],
    "requestBody": {"content": {"application/json": {"schema": {"allOf": [{"$ref": "#/components/schemas/Thing"}, {"properties": {"part": false}}]}}}},
    "responses": {}
  }}},
  "components": {
    "headers": {"X-Id": {"required": true, "schema": {"type": "string", "pattern": "^r"}}},
    "responses": {"Missing": {"description": "None.", "content": {"application/json": {"schema": {
      "type": "object", "properties": {"error": {"allOf": [{"$ref": "#/components/schemas/Error"}, {"properties": {"code": {"const": 404}}}]}}
    }}}}},
    "schemas": {
      "Thing": {"type": "object", "properties": {"id": {"type": "string"}, "part": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}}, "required": ["id"]},
      "Error": {"type": "object", "properties": {"code": {"type": "integer"}, "message": {"type": "string"}}}
    }
  }
}`

func TestCheck(t *testing.T) {
	t.Parallel()
	c, err := openapitest.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	header := func(pairs ...string) http.Header {
		h := http.Header{"X-Id": {"r1"}, "Content-Type": {"application/json"}, "Content-Length": {"1"}}
		for i := 0; i < len(pairs); i += 2 {
			h.Del(pairs[i])
			if pairs[i+1] != "" {
				h.Set(pairs[i], pairs[i+1])
			}
		}
		return h
	}
	for name, test := range map[string]struct {
		method, path string
		status       int
		header       http.Header
		body         string
		want         string // in the error; empty: there is none
	}{
		"as described":              {"GET", "/things/a", 200, header(), `{"data":{"id":"a","part":[{"n":1}]}}`, ""},
		"its header":                {"HEAD", "/things/a", 200, header(), ``, ""},
		"a number in a header":      {"GET", "/things/a", 200, header("Retry-After", "3"), `{"data":{"id":"a"}}`, ""},
		"another path":              {"GET", "/others", 418, header(), `x`, ""},
		"an error":                  {"GET", "/things/a", 404, header("X-Id", ""), `{"error":{"code":404,"message":"none"}}`, ""},
		"the more literal path":     {"GET", "/things/last", 204, header("X-Id", ""), ``, ""},
		"another method":            {"PUT", "/things/a", 405, header(), `{}`, ""},
		"a preflight":               {"OPTIONS", "/things/a", 204, http.Header{}, ``, ""},
		"a new status":              {"GET", "/things/a", 500, header(), `{}`, "the status is not described"},
		"a new method":              {"DELETE", "/things/a", 200, header(), `{}`, "is not described, and answers 200"},
		"a new field":               {"GET", "/things/a", 200, header(), `{"data":{"id":"a","new":1}}`, "'new'"},
		"a new field at the top":    {"GET", "/things/a", 200, header(), `{"data":{"id":"a"},"new":1}`, "'new'"},
		"a new field in a list":     {"GET", "/things/a", 200, header(), `{"data":{"id":"a","part":[{"new":1}]}}`, "'new'"},
		"a new field of an error":   {"GET", "/things/a", 404, header("X-Id", ""), `{"error":{"code":404,"new":1}}`, "/error/new"},
		"what extends a schema":     {"GET", "/things/more", 200, header("X-Id", ""), `{"id":"a","more":1}`, ""},
		"and a new field of it":     {"GET", "/things/more", 200, header("X-Id", ""), `{"id":"a","more":1,"new":1}`, "/new"},
		"a wrong code":              {"GET", "/things/a", 404, header("X-Id", ""), `{"error":{"code":405}}`, "/error/code"},
		"a field that is missing":   {"GET", "/things/a", 200, header(), `{"data":{}}`, "'id'"},
		"no JSON":                   {"GET", "/things/a", 200, header(), `x`, "no JSON"},
		"a body that is none":       {"GET", "/things/last", 204, header("X-Id", ""), `x`, "no body is described"},
		"another type":              {"GET", "/things/a", 200, header("Content-Type", "text/plain"), `x`, `"text/plain"`},
		"a new header":              {"GET", "/things/a", 200, header("X-New", "1"), `{"data":{"id":"a"}}`, "X-New is not described"},
		"a header that is missing":  {"GET", "/things/a", 200, header("X-Id", ""), `{"data":{"id":"a"}}`, "X-Id is missing"},
		"a header that is not well": {"GET", "/things/a", 200, header("X-Id", "q"), `{"data":{"id":"a"}}`, "X-Id"},
		"no number":                 {"GET", "/things/a", 200, header("Retry-After", "soon"), `{"data":{"id":"a"}}`, "Retry-After"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.Check(openapitest.Answer{Method: test.method, Path: test.path, Status: test.status, Header: test.header, Body: []byte(test.body)})
			verdict(t, err, test.want)
		})
	}
	id := http.Header{"Webhook-Id": {"1"}}
	verdict(t, c.CheckCallback(id, []byte(`{"id":"a"}`)), "")
	verdict(t, c.CheckCallback(http.Header{}, []byte(`{"id":"a"}`)), "webhook-id is missing")
	verdict(t, c.CheckCallback(id, []byte(`{"id":"a","part":[]}`)), "/part")
	verdict(t, c.CheckCallback(id, []byte(`{"id":"a","new":1}`)), "/new")
	verdict(t, c.CheckRequest("POST", "/things", []byte(`{"id":"a"}`)), "")
	verdict(t, c.CheckRequest("POST", "/things", []byte(`{}`)), "'id'")
	verdict(t, c.CheckExamples(), "")

	c, err = openapitest.Parse([]byte(strings.Replace(document, `"value": {"data": {"id": "a"}}`, `"value": {"data": {"id": "a", "old": 1}}`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	verdict(t, c.CheckExamples(), "'old'")
}

func verdict(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Error(err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%v, want %s", err, want)
	}
}
