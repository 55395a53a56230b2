package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

var epsilons = []string{"epsilon3.1-fast-official", "epsilon3.1-quality-official"}

func epsilonCases() map[string]fieldCase {
	const first, last = `"first_frame_image":"https://a.example.com/1"`, `"last_frame_image":"https://a.example.com/2"`
	const together = "is only possible together with first_frame_image"
	frame := func(field, beside string) map[string]fieldCase {
		return mediaCases(field, func(value string) string { return beside + `"` + field + `":` + value })
	}
	cases := joined(promptCases(0), frame("first_frame_image", ""), frame("last_frame_image", first+`,`), map[string]fieldCase{
		"everything": {
			`"prompt":"a","negative_prompt":"b","duration":8,"aspect_ratio":"9:16","resolution":"4K","resize_mode":"crop","seed":1,"sample_count":4,` +
				`"generate_audio":true,"person_generation":"disallow","enhance_prompt":true,` + first + `,` + last, "", "",
		},
		"only what is required":         {},
		"negative_prompt":               {`"negative_prompt":"rain"`, "", ""},
		"negative_prompt a list":        {`"negative_prompt":["rain"]`, "negative_prompt", "string"},
		"duration a text":               {`"duration":"8"`, "duration", "must be 4, 6 or 8, sent as a JSON number, not as a string"},
		"duration 8.0":                  {`"duration":8.0`, "", ""},
		"duration null":                 {`"duration":null`, "", ""},
		"aspect_ratio 16:9":             {`"aspect_ratio":"16:9"`, "", ""},
		"person_generation allow_adult": {`"person_generation":"allow_adult"`, "", ""},
		"aspect_ratio 1:1":              {`"aspect_ratio":"1:1"`, "aspect_ratio", "16:9 or 9:16"},
		"resolution 4k":                 {`"resolution":"4k"`, "resolution", "720p, 1080p or 4K"},
		"resolution 720P":               {`"resolution":"720P"`, "resolution", "720p, 1080p or 4K"},
		"1080p without a duration":      {`"resolution":"1080p"`, "", ""},
		"1080p, 6 s":                    {`"resolution":"1080p","duration":6`, "duration", "must be 8 when resolution is 1080p or 4K"},
		"1080p, 8 s":                    {`"resolution":"1080p","duration":8`, "", ""},
		"4K, 4 s":                       {`"resolution":"4K","duration":4`, "duration", "must be 8 when resolution is 1080p or 4K"},
		"4K, 8 s":                       {`"resolution":"4K","duration":8`, "", ""},
		"720p, 4 s":                     {`"resolution":"720p","duration":4`, "", ""},
		"first frame":                   {first, "", ""},
		"both frames":                   {first + "," + last, "", ""},
		"last frame alone":              {last, "last_frame_image", together},
		"last frame, first null":        {last + `,"first_frame_image":null`, "last_frame_image", together},
		"resize_mode alone":             {`"resize_mode":"pad"`, "resize_mode", together},
		"resize_mode null":              {`"resize_mode":null`, "", ""},
		"resize_mode pad":               {first + `,"resize_mode":"pad"`, "", ""},
		"resize_mode crop":              {first + `,"resize_mode":"crop"`, "", ""},
		"resize_mode stretch":           {first + `,"resize_mode":"stretch"`, "resize_mode", "pad or crop"},
		"seed 0":                        {`"seed":0`, "", ""},
		"seed 4294967295":               {`"seed":4294967295`, "", ""},
		"seed 4294967296":               {`"seed":4294967296`, "seed", "between 0 and 4294967295"},
		"seed -1":                       {`"seed":-1`, "seed", "between 0 and 4294967295"},
		"seed a text":                   {`"seed":"1"`, "seed", "JSON number, not as a string"},
		"sample_count 0":                {`"sample_count":0`, "sample_count", "between 1 and 4"},
		"sample_count 1":                {`"sample_count":1`, "", ""},
		"sample_count 4":                {`"sample_count":4`, "", ""},
		"sample_count 5":                {`"sample_count":5`, "sample_count", "between 1 and 4"},
		"sample_count 1.5":              {`"sample_count":1.5`, "sample_count", "integer"},
		"generate_audio true":           {`"generate_audio":true`, "", ""},
		"generate_audio a text":         {`"generate_audio":"yes"`, "generate_audio", "true or false"},
		"person_generation disallow":    {`"person_generation":"disallow"`, "", ""},
		"person_generation allow_all":   {`"person_generation":"allow_all"`, "person_generation", "allow_adult or disallow"},
		"enhance_prompt true":           {`"enhance_prompt":true`, "", ""},
		"enhance_prompt false":          {`"enhance_prompt":false`, "enhance_prompt", "must be true"},
		"enhance_prompt a number":       {`"enhance_prompt":1`, "enhance_prompt", "must be true"},
		"fields of others":              {`"image_urls":5,"mode":[],"watermark":"x"`, "", ""},
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

// TestQuoteOfEpsilon: the seconds of all videos are charged, by size and sound.
func TestQuoteOfEpsilon(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fields string
		fast   mediagate.Charge
		price  mediagate.Micros // of the other
	}{
		"nothing said":   {``, mediagate.Charge{Item: "720p", Quantity: 8, UnitPrice: 100_000}, 200_000},
		"four":           {`"sample_count":4,"duration":6`, mediagate.Charge{Item: "720p", Quantity: 24, Files: 4, UnitPrice: 100_000}, 200_000},
		"with sound":     {`"generate_audio":true`, mediagate.Charge{Item: "720p generate audio", Quantity: 8, UnitPrice: 150_000}, 400_000},
		"large":          {`"resolution":"4K","sample_count":2`, mediagate.Charge{Item: "4K", Quantity: 16, Files: 2, UnitPrice: 300_000}, 400_000},
		"large, sounded": {`"resolution":"4K","generate_audio":true`, mediagate.Charge{Item: "4K generate audio", Quantity: 8, UnitPrice: 350_000}, 600_000},
	} {
		for i, id := range epsilons {
			t.Run(id+" "+name, func(t *testing.T) {
				t.Parallel()
				r, err := operation(t, id).Accept(parse(t, body(t, id, tt.fields)))
				if err != nil {
					t.Fatal(err)
				}
				want := tt.fast
				want.Item, want.Unit = id+" "+want.Item, mediagate.UnitSecond
				if i > 0 {
					want.UnitPrice = tt.price
				}
				if diff := cmp.Diff([]mediagate.Charge{want}, r.Charges); diff != "" {
					t.Error(diff)
				}
				var instead []mediagate.Charge // by the route that makes each with sound
				if !strings.Contains(tt.fields, "generate_audio") {
					sounded, err := operation(t, id).Accept(parse(t, body(t, id, strings.Trim(tt.fields+`,"generate_audio":true`, ","))))
					if err != nil {
						t.Fatal(err)
					}
					instead = sounded.Charges
				}
				if diff := cmp.Diff([][]mediagate.Charge{nil, instead}, [][]mediagate.Charge{r.Instead[0], r.Instead[1]}); diff != "" {
					t.Errorf("by routes that make another thing:\n%s", diff)
				}
			})
		}
	}
}

// TestSchemaOfEpsilon: who builds a form from the schema finds a title and a
// description of each field.
func TestSchemaOfEpsilon(t *testing.T) {
	t.Parallel()
	for _, id := range epsilons {
		o := operation(t, id)
		properties, _ := parse(t, string(o.Schema()))["properties"].(map[string]any)
		for _, name := range o.Fields() {
			field, _ := properties[name].(map[string]any)
			for _, key := range []string{"title", "description"} {
				if text, _ := field[key].(string); strings.TrimSpace(text) == "" {
					t.Errorf("%s: %s has no %s", id, name, key)
				}
			}
		}
	}
}
