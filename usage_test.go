package mediagate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

func TestVendorCharge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		amount, unit string
		want         *mediagate.VendorCharge
	}{
		"whole":                   {"30", "credits", &mediagate.VendorCharge{Amount: "30", Unit: "credits"}},
		"nothing":                 {"0", "credits", &mediagate.VendorCharge{Amount: "0", Unit: "credits"}},
		"with decimals":           {"2.50", "unit", &mediagate.VendorCharge{Amount: "2.5", Unit: "unit"}},
		"decimals alone":          {".5", "unit", &mediagate.VendorCharge{Amount: "0.5", Unit: "unit"}},
		"more decimals than kept": {"0.0000005", "USD", &mediagate.VendorCharge{Amount: "0.000001", Unit: "USD"}},
		"as much as is believed":  {"1000000000", "tokens", &mediagate.VendorCharge{Amount: "1000000000", Unit: "tokens"}},
		"more":                    {"1000000000.000001", "tokens", nil},
		"an endless number":       {strings.Repeat("9", 400), "tokens", nil},
		"below nothing":           {"-1", "credits", nil},
		"an exponent":             {"1e9", "credits", nil},
		"a fraction":              {"1/3", "credits", nil},
		"a point":                 {".", "credits", nil},
		"empty":                   {"", "credits", nil},
		"no unit":                 {"1", "", nil},
		"markup for a unit":       {"1", "<b>", nil},
		"a formula for a unit":    {"1", "=1+1", nil},
		"a long unit":             {"1", strings.Repeat("x", 33), nil},
	} {
		if diff := cmp.Diff(test.want, mediagate.ChargedBy(test.amount, test.unit)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestVendorChargesOfOneJob(t *testing.T) {
	t.Parallel()
	one, other := mediagate.ChargedBy("0.1", "credits"), mediagate.ChargedBy("0.2", "credits")
	most := mediagate.ChargedBy("1000000000", "credits")
	for name, test := range map[string]struct{ a, b, want *mediagate.VendorCharge }{
		"both":              {one, other, mediagate.ChargedBy("0.3", "credits")},
		"the first alone":   {one, nil, one},
		"the second alone":  {nil, other, other},
		"none":              {nil, nil, nil},
		"of two units":      {one, mediagate.ChargedBy("1", "tokens"), nil},
		"beyond all belief": {most, one, nil},
		"not made here":     {one, &mediagate.VendorCharge{Amount: "x", Unit: "credits"}, nil},
	} {
		if diff := cmp.Diff(test.want, test.a.Plus(test.b)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
