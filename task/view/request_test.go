package view_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task/view"
)

func TestPrompt(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`{"lyrics":"la","prompt":""}`:               "la",
		`{"prompt":["a"],"gpt_description":"calm"}`: "calm",
		`{"task_id":"t"}`:                           "",
		``:                                          "",
		`{"prompt":"` + strings.Repeat("é", 200) + `"}`: strings.Repeat("é", 200),
	} {
		if got := view.Prompt(&mediagate.Task{Params: json.RawMessage(params)}); got != want {
			t.Errorf("%s: %q, want %q", params, got, want)
		}
	}
}

// That the body is accepted and asks for the same is in the tests of the catalog.
func TestRequest(t *testing.T) {
	t.Parallel()
	const link = "https://gw.example.com/files/1-a.png"
	attached := mediagate.Plan{Attached: []string{link}}
	source := mediagate.Source{TaskID: "t", Fields: json.RawMessage(`{"task_id":"t","audio_index":2}`)}
	for name, tt := range map[string]struct {
		params string
		plan   mediagate.Plan
		want   string
	}{
		"numbers as they are written": {
			params: `{"prompt":"a <b> & c","seed":12345678901234567890,"tempo":1.50}`,
			want:   `{"prompt":"a <b> & c","seed":12345678901234567890,"tempo":1.50,"model":"alias"}`,
		},
		"what it works on": {
			params: `{"end_s":20}`, plan: mediagate.Plan{Source: &source},
			want: `{"end_s":20,"task_id":"t","audio_index":2,"model":"alias"}`,
		},
		"a link that came as a file": {
			params: `{"first":"` + link + `","last":"https://example.com/b.png"}`, plan: attached,
			want: `{"last":"https://example.com/b.png","model":"alias"}`,
		},
		"some links of a list": {
			params: `{"image_urls":["` + link + `","https://example.com/b.png"]}`, plan: attached,
			want: `{"image_urls":["https://example.com/b.png"],"model":"alias"}`,
		},
		"all links of a list": {
			params: `{"image_urls":["` + link + `","` + link + `"]}`, plan: attached,
			want: `{"model":"alias"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := mediagate.Task{Model: "alias", Params: json.RawMessage(tt.params), Plan: tt.plan}
			got, err := view.Request(&task)
			if err != nil {
				t.Fatal(err)
			}
			want, err := view.Request(&mediagate.Task{Model: "alias", Params: json.RawMessage(tt.want)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	erased := mediagate.Task{Params: mediagate.NoParams, InputsErasedAt: time.Unix(1, 0)}
	if got := view.Prompt(&erased); got != "" {
		t.Errorf("the prompt of a task whose inputs are erased is %q", got)
	}
	if body, err := view.Request(&erased); body != nil || err != nil {
		t.Errorf("of a task whose inputs are erased: %v, %v", body, err)
	}
}
