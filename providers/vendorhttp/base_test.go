package vendorhttp_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/vendorhttp"
)

// A field that the vendor does not support is refused. The exception is n = 1, because each request
// makes one result.
func TestDecodeBase(t *testing.T) {
	t.Parallel()
	one, several := []string{"prompt"}, []string{"prompt", "n"}
	for name, test := range map[string]struct {
		params string
		takes  []string
		n      json.Number
		refuse string // the refused field
	}{
		"none said":            {`{"prompt":"a"}`, one, "", ""},
		"one of one":           {`{"prompt":"a","n":1}`, one, "1", ""},
		"two of one":           {`{"prompt":"a","n":2}`, one, "", "n"},
		"none of one":          {`{"prompt":"a","n":0}`, one, "", "n"},
		"one of several":       {`{"prompt":"a","n":1}`, several, "1", ""},
		"two of several":       {`{"prompt":"a","n":2}`, several, "2", ""},
		"one, another field":   {`{"prompt":"a","n":1,"seed":7}`, one, "", "seed"},
		"a field that is none": {`{"prompt":"a","n":1,"m":7}`, one, "", "m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := vendorhttp.DecodeBase(mediagate.Job{Params: json.RawMessage(test.params)}, test.takes)
			if test.refuse != "" {
				if e, ok := errors.AsType[*mediagate.Error](err); !ok || e.Kind != mediagate.KindInvalid || e.Param != test.refuse {
					t.Errorf("%v, want a refusal of %s", err, test.refuse)
				}
				return
			}
			if err != nil || b.Prompt != "a" || b.N != test.n {
				t.Errorf("%+v, %v", b, err)
			}
		})
	}
}
