package catalog_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/catalog"
)

// talk is a model that takes messages, inputs within metadata, a list of which
// only the first item counts, and values that only checks bound. It is of a type
// without a contract, so that its fields need not say what they are.
const talk = `id: talk
type: music
operations:
  - endpoint: /v1/videos/generations
    schema:
      properties:
        prompt: {type: string, maxLength: 20}
        messages:
          type: array
          items:
            type: object
            properties:
              content:
                if: {type: array}
                then:
                  type: array
                  items:
                    type: object
                    properties:
                      type: {type: string, enum: [text, image_url]}
                      text: {type: string}
                      image_url: {$ref: "#/$defs/mediaItem"}
                    required: [type]
                else: {type: string}
            required: [content]
        image_urls:
          type: array
          maxItems: 2
          items: {$ref: "#/$defs/mediaURL"}
        video_urls:
          type: array
          prefixItems: [{$ref: "#/$defs/mediaURL"}]
        duration: {type: integer, minimum: 0, default: 0}
        size: {type: string, default: s}
        metadata:
          properties:
            sound: {type: string, enum: ["on", "off"], default: "on"}
            scene: {type: object, properties: {name: {type: string}}}
    fold:
      from: messages
      into: {text: prompt, image_url: image_urls}
    checks:
      - between: {field: duration, min: 0, max: 10}
      - among: {field: size, values: [s, l]}
    price:
      unit: second
      quantity: duration
      zero: 10
      by: [size]
      rows:
        - {size: s, price: "0.01"}
        - {size: l, price: "0.02"}
    routes:
      - {provider: acme, upstream: talk-1, operation: film}
    expected: 10s
    timeout: 10m
    on_unknown: park
    max_bytes: 1MiB
`

func talkOperation(t *testing.T) *catalog.Operation {
	t.Helper()
	c, err := catalog.LoadAlone(dir(t, map[string]string{"talk.yaml": talk}))
	if err != nil {
		t.Fatal(err)
	}
	return operationOf(t, c, "talk")
}

// TestFold checks that the content of messages becomes fields of the canonical request and that
// all else is dropped.
func TestFold(t *testing.T) {
	t.Parallel()
	o := talkOperation(t)
	const a, b, c = `"https://a.example.com/a"`, `"https://a.example.com/b"`, `"https://a.example.com/c"`
	const rest = `"duration":0,"size":"s","metadata":{"sound":"on"}`
	for name, tt := range map[string]struct{ body, want, param, rule string }{
		"nothing":            {body: ``, want: ``},
		"no messages":        {body: `"messages":[],"prompt":"x"`, want: `"prompt":"x"`},
		"a text":             {body: `"messages":[{"content":"x"}]`, want: `"prompt":"x"`},
		"texts, in order":    {body: `"prompt":"a","messages":[{"content":"b"},{"content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]}]`, want: `"prompt":"a\nb\nc\nd"`},
		"behind a blank":     {body: `"prompt":" ","messages":[{"content":"b"}]`, want: `"prompt":"b"`},
		"an image":           {body: `"messages":[{"content":[{"type":"image_url","image_url":` + a + `}]}]`, want: `"image_urls":[` + a + `]`},
		"an image as object": {body: `"messages":[{"content":[{"type":"image_url","image_url":{"url":` + a + `,"detail":"high"}}]}]`, want: `"image_urls":[` + a + `]`},
		"behind the images":  {body: `"image_urls":[` + a + `],"messages":[{"content":[{"type":"image_url","image_url":` + b + `}]}]`, want: `"image_urls":[` + a + `,` + b + `]`},
		"too many":           {body: `"image_urls":[` + a + `,` + b + `],"messages":[{"content":[{"type":"image_url","image_url":` + c + `}]}]`, param: "messages", rule: "messages and image_urls may hold at most 2 items together"},
		"20 characters":      {body: `"prompt":"語語語語語語語語語語","messages":[{"content":"語語語語語語語語語"}]`, want: `"prompt":"語語語語語語語語語語\n語語語語語語語語語"`},
		"21 characters":      {body: `"prompt":"語語語語語語語語語語","messages":[{"content":"語語語語語語語語語語"}]`, param: "messages", rule: "messages and prompt may hold at most 20 characters together"},
		"a wrong part":       {body: `"messages":[{"content":[{"type":"image_url","image_url":"x"}]}]`, param: "messages[0].content[0].image_url"},
		"an unknown part":    {body: `"messages":[{"content":[{"type":"audio"}]}]`, param: "messages[0].content[0].type", rule: "text or image_url"},

		"the first video counts": {body: `"video_urls":[` + a + `,` + b + `,5,{}]`, want: `"video_urls":[` + a + `]`},
		"the first is wrong":     {body: `"video_urls":["x",` + b + `]`, param: "video_urls[0]", rule: "URL"},
		"the first is a number":  {body: `"video_urls":[5]`, param: "video_urls[0]", rule: "URL"},

		"an input of metadata":     {body: `"metadata":{"sound":"off","reference":"r","else":{"a":1}}`, want: `"metadata":{"sound":"off"}`},
		"an input beside none":     {body: `"metadata":{"reference":"r"}`, want: `"metadata":{"sound":"on"}`},
		"an object of metadata":    {body: `"metadata":{"scene":{"name":"x","more":1}}`, want: `"metadata":{"sound":"on","scene":{"name":"x"}}`},
		"a wrong one":              {body: `"metadata":{"sound":"loud"}`, param: "metadata.sound", rule: "metadata.sound must be on or off"},
		"one of another kind":      {body: `"metadata":{"sound":1}`, param: "metadata.sound", rule: "must be on or off"},
		"metadata of another kind": {body: `"metadata":[]`, param: "metadata", rule: "object"},

		"between":      {body: `"duration":10`, want: `"duration":10`},
		"beyond":       {body: `"duration":11`, param: "duration", rule: "duration must be an integer between 0 and 10"},
		"among":        {body: `"size":"l"`, want: `"size":"l"`},
		"not among":    {body: `"size":"xl"`, param: "size", rule: "size must be s or l"},
		"schema first": {body: `"size":1,"duration":11`, param: "size", rule: "string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fields := tt.body
			if fields != "" {
				fields = "," + fields
			}
			r, err := o.Accept(parse(t, `{"model":"talk"`+fields+`}`))
			if tt.param != "" {
				if message := refusal(t, err, tt.param); !strings.Contains(message, tt.rule) {
					t.Errorf("message %q lacks %q", message, tt.rule)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := parse(t, `{`+rest+`}`)
			maps.Copy(want, parse(t, `{`+tt.want+`}`))
			if diff := cmp.Diff(want, parse(t, string(r.Params))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFieldsOfAFold checks that routes are compared with the fields of the canonical request.
func TestFieldsOfAFold(t *testing.T) {
	t.Parallel()
	want := []string{"prompt", "image_urls", "video_urls", "duration", "size", "metadata"}
	if diff := cmp.Diff(want, talkOperation(t).Fields()); diff != "" {
		t.Error(diff)
	}
}

// TestPriceOfZero checks that a quantity of zero without a meaning of its own is held for its
// possible maximum.
func TestPriceOfZero(t *testing.T) {
	t.Parallel()
	o := talkOperation(t)
	for duration, want := range map[string]int64{"0": 10, "1": 1, "10": 10} {
		r, err := o.Accept(parse(t, `{"model":"talk","duration":`+duration+`}`))
		if err != nil || r.Charges[0].Quantity != want {
			t.Errorf("duration %s: %+v, %v; want %d", duration, r.Charges, err, want)
		}
	}
}

// TestHoldsOfVideos checks that units which the vendor counts beyond the request are held.
func TestHoldsOfVideos(t *testing.T) {
	t.Parallel()
	video := func(fields string) string {
		return `"video_list":[{"video_url":"https://example.com/a.mp4"` + fields + `}]`
	}
	const videos = `"video_urls":["https://example.com/a.mp4","https://example.com/b.mp4"]`
	for name, tt := range map[string]struct {
		model, fields string
		want          int64
	}{
		"no video":             {"alpha-video-o1", `"duration":5`, 5},
		"a base video":         {"alpha-video-o1", `"duration":5,` + video(`,"refer_type":"base"`), 10},
		"one by default":       {"alpha-video-o1", video(``), 10},
		"of ten seconds":       {"alpha-video-o1", `"duration":10,` + video(``), 10},
		"one to refer to":      {"alpha-video-o1", `"duration":5,` + video(`,"refer_type":"feature"`), 5},
		"no reference":         {"gamma2.6", `"duration":5`, 5},
		"references":           {"gamma2.6", `"duration":5,` + videos, 10},
		"in messages":          {"gamma2.6", `"duration":10,"messages":[{"role":"user","content":[{"type":"video_url","video_url":"https://example.com/a.mp4"}]}]`, 15},
		"pictures":             {"gamma2.6", `"duration":5,"image_urls":["https://example.com/a.png"]`, 5},
		"H3 without":           {"delta-H3", `"duration":4,"image_urls":["https://example.com/a.png"]`, 4},
		"H3 with":              {"delta-H3", `"duration":15,` + videos, 30},
		"an edit":              {"gamma2.7-videoedit", videos, 10},
		"an edit of its begin": {"gamma2.7-videoedit", `"duration":4,` + videos, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := operation(t, tt.model).Accept(parse(t, body(t, tt.model, tt.fields)))
			if err != nil || r.Charges[0].Quantity != tt.want {
				t.Errorf("%+v, %v; want %d s", r.Charges, err, tt.want)
			}
		})
	}
}

func TestFoldRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ old, new, want string }{
		"a type that nobody takes":  {", image_url: image_urls}", "}", "fold: into: nothing takes parts of type image_url"},
		"a type that is none":       {"image_url: image_urls}", "image_url: image_urls, sound: image_urls}", `fold: into: parts have no "sound"`},
		"text into a list":          {"text: prompt", "text: image_urls", `fold: into: "image_urls" is no string`},
		"media into a text":         {"image_url: image_urls", "image_url: prompt", `fold: into: "prompt" is no array`},
		"media into nothing":        {"image_url: image_urls", "image_url: pictures", `fold: into: "pictures" is no array`},
		"a price by what is open":   {"      - among: {field: size, values: [s, l]}\n", "", "nothing can depend on it"},
		"a quantity that is open":   {"      - between: {field: duration, min: 0, max: 10}\n", "", "an upper bound"},
		"a row for what is outside": {"{size: l, price", "{size: xl, price", "size=xl, which the schema does not allow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(talk, tt.old, tt.new, 1)
			if text == talk {
				t.Fatal("nothing was replaced")
			}
			_, err := catalog.LoadAlone(dir(t, map[string]string{"talk.yaml": text}))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
