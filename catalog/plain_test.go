package catalog_test

import (
	"encoding/json"
	"testing"
)

// The models' schemas are written without the forms that generators of clients and
// linters do not read: a boolean in the place of a schema, a schema of several types,
// an array without items.
func TestSchemasArePlain(t *testing.T) {
	t.Parallel()
	for _, m := range load(t).Models() {
		for _, o := range m.Operations() {
			var schema any
			if err := json.Unmarshal(o.Schema(), &schema); err != nil {
				t.Fatal(err)
			}
			checkPlain(t, m.ID+" "+o.Endpoint, schema)
		}
	}
}

func checkPlain(t *testing.T, at string, schema any) {
	t.Helper()
	keywords, ok := schema.(map[string]any)
	if !ok {
		t.Errorf("%s: %v is a schema: write {} or {not: {}}", at, schema)
	}
	if types, ok := keywords["type"].([]any); ok {
		t.Errorf("%s: types %v: write an anyOf", at, types)
	}
	if keywords["type"] == "array" && keywords["items"] == nil {
		t.Errorf("%s: an array without items: write {}", at)
	}
	for name, value := range keywords {
		at := at + "/" + name
		switch name {
		case "items", "contains", "not", "if", "then", "else":
			checkPlain(t, at, value)
		case "allOf", "anyOf", "oneOf", "prefixItems":
			for _, part := range value.([]any) {
				checkPlain(t, at, part)
			}
		case "properties", "$defs":
			for field, part := range value.(map[string]any) {
				checkPlain(t, at+"/"+field, part)
			}
		}
	}
}
