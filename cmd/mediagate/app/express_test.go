package app

import (
	"encoding/json"
	"errors"
	"maps"
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
			[]mediagate.Channel{channel("p", "one"), channel("p", "panic")}, nil, []string{"one", "panic"}, "panic: at the disco",
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
			got := r.Express("m", route, json.RawMessage(`{"mode":"4k"}`))
			if (got.Err == nil) != (test.err == "") || got.Err != nil && !strings.Contains(got.Err.Error(), test.err) {
				t.Errorf("the error is %v, want %q", got.Err, test.err)
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

// A route to what no adapter has is a fault of ours, not the client's.
func TestExpressOfUnknownRoutes(t *testing.T) {
	t.Parallel()
	r := routes{adapter: all.Adapter}
	for _, route := range []mediagate.Route{{Provider: "nobody", Operation: "video"}, {Provider: "kling", Operation: "nothing"}} {
		if err := r.Express("m", route, json.RawMessage(`{}`)).Err; err == nil || mediagate.Is(err, mediagate.KindInvalid) {
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
	r := routes{adapter: all.Adapter}
	images, videos := []any{"https://media.example.com/cat.png"}, []any{"https://media.example.com/cat.mp4"}
	needed := map[string]map[string]any{
		"beta-q3": {"image_urls": images}, "beta-q3-mix": {"image_urls": images}, "gamma2.7-videoedit": {"video_urls": videos},
	}
	for _, m := range models.Models() {
		operation := m.Operations()[0]
		body := map[string]any{"model": m.ID, "prompt": "a cat"}
		maps.Copy(body, needed[m.ID])
		request, err := operation.Accept(body)
		if err != nil {
			t.Errorf("%s: %v", m.ID, err)
			continue
		}
		possible := false
		for _, route := range request.Plan.Routes {
			e := r.Express(m.ID, route, request.Params)
			possible = possible || e.Err == nil
			if e.Sync != (m.Type == mediagate.TypeImage) {
				t.Errorf("%s by %s: synchronous: %t", m.ID, route.Provider, e.Sync)
			}
		}
		if !possible {
			t.Errorf("%s: no route takes a plain request", m.ID)
		}
	}
}
