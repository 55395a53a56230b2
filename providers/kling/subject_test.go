package kling_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/sandbox"
)

// TestSubjectsByName takes requests the whole way: what comes out must pass the
// rules of the vendor, as the sandbox knows them.
func TestSubjectsByName(t *testing.T) {
	t.Parallel()
	s, err := sandbox.New(sandbox.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	world := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		world.Close()
	})
	const (
		cat   = `{"name":"cat","description":"a cat","element_input_urls":["https://a.example.com/cat-1","https://a.example.com/cat-2","https://a.example.com/cat-3","https://a.example.com/cat-4"]}`
		dog   = `{"name":"dog","description":"a dog","element_input_urls":["https://a.example.com/dog-1","https://a.example.com/dog-2","https://a.example.com/dog-3","https://a.example.com/dog-4"]}`
		owl   = `{"name":"owl","description":"an owl","element_input_urls":["https://a.example.com/owl-1","https://a.example.com/owl-2","https://a.example.com/owl-3","https://a.example.com/owl-4"]}`
		two   = `"image_urls":["https://a.example.com/1","https://a.example.com/2"],`
		three = `"image_urls":["https://a.example.com/1","https://a.example.com/2","https://a.example.com/3"],`
		film  = `,"video_list":[{"video_url":"https://a.example.com/v","refer_type":"base","keep_original_sound":"yes"}]`
		shots = `"multi_shot":true,"shot_type":"customize","multi_prompt":[{"index":1,"prompt":"@cat sits","duration":2},{"index":2,"prompt":"@dog runs","duration":3}],`
	)
	for name, tc := range map[string]struct {
		operation, fields string
		images            string            // the ends of the links, and the types
		texts             []string          // in the prompts
		absent            []string          // fields
		fixed             map[string]string // fields
	}{
		"one": {
			operation: "omni_frames", fields: `"prompt":"@cat sits","element_list":[` + cat + `]`,
			images: "cat-1 cat-2 cat-3 cat-4", texts: []string{"<<<image_1>>> <<<image_2>>> <<<image_3>>> <<<image_4>>> (a cat) sits"},
			absent: []string{"element_list", "negative_prompt"}, fixed: map[string]string{"aspect_ratio": "16:9", "mode": "std", "sound": "off"},
		},
		"three beside frames": {
			operation: "omni_frames", fields: `"prompt":"@dog, @cat",` + two + `"element_list":[` + cat + `,` + dog + `,` + owl + `]`,
			images: "1:first_frame 2:end_frame cat-1 cat-2 dog-1 dog-2 owl-1",
			texts:  []string{"<<<image_7>>> (an owl) <<<image_5>>> <<<image_6>>> (a dog), <<<image_3>>> <<<image_4>>> (a cat)"},
			absent: []string{"aspect_ratio"},
		},
		"by id and by name": {
			operation: "omni_frames", fields: `"prompt":"@dog","audio":true,"mode":"pro","negative_prompt":"fog","element_list":[{"element_id":7},` + dog + `]`,
			images: "dog-1 dog-2 dog-3 dog-4", texts: []string{"(a dog)\\nAvoid: fog"}, absent: []string{"negative_prompt"},
			fixed: map[string]string{"element_list": `[{"element_id":7}]`, "sound": "on", "mode": "pro"},
		},
		"shots": {
			operation: "omni_frames", fields: `"prompt":"x","negative_prompt":"fog",` + shots + `"element_list":[` + cat + `,` + dog + `]`,
			images: "cat-1 cat-2 cat-3 cat-4 dog-1 dog-2 dog-3",
			texts:  []string{"(a cat) sits\\nAvoid: fog", "<<<image_5>>> <<<image_6>>> <<<image_7>>> (a dog) runs\\nAvoid: fog"},
		},
		"only by id, something to avoid": {
			operation: "omni_frames", fields: `"prompt":"x","negative_prompt":"fog","element_list":[{"element_id":7}]`,
			texts: []string{`"x\nAvoid: fog"`}, absent: []string{"negative_prompt", "image_list"},
		},
		"own images": {
			operation: "omni", fields: `"prompt":"@cat in <<<image_2>>>",` + three + `"element_list":[` + cat + `,{"element_id":7}]`,
			images: "1 2 3 cat-1 cat-2 cat-3", texts: []string{"<<<image_4>>> <<<image_5>>> <<<image_6>>> (a cat) in <<<image_2>>>"},
			fixed: map[string]string{"aspect_ratio": "16:9"},
		},
		"a video": {
			operation: "omni", fields: `"prompt":"@cat and @dog","element_list":[` + cat + `,` + dog + `]` + film,
			images: "cat-1 cat-2 dog-1 dog-2", texts: []string{"<<<image_1>>> <<<image_2>>> (a cat) and <<<image_3>>> <<<image_4>>> (a dog)"},
		},
		"a video and as many as it takes": {
			operation: "omni", fields: `"prompt":"<<<image_1>>>",` + two + `"element_list":[` + cat + `,` + dog + `]` + film,
			images: "1 2 cat-1 dog-1", texts: []string{"<<<image_3>>> (a cat) <<<image_4>>> (a dog) <<<image_1>>>"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			params := map[string]any{"mode": "std", "duration": 5, "aspect_ratio": "16:9"}
			upstream := "kling-video-o1"
			if tc.operation == "omni_frames" {
				params["audio"], params["multi_shot"], upstream = false, false, "kling-v3-omni"
			}
			if err := json.Unmarshal([]byte(`{`+tc.fields+`}`), &params); err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			body, err := sent(t, tc.operation, upstream, string(raw))
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				ImageList []struct {
					Link string `json:"image_url"`
					Type string
				} `json:"image_list"`
			}
			var fields map[string]json.RawMessage
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(body), &fields); err != nil {
				t.Fatal(err)
			}
			var images []string
			for _, item := range got.ImageList {
				word := strings.TrimPrefix(item.Link, "https://a.example.com/")
				if item.Type != "" {
					word += ":" + item.Type
				}
				images = append(images, word)
			}
			if diff := cmp.Diff(tc.images, strings.Join(images, " ")); diff != "" {
				t.Error(diff)
			}
			for _, text := range tc.texts {
				if !strings.Contains(body, text) {
					t.Errorf("no %q in %s", text, body)
				}
			}
			for _, field := range tc.absent {
				if _, ok := fields[field]; ok {
					t.Errorf("%s is sent: %s", field, body)
				}
			}
			for field, value := range tc.fixed {
				if got := strings.Trim(string(fields[field]), `"`); got != value {
					t.Errorf("%s is %s, want %s", field, got, value)
				}
			}

			account := suite()
			id := strings.ReplaceAll("task "+name, " ", "_")
			job := mediagate.Job{TaskID: id, ExternalID: id, Upstream: upstream, Operation: tc.operation, Params: raw}
			account.Channel.Credentials = mediagate.Secrets(sandbox.DefaultAccounts()[0].Credentials)
			delete(account.Channel.Credentials, "api_key")
			if _, err := account.Open(t, world.URL+"/kling", providers.Options{}).Submit(t.Context(), job); err != nil {
				t.Errorf("the sandbox refuses it: %v", err)
			}
		})
	}
}
