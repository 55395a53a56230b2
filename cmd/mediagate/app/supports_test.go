package app

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
)

// TestSupportsAsksEachChannel checks that one supporting channel is enough. Channels of other
// providers, and those that do not serve the model, are not asked. If no channel is left, the
// adapter is asked without options.
func TestSupportsAsksEachChannel(t *testing.T) {
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
				Supports: func(job mediagate.Job, options map[string]string) error {
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
			got := r.Supports("m", route, mediagate.Job{Params: json.RawMessage(`{"mode":"4k"}`)})
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

// TestSupportsOfUnknownRoutes checks that a route without an adapter is an internal error, not
// the client's.
func TestSupportsOfUnknownRoutes(t *testing.T) {
	t.Parallel()
	r := routes{adapter: all.Builtin().Adapter}
	for _, route := range []mediagate.Route{{Provider: "nobody", Operation: "video"}, {Provider: "kling", Operation: "nothing"}} {
		if err := r.Supports("m", route, mediagate.Job{Params: json.RawMessage(`{}`)}).Err; err == nil || mediagate.Is(err, mediagate.KindInvalid) {
			t.Errorf("%+v: %v", route, err)
		}
	}
}

// TestSupportsSource checks that each channel's adapter learns whether the channel's account made
// the source, since only that account can use its ids.
func TestSupportsSource(t *testing.T) {
	t.Parallel()
	channels := []mediagate.Channel{
		{Name: "first", Provider: "vidu", Credentials: mediagate.Secrets(map[string]string{"api_key": "one"})},
		{Name: "second", Provider: "vidu", Credentials: mediagate.Secrets(map[string]string{"api_key": "two"})},
	}
	source := &mediagate.Source{Channel: "gone", Fingerprint: all.Builtin().Fingerprint(channels[1]), Key: "results/1"}
	var told []mediagate.Source
	adapter := providers.Adapter{
		Description: providers.Description{Operations: map[string]providers.Operation{"make": {Source: true}}},
		Supports: func(job mediagate.Job, _ map[string]string) error {
			told = append(told, *job.Source)
			if !job.Source.Own {
				return mediagate.Invalid("task_id", "task_id was made elsewhere")
			}
			return nil
		},
	}
	r := routes{
		channels: channels, adapter: func(string) (providers.Adapter, bool) { return adapter, true },
		fingerprints: all.Builtin().Fingerprints,
	}
	route := mediagate.Route{Provider: "vidu", Operation: "make"}
	if e := r.Supports("m", route, mediagate.Job{Source: source}); e.Err != nil || e.Unserved {
		t.Errorf("answered %+v", e)
	}
	if len(told) != 2 || told[0].Own || !told[1].Own || told[0].URL != mediagate.UploadComing {
		t.Errorf("told %+v", told)
	}
	r.channels = channels[:1]
	if e := r.Supports("m", route, mediagate.Job{Source: source}); !mediagate.Is(e.Err, mediagate.KindInvalid) {
		t.Errorf("a stranger's account answered %+v", e)
	}
}
