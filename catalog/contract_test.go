package catalog_test

import "testing"

// TestExplicitValuesTravel: what equals a default is sent all the same.
func TestExplicitValuesTravel(t *testing.T) {
	t.Parallel()
	const fields = `"watermark":false,"negative_prompt":" ","mode":"std"`
	r, err := operation(t, "alpha-v3").Accept(parse(t, body(t, "alpha-v3", fields)))
	if err != nil {
		t.Fatal(err)
	}
	params := parse(t, string(r.Params))
	for _, name := range []string{"watermark", "negative_prompt", "mode"} {
		if _, ok := params[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
}
