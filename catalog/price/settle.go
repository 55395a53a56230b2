package price

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
	Seconds float64   // of all media, as the vendor states it; 0 where it does not
	Lengths []float64 // of the files, in seconds, by their own headers; 0 when unknown
	Images  int       // images that succeeded
}

// DeliveredBy is what a job's outcome and the files that were stored of it amount
// to. The vendor states the seconds of all that it made: where a piece of that is
// missing, the files' own lengths count.
func DeliveredBy(outcome mediagate.Outcome, files []mediagate.Result) Delivered {
	d := Delivered{Seconds: outcome.Seconds}
	for _, f := range files {
		if f.Role == mediagate.RoleMain { // the others come along
			d.Images++
			d.Lengths = append(d.Lengths, f.Duration)
		}
	}
	offered := 0
	for _, m := range outcome.Media {
		if m.Role == mediagate.RoleMain {
			offered++
		}
	}
	if d.Images < offered {
		d.Seconds = 0
	}
	return d
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

// Settle is what is due for what was delivered. Seconds are rounded up, those of
// each file by itself; songs, operations and characters are due as quoted. No
// line is charged for more than it was quoted, and no file for more than its
// share of it, so that the result is never above Total. A delivered length of
// zero, below zero or NaN is unknown and charges as quoted.
func Settle(charges []mediagate.Charge, d Delivered) mediagate.Micros {
	var sum mediagate.Micros
	for _, c := range charges {
		quantity := c.Quantity
		switch c.Unit {
		case mediagate.UnitSecond:
			quantity = d.seconds(c)
		case mediagate.UnitImage:
			quantity = min(quantity, int64(max(d.Images, 0)))
		case mediagate.UnitSong, mediagate.UnitOperation, mediagate.UnitCharacter: // as quoted
		}
		sum = add(sum, amount(quantity, c.UnitPrice))
	}
	return sum
}

// seconds is what is due of a charge: what the vendor states, else what the
// files say. Of several files that were quoted, those that did not come are due
// nothing.
func (d Delivered) seconds(c mediagate.Charge) int64 {
	files, came := max(c.Files, 1), int64(len(d.Lengths))
	share, most := c.Quantity/files, c.Quantity
	if came > 0 && came < files {
		most = share * came
	}
	if came == 0 || d.Seconds > 0 {
		return wholeSeconds(d.Seconds, most)
	}
	var due int64
	for _, length := range d.Lengths {
		seconds := wholeSeconds(length, share)
		if seconds >= most-due {
			return most
		}
		due += seconds
	}
	return due
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
