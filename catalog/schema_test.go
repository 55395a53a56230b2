package catalog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// served compiles the schema the way a client would, without our formats.
func served(t *testing.T, id string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(operation(t, id).Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("https://api.example.com/schema", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("https://api.example.com/schema")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestServedSchema judges bodies by what clients are given. Fields that are
// ignored may hold anything there too.
func TestServedSchema(t *testing.T) {
	t.Parallel()
	const multi = `"multi_shot":true,"shot_type":"customize",`
	tests := map[string]struct {
		model, fields string
		valid         bool
	}{
		"minimal":               {"alpha-v3", ``, true},
		"unknown field":         {"alpha-v3", `"x":[1]`, true},
		"integer as 5.0":        {"alpha-v3", `"duration":5.0`, true},
		"duration 16":           {"alpha-v3", `"duration":16`, false},
		"duration text":         {"alpha-v3", `"duration":"5"`, false},
		"ignored shots":         {"alpha-v3", `"shot_type":1,"multi_prompt":"x"`, true},
		"ignored list":          {"alpha-v3", `"multi_shot":true,"shot_type":"intelligence","multi_prompt":"x"`, true},
		"no shot_type":          {"alpha-v3", `"multi_shot":true`, false},
		"no multi_prompt":       {"alpha-v3", `"multi_shot":true,"shot_type":"customize"`, false},
		"shots":                 {"alpha-v3", multi + shots(2, 3), true},
		"seven shots":           {"alpha-v3", multi + shots(1, 1, 1, 1, 1, 1, 1), false},
		"sums are a check":      {"alpha-v3", multi + shots(2, 2), true},
		"element of both":       {"alpha-v3", `"element_list":[{"element_id":1,"name":"a","description":"b","element_input_urls":` + urls(2) + `}]`, false},
		"element by name":       {"alpha-v3", `"element_list":[{"name":"a","description":"b","element_input_urls":` + urls(2) + `}]`, true},
		"ftp":                   {"alpha-v3", `"image_urls":["ftp://a.example.com/x"]`, false},
		"reference of 256":      {"alpha-v3", `"metadata":{"reference":` + quoted("a", 256) + `}`, false},
		"o1 duration 6":         {"alpha-video-o1", `"duration":6`, false},
		"o1 references a check": {"alpha-video-o1", `"prompt":"<<<image_1>>>"`, true},
		"a frame":               {"delta-02", `"first_frame_image":"https://a.example.com/1"`, true},
		"a frame as data":       {"delta-02", `"first_frame_image":"data:image/png;base64,aGk="`, true},
		"a frame of a number":   {"delta-02", `"first_frame_image":5`, false},
		"a frame of nothing":    {"delta-02", `"first_frame_image":"x"`, false},
		"1080p for 10 s":        {"delta-02", `"resolution":"1080p","duration":10`, false},
		"512p without a frame":  {"delta-02", `"resolution":"512p"`, false},
		"no last frame":         {"delta-2.3", `"last_frame_image":"https://a.example.com/1"`, false},
		"H3 from a video":       {"delta-H3", `"prompt":"a","video_urls":` + urls(1), true},
		"H3 ratio":              {"delta-H3", `"aspect_ratio":"2:1"`, false},
		"H3 ratio, ignored":     {"delta-H3", `"aspect_ratio":5,"first_frame_image":"https://a.example.com/1"`, true},
		"beta":                  {"beta-q3", ``, true},
		"beta without images":   {"beta-q3", `"image_urls":[]`, false},
		"beta 540p":             {"beta-q3-mix", `"resolution":"540p"`, false},
		"beta of a second":      {"beta-q3-mix", `"duration":1`, true},
		"zeta images":           {"zeta-2-ext", `"image_urls":["https://a.example.com/1",{"url":"https://a.example.com/2"}]`, true},
		"zeta image of nothing": {"zeta-2-ext", `"image_urls":[{}]`, false},
		"gamma 1 s":             {"gamma2.6", `"duration":1`, true}, // checks refuse these three
		"gamma 99 s":            {"gamma2.6", `"duration":99`, true},
		"gamma 4K":              {"gamma2.6", `"resolution":"4K"`, true},
		"gamma 0 s":             {"gamma2.6", `"duration":0`, false},
		"gamma messages":        {"gamma2.6", `"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":"https://a.example.com/1"}]}]`, true},
		"gamma no content":      {"gamma2.6", `"messages":[{"role":"user"}]`, false},
		"gamma empty content":   {"gamma2.6", `"messages":[{"role":"user","content":[]}]`, false},
		"gamma nothing":         {"gamma2.6", `"prompt":""`, false},
		"edit's second video":   {"gamma2.7-videoedit", `"video_urls":["https://a.example.com/1",5]`, true},
		"edit's first video":    {"gamma2.7-videoedit", `"video_urls":[5]`, false},
		"edit of no video":      {"gamma2.7-videoedit", `"video_urls":[]`, false},
		"edit of 1 s":           {"gamma2.7-videoedit", `"duration":1`, false},
		"edit's sound":          {"gamma2.7-videoedit", `"metadata":{"audio_setting":"loud"}`, false},
		"theta n":               {"theta-image-turbo", `"n":1`, false},
		"theta 801":             {"theta-image-turbo", `"prompt":` + quoted("語", 801), false},
		"theta 800":             {"theta-image-turbo", `"prompt":` + quoted("語", 800), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := served(t, tt.model).Validate(any(parse(t, body(t, tt.model, tt.fields)))); (err == nil) != tt.valid {
				t.Errorf("valid = %v: %v", err == nil, err)
			}
		})
	}
}

// TestServedSchemaStatesTheContract looks for what clients read from it.
func TestServedSchemaStatesTheContract(t *testing.T) {
	t.Parallel()
	for _, o := range operations(t) {
		m := o.Model
		var doc struct {
			Schema     string `json:"$schema"`
			Type       string `json:"type"`
			Additional any    `json:"additionalProperties"`
			Required   []string
			Properties map[string]struct {
				Type    string
				Const   any
				Default any
				Enum    []any
			}
		}
		if err := json.Unmarshal(o.Schema(), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Schema != "https://json-schema.org/draft/2020-12/schema" || doc.Type != "object" || doc.Additional != true {
			t.Errorf("%s: %+v", m.ID, doc)
		}
		want := "[model prompt]"
		switch o.key {
		case remasters, stemsAll, samples:
			want = "[task_id]"
		case songs, flowSongs:
			want = "[model]"
		case voices:
			want = "[audio_url]"
		case replacements:
			want = "[task_id start_s end_s]"
		case flowStems:
			want = "[model clip_id]"
		case flowReplacing:
			want = "[model clip_id start_s end_s instruction]"
		case "delta-H3", "gamma2.6": // or an image or a video
			want = "[model]"
		case "gamma2.7-videoedit":
			want = "[model video_urls]"
		case "beta-q3", "beta-q3-mix":
			want = "[model prompt image_urls]"
		case "eta-4o-mini-tts":
			want = "[model input voice]"
		}
		fixed := strings.HasPrefix(o.key, "art ") // the path says the model
		switch {
		case fixed && (o.Endpoint == artPath || strings.HasSuffix(o.Endpoint, "/imagine")):
			want = "[prompt]"
		case strings.HasSuffix(o.Endpoint, "/describe"), strings.HasSuffix(o.Endpoint, "/blend"):
			want = "[image_urls]"
		case fixed:
			want = "[task_id]"
		}
		if got := fmt.Sprint(doc.Required); got != want {
			t.Errorf("%s: required %s", m.ID, got)
		}
		common := map[bool][2]string{true: {"string", "object"}, false: {"", ""}}[m.ID != "eta-4o-mini-tts"] // which makes no tasks
		if !fixed && doc.Properties["model"].Const != m.ID || doc.Properties["webhook"].Type != common[0] || doc.Properties["metadata"].Type != common[1] {
			t.Errorf("%s: the common fields are %+v", m.ID, doc.Properties)
		}
		for name, field := range doc.Properties {
			follows := m.ID == "gamma2.7-videoedit" && name == "size" || // the input decides, or the song, or nothing does
				slices.Contains([]string{"vocal_gender", "direction", "zoom_ratio"}, name)
			if len(field.Enum) > 0 && field.Default == nil && !follows && !slices.Contains(doc.Required, name) {
				t.Errorf("%s: %s has no default", m.ID, name)
			}
		}
	}
}
