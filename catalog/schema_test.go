package catalog_test

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestServedSchemaStatesTheContract checks the parts of the served schema that clients read.
func TestServedSchemaStatesTheContract(t *testing.T) {
	t.Parallel()
	for _, o := range operations(t) {
		m := o.Model
		var doc struct {
			Schema     string `json:"$schema"`
			Type       string `json:"type"`
			Additional any    `json:"additionalProperties"`
			Required   []string
			Properties map[string]struct {
				Default any
				Enum    []any
			}
		}
		if err := json.Unmarshal(o.Schema(), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Schema != "https://json-schema.org/draft/2020-12/schema" || doc.Type != "object" || doc.Additional != true {
			t.Errorf("%s: %+v", m.ID, doc)
		}
		for name, field := range doc.Properties {
			follows := m.ID == "gamma2.7-videoedit" && name == "size" || // the input decides, or the song, or nothing does
				slices.Contains([]string{"vocal_gender", "direction", "zoom_ratio"}, name)
			if len(field.Enum) > 0 && field.Default == nil && !follows && !slices.Contains(doc.Required, name) {
				t.Errorf("%s: %s has no default", m.ID, name)
			}
		}
	}
}
