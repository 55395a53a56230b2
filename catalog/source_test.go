package catalog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/catalog"
)

// remaster is an operation on a song, in place of the one on it.
const remaster = `id: tune-b
type: music
operations:
  - endpoint: /v1/music/generations/stems
    schema:
      properties:
        task_id: {type: string}
        audio_index: {type: integer, minimum: 1, maximum: 100, default: 1}
        clip_id: {type: string}
        voice_id: {type: string}
        start_s: {type: number, minimum: 0}
        end_s: {type: number, minimum: 0}
    source: {task: task_id, index: audio_index, clip: clip_id, voice: voice_id, of: [tune-b], within: [start_s, end_s]}
    price: {unit: operation, rows: [{price: "0.02"}]}
    routes: [{provider: acme, upstream: b, operation: stems}]
    expected: 10s
    timeout: 10m
    on_unknown: park
    max_bytes: 1MiB
`

func TestSource(t *testing.T) {
	t.Parallel()
	c, err := families(t, map[string]string{"tune-b.yaml": remaster})
	if err != nil {
		t.Fatal(err)
	}
	m, _ := c.Model("tune-b")
	o, _ := m.Operation("/v1/music/generations/stems")
	if diff := cmp.Diff([]string{"start_s", "end_s"}, o.Fields()); diff != "" {
		t.Errorf("the fields of the canonical request (-want +got):\n%s", diff)
	}
	for name, tt := range map[string]struct {
		body, params string
		source       *catalog.Source
		field        string
	}{
		"none":        {`{"start_s":1}`, `{"start_s":1}`, nil, ""},
		"a task":      {`{"task_id":"t"}`, `{}`, &catalog.Source{Task: "t", Index: 1}, "task_id"},
		"one of many": {`{"task_id":"t","audio_index":2,"end_s":1.5}`, `{"end_s":1.5}`, &catalog.Source{Task: "t", Index: 2}, "task_id"},
		"a clip":      {`{"clip_id":"c"}`, `{}`, &catalog.Source{Clip: "c", Index: 1}, "clip_id"},
		"a voice":     {`{"voice_id":"v"}`, `{}`, &catalog.Source{Voice: "v", Index: 1}, "voice_id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := o.Accept(parse(t, tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if string(r.Params) != tt.params {
				t.Errorf("the canonical request is %s", r.Params)
			}
			if (r.Source == nil) != (tt.source == nil) {
				t.Fatalf("the source is %+v", r.Source)
			}
			if r.Source == nil {
				return
			}
			got := catalog.Source{Task: r.Source.Task, Index: r.Source.Index, Clip: r.Source.Clip, Voice: r.Source.Voice}
			if diff := cmp.Diff(*tt.source, got, cmp.AllowUnexported(catalog.Source{})); diff != "" {
				t.Errorf("the source (-want +got):\n%s", diff)
			}
			if r.Source.Field() != tt.field || r.Folded["source"] != tt.field {
				t.Errorf("it is named by %s, refusals by %v", r.Source.Field(), r.Folded)
			}
		})
	}
}

// TestSourceFits checks that times must be within the source, its end included.
func TestSourceFits(t *testing.T) {
	t.Parallel()
	c, err := families(t, map[string]string{"tune-b.yaml": remaster})
	if err != nil {
		t.Fatal(err)
	}
	m, _ := c.Model("tune-b")
	o, _ := m.Operation("/v1/music/generations/stems")
	for times, param := range map[string]string{
		`"end_s":0`: "", `"start_s":12.5,"end_s":12.5`: "", `"end_s":12.51`: "end_s", `"start_s":13`: "start_s", `"end_s":1e300`: "end_s",
		`"start_s":12.49`: "", `"start_s":12.5`: "start_s", // without an end of its own
	} {
		r, err := o.Accept(parse(t, `{"task_id":"t",`+times+`}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Source.CheckTimes(0); err != nil {
			t.Errorf("%s: refused by a length that is not known: %v", times, err)
		}
		// A client was shown 12.5 of a length that is a little less or more.
		if err := r.Source.CheckTimes(12.49996); param == "" && err != nil {
			t.Errorf("%s: %v", times, err)
		}
		switch err := r.Source.CheckTimes(12.50004); {
		case param == "" && err != nil:
			t.Errorf("%s: %v", times, err)
		case param != "":
			if message := refusal(t, err, param); !strings.Contains(message, "within the clip, which is 12.5 seconds long") {
				t.Errorf("%s: %s", times, message)
			}
		}
	}
}

func TestSourceRules(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		`{task: task_id}`:                                         "of is missing",
		`{of: [tune-b]}`:                                          "task, clip or voice must name a field",
		`{task: id, of: [tune-b]}`:                                `"id" is no text of the schema`,
		`{task: start_s, of: [tune-b]}`:                           `"start_s" is no text of the schema`,
		`{clip: clip_id, index: audio_index, of: [tune-b]}`:       `index "audio_index" must be an integer from 1`,
		`{task: task_id, index: start_s, of: [tune-b]}`:           `index "start_s" must be an integer from 1`,
		`{task: task_id, within: [clip_id], of: [tune-b]}`:        `within: "clip_id" is no number`,
		`{task: task_id, of: [tune-c]}`:                           "source: of: there is no model tune-c",
		`{task: task_id, of: [tune-b], button: custom}`:           "button",
		`{task: task_id, of: [tune-b], owns: [a]}`:                "button",
		`{task: task_id, of: [tune-b], owns: [""]}`:               "owns: a beginning is empty",
		`{task: task_id, index: audio_index, of: [], within: []}`: "of is missing",
	} {
		start, rest, _ := strings.Cut(remaster, "    source: ")
		_, rest, _ = strings.Cut(rest, "\n")
		_, err := families(t, map[string]string{"tune-b.yaml": start + "    source: " + rule + "\n" + rest})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
}
