package catalog_test

import (
	"strings"
	"testing"

	"github.com/mediagate/mediagate/catalog"
)

// TestConditionalBounds checks that the error names the bound that the validator found broken,
// not one of another branch.
func TestConditionalBounds(t *testing.T) {
	t.Parallel()
	const fields = `
        size: {type: string, enum: [s, m, l, wild], default: s}
        n: {type: integer, minimum: 1, maximum: 9, default: 1}
        pick: {type: integer, enum: [1, 2, 3], default: 1}
        name: {type: string, maxLength: 8}
        tags: {type: array, maxItems: 4, items: {type: string, maxLength: 3}}
        at: {$ref: "#/$defs/mediaURL", x-rule: must lead somewhere}
        who: {x-rule: is somebody, type: string}
      allOf:
        - if: {properties: {size: {const: m}}, required: [size]}
          then:
            properties:
              n: {maximum: 4}
              pick: {enum: [1, 2]}
              name: {minLength: 2, maxLength: 5}
              tags: {minItems: 2, maxItems: 3, items: {maxLength: 2}}
              who: {maxLength: 3}
          else:
            properties:
              n: {minimum: 0}
              pick: {enum: [1, 2, 3, 4]}
        - if: {properties: {size: {const: l}}, required: [size]}
          then:
            required: [name]
            properties:
              n: {minimum: 3, maximum: 5}
              pick: {const: 3}
              at: {maxLength: 30}
              name: {x-rule: is required when size is l}
        - if: {properties: {size: {const: wild}}, required: [size]}
          then: {properties: {pick: {maximum: 2}, n: {multipleOf: 3}}}`
	text := strings.Replace(whole, "        size: {type: string, enum: [s, l], default: s}", fields[1:], 1)
	text = strings.Replace(text, "        draft: {type: boolean, default: false}\n        n: {type: integer, minimum: 1, maximum: 4, default: 1}\n", "", 1)
	text = strings.Replace(text, "      by: [size, draft]\n      rows:", "      rows:\n        - {price: \"1\"}", 1)
	for _, row := range []string{"s, draft: false", "s, draft: true", "l, draft: false", "l, draft: true"} {
		before, after, _ := strings.Cut(text, "        - {size: "+row)
		_, after, _ = strings.Cut(after, "\n")
		text = before + after
	}
	c, err := catalog.LoadAlone(dir(t, map[string]string{"omega.yaml": text}))
	if err != nil {
		t.Fatal(err)
	}
	o := operationOf(t, c, "omega")
	for name, tt := range map[string]struct{ fields, param, message string }{
		"without a condition":        {`"n":10`, "n", "n must be an integer between 1 and 9"},
		"below, without one":         {`"n":0`, "n", "n must be an integer between 1 and 9"},
		"within both":                {`"size":"m","n":4`, "", ""},
		"beyond the condition's":     {`"size":"m","n":5`, "n", "n must be an integer between 1 and 4"},
		"beyond both":                {`"size":"m","n":10`, "n", "n must be an integer between 1 and 4"},
		"below what is left":         {`"size":"m","n":0`, "n", "n must be an integer between 1 and 9"},
		"a condition of two bounds":  {`"size":"l","name":"x","n":2`, "n", "n must be an integer between 3 and 5"},
		"no such type":               {`"size":"m","n":"2"`, "n", "n must be an integer between 1 and 9, sent as a JSON number, not as a string"},
		"one of all":                 {`"pick":3`, "", ""},
		"none of all":                {`"pick":4`, "pick", "pick must be 1, 2 or 3"},
		"one of fewer":               {`"size":"m","pick":3`, "pick", "pick must be 1 or 2"},
		"none of fewer":              {`"size":"m","pick":7`, "pick", "pick must be 1 or 2"},
		"a constant":                 {`"size":"l","name":"x","pick":2`, "pick", "pick must be 3"},
		"a bound within a choice":    {`"size":"wild","pick":3`, "pick", "pick must be an integer of at most 2"},
		"a keyword without words":    {`"size":"wild","n":4`, "n", "n must be an integer between 1 and 9"},
		"a length":                   {`"name":"123456789"`, "name", "name must be a string of at most 8 characters"},
		"a conditional length":       {`"size":"m","name":"123456"`, "name", "name must be a string of 2 to 5 characters"},
		"a list":                     {`"tags":["1","2","3","4","5"]`, "tags", "tags must be an array of at most 4 items"},
		"a conditional list":         {`"size":"m","tags":["1","2","3","4"]`, "tags", "tags must be an array of 2 to 3 items"},
		"an item":                    {`"tags":["1234"]`, "tags[0]", "tags[0] must be a string of at most 3 characters"},
		"a conditional item":         {`"size":"m","tags":["1","123"]`, "tags[1]", "tags[1] must be a string of at most 2 characters"},
		"words beside a reference":   {`"at":5`, "at", "at must lead somewhere"},
		"a bound beside a reference": {`"size":"l","name":"x","at":"https://a.example.com/1234567890"`, "at", "at must be an http or https URL of at most 30 characters"},
		"required on a condition":    {`"size":"l"`, "name", "name is required when size is l"},
		"not required":               {`"size":"s"`, "", ""},
		"words of the field":         {`"who":1`, "who", "who is somebody"},
		"words that do not apply":    {`"size":"m","who":"abcd"`, "who", "who must be a string of at most 3 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := o.Accept(parse(t, body(t, "omega", tt.fields)))
			if tt.param == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if got := refusal(t, err, tt.param); got != tt.message {
				t.Errorf("message %q, want %q", got, tt.message)
			}
		})
	}
}

// TestNarrowingBranchesKeepTheRest checks that a conditional bound affects neither the kept
// fields nor the price.
func TestNarrowingBranchesKeepTheRest(t *testing.T) {
	t.Parallel()
	text := strings.Replace(whole, "      required: [prompt]\n", `        tags: {type: array, items: {type: string}}
      required: [prompt]
      if: {properties: {size: {const: l}}, required: [size]}
      then: {properties: {n: {maximum: 2000000}, size: {enum: [l, xl]}, tags: {maxItems: 1}}}
`, 1)
	c, err := catalog.LoadAlone(dir(t, map[string]string{"omega.yaml": text}))
	if err != nil {
		t.Fatal(err)
	}
	r, err := operationOf(t, c, "omega").Accept(parse(t, body(t, "omega", `"tags":["1","2","3","4"]`)))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(r.Params); !strings.Contains(got, `"tags":["1","2","3","4"]`) {
		t.Errorf("params %s", got)
	}
}
