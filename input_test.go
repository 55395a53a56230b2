package mediagate_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

func TestRatio(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]mediagate.Ratio{
		"1:4": {Width: 1, Height: 4}, "16:9": {Width: 16, Height: 9}, "1000:1": {Width: 1000, Height: 1},
	} {
		if got, err := mediagate.ParseRatio(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", ":", "1:", ":1", "0:1", "1:0", "-1:4", "1.5:1", "1:4:1", "1001:1", "1:99999999999999999999", " 1:4"} {
		if got, err := mediagate.ParseRatio(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	narrow, wide := mediagate.Ratio{Width: 100, Height: 401}, mediagate.Ratio{Width: 1, Height: 4}
	if !narrow.Less(wide) || wide.Less(narrow) || wide.Less(mediagate.Ratio{Width: 25, Height: 100}) {
		t.Error("ratios are not in order")
	}
}

// A plan is stored with each task, and read by other releases.
func TestInputIsStored(t *testing.T) {
	t.Parallel()
	for text, input := range map[string]mediagate.Input{
		`{"field":"image_urls[1]","kind":"image","formats":["png"],"min_side":128,"min_ratio":"1:4","max_bytes":5}`: {
			Field: "image_urls[1]", MediaBounds: mediagate.MediaBounds{
				Kind: "image", Formats: []string{"png"}, MinSide: 128, MinRatio: mediagate.Ratio{Width: 1, Height: 4}, MaxBytes: 5,
			},
		},
		`{"field":"video_urls[0]","kind":"video","max_seconds":2.5,"covers":{"field":"duration","seconds":2}}`: {
			Field: "video_urls[0]", MediaBounds: mediagate.MediaBounds{Kind: "video", MaxSeconds: 2.5},
			Covers: &mediagate.Covers{Field: "duration", Seconds: 2},
		},
	} {
		got, err := json.Marshal(input)
		if diff := cmp.Diff(text, string(got)); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		var back mediagate.Input
		if err := json.Unmarshal(got, &back); err != nil || !cmp.Equal(input, back) {
			t.Errorf("read back: %+v, %v", back, err)
		}
	}
}

func TestInputCheckWith(t *testing.T) {
	t.Parallel()
	failed := &mediagate.Failure{Code: mediagate.CodeImageProcessing}
	for name, c := range map[string]struct{ before, later, want mediagate.InputCheck }{
		"what was found good stays so": {
			mediagate.InputCheck{Passed: []string{"a", "b"}, Tries: 3},
			mediagate.InputCheck{Passed: []string{"b", "c"}, Tries: 1, Over: true},
			mediagate.InputCheck{Passed: []string{"b", "c", "a"}, Tries: 3, Over: true},
		},
		"the first verdict counts": {
			mediagate.InputCheck{Over: true, Failure: failed},
			mediagate.InputCheck{Over: true, Passed: []string{"a"}},
			mediagate.InputCheck{Over: true, Failure: failed},
		},
	} {
		if diff := cmp.Diff(c.want, c.before.With(c.later)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
