package catalog_test

import (
	"maps"
	"strings"
)

func zetaCases() map[string]fieldCase {
	in := func(open, end string) func(string) string {
		return func(value string) string { return `"image_urls":[` + open + value + end + `]` }
	}
	sizes := strings.Fields("auto 1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 21:9 1:4 4:1 1:8 8:1")
	common := joined(promptCases(20_000), mediaCases("image_urls[0].url", in(`{"url":`, `}`)), integerCases("n", 1, 4),
		choiceCases("size", "1024x1024", sizes...), choiceCases("resolution", "8K", "0.5K", "1K", "2K", "4K"))
	cases := joined(common, map[string]fieldCase{
		"only what is required": {},
		"everything":            {`"prompt":"a","image_urls":["https://a.example.com/1",{"url":"https://a.example.com/2"}],"size":"8:1","resolution":"4K","n":4`, "", ""},
		"image_urls a text":     {`"image_urls":"https://a.example.com/1"`, "image_urls", "array"},
		"fourteen images":       {`"image_urls":` + urls(14), "", ""},
		"fifteen images":        {`"image_urls":` + urls(15), "image_urls", "at most 14 items"},
		"no image":              {`"image_urls":[]`, "", ""},
		"an object with more":   {`"image_urls":[{"url":"https://a.example.com/1","role":[1]}]`, "", ""},
		"an object without":     {`"image_urls":[{"uri":"https://a.example.com/1"}]`, "image_urls[0].url", "is required"},
	})
	// An object in place of the URL is the other form: of mediaCases all but that.
	maps.Copy(cases, mediaCases("image_urls[0]", in("", "")))
	return cases
}
