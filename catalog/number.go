package catalog

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// normalNumber rewrites a JSON number in a short form with the same meaning. An integer becomes
// plain digits, however it was written (5.0, 50e-1), and any other number the nearest float64.
//
// It also protects the schema validator, which computes with exact fractions: 1e-999999999 would
// take it a gigabyte. A number that is no integer never becomes one by rounding.
func normalNumber(n json.Number) json.Number {
	s := string(n)
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return json.Number(strconv.FormatInt(i, 10))
	}
	digits, exponent, negative := decimalParts(s)
	if digits == "" {
		return "0"
	}
	if exponent >= 0 && len(digits)+exponent <= 19 {
		whole := digits + strings.Repeat("0", exponent)
		if negative {
			whole = "-" + whole
		}
		if i, err := strconv.ParseInt(whole, 10, 64); err == nil {
			return json.Number(strconv.FormatInt(i, 10))
		}
	}
	f, _ := strconv.ParseFloat(s, 64)
	switch {
	case f == 0: // too small for a float64, but not zero
		f = math.Copysign(math.SmallestNonzeroFloat64, sign(negative))
	case math.IsInf(f, 0):
		f = math.Copysign(math.MaxFloat64, sign(negative))
	case exponent < 0 && f == math.Trunc(f) && math.Abs(f) < 1<<52:
		f = math.Nextafter(f, math.Inf(1))
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}

// decimalParts splits a number into its significant digits, none for zero, and a power of ten.
func decimalParts(s string) (digits string, exponent int, negative bool) {
	s, negative = strings.CutPrefix(s, "-")
	mantissa := s
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		e, err := strconv.Atoi(s[i+1:])
		if err != nil { // beyond an int: only the sign matters
			e = 1 << 30
			if strings.HasPrefix(s[i+1:], "-") {
				e = -e
			}
		}
		exponent = e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	return trimmed, exponent + len(digits) - len(trimmed), negative
}

func sign(negative bool) float64 {
	if negative {
		return -1
	}
	return 1
}

// int64Of parses an integer that normalNumber has written.
func int64Of(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(string(n), 10, 64)
	return i, err == nil
}
