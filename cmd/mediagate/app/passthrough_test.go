package app

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
)

func passing(name, provider string, priority int, models map[string]Passed) Channel {
	return Channel{
		Name: name, Provider: provider, Priority: priority, Weight: 1, Passthrough: models, Models: []string{"delta-02"},
		Credentials: map[string]string{"api_key": "k"},
	}
}

// TestPassthroughOfChannels checks that the channels that name a model outside the catalog are
// its routes, in their order.
func TestPassthroughOfChannels(t *testing.T) {
	t.Parallel()
	film := Passed{Upstream: "film-1", Operation: "video_generation", Price: "0.25"}
	other := film
	other.Upstream = "film-2"
	still := Passed{Upstream: "still-1", Operation: "image_generation"}
	got := passthrough(all.Builtin(), []Channel{
		passing("late", "kling", 2, map[string]Passed{"film": other}),
		passing("one", "minimax", 1, map[string]Passed{"film": film}),
		passing("two", "minimax", 1, map[string]Passed{"film": film}),
		passing("three", "gemini", 0, map[string]Passed{"still": still}),
		passing("wrong", "gemini", 0, map[string]Passed{"moving": film}),
	})
	want := []catalog.Passthrough{
		{
			ID: "film", Type: mediagate.TypeVideo, Price: "0.25", OnUnknown: "park", Where: "channel one: passthrough.film",
			Routes: []mediagate.Route{
				{Provider: "minimax", Upstream: "film-1", Operation: "base_video"}, {Provider: "kling", Upstream: "film-2", Operation: "base_video"},
			},
		},
		{
			ID: "still", Type: mediagate.TypeImage, OnUnknown: "fail", Where: "channel three: passthrough.still",
			Routes: []mediagate.Route{{Provider: "gemini", Upstream: "still-1", Operation: "base_image"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestPassthroughIsServedWhereItIsNamed checks that a job of such a model goes only to channels
// that name it, with the name that it has there.
func TestPassthroughIsServedWhereItIsNamed(t *testing.T) {
	t.Parallel()
	film := Passed{Upstream: "film-1", Operation: "video_generation"}
	settings := []Channel{
		{Name: "open", Provider: "minimax", Weight: 1, Credentials: map[string]string{"api_key": "k"}},
		passing("other", "minimax", 1, map[string]Passed{"film": {Upstream: "film-2", Operation: "video_generation"}}),
		passing("one", "minimax", 2, map[string]Passed{"film": film}),
	}
	models, problems := loadCatalog(Config{Channels: settings})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	channels, err := openChannels(all.Builtin(), domainChannels(settings, models), providers.Options{}, fetcher{}, nil, nil)
	must(t, err)
	m, _ := models.Passthrough("film")
	routes := m.Operations()[0].Routes()
	for _, test := range []struct{ upstream, want string }{{"film-1", "one"}, {"film-2", "other"}} {
		for _, route := range routes {
			if route.Upstream != test.upstream {
				continue
			}
			found := channels.Candidates("film", []mediagate.Route{route}, mediagate.Job{Params: json.RawMessage(`{"prompt":"a cat"}`)}, nil)
			if len(found) != 1 || found[0].Name != test.want || found[0].Route.Upstream != test.upstream {
				t.Errorf("%s: %v", test.upstream, found)
			}
		}
	}
	known := channels.Candidates("delta-02", []mediagate.Route{{Provider: "minimax", Upstream: "MiniMax-Hailuo-02", Operation: "video"}}, mediagate.Job{Params: json.RawMessage(`{"prompt":"a","duration":5}`)}, nil)
	if len(known) != 3 || known[0].Name != "open" {
		t.Errorf("a model of the catalog goes to %v", known)
	}
}

// TestBaseContractOfAdapters checks that adapters accept every field of the base contract or
// refuse it by name.
func TestBaseContractOfAdapters(t *testing.T) {
	t.Parallel()
	settings := []Channel{}
	for _, provider := range all.Builtin().Names() {
		for _, operation := range []string{mediagate.OperationVideo, mediagate.OperationImage} {
			kind, _ := passedType(operation)
			if _, _, ok := baseOperation(all.Builtin(), provider, kind); ok {
				settings = append(settings, passing(provider, provider, 0, map[string]Passed{provider + "-" + string(kind): {Upstream: "up", Operation: operation}}))
			}
		}
	}
	models, problems := loadCatalog(Config{Channels: settings})
	if len(problems) > 0 || len(settings) < 4 {
		t.Fatal(problems, len(settings))
	}
	r := routes{all.Builtin().Adapter, all.Builtin().Fingerprints, domainChannels(settings, models)}
	for _, p := range passthrough(all.Builtin(), settings) {
		m, _ := models.Passthrough(p.ID)
		o := m.Operations()[0]
		for field, value := range map[string]any{
			"": nil, "image_urls": []any{"https://example.com/1.png"}, "duration": json.Number("5"), "resolution": "odd", "size": "odd",
			"aspect_ratio": "odd", "n": json.Number("2"), "seed": json.Number("1"),
		} {
			body := map[string]any{"model": p.ID, "prompt": "a cat"}
			if field != "" {
				body[field] = value
			}
			request, err := o.Accept(body)
			if err != nil {
				t.Fatalf("%s: %s: %v", p.ID, field, err)
			}
			e := r.Supports(p.ID, request.Plan.Routes[0], mediagate.Job{Params: request.Params})
			switch {
			case e.Err == nil:
			case field == "", !mediagate.Is(e.Err, mediagate.KindInvalid):
				t.Errorf("%s: %s: %v", p.ID, field, e.Err)
			case !strings.Contains(e.Err.Error(), field) && !strings.Contains(e.Err.Error(), "size"):
				t.Errorf("%s: the refusal of %s does not name it: %v", p.ID, field, e.Err)
			}
		}
	}
}
