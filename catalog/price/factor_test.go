package price_test

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog/price"
)

func TestFactorPrice(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		factor string
		price  mediagate.Micros
		want   mediagate.Micros
	}{
		"one":                   {"1", 84_000, 84_000},
		"one, written long":     {"1.000000", 84_000, 84_000},
		"a discount":            {"0.85", 84_000, 71_400},
		"a surcharge":           {"1.25", 84_000, 105_000},
		"free":                  {"0", 84_000, 0},
		"the largest":           {"1000", 84_000, 84_000_000},
		"half a micro goes up":  {"0.5", 1, 1},
		"less goes down":        {"0.499999", 1, 0},
		"one and a half":        {"0.5", 3, 2},
		"the smallest factor":   {"0.000001", 1_000_000, 1},
		"saturates":             {"1000", math.MaxInt64, math.MaxInt64},
		"one never saturates":   {"1", math.MaxInt64, math.MaxInt64},
		"prices below 0 are 0":  {"1", -5, 0},
		"a third is not exact":  {"0.333333", 84_000, 28_000},
		"nothing of nothing":    {"2", 0, 0},
		"just below a doubling": {"1.999999", 500_000, 1_000_000},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := price.ParseFactor(tt.factor)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Price(tt.price); got != tt.want {
				t.Errorf("%s × %d = %d, want %d", tt.factor, tt.price, got, tt.want)
			}
		})
	}
}

func TestParseFactorRefuses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "-1", "-0", "+1", "1e2", "1.", ".5", "1,5", "1.0000001", "1000.000001", "1001", "x", " 1", "NaN"} {
		t.Run(s, func(t *testing.T) {
			t.Parallel()
			if f, err := price.ParseFactor(s); !errors.Is(err, price.ErrFactor) {
				t.Errorf("ParseFactor(%q) = %v, %v", s, f, err)
			}
		})
	}
}

func TestZeroFactorIsOne(t *testing.T) {
	t.Parallel()
	var f price.Factor
	if got := f.Price(84_000); got != 84_000 {
		t.Errorf("price = %d", got)
	}
	if got := f.String(); got != "1" {
		t.Errorf("String = %q", got)
	}
}

func TestFactorChargesLeavesItsArgument(t *testing.T) {
	t.Parallel()
	f, err := price.ParseFactor("0.5")
	if err != nil {
		t.Fatal(err)
	}
	charges := []mediagate.Charge{{Item: "a", Unit: mediagate.UnitSecond, Quantity: 5, UnitPrice: 84_000}}
	want := []mediagate.Charge{{Item: "a", Unit: mediagate.UnitSecond, Quantity: 5, UnitPrice: 42_000}}
	if diff := cmp.Diff(want, f.Charges(charges)); diff != "" {
		t.Error(diff)
	}
	if charges[0].UnitPrice != 84_000 {
		t.Error("the argument was changed")
	}
}

// TestFactorRounding compares with exact fractions: the result is never
// further than half a micro-unit from the true product.
func TestFactorRounding(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		millionths := rapid.Int64Range(0, 1_000_000_000).Draw(t, "factor")
		unit := rapid.Int64Range(0, 1_000_000_000_000).Draw(t, "price")
		f, err := price.ParseFactor(mediagate.Micros(millionths).String())
		if err != nil {
			t.Fatal(err)
		}
		exact := big.NewRat(millionths, 1_000_000)
		exact.Mul(exact, new(big.Rat).SetInt64(unit))
		off := new(big.Rat).Sub(new(big.Rat).SetInt64(int64(f.Price(mediagate.Micros(unit)))), exact)
		half := big.NewRat(1, 2)
		if off.Cmp(half) > 0 || off.Cmp(new(big.Rat).Neg(half)) <= 0 {
			t.Fatalf("%s × %d is off by %s", f, unit, off.FloatString(9))
		}
	})
}
