package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/catalog"
)

// Each field of the catalog that takes the URL of a file is known by its name.
func TestNamesFile(t *testing.T) {
	t.Parallel()
	c, err := catalog.Load("")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, model := range c.Models() {
		for _, operation := range model.Operations() {
			var schema map[string]any
			if err := json.Unmarshal(operation.Schema(), &schema); err != nil {
				t.Fatal(err)
			}
			for _, name := range mediaFields(schema, schema, "") {
				if found++; !namesFile(name) {
					t.Errorf("%s: %s takes the URL of a file", model.ID, name)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d fields take the URL of a file", found)
	}
}

// mediaFields are the names of the properties below a node of a schema that are media. The
// node itself is what the property of that name may be.
func mediaFields(schema map[string]any, node any, name string) (names []string) {
	switch v := node.(type) {
	case []any:
		for _, item := range v {
			names = append(names, mediaFields(schema, item, name)...)
		}
	case map[string]any:
		if v["format"] == "uri-reference" {
			return []string{name}
		}
		if ref, ok := v["$ref"].(string); ok {
			definitions, _ := schema["$defs"].(map[string]any)
			return mediaFields(schema, definitions[strings.TrimPrefix(ref, "#/$defs/")], name)
		}
		for key, below := range v {
			switch properties, _ := below.(map[string]any); key {
			case "properties":
				for property, rule := range properties {
					names = append(names, mediaFields(schema, rule, property)...)
				}
			case "$defs":
			default:
				names = append(names, mediaFields(schema, below, name)...)
			}
		}
	}
	return names
}
