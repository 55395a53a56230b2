package openapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/api/openapi"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	const from = `{"components":{
		"schemas":{"A":{"items":{"$ref": "#/components/schemas/B"}},"B":{"type":"string"},"C":{},"Own":{"theirs":true}},
		"headers":{"H":{"schema":{"$ref":"#/components/schemas/B"}}}}}`
	for name, test := range map[string]struct{ doc, want string }{
		"what it refers to, and what that refers to": {
			`{"paths":{"/a":{"$ref":"#/components/schemas/A"}},"components":{"schemas":{"Own":{}}}}`,
			`{"paths":{"/a":{"$ref":"#/components/schemas/A"}},"components":{"schemas":{"Own":{},` +
				`"A":{"items":{"$ref":"#/components/schemas/B"}},"B":{"type":"string"}}}}`,
		},
		"a kind that it lacks": {
			`{"paths":{"$ref":"#/components/headers/H"},"components":{}}`,
			`{"paths":{"$ref":"#/components/headers/H"},"components":{` +
				`"headers":{"H":{"schema":{"$ref":"#/components/schemas/B"}}},"schemas":{"B":{"type":"string"}}}}`,
		},
		"its own stay": {
			`{"paths":{"$ref":"#/components/schemas/Own"},"components":{"schemas":{"Own":{}}}}`,
			`{"paths":{"$ref":"#/components/schemas/Own"},"components":{"schemas":{"Own":{}}}}`,
		},
	} {
		got, err := openapi.Complete(json.RawMessage(test.doc), json.RawMessage(from))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v\nwant %s", name, got, err, test.want)
		}
	}
	const unknown = `{"paths":{"$ref":"#/components/schemas/Gone"},"components":{}}`
	if _, err := openapi.Complete(json.RawMessage(unknown), json.RawMessage(from)); err == nil || !strings.Contains(err.Error(), "components.schemas.Gone") {
		t.Errorf("a component that nobody has: %v", err)
	}
}
