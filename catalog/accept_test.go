package catalog_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/catalog/price"
)

func TestAcceptHandsOverWebhookAndReference(t *testing.T) {
	t.Parallel()
	m := operation(t, "theta-image-turbo")
	r, err := m.Accept(parse(t, `{"model":"theta-image-turbo","prompt":"a","webhook":"https://hook.example.com","metadata":{"reference":"order 7","x":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if r.Webhook != "https://hook.example.com" || r.Reference != "order 7" {
		t.Errorf("webhook %q, reference %q", r.Webhook, r.Reference)
	}
	if strings.Contains(string(r.Params), "hook") || strings.Contains(string(r.Params), "order") {
		t.Errorf("params hold them: %s", r.Params)
	}
}

func TestAcceptIsDeterministic(t *testing.T) {
	t.Parallel()
	m := operation(t, "alpha-v3")
	given := parse(t, `{"model":"alpha-v3","prompt":"a","mode":1,"duration":"x","audio":1,"watermark":1,"element_list":[{},{}],"image_urls":["x","y","z"],"metadata":[],"webhook":1}`)
	for range 50 {
		_, err := m.Accept(given)
		refusal(t, err, "mode")
	}
}

func TestPriceFactor(t *testing.T) {
	t.Parallel()
	f, err := price.ParseFactor("0.5")
	if err != nil {
		t.Fatal(err)
	}
	r, err := operation(t, "alpha-v3").Accept(parse(t, `{"model":"alpha-v3","prompt":"a","duration":10}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []mediagate.Charge{{Item: "alpha-v3 std", Unit: mediagate.UnitSecond, Quantity: 10, UnitPrice: 42_000}}
	if diff := cmp.Diff(want, r.WithFactor(f).Charges); diff != "" {
		t.Error(diff)
	}
	if r.Charges[0].UnitPrice != 84_000 {
		t.Error("the request itself was changed")
	}
}

// TestMediaURLCheck checks that the injected check decides about media URLs and not about
// webhooks. mediaCases checks that it is called for every media field.
func TestMediaURLCheck(t *testing.T) {
	t.Parallel()
	c, err := catalog.Load("", catalog.WithMediaURLCheck(func(raw string) error {
		if strings.Contains(raw, "bad") {
			return mediagate.Invalid("", "it is bad")
		}
		if strings.Contains(raw, "odd") {
			return errors.New("an inner secret")
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	const bad = `"https://bad.example.com"`
	for name, tt := range map[string]struct{ model, fields, param, rule string }{
		"image":   {"alpha-v3", `"image_urls":[` + bad + `]`, "image_urls[0]", "it is bad"},
		"foreign": {"alpha-v3", `"image_urls":["https://odd.example.com"]`, "image_urls[0]", "absolute http or https URL"},
		"element": {"alpha-v3", `"element_list":[{"name":"a","description":"b","element_input_urls":["https://a.example.com",` + bad + `]}]`, "element_list[0].element_input_urls[1]", "it is bad"},
		"frame":   {"delta-02", `"first_frame_image":` + bad, "first_frame_image", "is refused: it is bad"},
		"second":  {"gamma2.7-videoedit", `"video_urls":["https://a.example.com",` + bad + `]`, "", ""},
		"webhook": {"alpha-v3", `"webhook":` + bad, "", ""},
		"private": {"alpha-v3", `"image_urls":["http://127.0.0.1:9/a.png"]`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := operationOf(t, c, tt.model)
			_, err := m.Accept(parse(t, body(t, tt.model, tt.fields)))
			if tt.param == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if message := refusal(t, err, tt.param); !strings.Contains(message, tt.rule) || strings.Contains(message, "secret") {
				t.Errorf("message %q", message)
			}
		})
	}
}

// TestTaskFileInText checks that a task's file in a text is refused: a vendor downloads the URLs
// of a text and has no key.
func TestTaskFileInText(t *testing.T) {
	t.Parallel()
	const ours = "https://api.example.com"
	c, err := catalog.Load("", catalog.WithTaskFileOf(func(url string) (string, int, bool) {
		path, _ := strings.CutPrefix(url, ours)
		return mediagate.ParseTaskFile(path)
	}))
	if err != nil {
		t.Fatal(err)
	}
	o := operationOf(t, c, "art /v1/artgen/generations/imagine")
	const file = "/v1/tasks/task_01KAJ5XW4M9Q7T2C8N6BVRE3HD/files/1"
	if _, err := o.Accept(parse(t, `{"prompt":"https://example.com`+file+` a boat"}`)); err != nil {
		t.Error("another host's: ", err)
	}
	_, err = o.Accept(parse(t, `{"prompt":"`+ours+file+` a boat"}`))
	if message := refusal(t, err, "prompt"); !strings.Contains(message, "only where a field has a media URL") {
		t.Errorf("message %q", message)
	}
}

// nest returns a value of the depth.
func nest(depth int) any {
	var v any = json.Number("1")
	for i := range depth {
		if i%2 == 0 {
			v = []any{v}
		} else {
			v = map[string]any{"prompt": v, "index": v, "url": v}
		}
	}
	return v
}

// TestHostileInput passes values that a strict parser would have refused.
func TestHostileInput(t *testing.T) {
	t.Parallel()
	many := make([]any, 500_000)
	for i := range many {
		many[i] = json.Number("1")
	}
	ids := []string{"alpha-v3", "alpha-video-o1", "beta-q3", "theta-image-turbo", "delta-02", "delta-2.3", "delta-H3", "zeta-2-ext", "gamma2.6", "gamma2.7-videoedit"}
	fields := []string{
		"model", "prompt", "negative_prompt", "mode", "duration", "aspect_ratio", "image_urls", "watermark", "audio", "multi_shot", "shot_type",
		"multi_prompt", "element_list", "video_list", "size", "resolution", "prompt_extend", "n", "first_frame_image", "last_frame_image", "video_urls", "audio_urls", "seed", "messages", "image_with_roles", "webhook", "metadata", "unknown",
	}
	values := map[string]any{
		"deep list":     nest(10_001),
		"deep object":   nest(10_000),
		"long list":     many,
		"tiny number":   json.Number("1e-999999999"),
		"huge number":   json.Number("1e999999999"),
		"list of tiny":  []any{json.Number("1e-999999999")},
		"long text":     strings.Repeat("語", 1<<20),
		"broken UTF-8":  "\xff\xfe",
		"NUL":           "\x00",
		"many objects":  []any{map[string]any{}, map[string]any{}, map[string]any{"index": nest(10_000)}},
		"empty object":  map[string]any{},
		"not a decoder": struct{}{},
		"endless data":  "data:image/png;base64," + strings.Repeat("A", 1<<20),
		"odd data":      "data:image/png;base64,\x00=",
		"odd messages":  []any{map[string]any{"role": "user", "content": nest(10_000)}, map[string]any{"role": "user", "content": []any{map[string]any{"type": "image_url", "image_url": map[string]any{"url": many}}}}},
		"many as items": []any{map[string]any{"url": nest(10_000)}, map[string]any{"url": many}},
	}
	for _, id := range ids {
		m := operation(t, id)
		for name, v := range values {
			t.Run(id+"/"+name, func(t *testing.T) {
				t.Parallel()
				for _, field := range fields {
					given := parse(t, body(t, id, `"multi_shot":true,"shot_type":"customize"`))
					given[field] = v
					r, err := m.Accept(given)
					var e *mediagate.Error
					switch {
					case err == nil && !json.Valid(r.Params):
						t.Errorf("%s: params are no JSON", field)
					case err != nil && (!errors.As(err, &e) || e.Kind != mediagate.KindInvalid):
						t.Errorf("%s: %v", field, err)
					case err != nil && len(e.Message) > 300:
						t.Errorf("%s: a message of %d characters", field, len(e.Message))
					}
				}
			})
		}
	}
}
