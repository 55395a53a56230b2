package mediagate_test

import (
	"encoding/json"
	"testing"

	"github.com/mediagate/mediagate"
)

func TestParseMicros(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]mediagate.Micros{
		"0": 0, "1": 1_000_000, "12.50": 12_500_000, "-0.000001": -1, "0.000001": 1,
		"999999999999.999999": 999_999_999_999_999_999, "007": 7_000_000,
	} {
		if got, err := mediagate.ParseMicros(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "-", ".5", "1.", "1.0000001", "1234567890123", "1e3", "+1", " 1", "1 ", "0x1", "1,5", "--1", "1.2.3", "٣",
	} {
		if got, err := mediagate.ParseMicros(text); err == nil {
			t.Errorf("%q: taken as %d", text, got)
		}
	}
}

func TestMicrosText(t *testing.T) {
	t.Parallel()
	for m, want := range map[mediagate.Micros]struct {
		text            string
		number, credits json.Number
		whole           int64
	}{
		0:                   {"0.00", "0", "0", 0},
		1:                   {"0.000001", "0.000001", "0.001", 0},
		12_500_000:          {"12.50", "12.5", "12500", 12_500},
		420_000:             {"0.42", "0.42", "420", 420},
		1_234_567:           {"1.234567", "1.234567", "1234.567", 1234},
		-1:                  {"-0.000001", "-0.000001", "-0.001", -1},
		-1_500_000:          {"-1.50", "-1.5", "-1500", -1500},
		100_000_000:         {"100.00", "100", "100000", 100_000},
		999_999_999_999_000: {"999999999.999", "999999999.999", "999999999999", 999_999_999_999},
		// The product with the rate does not fit 64 bits.
		9_000_000_000_000_000_000: {"9000000000000.00", "9000000000000", "9000000000000000", 9_000_000_000_000_000},
	} {
		if got := m.String(); got != want.text {
			t.Errorf("%d: text %q, want %q", m, got, want.text)
		}
		if got := m.Number(); got != want.number {
			t.Errorf("%d: number %q, want %q", m, got, want.number)
		}
		if got := m.Credits(1000); got != want.credits {
			t.Errorf("%d: credits %q, want %q", m, got, want.credits)
		}
		if got := m.WholeCredits(1000); got != want.whole {
			t.Errorf("%d: whole credits %d, want %d", m, got, want.whole)
		}
	}
}
