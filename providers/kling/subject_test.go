package kling_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/providertest"
	"github.com/mediagate/mediagate/sandbox"
)

// TestSubjectsByName takes requests the whole way: the catalog numbers the
// pictures and the adapter lists them, so the two must agree. What comes out
// must pass the rules of the vendor, as the sandbox knows them.
func TestSubjectsByName(t *testing.T) {
	t.Parallel()
	models, err := catalog.Load("")
	if err != nil {
		t.Fatal(err)
	}
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
		film  = `,"video_list":[{"video_url":"https://a.example.com/v"}]`
		shots = `"multi_shot":true,"shot_type":"customize","multi_prompt":[{"index":1,"prompt":"@cat sits","duration":2},{"index":2,"prompt":"@dog runs","duration":3}],`
	)
	for name, tc := range map[string]struct {
		model, fields string
		images        string            // the ends of the links, and the types
		texts         []string          // in the prompts
		absent        []string          // fields
		fixed         map[string]string // fields
	}{
		"one": {
			model: "alpha-v3", fields: `"prompt":"@cat sits","element_list":[` + cat + `]`,
			images: "cat-1 cat-2 cat-3 cat-4", texts: []string{"<<<image_1>>> <<<image_2>>> <<<image_3>>> <<<image_4>>> (a cat) sits"},
			absent: []string{"element_list", "negative_prompt"}, fixed: map[string]string{"aspect_ratio": "16:9", "mode": "std", "sound": "off"},
		},
		"three beside frames": {
			model: "alpha-v3", fields: `"prompt":"@dog, @cat",` + two + `"element_list":[` + cat + `,` + dog + `,` + owl + `]`,
			images: "1:first_frame 2:end_frame cat-1 cat-2 dog-1 dog-2 owl-1",
			texts:  []string{"<<<image_7>>> (an owl) <<<image_5>>> <<<image_6>>> (a dog), <<<image_3>>> <<<image_4>>> (a cat)"},
			absent: []string{"aspect_ratio"},
		},
		"by id and by name": {
			model: "alpha-v3", fields: `"prompt":"@dog","audio":true,"mode":"pro","negative_prompt":"fog","element_list":[{"element_id":7},` + dog + `]`,
			images: "dog-1 dog-2 dog-3 dog-4", texts: []string{"(a dog)\\nAvoid: fog"}, absent: []string{"negative_prompt"},
			fixed: map[string]string{"element_list": `[{"element_id":7}]`, "sound": "on", "mode": "pro"},
		},
		"shots": {
			model: "alpha-v3", fields: `"prompt":"x","negative_prompt":"fog",` + shots + `"element_list":[` + cat + `,` + dog + `]`,
			images: "cat-1 cat-2 cat-3 cat-4 dog-1 dog-2 dog-3",
			texts:  []string{"(a cat) sits\\nAvoid: fog", "<<<image_5>>> <<<image_6>>> <<<image_7>>> (a dog) runs\\nAvoid: fog"},
		},
		"only by id, something to avoid": {
			model: "alpha-v3", fields: `"prompt":"x","negative_prompt":"fog","element_list":[{"element_id":7}]`,
			texts: []string{`"x\nAvoid: fog"`}, absent: []string{"negative_prompt", "image_list"},
		},
		"own images": {
			model: "alpha-video-o1", fields: `"prompt":"@cat in <<<image_2>>>",` + three + `"element_list":[` + cat + `,{"element_id":7}]`,
			images: "1 2 3 cat-1 cat-2 cat-3", texts: []string{"<<<image_4>>> <<<image_5>>> <<<image_6>>> (a cat) in <<<image_2>>>"},
			fixed: map[string]string{"aspect_ratio": "16:9"},
		},
		"a video": {
			model: "alpha-video-o1", fields: `"prompt":"@cat and @dog","element_list":[` + cat + `,` + dog + `]` + film,
			images: "cat-1 cat-2 dog-1 dog-2", texts: []string{"<<<image_1>>> <<<image_2>>> (a cat) and <<<image_3>>> <<<image_4>>> (a dog)"},
		},
		"a video and as many as it takes": {
			model: "alpha-video-o1", fields: `"prompt":"<<<image_1>>>",` + two + `"element_list":[` + cat + `,` + dog + `]` + film,
			images: "1 2 cat-1 dog-1", texts: []string{"<<<image_3>>> (a cat) <<<image_4>>> (a dog) <<<image_1>>>"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var body map[string]any
			d := json.NewDecoder(strings.NewReader(`{"model":"` + tc.model + `",` + tc.fields + `}`))
			d.UseNumber()
			if err := d.Decode(&body); err != nil {
				t.Fatal(err)
			}
			m, _ := models.Model(tc.model)
			order, err := m.Accept(body)
			if err != nil {
				t.Fatal(err)
			}
			route := order.Plan.Routes[0]
			id := strings.ReplaceAll("task "+name, " ", "_")
			job := mediagate.Job{
				TaskID: id, ExternalID: id, Upstream: route.Upstream, Operation: route.Operation, Params: order.Params, Values: route.Values,
			}
			vendor := providertest.NewVendor(t, task(jobID, id, `,"task_status":"submitted"`))
			if _, err := suite().Open(t, vendor.URL, providers.Options{}).Submit(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			sent := vendor.Requests()[0].Body
			var got struct {
				ImageList []struct {
					Link string `json:"image_url"`
					Type string
				} `json:"image_list"`
			}
			var fields map[string]json.RawMessage
			if err := json.Unmarshal([]byte(sent), &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(sent), &fields); err != nil {
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
				if !strings.Contains(sent, text) {
					t.Errorf("no %q in %s", text, sent)
				}
			}
			for _, field := range tc.absent {
				if _, ok := fields[field]; ok {
					t.Errorf("%s is sent: %s", field, sent)
				}
			}
			for field, value := range tc.fixed {
				if got := strings.Trim(string(fields[field]), `"`); got != value {
					t.Errorf("%s is %s, want %s", field, got, value)
				}
			}

			account := suite()
			account.Channel.Credentials = sandbox.DefaultAccounts()[0].Credentials
			delete(account.Channel.Credentials, "api_key")
			if _, err := account.Open(t, world.URL+"/kling", providers.Options{}).Submit(t.Context(), job); err != nil {
				t.Errorf("the sandbox refuses it: %v", err)
			}
		})
	}
}
