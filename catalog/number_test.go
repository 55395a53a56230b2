package catalog

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNormalNumber(t *testing.T) {
	t.Parallel()
	tests := map[json.Number]json.Number{
		"0": "0", "-0": "0", "0.0": "0", "-0e5": "0", "5": "5", "-5": "-5", "5.0": "5", "5e0": "5", "50e-1": "5",
		"0.5e1": "5", "5E+0": "5", "100": "100", "1e2": "100", "-1e2": "-100", "1.5": "1.5", "15e-1": "1.5",
		"9223372036854775807":    "9223372036854775807",
		"9223372036854775807.0":  "9223372036854775807",
		"-9223372036854775808":   "-9223372036854775808",
		"9223372036854775808":    "9.223372036854775808e+18",
		"1e300":                  "1e+300",
		"5.00000000000000000001": "5.000000000000001",
		"4.99999999999999999999": "5.000000000000001",
		"1e-999999999":           "5e-324",
		"-1e-999999999":          "-5e-324",
		"1e999999999":            "1.7976931348623157e+308",
		"1e99999999999999999999": "1.7976931348623157e+308",
		"-1e9999999999999999999": "-1.7976931348623157e+308",
		"0e99999999999999999999": "0",
	}
	for in, want := range tests {
		t.Run(string(in), func(t *testing.T) {
			t.Parallel()
			got := normalNumber(in)
			if in == "9223372036854775808" { // as float64: one of its spellings
				want = got
				if _, ok := int64Of(got); ok {
					t.Errorf("%s fits an int64", got)
				}
			}
			if got != want {
				t.Errorf("normalNumber(%s) = %s, want %s", in, got, want)
			}
		})
	}
}

// TestNormalNumberKeepsIntegers compares with exact fractions: an integer
// stays the same one, and nothing else becomes one.
func TestNormalNumberKeepsIntegers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf("%s%d.%se%d",
			rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign"), rapid.Uint64().Draw(t, "whole"),
			rapid.StringMatching(`[0-9]{1,25}`).Draw(t, "fraction"), rapid.IntRange(-30, 12).Draw(t, "exponent"))
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%s is no number", text)
		}
		got := normalNumber(json.Number(text))
		rounded, ok := new(big.Rat).SetString(string(got))
		if !ok {
			t.Fatalf("%s became %s", text, got)
		}
		small := exact.IsInt() && exact.Num().IsInt64()
		if small && rounded.Cmp(exact) != 0 {
			t.Fatalf("the integer %s became %s", text, got)
		}
		if _, fits := int64Of(got); fits != small {
			t.Fatalf("%s became %s", text, got)
		}
	})
}

func TestNormalNumberIsShort(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("9", 1<<20), "0." + strings.Repeat("0", 1<<20) + "1", "1." + strings.Repeat("3", 1<<20)} {
		if got := normalNumber(json.Number(text)); len(got) > 32 {
			t.Errorf("%.20s… became %d characters", text, len(got))
		}
	}
}
