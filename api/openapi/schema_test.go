package openapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/api/openapi"
)

func written(t *testing.T, v any) string {
	t.Helper()
	b, err := openapi.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Definitions become components. Those that mean the same under the same name
// become one; others get a name of their own.
func TestLibrary(t *testing.T) {
	t.Parallel()
	var components openapi.Map[json.RawMessage]
	l := openapi.Library{Components: &components}
	embed := func(owner, text string) string {
		t.Helper()
		s, err := l.Embed(json.RawMessage(text), owner)
		if err != nil {
			t.Fatal(err)
		}
		return written(t, s)
	}
	const shared = `"url":{"type":"string"},"item":{"anyOf":[{"$ref":"#/$defs/url"},{"properties":{"url":{"$ref":"#/$defs/url"}}}]}`
	one := embed("one", `{"$schema":"x","title":"One","properties":{"$ref":{"const":"#/$defs/url"},"b":{"$ref":"#/$defs/item"},"a":{"const":5.0}},"$defs":{`+shared+`}}`)
	if want := `{"title":"One","properties":{"$ref":{"const":"#/$defs/url"},"b":{"$ref":"#/components/schemas/Item"},"a":{"const":5.0}}}`; one != want {
		t.Errorf("one: %s, want %s", one, want)
	}
	embed("two", `{"$ref":"#/$defs/item","$defs":{`+shared+`}}`)
	// The same text, but what it refers to is another.
	three := embed("three", `{"$ref":"#/$defs/item","$defs":{`+strings.Replace(shared, "string", "number", 1)+`}}`)
	if want := `{"$ref":"#/components/schemas/three.item"}`; three != want {
		t.Errorf("three: %s, want %s", three, want)
	}
	embed("four", `{"$ref":"#/$defs/tree","$defs":{"tree":{"items":{"$ref":"#/$defs/tree"}}}}`)
	five := embed("five", `{"anyOf":[{"required":["a"]},{"$ref":"#/$defs/url"}],"allOf":[{"required":["b"]}],"title":"Five","$defs":{`+shared+`}}`)
	if want := `{"title":"Five","allOf":[{"required":["b"]},{"anyOf":[{"required":["a"]},{"$ref":"#/components/schemas/Url"}]}]}`; five != want {
		t.Errorf("five: %s, want %s", five, want)
	}
	want := strings.Join([]string{
		`{"Url":{"type":"string"}`,
		`"Item":{"anyOf":[{"$ref":"#/components/schemas/Url"},{"properties":{"url":{"$ref":"#/components/schemas/Url"}}}]}`,
		`"three.url":{"type":"number"}`,
		`"three.item":{"anyOf":[{"$ref":"#/components/schemas/three.url"},{"properties":{"url":{"$ref":"#/components/schemas/three.url"}}}]}`,
		`"Tree":{"items":{"$ref":"#/components/schemas/Tree"}}}`,
	}, ",")
	if diff := cmp.Diff(want, written(t, components)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, text := range map[string]string{
		"no object":           `[]`,
		"no JSON":             `{"a"`,
		"an unknown target":   `{"$ref":"#/$defs/gone"}`,
		"one in a definition": `{"$defs":{"a":{"$ref":"#/$defs/gone"}}}`,
	} {
		if s, err := l.Embed(json.RawMessage(text), "x"); err == nil {
			t.Errorf("%s: taken as %s", name, written(t, s))
		}
	}
}
