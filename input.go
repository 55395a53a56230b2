package mediagate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Input is one file of the client's that a request names, with the bounds that
// its model's contract sets: what is judged before anything is submitted. The
// address itself is in the request.
type Input struct {
	Field string `json:"field"` // in the request, as image_urls[1]
	MediaBounds
	Covers *Covers `json:"covers,omitempty"`
}

// MediaBounds are what a file must be. Zero values bound nothing; all bounds
// are themselves allowed.
type MediaBounds struct {
	Kind       string   `json:"kind"`              // "image", "video" or "audio"
	Formats    []string `json:"formats,omitempty"` // as png
	MinSide    int      `json:"min_side,omitempty"`
	MaxSide    int      `json:"max_side,omitempty"` // both in pixels
	MinRatio   Ratio    `json:"min_ratio,omitzero"`
	MaxRatio   Ratio    `json:"max_ratio,omitzero"`
	MinSeconds float64  `json:"min_seconds,omitempty"`
	MaxSeconds float64  `json:"max_seconds,omitempty"`
	MaxBytes   int64    `json:"max_bytes,omitempty"`
}

// Bound reports that there is more to look at than the kind, which a vendor
// finds out by itself.
func (b MediaBounds) Bound() bool {
	return len(b.Formats) > 0 || b.MinSide > 0 || b.MaxSide > 0 || b.MinRatio != (Ratio{}) || b.MaxRatio != (Ratio{}) ||
		b.MinSeconds > 0 || b.MaxSeconds > 0 || b.MaxBytes > 0
}

// Covers is a field of the request that asks for so many seconds of the file.
type Covers struct {
	Field   string  `json:"field"`
	Seconds float64 `json:"seconds"`
}

// Ratio is that of a width to a height. The zero value is none.
type Ratio struct{ Width, Height int64 }

// maxRatioPart keeps comparisons far from overflow.
const maxRatioPart = 1000

// ParseRatio reads two positive integers, as 16:9.
func ParseRatio(s string) (Ratio, error) {
	w, h, _ := strings.Cut(s, ":")
	width, errWidth := strconv.ParseInt(w, 10, 64)
	height, errHeight := strconv.ParseInt(h, 10, 64)
	if errWidth != nil || errHeight != nil || width < 1 || height < 1 || width > maxRatioPart || height > maxRatioPart {
		return Ratio{}, fmt.Errorf("%q is no ratio: write width:height, as 16:9", s)
	}
	return Ratio{Width: width, Height: height}, nil
}

// Less reports whether r is narrower than other.
func (r Ratio) Less(other Ratio) bool { return r.Width*other.Height < other.Width*r.Height }

// String writes it as ParseRatio reads it.
func (r Ratio) String() string { return fmt.Sprintf("%d:%d", r.Width, r.Height) }

// MarshalText writes it as String does.
func (r Ratio) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads it as ParseRatio does.
func (r *Ratio) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRatio(string(text))
	return err
}

// InputCheck is how far the check of a task's inputs has come.
type InputCheck struct {
	Passed  []string `json:"passed,omitempty"` // the fields that were found good
	Tries   int      `json:"tries,omitempty"`  // that ended because a server was away
	Over    bool     `json:"over,omitempty"`   // nothing is left to check
	Failure *Failure `json:"failure,omitempty"`
}

// With is the check together with a later one. One that is over stays as
// it is.
func (c InputCheck) With(later InputCheck) InputCheck {
	if c.Over {
		return c
	}
	for _, field := range c.Passed {
		if !slices.Contains(later.Passed, field) {
			later.Passed = append(later.Passed, field)
		}
	}
	later.Tries = max(later.Tries, c.Tries)
	return later
}
