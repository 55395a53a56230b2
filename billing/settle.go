package billing

import (
	"math"
	"math/bits"

	"github.com/mediagate/mediagate"
)

// maxMicros is where sums stop growing: an amount that does not fit must
// never wrap around into a small or negative one.
const maxMicros = mediagate.Micros(math.MaxInt64)

// Delivered is what a finished task produced.
type Delivered struct {
	Seconds float64 // of media; 0 when nobody knows, which charges as quoted
	Images  int     // images that succeeded
}

// Total is what the charges add up to: the amount to hold. Charges with a
// quantity or a price below zero count as nothing.
func Total(charges []mediagate.Charge) mediagate.Micros {
	var sum mediagate.Micros
	for _, c := range charges {
		sum = add(sum, amount(c.Quantity, c.UnitPrice))
	}
	return sum
}

// Settle is what is due for what was delivered. Seconds are rounded up; songs,
// operations and characters are due as quoted. No line is charged for more than
// it was quoted, so that the result is never above Total. A delivered length of
// zero, below zero or NaN is unknown and charges as quoted.
func Settle(charges []mediagate.Charge, d Delivered) mediagate.Micros {
	var sum mediagate.Micros
	for _, c := range charges {
		quantity := c.Quantity
		switch c.Unit {
		case mediagate.UnitSecond:
			quantity = min(quantity, wholeSeconds(d.Seconds, quantity))
		case mediagate.UnitImage:
			quantity = min(quantity, int64(max(d.Images, 0)))
		case mediagate.UnitSong, mediagate.UnitOperation, mediagate.UnitCharacter: // as quoted
		}
		sum = add(sum, amount(quantity, c.UnitPrice))
	}
	return sum
}

// wholeSeconds rounds up. It compares before it converts, since a float
// beyond the integers has no defined conversion.
func wholeSeconds(seconds float64, quoted int64) int64 {
	if math.IsNaN(seconds) || seconds <= 0 || seconds >= float64(quoted) {
		return quoted
	}
	return int64(math.Ceil(seconds))
}

func amount(quantity int64, price mediagate.Micros) mediagate.Micros {
	if quantity <= 0 || price <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(quantity), uint64(price))
	if hi != 0 || lo > math.MaxInt64 {
		return maxMicros
	}
	return mediagate.Micros(lo)
}

func add(a, b mediagate.Micros) mediagate.Micros {
	if a > maxMicros-b {
		return maxMicros
	}
	return a + b
}
