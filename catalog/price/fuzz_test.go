package price

import (
	"math"
	"testing"

	"github.com/mediagate/mediagate"
)

// Whatever is charged and delivered, nothing is below zero and the cost is never
// above the hold.
func FuzzSettle(f *testing.F) {
	for _, unit := range []string{string(mediagate.UnitSecond), string(mediagate.UnitImage), "other"} {
		f.Add(unit, int64(5), int64(100), int64(1), int64(7), 4.2, 5.0, 3)
		f.Add(unit, int64(math.MaxInt64), int64(math.MaxInt64), int64(-1), int64(math.MinInt64), math.Inf(1), math.NaN(), -1)
	}
	f.Fuzz(func(t *testing.T, unit string, quantity, price, more, dear int64, seconds, length float64, images int) {
		charges := []mediagate.Charge{
			{Item: "a", Unit: mediagate.Unit(unit), Quantity: quantity, UnitPrice: mediagate.Micros(price)},
			{Item: "b", Unit: mediagate.UnitImage, Quantity: more, UnitPrice: mediagate.Micros(dear)},
		}
		hold := Total(charges)
		cost := Settle(charges, Delivered{Seconds: seconds, Lengths: []float64{length}, Images: images})
		if hold < 0 || cost < 0 || cost > hold {
			t.Errorf("held %d, cost %d", hold, cost)
		}
	})
}

func FuzzParseFactor(f *testing.F) {
	for _, seed := range []string{"1", "0.8", "1.25", "-1", "1e9", "", "0", "99999999999999999999", "0.0000001"} {
		f.Add(seed, int64(1_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, price int64) {
		factor, err := ParseFactor(text)
		if err != nil {
			return
		}
		if got := factor.Price(mediagate.Micros(price)); price >= 0 && got < 0 {
			t.Errorf("%s times %d is %d", text, price, got)
		}
		if again, err := ParseFactor(factor.String()); err != nil || again != factor {
			t.Errorf("%q is written as %s, which is read as %v, %v", text, factor, again, err)
		}
	})
}
