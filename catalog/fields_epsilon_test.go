package catalog_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

func epsilonCases() map[string]fieldCase {
	const first, last = `"first_frame_image":"https://a.example.com/1"`, `"last_frame_image":"https://a.example.com/2"`
	const together = "is only possible together with first_frame_image"
	frame := func(field, beside string) map[string]fieldCase {
		return mediaCases(field, func(value string) string { return beside + `"` + field + `":` + value })
	}
	common := joined(promptCases(0), frame("first_frame_image", ""), frame("last_frame_image", first+`,`),
		choiceCases("aspect_ratio", "1:1", "16:9", "9:16"), choiceCases("resolution", "720P", "720p", "1080p", "4K"),
		choiceCases("person_generation", "allow_all", "allow_adult", "disallow"),
		integerCases("seed", 0, 4294967295), integerCases("sample_count", 1, 4), switchCases("generate_audio"))
	cases := joined(common, map[string]fieldCase{
		"everything": {
			`"prompt":"a","negative_prompt":"b","duration":8,"aspect_ratio":"9:16","resolution":"4K","resize_mode":"crop","seed":1,"sample_count":4,` +
				`"generate_audio":true,"person_generation":"disallow","enhance_prompt":true,` + first + `,` + last, "", "",
		},
		"only what is required":  {},
		"negative_prompt a list": {`"negative_prompt":["rain"]`, "negative_prompt", "string"},
		"duration a text":        {`"duration":"8"`, "duration", "must be 4, 6 or 8, sent as a JSON number, not as a string"},
		"1080p, 6 s":             {`"resolution":"1080p","duration":6`, "duration", "must be 8 when resolution is 1080p or 4K"},
		"4K, 4 s":                {`"resolution":"4K","duration":4`, "duration", "must be 8 when resolution is 1080p or 4K"},
		"720p, 4 s":              {`"resolution":"720p","duration":4`, "", ""},
		"last frame alone":       {last, "last_frame_image", together},
		"resize_mode alone":      {`"resize_mode":"pad"`, "resize_mode", together},
		"resize_mode pad":        {first + `,"resize_mode":"pad"`, "", ""},
		"resize_mode stretch":    {first + `,"resize_mode":"stretch"`, "resize_mode", "pad or crop"},
		"enhance_prompt false":   {`"enhance_prompt":false`, "enhance_prompt", "must be true"},
	})
	for n := range 12 {
		c := fieldCase{fmt.Sprintf(`"duration":%d`, n), "duration", "must be 4, 6 or 8"}
		if n == 4 || n == 6 || n == 8 {
			c = fieldCase{c.fields, "", ""}
		}
		cases[fmt.Sprint("duration ", n)] = c
	}
	return cases
}

// TestChargesOfEpsilon checks that the seconds of all files are charged, and that a route that
// always makes sound costs the price with sound, though none was requested.
func TestChargesOfEpsilon(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"epsilon3.1-fast-official", "epsilon3.1-quality-official"} {
		quote := func(fields string) catalog.Request {
			r, err := operation(t, id).Accept(parse(t, body(t, id, fields)))
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		silent := quote(`"sample_count":4,"duration":6`)
		sounded := quote(`"sample_count":4,"duration":6,"generate_audio":true`)
		if c := silent.Charges[0]; c.Quantity != 24 || c.Files != 4 {
			t.Errorf("%s: charged %+v", id, c)
		}
		instead := [][]mediagate.Charge{silent.Instead[0], silent.Instead[1], sounded.Instead[0], sounded.Instead[1]}
		if diff := cmp.Diff([][]mediagate.Charge{nil, sounded.Charges, nil, nil}, instead); diff != "" {
			t.Errorf("%s: by routes that make another thing:\n%s", id, diff)
		}
	}
}
