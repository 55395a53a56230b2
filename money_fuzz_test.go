package mediagate_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
)

func FuzzParseMicros(f *testing.F) {
	for _, seed := range []string{"12.50", "-0", "0.0000001", "1e309", "12,50", "999999999999.999999", "1000000000000", "-0.000001", "", ".", "1.", "+1", "٣", " 1", "0x1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := mediagate.ParseMicros(text)
		if err != nil {
			if !errors.Is(err, mediagate.ErrAmount) || m != 0 {
				t.Errorf("%q is %d, %v", text, m, err)
			}
			return
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok || exact.Cmp(big.NewRat(int64(m), int64(mediagate.MicrosPerUnit))) != 0 {
			t.Errorf("%q is read as %s", text, m)
		}
		if again, err := mediagate.ParseMicros(m.String()); err != nil || again != m {
			t.Errorf("%q is written as %s, which is read as %d, %v", text, m, again, err)
		}
	})
}

// What is written of any amount is exact, and a number to every reader.
func FuzzMicros(f *testing.F) {
	for _, m := range []int64{0, 1, -1, 12_500_000, -1 << 63, 1<<63 - 1, 999_999} {
		for _, rate := range []int64{1, 1000, 7, 1<<63 - 1} {
			f.Add(m, rate)
		}
	}
	f.Fuzz(func(t *testing.T, n, perUnit int64) {
		m, unit := mediagate.Micros(n), int64(mediagate.MicrosPerUnit)
		amount := big.NewRat(n, unit)
		same := func(what, text string, want *big.Rat) {
			if got, ok := new(big.Rat).SetString(text); !ok || got.Cmp(want) != 0 {
				t.Errorf("%d as %s: %s, want %s", n, what, text, want)
			}
			if !json.Valid([]byte(text)) {
				t.Errorf("%d as %s: %s is no JSON", n, what, text)
			}
		}
		same("text", m.String(), amount)
		same("number", m.Number().String(), amount)
		if perUnit <= 0 {
			return // which the settings refuse
		}
		credits := new(big.Rat).Mul(amount, big.NewRat(perUnit, 1))
		rounded := new(big.Rat).SetFrac(new(big.Int).Div(new(big.Int).Mul(credits.Num(), big.NewInt(unit)), credits.Denom()), big.NewInt(unit))
		same("credits", m.Credits(perUnit).String(), rounded)
		floor := new(big.Int).Div(credits.Num(), credits.Denom())
		if whole := m.WholeCredits(perUnit); floor.IsInt64() && whole != floor.Int64() {
			t.Errorf("%d in whole credits: %d, want %s", n, whole, floor)
		}
		if strings.Contains(m.Credits(perUnit).String(), "-0") && n >= 0 {
			t.Errorf("%d credits are below zero", n)
		}
	})
}
