package app

import (
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
)

// One channel that can is enough. Channels of other providers, and those that
// do not serve the model, are not asked; where none is left, the adapter is
// asked without options.
func TestExpressAsksEachChannel(t *testing.T) {
	t.Parallel()
	channel := func(provider, dialect string, models ...string) mediagate.Channel {
		return mediagate.Channel{Provider: provider, Options: map[string]string{"dialect": dialect}, Models: models}
	}
	refuses := func(dialect string) error { return mediagate.Invalid("mode", "mode is not possible in %q", dialect) }
	for name, test := range map[string]struct {
		channels []mediagate.Channel
		can      []string // dialects
		asked    []string
		err      string
	}{
		"the first can":       {[]mediagate.Channel{channel("p", "one"), channel("p", "two")}, []string{"one", "two"}, []string{"one"}, ""},
		"the second can":      {[]mediagate.Channel{channel("p", "one"), channel("p", "two")}, []string{"two"}, []string{"one", "two"}, ""},
		"none can":            {[]mediagate.Channel{channel("p", "one"), channel("p", "two")}, nil, []string{"one", "two"}, `in "one"`},
		"no channel":          {nil, nil, []string{""}, `in ""`},
		"another provider's":  {[]mediagate.Channel{channel("q", "one")}, []string{""}, []string{""}, ""},
		"other models'":       {[]mediagate.Channel{channel("p", "one", "n"), channel("p", "two", "n", "m")}, []string{"two"}, []string{"two"}, ""},
		"one panics, one can": {[]mediagate.Channel{channel("p", "panic"), channel("p", "two")}, []string{"two"}, []string{"panic", "two"}, ""},
		"one refuses, one panics": {
			[]mediagate.Channel{channel("p", "one"), channel("p", "panic")}, nil, []string{"one", "panic"}, "panic: with a string",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			adapter := providers.Adapter{
				Description: providers.Description{Operations: map[string]providers.Operation{"make": {Sync: true, Fields: []string{"mode"}}}},
				Express: func(job mediagate.Job, options map[string]string) error {
					dialect := options["dialect"]
					asked = append(asked, dialect)
					if dialect == "panic" {
						panic("at the disco")
					}
					if job.Upstream != "m-1" || job.ExternalID == "" || string(job.Params) != `{"mode":"4k"}` || job.Sink != nil {
						return errors.New("another job")
					}
					if slices.Contains(test.can, dialect) {
						return nil
					}
					return refuses(dialect)
				},
			}
			r := routes{channels: test.channels, adapter: func(name string) (providers.Adapter, bool) { return adapter, name == "p" }}
			route := mediagate.Route{Provider: "p", Upstream: "m-1", Operation: "make"}
			got := r.Express("m", route, mediagate.Job{Params: json.RawMessage(`{"mode":"4k"}`)})
			if (got.Err == nil) != (test.err == "") || got.Err != nil && !strings.Contains(got.Err.Error(), test.err) {
				t.Errorf("the error is %v, want %q", got.Err, test.err)
			}
			if got.Unserved != slices.Equal(test.asked, []string{""}) {
				t.Errorf("unserved: %t", got.Unserved)
			}
			if !got.Sync || !slices.Equal(got.Fields, []string{"mode"}) {
				t.Errorf("described as %+v", got)
			}
			if diff := cmp.Diff(test.asked, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// With a channel of Google's for the Gemini surface only, what that surface
// lacks is said to have no channel elsewhere.
func TestExpressTellsWhichRoutesHaveNoChannel(t *testing.T) {
	t.Parallel()
	models, err := catalog.Load("")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := models.Model("epsilon3.1-fast-official")
	request, err := m.Operations()[0].Accept(map[string]any{"model": m.ID, "prompt": "a cat", "resize_mode": "crop", "first_frame_image": "https://media.example.com/cat.png"})
	if err != nil {
		t.Fatal(err)
	}
	r := routes{adapter: all.Adapter, channels: []mediagate.Channel{{Provider: "veo"}}}
	got := map[string][2]bool{}
	for _, route := range request.Plan.Routes {
		e := r.Express(m.ID, route, mediagate.Job{Params: request.Params})
		got[route.Provider] = [2]bool{e.Unserved, e.Err == nil}
	}
	if diff := cmp.Diff(map[string][2]bool{"vertex": {true, true}, "veo": {false, false}}, got); diff != "" {
		t.Error(diff)
	}
}

// A route to what no adapter has is a fault of ours, not the client's.
func TestExpressOfUnknownRoutes(t *testing.T) {
	t.Parallel()
	r := routes{adapter: all.Adapter}
	for _, route := range []mediagate.Route{{Provider: "nobody", Operation: "video"}, {Provider: "kling", Operation: "nothing"}} {
		if err := r.Express("m", route, mediagate.Job{Params: json.RawMessage(`{}`)}).Err; err == nil || mediagate.Is(err, mediagate.KindInvalid) {
			t.Errorf("%+v: %v", route, err)
		}
	}
}

// The adapters that we have take the requests that their models are for.
func TestExpressOfBuiltInModels(t *testing.T) {
	t.Parallel()
	models, err := catalog.Load("")
	if err != nil {
		t.Fatal(err)
	}
	r := routes{adapter: all.Adapter, channels: []mediagate.Channel{{Name: "art", Provider: "midjourney"}}}
	images, videos := []any{"https://media.example.com/cat.png"}, []any{"https://media.example.com/cat.mp4"}
	needed := map[string]map[string]any{
		"beta-q3": {"image_urls": images}, "beta-q3-mix": {"image_urls": images}, "gamma2.7-videoedit": {"video_urls": videos},
		"eta-4o-mini-tts": {"input": "a cat", "voice": "coral"},
	}
	song := &mediagate.Source{TaskID: unborn, VendorID: "song", Key: "songs/1", Clip: &mediagate.Clip{ID: "song", Seconds: 60}}
	picture := &mediagate.Source{TaskID: unborn, Channel: "art", Ref: mediagate.JobRef{JobID: "job"}, Button: "MJ::JOB::upsample::1::1"}
	for _, m := range models.Models() {
		for _, operation := range m.Operations() {
			body := map[string]any{"model": m.ID, "prompt": "a cat"}
			if m.Type == mediagate.TypeMusic {
				maps.Copy(body, map[string]any{
					"sound_prompt": "folk", "task_id": unborn, "clip_id": "song", "instruction": "a solo",
					"start_s": json.Number("1"), "end_s": json.Number("10"), "audio_url": "https://media.example.com/voice.mp3",
				})
			}
			if m.Type == mediagate.TypeArt {
				maps.Copy(body, map[string]any{
					"task_id": unborn, "index": json.Number("1"), "direction": "left", "zoom_ratio": json.Number("2"),
				})
				switch path.Base(operation.Endpoint) {
				case "describe":
					body["image_urls"] = images
				case "blend":
					body["image_urls"] = append(slices.Clone(images), images...)
				}
			}
			maps.Copy(body, needed[m.ID])
			request, err := operation.Accept(body)
			if err != nil {
				t.Errorf("%s at %s: %v", m.ID, operation.Endpoint, err)
				continue
			}
			job := mediagate.Job{Params: request.Params}
			switch {
			case m.Type == mediagate.TypeArt:
				job.Source = picture
			case request.Source != nil:
				job.Source = song
			}
			possible := false
			for _, route := range request.Plan.Routes {
				e := r.Express(m.ID, route, job)
				possible = possible || e.Err == nil
				if e.Sync != (m.Type == mediagate.TypeImage || m.Type == mediagate.TypeSpeech || strings.HasSuffix(operation.Endpoint, "/createVoice")) {
					t.Errorf("%s by %s: synchronous: %t", m.ID, route.Provider, e.Sync)
				}
			}
			if !possible {
				t.Errorf("%s at %s: no route takes a plain request", m.ID, operation.Endpoint)
			}
		}
	}
}

// Which routes a request of ours can take, by what it asks for; where none can,
// the field that is told.
func TestRoutesOfRequests(t *testing.T) {
	t.Parallel()
	const (
		klingPlain, klingOmni = "kling-v3", "kling-v3-omni"
		plain, omni           = "kling/kling-v3-video-generation", "kling/kling-v3-omni-video-generation"
		byID                  = `"element_list":[{"element_id":7}]`
		byName                = `"element_list":[{"name":"a","description":"b","element_input_urls":["https://a.example.com/1","https://a.example.com/2"]}]`
		image                 = `"image_urls":["https://a.example.com/1"]`
		first                 = `{"url":"https://a.example.com/1","role":"first_frame"}`
		last                  = `{"url":"https://a.example.com/2","role":"last_frame"}`
		refer                 = `{"url":"https://a.example.com/3","role":"reference"}`
	)
	models, err := catalog.Load("")
	if err != nil {
		t.Fatal(err)
	}
	r := routes{adapter: all.Adapter}
	long := func(n int) string { return `"prompt":"` + strings.Repeat("語", n) + `"` }
	for name, tt := range map[string]struct {
		model, fields string
		want          []string // upstreams
		field         string   // that the last refusal names, where there is no route
	}{
		"text":                        {"alpha-v3", ``, []string{klingPlain, plain}, ""},
		"frames, shots, sound":        {"alpha-v3", image + `,"audio":true,"multi_shot":true,"shot_type":"intelligence"`, []string{klingPlain, plain}, ""},
		"what not to see":             {"alpha-v3", `"negative_prompt":"b"`, []string{klingPlain}, ""},
		"4k":                          {"alpha-v3", `"mode":"4k"`, []string{klingPlain}, ""},
		"subjects by id":              {"alpha-v3", byID, []string{klingOmni, omni}, ""},
		"subjects by id, a frame":     {"alpha-v3", byID + `,` + image, []string{klingPlain, omni}, ""},
		"subjects by name":            {"alpha-v3", byName, []string{klingOmni}, ""},
		"beta":                        {"beta-q3", image, []string{"viduq3", "vidu/viduq3_reference2video"}, ""},
		"beta, a seed of 31 bits":     {"beta-q3-mix", image + `,"seed":2147483647`, []string{"viduq3-mix", "vidu/viduq3-mix_reference2video"}, ""},
		"beta, a seed of 32 bits":     {"beta-q3-mix", image + `,"seed":2147483648`, []string{"viduq3-mix"}, ""},
		"gamma":                       {"gamma2.6", ``, []string{"wan2.6", "wan2.7"}, ""},
		"gamma, 1501 characters":      {"gamma2.6", long(1501), []string{"wan2.7"}, ""},
		"gamma, 5001 characters":      {"gamma2.6", long(5001), nil, "prompt"},
		"gamma, two frames":           {"gamma2.6", `"image_with_roles":[` + first + `,` + last + `]`, []string{"wan2.7"}, ""},
		"gamma, a frame and an image": {"gamma2.6", `"image_with_roles":[` + first + `,` + refer + `]`, []string{"wan2.7"}, ""},
		"gamma, a last frame":         {"gamma2.6", `"image_with_roles":[` + last + `]`, nil, "image_with_roles"},
		"gamma, silent":               {"gamma2.6", `"audio":false,` + image, []string{"wan2.6", "wan2.7"}, ""},
		"gamma, silent text":          {"gamma2.6", `"audio":false`, []string{"wan2.6", "wan2.7"}, ""},
		"gamma, messages":             {"gamma2.6", `"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":"https://a.example.com/1"}]}]`, []string{"wan2.6", "wan2.7"}, ""},
		"an edit":                     {"gamma2.7-videoedit", `"video_urls":["https://a.example.com/1"],"metadata":{"audio_setting":"origin","x":1}`, []string{"wan2.7-videoedit"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := map[string]any{"prompt": "a cat"}
			d := json.NewDecoder(strings.NewReader("{" + tt.fields + "}"))
			d.UseNumber()
			if err := d.Decode(&body); err != nil { // over the prompt, where it has one
				t.Fatal(err)
			}
			body["model"] = tt.model
			m, _ := models.Model(tt.model)
			request, err := m.Operations()[0].Accept(body)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var refusal error
			for _, route := range request.Plan.Routes {
				if e := r.Express(tt.model, route, mediagate.Job{Params: request.Params}); e.Err == nil {
					got = append(got, route.Upstream)
				} else {
					refusal = e.Err
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if tt.want == nil && !strings.Contains(refusal.Error(), "("+tt.field+")") {
				t.Errorf("the refusal is %v", refusal)
			}
		})
	}
}

// Whose account made the source decides whether its ids can be used: each
// channel's adapter is told.
func TestExpressSource(t *testing.T) {
	t.Parallel()
	channels := []mediagate.Channel{
		{Name: "first", Provider: "vidu", Credentials: mediagate.Secrets(map[string]string{"api_key": "one"})},
		{Name: "second", Provider: "vidu", Credentials: mediagate.Secrets(map[string]string{"api_key": "two"})},
	}
	source := &mediagate.Source{Channel: "gone", Fingerprint: all.Fingerprint(channels[1]), Key: "results/1"}
	var told []mediagate.Source
	adapter := providers.Adapter{
		Description: providers.Description{Operations: map[string]providers.Operation{"make": {Source: true}}},
		Express: func(job mediagate.Job, _ map[string]string) error {
			told = append(told, *job.Source)
			if !job.Source.Own {
				return mediagate.Invalid("task_id", "task_id was made elsewhere")
			}
			return nil
		},
	}
	r := routes{channels: channels, adapter: func(string) (providers.Adapter, bool) { return adapter, true }}
	route := mediagate.Route{Provider: "vidu", Operation: "make"}
	if e := r.Express("m", route, mediagate.Job{Source: source}); e.Err != nil || e.Unserved {
		t.Errorf("answered %+v", e)
	}
	if len(told) != 2 || told[0].Own || !told[1].Own || told[0].URL != mediagate.UploadComing {
		t.Errorf("told %+v", told)
	}
	r.channels = channels[:1]
	if e := r.Express("m", route, mediagate.Job{Source: source}); !mediagate.Is(e.Err, mediagate.KindInvalid) {
		t.Errorf("a stranger's account answered %+v", e)
	}
}
