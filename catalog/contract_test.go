package catalog_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/billing"
)

func accept(t *testing.T, id, fields string) (params map[string]any, plan mediagate.Plan, hold mediagate.Micros) {
	t.Helper()
	r, err := model(t, id).Accept(parse(t, body(t, id, fields)))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(r.Params)), r.Plan, billing.Total(r.Charges)
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
	params, _, _ := accept(t, "alpha-v3", `"watermark":false,"negative_prompt":"","mode":"std"`)
	for _, name := range []string{"watermark", "negative_prompt", "mode"} {
		if _, ok := params[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
}

func TestReferenceIsPutInFront(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ fields, want string }{
		"images, no reference":     {`"prompt":"a boat","image_urls":` + urls(2), "<<<image_1>>>a boat"},
		"images, a reference":      {`"prompt":"a boat <<<image_2>>>","image_urls":` + urls(2), "a boat <<<image_2>>>"},
		"no image":                 {`"prompt":"a boat"`, "a boat"},
		"an empty list":            {`"prompt":"a boat","image_urls":[]`, "a boat"},
		"something else in angles": {`"prompt":"<<<video_1>>>","image_urls":` + urls(1), "<<<image_1>>><<<video_1>>>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			params, _, _ := accept(t, "alpha-video-o1", tt.fields)
			if params["prompt"] != tt.want {
				t.Errorf("prompt %q, want %q", params["prompt"], tt.want)
			}
		})
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
		{"theta-image-turbo", `"resolution":"1K"`, "0.015"},
		{"theta-image-turbo", `"resolution":"1K","prompt_extend":true`, "0.03"},
		{"theta-image-turbo", `"resolution":"2K"`, "0.03"},
		{"theta-image-turbo", `"resolution":"2K","prompt_extend":true`, "0.045"},
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

// TestRoutes holds which vendor model serves which request.
func TestRoutes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ model, fields, want string }{
		"text":                     {"alpha-v3", ``, "[kling/kling-v3/video]"},
		"frames":                   {"alpha-v3", `"image_urls":` + urls(2), "[kling/kling-v3/video]"},
		"a frame and subjects":     {"alpha-v3", `"image_urls":` + urls(1) + `,"element_list":` + elements(1), "[kling/kling-v3/video]"},
		"subjects without a frame": {"alpha-v3", `"element_list":` + elements(1), "[kling/kling-v3-omni/omni]"},
		"named subjects":           {"alpha-v3", `"element_list":[` + named("cat", 2) + `]`, "[kling/kling-v3-omni/omni]"},
		"named, beside frames":     {"alpha-v3", `"image_urls":` + urls(2) + `,"element_list":[{"element_id":1},` + named("cat", 2) + `]`, "[kling/kling-v3-omni/omni]"},
		"named references":         {"alpha-video-o1", `"element_list":[` + named("cat", 2) + `]`, "[kling/kling-video-o1/omni]"},
		"references":               {"alpha-video-o1", `"image_urls":` + urls(1), "[kling/kling-video-o1/omni]"},
		"an image, while we wait":  {"theta-image-turbo", ``, "[dashscope/z-image-turbo/image sync]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, plan, _ := accept(t, tt.model, tt.fields)
			var got []string
			for _, r := range plan.Routes {
				text := r.Provider + "/" + r.Upstream + "/" + r.Operation
				if r.Sync {
					text += " sync"
				}
				got = append(got, text)
			}
			if fmt.Sprint(got) != tt.want {
				t.Errorf("%v, want %s", got, tt.want)
			}
			if theta := tt.model == "theta-image-turbo"; plan.KeepForever != theta || (plan.OnUnknown == mediagate.OnUnknownFail) != theta {
				t.Errorf("keep for ever %v, on unknown %s", plan.KeepForever, plan.OnUnknown)
			}
		})
	}
}
