package price

import (
	"errors"
	"math"
	"math/bits"
	"slices"

	"github.com/mediagate/mediagate"
)

// MaxFactor bounds price factors, so that a misplaced decimal point in the settings is an error
// at the start and not a bill.
const MaxFactor = 1000

// ErrFactor reports a text that is not a price factor.
var ErrFactor = errors.New("a price factor is a decimal from 0 to 1000 with at most 6 decimals")

// Factor multiplies the unit prices of a group. It is an exact number of millionths. The zero
// value is the factor 1, so that a forgotten factor does not make everything free.
type Factor struct {
	aboveOne int64 // in millionths
}

// ParseFactor parses a factor such as "1", "0.85" or "1.25". It returns ErrFactor for any other
// form.
func ParseFactor(s string) (Factor, error) {
	m, err := mediagate.ParseMicros(s)
	if err != nil || m < 0 || s[0] == '-' || m > MaxFactor*mediagate.MicrosPerUnit {
		return Factor{}, ErrFactor
	}
	return Factor{aboveOne: int64(m - mediagate.MicrosPerUnit)}, nil
}

// String writes the factor as a decimal without trailing zeros.
func (f Factor) String() string {
	return string((mediagate.MicrosPerUnit + mediagate.Micros(f.aboveOne)).Number())
}

// Price returns the unit price times the factor, rounded to the nearest micro-unit, halves up.
// Negative prices count as zero.
func (f Factor) Price(unit mediagate.Micros) mediagate.Micros {
	if unit <= 0 {
		return 0
	}
	const one = uint64(mediagate.MicrosPerUnit)
	hi, lo := bits.Mul64(uint64(unit), uint64(int64(one)+f.aboveOne))
	lo, carry := bits.Add64(lo, one/2, 0)
	hi += carry
	if hi >= one {
		return maxMicros
	}
	quotient, _ := bits.Div64(hi, lo, one)
	return mediagate.Micros(min(quotient, math.MaxInt64))
}

// Charges returns the charges with the factor applied to each unit price. It is not applied to
// sums, so that quantity × unit price is still the amount, as clients can check.
func (f Factor) Charges(charges []mediagate.Charge) []mediagate.Charge {
	out := slices.Clone(charges)
	for i := range out {
		out[i].UnitPrice = f.Price(out[i].UnitPrice)
	}
	return out
}
