package openapi_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/api/openapi"
)

type color string

type base struct {
	ID string `json:"id"`
}

type named struct {
	base
	Count  int             `json:"count,omitempty"`
	Amount json.Number     `json:"amount"`
	Next   *string         `json:"next"`
	Maybe  *float64        `json:"maybe,omitempty"`
	Kind   color           `json:"kind"`
	Parts  []part          `json:"parts"`
	Only   *part           `json:"only"`
	Any    any             `json:"any"`
	Raw    json.RawMessage `json:"raw"`
	Pairs  map[string]any  `json:"pairs"`
	Zero   []part          `json:"zero,omitzero"`
}

type part struct {
	On bool `json:"on"`
}

type list[T any] struct {
	Data []T `json:"data"`
}

func written(t *testing.T, v any) string {
	t.Helper()
	b, err := openapi.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A schema says what encoding/json writes: what may be left out, what may be
// null, and what stands in an interface.
func TestReflector(t *testing.T) {
	t.Parallel()
	var components openapi.Map[*openapi.Schema]
	r := openapi.Reflector{
		Words: openapi.Words{
			"Named": {Keywords: map[string]any{"description": "A thing."}, Properties: map[string]map[string]any{
				"id": {"pattern": "^a"}, "count": {"type": "string", "minimum": 1},
			}},
			"List": {},
		},
		Enums:      map[reflect.Type][]any{reflect.TypeFor[color](): {"red"}},
		Components: &components,
	}
	got := written(t, r.Of(list[named]{Data: []named{{Any: part{}}}}))
	if want := `{"$ref":"#/components/schemas/List"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	want := strings.Join([]string{
		`{"List":{"type":"object","properties":{"data":{"type":"array","items":{"$ref":"#/components/schemas/Named"}}},"required":["data"]}`,
		`"Named":{"type":"object","properties":{"id":{"type":"string","pattern":"^a"},"count":{"type":"string","minimum":1},"amount":{"type":"number","format":"double"}`,
		`"next":{"anyOf":[{"type":"string"},{"type":"null"}]},"maybe":{"type":"number","format":"double"},"kind":{"type":"string","enum":["red"]}`,
		`"parts":{"type":"array","items":{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}}`,
		`"only":{"anyOf":[{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]},{"type":"null"}]}`,
		`"any":{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]},"raw":{},"pairs":{"type":"object"},` +
			`"zero":{"type":"array","items":{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}}}`,
		`"required":["id","amount","next","kind","parts","only","any","raw","pairs"],"description":"A thing."}}`,
	}, ",")
	if diff := cmp.Diff(want, written(t, components)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Definitions become components. Those that mean the same under the same name
// become one; others get a name of their own.
func TestLibrary(t *testing.T) {
	t.Parallel()
	var components openapi.Map[*openapi.Schema]
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
