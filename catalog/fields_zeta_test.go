package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

func TestFieldsOfZeta(t *testing.T) {
	t.Parallel()
	cases := map[string]fieldCase{
		"only what is required": {},
		"prompt missing":        {`"prompt":null`, "prompt", "is required"},
		"prompt blank":          {`"prompt":" "`, "prompt", "is required"},
		"prompt of 20000":       {`"prompt":` + quoted("語", 20_000), "", ""},
		"prompt of 20001":       {`"prompt":` + quoted("語", 20_001), "prompt", "1 to 20000 characters"},
		"fourteen images":       {`"image_urls":` + urls(14), "", ""},
		"fifteen images":        {`"image_urls":` + urls(15), "image_urls", "at most 14 items"},
		"no image":              {`"image_urls":[]`, "", ""},
		"an object":             {`"image_urls":[{"url":"https://a.example.com/1"}]`, "", ""},
		"an object with more":   {`"image_urls":[{"url":"https://a.example.com/1","role":[1]}]`, "", ""},
		"both forms":            {`"image_urls":["https://a.example.com/1",{"url":"https://a.example.com/2"}]`, "", ""},
		"an object without":     {`"image_urls":[{"uri":"https://a.example.com/1"}]`, "image_urls[0].url", "is required"},
		"an object of null":     {`"image_urls":[{"url":null}]`, "image_urls[0].url", "URL"},
		"an object of a list":   {`"image_urls":[{"url":["https://a.example.com/1"]}]`, "image_urls[0].url", "http or https URL of at most 2048 characters"},
		"an object, private":    {`"image_urls":["https://a.example.com/1",{"url":"http://10.0.0.1"}]`, "image_urls[1].url", "is refused: "},
		"an object of 2049":     {`"image_urls":[{"url":` + urlOf(2049) + `}]`, "image_urls[0].url", "2048"},
		"an image private":      {`"image_urls":["http://127.0.0.1/"]`, "image_urls[0]", "is refused: "},
		"an image of 2049":      {`"image_urls":[` + urlOf(2049) + `]`, "image_urls[0]", "2048"},
		"an image as data":      {`"image_urls":["data:image/png;base64,iVBORw0KGgo="]`, "image_urls[0]", ""},
		"an image of a number":  {`"image_urls":[1]`, "image_urls[0]", "http or https URL of at most 2048 characters"},
		"an image of a list":    {`"image_urls":[["https://a.example.com/1"]]`, "image_urls[0]", "http or https URL of at most 2048 characters"},
		"image_urls an object":  {`"image_urls":{"url":"https://a.example.com/1"}`, "image_urls", "array"},
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
	}
	for size := range strings.FieldsSeq("auto 1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 21:9 1:4 4:1 1:8 8:1") {
		cases["size "+size] = fieldCase{fmt.Sprintf(`"size":%q`, size), "", ""}
	}
	for resolution := range strings.FieldsSeq("0.5K 1K 2K 4K") {
		cases["resolution "+resolution] = fieldCase{fmt.Sprintf(`"resolution":%q`, resolution), "", ""}
	}
	for _, id := range []string{"zeta-3.1-flash-image-preview", "zeta-2-ext"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			runFieldCases(t, id, cases)
		})
	}
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
		want := []mediagate.Charge{{Item: "zeta-3.1-flash-image-preview 2K", Unit: mediagate.UnitImage, Quantity: 3, UnitPrice: 101_000}}
		if diff := cmp.Diff(want, r.Charges); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
}
