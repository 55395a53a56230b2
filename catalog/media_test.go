package catalog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

// withMedia is a model that takes files in every way there is.
var withMedia = strings.Replace(noted, "        parts:\n", `        length: {title: Length, description: How long., type: integer, minimum: 0, maximum: 10, default: 0, examples: [5]}
        first_frame: {title: First frame, description: How it begins., $ref: "#/$defs/frame", examples: ["https://example.com/1.png"], x-media: {kind: image, min_side: 300}}
        films:
          title: Films
          description: What to edit.
          type: array
          items: {$ref: "#/$defs/mediaURL"}
          examples: [["https://example.com/1.mp4"]]
          x-media: {kind: video, formats: [mp4, mov], min_side: 240, max_side: 4096, min_ratio: "1:8", max_ratio: "8:1", min_seconds: 2, max_seconds: 10, max_bytes: 100MiB, first: 1, covers: length}
        roles:
          title: Images by their role
          description: What each is for.
          type: array
          items:
            type: object
            properties:
              url: {title: Address, description: Where it is., $ref: "#/$defs/mediaURL", examples: ["https://example.com/1.png"], x-media: {kind: image}}
              role: {title: Role, description: What it is for., type: string, enum: [first, last]}
          examples: [[{url: "https://example.com/1.png", role: first}]]
          x-media: {kind: image, max_side: 4000}
        parts:
`, 1)

// TestInputs checks that the plan names each file with a bound, without its address.
func TestInputs(t *testing.T) {
	t.Parallel()
	image := func(field string, b mediagate.MediaBounds) mediagate.Input {
		b.Kind = "image"
		return mediagate.Input{Field: field, MediaBounds: b}
	}
	film := mediagate.Input{Field: "films[0]", MediaBounds: mediagate.MediaBounds{
		Kind: "video", Formats: []string{"mp4", "mov"}, MinSide: 240, MaxSide: 4096, MinRatio: mediagate.Ratio{Width: 1, Height: 8},
		MaxRatio: mediagate.Ratio{Width: 8, Height: 1}, MinSeconds: 2, MaxSeconds: 10, MaxBytes: 100 << 20,
	}}
	long := film
	long.Covers = &mediagate.Covers{Field: "length", Seconds: 7}
	const url = `"https://example.com/hush-hush"`
	for name, c := range map[string]struct {
		fields string
		want   []mediagate.Input
	}{
		"none":                    {``, nil},
		"of a kind alone":         {`"look":[` + url + `,{"url":` + url + `}],"parts":[{"at":` + url + `}]`, nil},
		"one":                     {`"first_frame":` + url, []mediagate.Input{image("first_frame", mediagate.MediaBounds{MinSide: 300})}},
		"one within the request":  {`"first_frame":"data:image/png;base64,AAAA"`, []mediagate.Input{image("first_frame", mediagate.MediaBounds{MinSide: 300})}},
		"the first of several":    {`"films":[` + url + `,` + url + `]`, []mediagate.Input{film}},
		"as long as it has to be": {`"length":7,"films":[` + url + `]`, []mediagate.Input{long}},
		"of objects": {`"roles":[{"url":` + url + `,"role":"last"},{"role":"first"},{"url":` + url + `}]`, []mediagate.Input{
			image("roles[0].url", mediagate.MediaBounds{MaxSide: 4000}), image("roles[2].url", mediagate.MediaBounds{MaxSide: 4000}),
		}},
		"in the order of the schema": {`"films":[` + url + `],"first_frame":` + url, []mediagate.Input{
			image("first_frame", mediagate.MediaBounds{MinSide: 300}), film,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			catalog, err := catalog.LoadAlone(dir(t, map[string]string{"omega.yaml": withMedia}))
			if err != nil {
				t.Fatal(err)
			}
			r, err := operationOf(t, catalog, "omega").Accept(parse(t, body(t, "omega", c.fields)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.Plan.Inputs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMediaRulesAreStrict checks that an invalid bound is an error of the file, since it would
// allow everything.
func TestMediaRulesAreStrict(t *testing.T) {
	t.Parallel()
	const at = "properties.first_frame: x-media"
	for name, c := range map[string]struct{ rule, want string }{
		"an unknown key":        {"{kind: image, min_width: 5}", at + ": "},
		"no map":                {"image", at + ": "},
		"a list":                {"[image]", at + ": "},
		"a text for a number":   {"{kind: image, min_side: wide}", at + ": "},
		"an unknown format":     {"{kind: image, formats: [jpg]}", at + `.formats: "jpg" is none of png, jpeg, webp, gif and avif`},
		"another kind's format": {"{kind: image, formats: [mp4]}", at + `.formats: "mp4" is none of`},
		"no side":               {"{kind: image, min_side: 0}", at + ".min_side must be above 0"},
		"less than none":        {"{kind: image, max_side: -1}", at + ".max_side must be above 0"},
		"sides crossed":         {"{kind: image, min_side: 2, max_side: 1}", at + ".min_side is above max_side"},
		"no ratio":              {`{kind: image, min_ratio: "4"}`, at + `.min_ratio: "4" is not a ratio`},
		"ratios crossed":        {`{kind: image, min_ratio: "4:1", max_ratio: "1:4"}`, at + ".min_ratio is above max_ratio"},
		"lengths crossed":       {"{kind: video, min_seconds: 3, max_seconds: 2}", at + ".min_seconds is above max_seconds"},
		"no length":             {"{kind: video, min_seconds: 0}", at + ".min_seconds must be above 0"},
		"an image's length":     {"{kind: image, max_seconds: 2}", at + ".kind: an image has no length"},
		"an image that covers":  {"{kind: image, covers: length}", at + ".kind: an image has no length"},
		"a sound's sides":       {"{kind: audio, max_side: 2}", at + ".kind: a sound has no sides"},
		"no size":               {"{kind: image, max_bytes: 0}", at + ": "},
		"a size of no unit":     {"{kind: image, max_bytes: 5MB}", at + ": "},
		"the first of one":      {"{kind: image, first: 1}", at + ".first is for lists"},
		"covers nothing":        {"{kind: video, covers: none}", at + `.covers: "none" is no integer field of the request`},
		"covers a text":         {"{kind: video, covers: prompt}", at + `.covers: "prompt" is no integer field of the request`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(withMedia, "{kind: image, min_side: 300}", c.rule, 1)
			if text == withMedia {
				t.Fatal("nothing was replaced")
			}
			_, err := catalog.LoadAlone(dir(t, map[string]string{"omega.yaml": text}))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	text := strings.Replace(withMedia, "description: How long.,", "description: How long., x-media: {kind: video},", 1)
	_, err := catalog.LoadAlone(dir(t, map[string]string{"omega.yaml": text}))
	if err == nil || !strings.Contains(err.Error(), "properties.length: x-media: the field takes no media") {
		t.Errorf("a field of no media: %v", err)
	}
}
