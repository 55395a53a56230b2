package catalog_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog/price"
)

func accept(t *testing.T, id, fields string) (params map[string]any, plan mediagate.Plan, hold mediagate.Micros) {
	t.Helper()
	r, err := operation(t, id).Accept(parse(t, body(t, id, fields)))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(r.Params)), r.Plan, price.Total(r.Charges)
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]map[string]any{
		"alpha-v3": {
			"prompt": "a boat", "mode": "std", "duration": json.Number("5"), "aspect_ratio": "16:9", "audio": false, "multi_shot": false,
		},
		"alpha-video-o1": {
			"prompt": "a boat", "mode": "std", "duration": json.Number("5"), "aspect_ratio": "16:9",
		},
		"theta-image-turbo": {
			"prompt": "a boat", "size": "1:1", "resolution": "1K", "prompt_extend": false,
		},
		"beta-q3": {
			"prompt": "a boat", "image_urls": []any{"https://media.example.com/0.png"}, "duration": json.Number("5"), "resolution": "720p",
			"aspect_ratio": "16:9", "audio": true,
		},
		"beta-q3-mix": {
			"prompt": "a boat", "image_urls": []any{"https://media.example.com/0.png"}, "duration": json.Number("5"), "resolution": "720p",
			"aspect_ratio": "16:9", "audio": true,
		},
		"delta-02": {
			"prompt": "a boat", "duration": json.Number("5"), "resolution": "768p", "prompt_optimizer": true, "fast_pretreatment": false,
			"watermark": false,
		},
		"delta-2.3": {
			"prompt": "a boat", "duration": json.Number("5"), "resolution": "768p", "prompt_optimizer": true, "fast_pretreatment": false,
			"watermark": false,
		},
		"delta-H3": {
			"prompt": "a boat", "duration": json.Number("5"), "resolution": "768P", "aspect_ratio": "16:9",
		},
		"gamma2.6": {
			"prompt": "a boat", "duration": json.Number("5"), "resolution": "720P", "aspect_ratio": "16:9", "audio": true,
			"prompt_extend": true, "watermark": false,
		},
		"gamma2.7-videoedit": {
			"prompt": "a boat", "video_urls": []any{"https://media.example.com/a.mp4"}, "duration": json.Number("0"),
			"resolution": "1080P", "prompt_extend": true, "watermark": false, "metadata": map[string]any{"audio_setting": "auto"},
		},
		"zeta-3.1-flash-image-preview": {
			"prompt": "a boat", "size": "auto", "resolution": "1K", "n": json.Number("1"),
		},
		"zeta-2-ext": {
			"prompt": "a boat", "size": "auto", "resolution": "1K", "n": json.Number("1"),
		},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			params, _, _ := accept(t, id, "")
			if diff := cmp.Diff(want, params); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestExplicitValuesTravel: what equals a default is sent all the same.
func TestExplicitValuesTravel(t *testing.T) {
	t.Parallel()
	params, _, _ := accept(t, "alpha-v3", `"watermark":false,"negative_prompt":" ","mode":"std"`)
	for _, name := range []string{"watermark", "negative_prompt", "mode"} {
		if _, ok := params[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
}

// TestPrices holds each price, so that a changed one is a decision.
func TestPrices(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model, fields, want string
	}{
		{"alpha-v3", `"mode":"std"`, "0.42"},
		{"alpha-v3", `"mode":"std","audio":true`, "0.63"},
		{"alpha-v3", `"mode":"pro"`, "0.56"},
		{"alpha-v3", `"mode":"pro","audio":true`, "0.84"},
		{"alpha-v3", `"mode":"4k"`, "1.68"},
		{"alpha-v3", `"mode":"4k","audio":true`, "2.52"},
		{"alpha-v3", `"duration":3`, "0.252"},
		{"alpha-v3", `"duration":15`, "1.26"},
		{"alpha-video-o1", `"mode":"std"`, "0.42"},
		{"alpha-video-o1", `"mode":"pro","duration":10`, "1.12"},
		{"beta-q3", `"resolution":"540p"`, "0.25"},
		{"beta-q3", ``, "0.5"},
		{"beta-q3", `"resolution":"1080p"`, "0.625"},
		{"beta-q3", `"duration":3`, "0.3"},
		{"beta-q3", `"duration":16,"audio":false`, "1.6"},
		{"beta-q3-mix", ``, "0.625"},
		{"beta-q3-mix", `"resolution":"1080p"`, "0.75"},
		{"beta-q3-mix", `"duration":1`, "0.125"},
		{"beta-q3-mix", `"duration":16,"resolution":"1080p"`, "2.4"},
		{"theta-image-turbo", `"resolution":"1K"`, "0.015"},
		{"theta-image-turbo", `"resolution":"1K","prompt_extend":true`, "0.03"},
		{"theta-image-turbo", `"resolution":"2K"`, "0.03"},
		{"theta-image-turbo", `"resolution":"2K","prompt_extend":true`, "0.045"},
		{"delta-02", `"resolution":"512p","first_frame_image":"https://a.example.com/1"`, "0.1"},
		{"delta-02", `"resolution":"512p","first_frame_image":"https://a.example.com/1","duration":10`, "0.2"},
		{"delta-02", ``, "0.28"},
		{"delta-02", `"duration":10`, "0.56"},
		{"delta-02", `"resolution":"1080p"`, "0.49"},
		{"delta-2.3", `"duration":10`, "0.56"},
		{"delta-2.3", `"resolution":"1080p"`, "0.49"},
		{"delta-H3", ``, "0.5"},
		{"delta-H3", `"duration":4`, "0.4"},
		{"delta-H3", `"duration":15,"resolution":"2K"`, "3"},
		{"gamma2.6", ``, "0.5"},
		{"gamma2.6", `"duration":15,"resolution":"1080P"`, "2.25"},
		{"gamma2.7-videoedit", ``, "3"},
		{"gamma2.7-videoedit", `"duration":10`, "3"},
		{"gamma2.7-videoedit", `"duration":2`, "0.6"},
		{"gamma2.7-videoedit", `"resolution":"720P"`, "2"},
		{"zeta-2-ext", `"resolution":"0.5K"`, "0.07"},
		{"zeta-2-ext", ``, "0.092"},
		{"zeta-2-ext", `"resolution":"2K","n":2`, "0.252"},
		{"zeta-2-ext", `"resolution":"4K","n":4`, "0.704"},
	} {
		t.Run(tt.model+" "+tt.fields, func(t *testing.T) {
			t.Parallel()
			want, err := mediagate.ParseMicros(tt.want)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, hold := accept(t, tt.model, tt.fields); hold != want {
				t.Errorf("hold %s, want %s", hold, tt.want)
			}
		})
	}
}
