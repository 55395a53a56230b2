package catalog_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/catalog"
)

// songs is a family of models at endpoints that find them in every way.
const (
	songMusic = `id: tune-b
type: music
operations:
  - endpoint: /v1/music/generations
    schema: {properties: {sound_prompt: {type: string, maxLength: 100}}, required: [sound_prompt]}
    price: {unit: song, rows: [{price: "0.05"}]}
    routes: [{provider: acme, upstream: b, operation: song}]
    expected: 10s
    timeout: 10m
    on_unknown: park
    max_bytes: 1MiB
  - endpoint: /v1/music/generations/stems
    schema: {properties: {clip_id: {type: string}}, required: [clip_id]}
    price: {unit: operation, rows: [{price: "0.02"}]}
    routes: [{provider: acme, upstream: b, operation: stems}]
    expected: 10s
    timeout: 10m
    on_unknown: park
    max_bytes: 1MiB
`
	songArt = `id: paint
type: art
operations:
  - endpoint: /v1/artgen/generations
    action: IMAGINE
    schema: {properties: {prompt: {title: Prompt, type: string, description: What it shows., examples: [a cat]}}, required: [prompt]}
    price: {unit: operation, rows: [{price: "0.1"}]}
    routes: [{provider: acme, upstream: art, operation: imagine}]
    expected: 10s
    timeout: 10m
    on_unknown: park
    max_bytes: 1MiB
`
	songSpeech = `id: eta
type: speech
operations:
  - endpoint: /v1/audio/speech
    schema: {properties: {input: {type: string, minLength: 1, maxLength: 4096}}, required: [input]}
    price: {unit: character, quantity: input, rows: [{price: "0.000015"}]}
    routes: [{provider: acme, upstream: tts, operation: speech}]
    expected: 10s
    timeout: 1m
    on_unknown: fail
    max_bytes: 1MiB
`
)

// families returns a catalog of only these three models.
func families(t *testing.T, more map[string]string) (*catalog.Catalog, error) {
	t.Helper()
	files := map[string]string{"tune-b.yaml": songMusic, "paint.yaml": songArt, "eta.yaml": songSpeech}
	maps.Copy(files, more)
	return catalog.LoadAlone(dir(t, files), catalog.WithEndpoints(
		catalog.Endpoint{Path: "/v1/music/generations", AnyCase: true},
		catalog.Endpoint{Path: "/v1/music/generations/stems", Model: "tune-b", AnyCase: true},
		catalog.Endpoint{Path: "/v1/music/generations/remaster", Model: "music-a", AnyCase: true},
		catalog.Endpoint{Path: "/v1/artgen/generations", Model: "paint", Fixed: true},
		catalog.Endpoint{Path: "/v1/audio/speech"},
	))
}

func TestFind(t *testing.T) {
	t.Parallel()
	c, err := families(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	const (
		music, stems, remaster = "/v1/music/generations", "/v1/music/generations/stems", "/v1/music/generations/remaster"
		art, speech            = "/v1/artgen/generations", "/v1/audio/speech"
	)
	for name, tt := range map[string]struct {
		endpoint, body string
		model, message string // one of them
	}{
		"named":                     {music, `{"model":"tune-b"}`, "tune-b", ""},
		"named in capitals":         {music, `{"model":"TUNE-B"}`, "tune-b", ""},
		"required":                  {music, `{}`, "", "model is required"},
		"null":                      {music, `{"model":null}`, "", "model is required"},
		"blank":                     {music, `{"model":" "}`, "", "model is required"},
		"a number":                  {music, `{"model":1}`, "", "model must be a string"},
		"unknown":                   {music, `{"model":"tune-c"}`, "", `unknown model "tune-c"`},
		"optional, none":            {stems, `{}`, "tune-b", ""},
		"optional, blank":           {stems, `{"model":""}`, "tune-b", ""},
		"optional, named":           {stems, `{"model":"Tune-B"}`, "tune-b", ""},
		"optional, a number":        {stems, `{"model":1}`, "", "model must be a string"},
		"optional, elsewhere":       {stems, `{"model":"eta"}`, "", `model "eta" is not served at /v1/music/generations/stems, but at /v1/audio/speech`},
		"the default is not there":  {remaster, `{}`, "", `unknown model "music-a"`},
		"served at several":         {remaster, `{"model":"tune-b"}`, "", `model "tune-b" is not served at /v1/music/generations/remaster, but at /v1/music/generations and /v1/music/generations/stems`},
		"fixed":                     {art, `{}`, "paint", ""},
		"fixed, whatever is said":   {art, `{"model":[1]}`, "paint", ""},
		"exact":                     {speech, `{"model":"eta"}`, "eta", ""},
		"exact, in capitals":        {speech, `{"model":"ETA"}`, "", `unknown model "ETA"`},
		"a long name":               {speech, `{"model":` + quoted("x", 1000) + `}`, "", `unknown model "` + strings.Repeat("x", 100) + `…"`},
		"a name to find by folding": {speech, `{"model":"Music-b"}`, "", `unknown model "Music-b"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := c.Find(tt.endpoint, parse(t, tt.body))
			if tt.message != "" {
				if got := refusal(t, err, "model"); got != tt.message {
					t.Errorf("message %s, want %s", got, tt.message)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if o.Model.ID != tt.model || o.Endpoint != tt.endpoint {
				t.Errorf("%s at %s", o.Model.ID, o.Endpoint)
			}
		})
	}
	_, err = c.Find("/v1/films", parse(t, `{}`))
	refusal(t, err, "endpoint")
}

// TestAcceptWhatFindFound checks that Accept agrees with Find for each way to name the model, and
// that a schema requires a name only if the endpoint does.
func TestAcceptWhatFindFound(t *testing.T) {
	t.Parallel()
	c, err := families(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ endpoint, body, required, item string }{
		"any case": {"/v1/music/generations", `{"model":"TUNE-B","sound_prompt":"rain"}`, "[model sound_prompt]", "tune-b: 1 × 0.05 a song"},
		"default":  {"/v1/music/generations/stems", `{"clip_id":"1"}`, "[clip_id]", "tune-b: 1 × 0.02 a operation"},
		"fixed":    {"/v1/artgen/generations", `{"model":5,"prompt":"a"}`, "[prompt]", "paint: 1 × 0.10 a operation"},
		"speech":   {"/v1/audio/speech", `{"model":"eta","input":"héllo 語"}`, "[model input]", "eta: 7 × 0.000015 a character"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := parse(t, tt.body)
			o, err := c.Find(tt.endpoint, given)
			if err != nil {
				t.Fatal(err)
			}
			r, err := o.Accept(given)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(r.Params), "model") {
				t.Errorf("params %s", r.Params)
			}
			if got := fmt.Sprint(parse(t, string(o.Schema()))["required"]); got != tt.required {
				t.Errorf("required %s, want %s", got, tt.required)
			}
			line := r.Charges[0]
			if got := fmt.Sprintf("%s: %d × %s a %s", line.Item, line.Quantity, line.UnitPrice, line.Unit); got != tt.item {
				t.Errorf("%s, want %s", got, tt.item)
			}
		})
	}
}

// TestMediaFollowsTheType checks the default media of each type.
func TestMediaFollowsTheType(t *testing.T) {
	t.Parallel()
	c, err := families(t, map[string]string{"tune-b.yaml": strings.Replace(songMusic, "operation: stems}]", "operation: stems}]\n    media: image", 1)})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range c.Models() {
		for _, o := range m.Operations() {
			got[o.Endpoint] = m.Category + " " + o.Media()
		}
	}
	want := map[string]string{
		"/v1/music/generations": "audio audio", "/v1/music/generations/stems": "audio image",
		"/v1/artgen/generations": "image image", "/v1/audio/speech": "audio audio",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCaseThatDoesNotCount checks that two names that differ only in case are refused, since a
// request could mean either.
func TestCaseThatDoesNotCount(t *testing.T) {
	t.Parallel()
	_, err := families(t, map[string]string{"again.yaml": strings.Replace(songMusic, "id: tune-b", "id: Tune-B", 1)})
	if err == nil || !strings.Contains(err.Error(), "differs from Tune-B in letter case only") {
		t.Errorf("%v", err)
	}
}
