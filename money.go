package mediagate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Micros is an amount of money in millionths of the currency unit. All arithmetic on money is
// integer arithmetic on this type.
type Micros int64

// MicrosPerUnit is the number of micro-units in one unit of the currency.
const MicrosPerUnit Micros = 1_000_000

// ErrAmount reports a text that is not an amount of money.
var ErrAmount = errors.New("an amount is written as -? 1 to 12 digits with at most 6 decimals")

// ParseMicros reads a decimal amount such as "12.50": an optional minus sign,
// 1 to 12 digits, and at most 6 decimals. It returns ErrAmount for any other
// form.
func ParseMicros(s string) (Micros, error) {
	digits, negative := strings.CutPrefix(s, "-")
	whole, frac, hasPoint := strings.Cut(digits, ".")
	if len(whole) < 1 || len(whole) > 12 || (hasPoint && (frac == "" || len(frac) > 6)) {
		return 0, ErrAmount
	}
	for _, c := range whole + frac {
		if c < '0' || c > '9' {
			return 0, ErrAmount
		}
	}
	n, err := strconv.ParseInt(whole+frac+strings.Repeat("0", 6-len(frac)), 10, 64)
	if err != nil {
		return 0, ErrAmount
	}
	if negative {
		n = -n
	}
	return Micros(n), nil
}

// String writes the amount as a decimal with at least two decimals, such as
// "12.50" or "0.000001".
func (m Micros) String() string {
	sign, n := "", uint64(m)
	if m < 0 {
		sign, n = "-", -n // also correct for the least int64, whose negation overflows
	}
	frac := strings.TrimRight(fmt.Sprintf("%06d", n%uint64(MicrosPerUnit)), "0")
	for len(frac) < 2 {
		frac += "0"
	}
	return fmt.Sprintf("%s%d.%s", sign, n/uint64(MicrosPerUnit), frac)
}

// Number writes the amount as a JSON number without trailing zeros, such as
// 12.5 or 0.
func (m Micros) Number() json.Number {
	s := strings.TrimRight(strings.TrimRight(m.String(), "0"), ".")
	return json.Number(s)
}

// Credits converts the amount to credits at a rate of credits per currency
// unit, as a JSON number with at most 6 decimals.
func (m Micros) Credits(perUnit int64) json.Number {
	whole, rest := m.credits(perUnit)
	sign := ""
	if whole.Sign() < 0 {
		// As a decimal, the fraction counts away from zero.
		if sign = "-"; rest != 0 {
			whole.Add(whole, big.NewInt(1))
			rest = int64(MicrosPerUnit) - rest
		}
		whole.Neg(whole)
	}
	frac := strings.TrimRight(fmt.Sprintf(".%06d", rest), "0")
	return json.Number(sign + whole.String() + strings.TrimSuffix(frac, "."))
}

// WholeCredits is Credits rounded down to an integer, within the range of int64.
func (m Micros) WholeCredits(perUnit int64) int64 {
	whole, _ := m.credits(perUnit)
	if !whole.IsInt64() {
		return math.MaxInt64 * int64(whole.Sign())
	}
	return whole.Int64()
}

// credits returns the amount in credits, rounded down, and the remaining micro-credits. The
// product may exceed 64 bits.
func (m Micros) credits(perUnit int64) (whole *big.Int, rest int64) {
	product := new(big.Int).Mul(big.NewInt(int64(m)), big.NewInt(perUnit))
	whole, left := new(big.Int).DivMod(product, big.NewInt(int64(MicrosPerUnit)), new(big.Int))
	return whole, left.Int64()
}
