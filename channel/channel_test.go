package channel_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/providers"
)

// dialects takes a request only with the option that its text names.
func dialects(job mediagate.Job, options map[string]string) error {
	if !strings.Contains(string(job.Params), options["dialect"]) {
		return mediagate.Invalid("prompt", "prompt is not possible here")
	}
	return nil
}

func TestPick(t *testing.T) {
	t.Parallel()
	named := func(name, provider, dialect string, priority int, models ...string) channel.Channel {
		return channel.Channel{
			Channel: mediagate.Channel{
				Name: name, Provider: provider, Options: map[string]string{"dialect": dialect}, Priority: priority, Weight: 1, Models: models,
			},
			Adapter: providers.Adapter{Express: dialects},
		}
	}
	broken := named("broken", "b", "", 0)
	broken.Adapter.Express = func(mediagate.Job, map[string]string) error { panic("a bug of the adapter") }
	routes := []mediagate.Route{{Provider: "a", Upstream: "one"}, {Provider: "b", Upstream: "two"}}
	for name, test := range map[string]struct {
		channels []channel.Channel
		params   string
		want     string // names that may be picked; empty: none
		route    string
	}{
		"none":                        {nil, `{}`, "", ""},
		"another provider":            {[]channel.Channel{named("x", "c", "", 0)}, `{}`, "", ""},
		"another model":               {[]channel.Channel{named("x", "a", "", 0, "other")}, `{}`, "", ""},
		"the first route":             {[]channel.Channel{named("y", "b", "", 0), named("x", "a", "", 9)}, `{}`, "x", "one"},
		"the lowest priority":         {[]channel.Channel{named("late", "a", "", 2), named("x", "a", "", 1), named("y", "a", "", 1)}, `{}`, "x y", "one"},
		"who can express it":          {[]channel.Channel{named("old", "a", "old", 1), named("new", "a", "new", 2)}, `{"prompt":"new"}`, "new", "one"},
		"a later route that can":      {[]channel.Channel{named("old", "a", "old", 1), named("new", "b", "new", 2)}, `{"prompt":"new"}`, "new", "two"},
		"nobody, whose adapter tells": {[]channel.Channel{named("old", "a", "old", 1), named("new", "b", "new", 2)}, `{"prompt":"none"}`, "old", "one"},
		"a bug shows itself":          {[]channel.Channel{broken}, `{}`, "broken", "two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			configured := channel.NewConfigured(test.channels)
			seen := map[string]bool{}
			for range 200 {
				c, route, ok := configured.Pick("model", routes, json.RawMessage(test.params))
				if ok != (test.want != "") || ok && (!strings.Contains(test.want, c.Name) || route.Upstream != test.route) {
					t.Fatalf("picked %q for %q (%t), want one of %q for %q", c.Name, route.Upstream, ok, test.want, test.route)
				}
				seen[c.Name] = true
			}
			if ok := test.want != ""; ok && len(seen) != len(strings.Fields(test.want)) {
				t.Errorf("picked %v of %q in 200 times", seen, test.want)
			}
		})
	}
}
