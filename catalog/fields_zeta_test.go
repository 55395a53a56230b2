package catalog_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

func zetaCases() map[string]fieldCase {
	in := func(open, end string) func(string) string {
		return func(value string) string { return `"image_urls":[` + open + value + end + `]` }
	}
	cases := joined(promptCases(20_000), mediaCases("image_urls[0].url", in(`{"url":`, `}`)), map[string]fieldCase{
		"only what is required": {},
		"everything":            {`"prompt":"a","image_urls":["https://a.example.com/1",{"url":"https://a.example.com/2"}],"size":"8:1","resolution":"4K","n":4`, "", ""},
		"image_urls a text":     {`"image_urls":"https://a.example.com/1"`, "image_urls", "array"},
		"image_urls an object":  {`"image_urls":{"url":"https://a.example.com/1"}`, "image_urls", "array"},
		"fourteen images":       {`"image_urls":` + urls(14), "", ""},
		"fifteen images":        {`"image_urls":` + urls(15), "image_urls", "at most 14 items"},
		"no image":              {`"image_urls":[]`, "", ""},
		"an object":             {`"image_urls":[{"url":"https://a.example.com/1"}]`, "", ""},
		"an object with more":   {`"image_urls":[{"url":"https://a.example.com/1","role":[1]}]`, "", ""},
		"both forms":            {`"image_urls":["https://a.example.com/1",{"url":"https://a.example.com/2"}]`, "", ""},
		"an object without":     {`"image_urls":[{"uri":"https://a.example.com/1"}]`, "image_urls[0].url", "is required"},
		"size 16:10":            {`"size":"16:10"`, "size", "auto, 1:1, 2:3"},
		"size of pixels":        {`"size":"1024x1024"`, "size", "auto, 1:1, 2:3"},
		"resolution 8K":         {`"resolution":"8K"`, "resolution", "0.5K, 1K, 2K or 4K"},
		"resolution 2k":         {`"resolution":"2k"`, "resolution", "0.5K, 1K, 2K or 4K"},
		"n 0":                   {`"n":0`, "n", "integer between 1 and 4"},
		"n 1":                   {`"n":1`, "", ""},
		"n 4":                   {`"n":4`, "", ""},
		"n 4.0":                 {`"n":4.0`, "", ""},
		"n 5":                   {`"n":5`, "n", "integer between 1 and 4"},
		"n a text":              {`"n":"2"`, "n", "JSON number, not as a string"},
	})
	// An object in place of the URL is the other form: of mediaCases all but that.
	maps.Copy(cases, mediaCases("image_urls[0]", in("", "")))
	for size := range strings.FieldsSeq("auto 1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 21:9 1:4 4:1 1:8 8:1") {
		cases["size "+size] = fieldCase{fmt.Sprintf(`"size":%q`, size), "", ""}
	}
	for resolution := range strings.FieldsSeq("0.5K 1K 2K 4K") {
		cases["resolution "+resolution] = fieldCase{fmt.Sprintf(`"resolution":%q`, resolution), "", ""}
	}
	return cases
}

// TestImagesOfZeta: both forms of an image are one in the canonical request,
// and the client's own body stays as it is.
func TestImagesOfZeta(t *testing.T) {
	t.Parallel()
	text := body(t, "zeta-2-ext", `"image_urls":[{"url":"https://a.example.com/1","x":1},"https://a.example.com/2"]`)
	given := parse(t, text)
	r, err := operation(t, "zeta-2-ext").Accept(given)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"https://a.example.com/1", "https://a.example.com/2"}, parse(t, string(r.Params))["image_urls"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(parse(t, text), given); diff != "" {
		t.Error(diff)
	}
}

// TestQuoteOfZeta: each image is charged, under the model's own name.
func TestQuoteOfZeta(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"zeta-3.1-flash-image-preview", "zeta-2-ext"} {
		r, err := operation(t, id).Accept(parse(t, body(t, id, `"n":3,"resolution":"2K"`)))
		if err != nil {
			t.Fatal(err)
		}
		want := []mediagate.Charge{{Item: "zeta-3.1-flash-image-preview 2K", Unit: mediagate.UnitImage, Quantity: 3, UnitPrice: 126_000}}
		if diff := cmp.Diff(want, r.Charges); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
}
