package channel_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/providers"
)

// dialects supports a request only with the option that its text names.
func dialects(job mediagate.Job, options map[string]string) error {
	if !strings.Contains(string(job.Params), options["dialect"]) {
		return mediagate.Invalid("prompt", "prompt is not possible here")
	}
	return nil
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	named := func(name, provider, dialect string, priority int, models ...string) channel.Channel {
		return channel.Channel{
			Channel: mediagate.Channel{
				Name: name, Provider: provider, Options: map[string]string{"dialect": dialect}, Priority: priority, Weight: 1,
				Models: models,
			},
			Adapter: providers.Adapter{Supports: dialects},
		}
	}
	broken := named("broken", "b", "", 0)
	broken.Adapter.Supports = func(mediagate.Job, map[string]string) error { panic("a bug of the adapter") }
	routes := []mediagate.Route{{Provider: "a", Upstream: "one"}, {Provider: "b", Upstream: "two"}}
	for name, test := range map[string]struct {
		channels []channel.Channel
		params   string
		want     string // the names that may be picked; empty if there are none
		route    string
	}{
		"none":             {nil, `{}`, "", ""},
		"another provider": {[]channel.Channel{named("x", "c", "", 0)}, `{}`, "", ""},
		"another model":    {[]channel.Channel{named("x", "a", "", 0, "other")}, `{}`, "", ""},
		"the first route":  {[]channel.Channel{named("y", "b", "", 0), named("x", "a", "", 9)}, `{}`, "x", "one"},
		"the lowest priority": {
			[]channel.Channel{named("late", "a", "", 2), named("x", "a", "", 1), named("y", "a", "", 1)}, `{}`, "x y", "one",
		},
		"a channel that supports it": {
			[]channel.Channel{named("old", "a", "old", 1), named("new", "a", "new", 2)}, `{"prompt":"new"}`, "new", "one",
		},
		"a later route that can": {
			[]channel.Channel{named("old", "a", "old", 1), named("new", "b", "new", 2)}, `{"prompt":"new"}`, "new", "two",
		},
		"none, and the adapter says why": {
			[]channel.Channel{named("old", "a", "old", 1), named("new", "b", "new", 2)}, `{"prompt":"none"}`, "old", "one",
		},
		"a bug shows itself": {[]channel.Channel{broken}, `{}`, "broken", "two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			configured := channel.NewConfigured(test.channels)
			seen := map[string]bool{}
			for range 200 {
				candidates := configured.Candidates("model", routes, mediagate.Job{Params: json.RawMessage(test.params)}, nil)
				ok := len(candidates) > 0
				if ok != (test.want != "") ||
					ok && (!strings.Contains(test.want, candidates[0].Name) || candidates[0].Route.Upstream != test.route) {
					t.Fatalf("listed %+v, want one of %q for %q first", candidates, test.want, test.route)
				}
				if ok {
					seen[candidates[0].Name] = true
				}
			}
			if ok := test.want != ""; ok && len(seen) != len(strings.Fields(test.want)) {
				t.Errorf("%v of %q were first in 200 times", seen, test.want)
			}
		})
	}
}

// TestCandidatesOfASource checks a job that only the account can make that made its source: it
// waits for that account's channel (D11). That another account cannot make it says nothing about
// the request.
func TestCandidatesOfASource(t *testing.T) {
	t.Parallel()
	sticks := func(job mediagate.Job, _ map[string]string) error {
		if strings.Contains(string(job.Params), "never") {
			return mediagate.Invalid("prompt", "prompt is not possible here")
		}
		if !job.Source.Own {
			return mediagate.Invalid("task_id", "task_id must name a task that the same account made")
		}
		return nil
	}
	named := func(name, fingerprint string) channel.Channel {
		return channel.Channel{
			Channel: mediagate.Channel{
				Name: name, Provider: "a",
			}, Fingerprint: fingerprint, Adapter: providers.Adapter{Supports: sticks},
		}
	}
	stranger := named("other", "account-o")
	stranger.Provider = "b"
	routes := []mediagate.Route{{Provider: "a", Upstream: "one"}, {Provider: "b", Upstream: "one"}}
	source := &mediagate.Source{Provider: "a", Channel: "maker", Fingerprint: "account-m"}
	for name, test := range map[string]struct {
		channels []channel.Channel
		params   string
		want     string
	}{
		"its maker": {
			[]channel.Channel{named("other", "account-o"), named("maker", "account-m")}, `{}`, "maker",
		},
		"its maker is gone":                {[]channel.Channel{named("other", "account-o")}, `{}`, ""},
		"its maker cannot make it":         {[]channel.Channel{named("maker", "account-m")}, `{"prompt":"never"}`, "maker"},
		"nobody could make it":             {[]channel.Channel{named("other", "account-o")}, `{"prompt":"never"}`, "other"},
		"another vendor, which has it not": {[]channel.Channel{stranger}, `{}`, "other"},
		"its maker under a name of before": {
			[]channel.Channel{named("other", "account-o"), named("new", "account-m")}, `{}`, "new",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var names []string
			for _, c := range channel.NewConfigured(test.channels).Candidates(
				"art", routes, mediagate.Job{Params: json.RawMessage(test.params), Source: source}, nil,
			) {
				names = append(names, c.Name)
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("candidates %q, want %q", got, test.want)
			}
		})
	}
}

// TestCandidatesWithoutRetiredModels checks that a route whose model is retired at a channel is left
// out there. The channel stands for its next route, and none is listed if each route that could make
// the job is retired.
func TestCandidatesWithoutRetiredModels(t *testing.T) {
	t.Parallel()
	named := func(name, provider string) channel.Channel {
		return channel.Channel{
			Channel: mediagate.Channel{Name: name, Provider: provider, Options: map[string]string{"dialect": provider}},
			Adapter: providers.Adapter{Supports: dialects},
		}
	}
	configured := channel.NewConfigured([]channel.Channel{named("x", "a"), named("y", "b")})
	routes := []mediagate.Route{{Provider: "a", Upstream: "one"}, {Provider: "b", Upstream: "two"}, {Provider: "a", Upstream: "three"}}
	for name, test := range map[string]struct{ retired, params, want string }{
		"none":                          {"", `{"prompt":"ab"}`, "x one, y two"},
		"the first":                     {"x one", `{"prompt":"ab"}`, "y two, x three"},
		"the same at another channel":   {"y one", `{"prompt":"ab"}`, "x one, y two"},
		"both of a channel":             {"x one, x three", `{"prompt":"ab"}`, "y two"},
		"all":                           {"x one, x three, y two", `{"prompt":"ab"}`, ""},
		"all that can make it":          {"x one, x three", `{"prompt":"a"}`, ""},
		"of what nobody could make":     {"x one", `{"prompt":"c"}`, "x one, y two"},
		"one that could not make it":    {"y two", `{"prompt":"a"}`, "x one"},
		"the first that can is retired": {"x one", `{"prompt":"a"}`, "x three"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			retired := func(name string, r mediagate.Route) bool {
				return slices.Contains(strings.Split(test.retired, ", "), name+" "+r.Upstream)
			}
			var got []string
			for _, c := range configured.Candidates("model", routes, mediagate.Job{Params: json.RawMessage(test.params)}, retired) {
				got = append(got, c.Name+" "+c.Route.Upstream)
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("candidates %q, want %q", got, test.want)
			}
		})
	}
}

// TestCandidatesInOrder checks the order in which channels are tried: route by route, each
// channel once, by priority, and by weight if the priority is the same. The channel that made the
// source comes first.
func TestCandidatesInOrder(t *testing.T) {
	t.Parallel()
	named := func(name, provider string, priority, weight int) channel.Channel {
		return channel.Channel{Channel: mediagate.Channel{Name: name, Provider: provider, Priority: priority, Weight: weight}}
	}
	configured := channel.NewConfigured([]channel.Channel{
		named("spare", "a", 2, 1), named("other", "b", 0, 1), named("light", "a", 1, 1), named("heavy", "a", 1, 3),
		named("idle", "a", 1, 0),
	})
	routes := []mediagate.Route{
		{Provider: "a", Upstream: "one"}, {Provider: "a", Upstream: "two"}, {Provider: "b", Upstream: "three"},
	}
	first := map[string]int{}
	const times = 4000
	for range times {
		var names, upstreams []string
		for _, c := range configured.Candidates("model", routes, mediagate.Job{}, nil) {
			names, upstreams = append(names, c.Name), append(upstreams, c.Route.Upstream)
		}
		first[names[0]]++
		if got, want := strings.Join(upstreams, " "), "one one one one three"; got != want {
			t.Fatalf("routes %q, want %q", got, want)
		}
		if got, want := strings.Join(names[2:], " "), "idle spare other"; got != want {
			t.Fatalf("last %q, want %q", got, want)
		}
	}
	if share := float64(first["heavy"]) / times; share < 0.7 || share > 0.8 || first["light"]+first["heavy"] != times {
		t.Errorf("first were %v of %d, want three quarters heavy, the rest light", first, times)
	}
	for maker, want := range map[string]string{
		"other": "other", "spare": "spare", "idle": "idle", "gone": "light or heavy",
	} {
		job := mediagate.Job{Source: &mediagate.Source{Channel: maker, Fingerprint: "of the maker"}}
		if got := configured.Candidates("model", routes, job, nil)[0].Name; !strings.Contains(want, got) {
			t.Errorf("with a source that %s made, the first is %s, want %s", maker, got, want)
		}
	}
}
