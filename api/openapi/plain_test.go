package openapi_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/api/openapi"
)

// Schemas are written without the forms that generators of clients do not read,
// wherever they stand, and mean the same.
func TestPlain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ schema, want string }{
		"a property that must not be": {`{"properties":{"a":false,"b":true}}`, `{"properties":{"a":{"not":{}},"b":{}}}`},
		"within conditions": {
			`{"if":{"properties":{"a":{"const":1}}},"then":{"properties":{"b":false}},"else":{"not":{"properties":{"c":false}}}}`,
			`{"if":{"properties":{"a":{"const":1}}},"then":{"properties":{"b":{"not":{}}}},"else":{"not":{"properties":{"c":{"not":{}}}}}}`,
		},
		"within lists":       {`{"allOf":[{"oneOf":[{"properties":{"a":false}}]}]}`, `{"allOf":[{"oneOf":[{"properties":{"a":{"not":{}}}}]}]}`},
		"of what depends":    {`{"dependentSchemas":{"a":{"properties":{"b":false}}}}`, `{"dependentSchemas":{"a":{"properties":{"b":{"not":{}}}}}}`},
		"further members":    {`{"additionalProperties":false}`, `{"additionalProperties":false}`},
		"what they may be":   {`{"additionalProperties":{"type":["string","null"]}}`, `{"additionalProperties":{"anyOf":[{"type":"string"},{"type":"null"}]}}`},
		"a property's name":  {`{"properties":{"properties":{"const":{"a":false}},"type":{"default":false}}}`, `{"properties":{"properties":{"const":{"a":false}},"type":{"default":false}}}`},
		"two types":          {`{"type":["string","null"],"description":"A.","minLength":1}`, `{"description":"A.","anyOf":[{"type":"string","minLength":1},{"type":"null"}]}`},
		"what each is":       {`{"type":["array","integer"],"minimum":1,"items":{"type":["string","null"]},"maxItems":2}`, `{"anyOf":[{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"null"}]},"maxItems":2},{"type":"integer","minimum":1}]}`},
		"what is of several": {`{"type":["integer","number"],"minimum":1}`, `{"anyOf":[{"type":"integer","minimum":1},{"type":"number","minimum":1}]}`},
		"one type in a list": {`{"type":["string"],"enum":["a"]}`, `{"type":"string","enum":["a"]}`},
		"beside an anyOf":    {`{"type":["string","null"],"anyOf":[{"const":"a"}]}`, `{"anyOf":[{"const":"a"}],"allOf":[{"anyOf":[{"type":"string"},{"type":"null"}]}]}`},
		"beside an allOf too": {
			`{"type":["string","null"],"anyOf":[{"const":"a"}],"allOf":[{"maxLength":2}]}`,
			`{"anyOf":[{"const":"a"}],"allOf":[{"maxLength":2},{"anyOf":[{"type":"string"},{"type":"null"}]}]}`,
		},
		"an array of anything": {`{"properties":{"a":{"type":"array"}},"items":{"type":["array","null"]}}`, `{"properties":{"a":{"type":"array","items":{}}},"items":{"anyOf":[{"type":"array","items":{}},{"type":"null"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var components openapi.Map[json.RawMessage]
			l := openapi.Library{Components: &components}
			s, err := l.Embed(json.RawMessage(`{"properties":{"here":`+test.schema+`},"$defs":{"there":`+test.schema+`}}`), "x")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(`{"properties":{"here":`+test.want+`}}`, written(t, s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(`{"There":`+test.want+`}`, written(t, components)); diff != "" {
				t.Errorf("as a component (-want +got):\n%s", diff)
			}
		})
	}
}
