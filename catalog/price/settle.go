package price

import (
	"math"
	"math/bits"

	"github.com/mediagate/mediagate"
)

// maxMicros is where sums stop growing: an amount that does not fit must never wrap around to a
// small or negative one.
const maxMicros = mediagate.Micros(math.MaxInt64)

// Delivered is what a finished task produced.
type Delivered struct {
	Seconds float64   // of all media, as the vendor states it; 0 if it does not
	Lengths []float64 // of the files in seconds, by their own headers; 0 if unknown
	Images  int       // successful images
}

// DeliveredBy returns what a job's outcome and its stored files amount to. The vendor states the
// seconds of everything that it made. If a piece of that is missing, the files' own lengths
// count.
func DeliveredBy(outcome mediagate.Outcome, files []mediagate.Result) Delivered {
	d := Delivered{Seconds: outcome.Seconds}
	for _, f := range files {
		if f.Role == mediagate.RoleMain { // the others are free
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

// Total is the sum of the charges, which is the amount to hold. Charges with a negative quantity
// or price count as nothing.
func Total(charges []mediagate.Charge) mediagate.Micros {
	var sum mediagate.Micros
	for _, c := range charges {
		sum = add(sum, amount(c.Quantity, c.UnitPrice))
	}
	return sum
}

// Settle returns what is due for what was delivered. Seconds are rounded up, for each file by
// itself. Songs, operations and characters are due as quoted. No line is charged more than it was
// quoted, and no file more than its share, so the result never exceeds Total. A delivered length
// that is zero, negative or NaN counts as unknown, and is charged as quoted.
//
// Example: two films of 5 s at 0.10 a second are held as 10 s, 1.00. If one comes, with 4.2 s, 5
// s are due, 0.50.
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

// seconds returns the seconds of a charge that are due: what the vendor states, or else the
// lengths of the files. If several files were quoted, those that are missing are not due.
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

// wholeSeconds rounds up to at most the quoted seconds. It compares before it converts, since
// converting a float beyond the integers is undefined.
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
