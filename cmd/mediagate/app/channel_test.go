package app

import (
	"encoding/json"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/all"
)

// TestChannelsServeAliases checks that an alias is accepted wherever a model id is: a channel
// that serves the model also serves tasks that name the alias.
func TestChannelsServeAliases(t *testing.T) {
	t.Parallel()
	models, err := catalog.Load("")
	must(t, err)
	for name, test := range map[string]struct {
		serves []string
		want   map[string]bool
	}{
		"the model": {[]string{"zeta-3.1-flash-image-preview"}, map[string]bool{"zeta-3.1-flash-image-preview": true, "zeta-2-ext": true, "theta-image-turbo": false}},
		"the alias": {[]string{"zeta-2-ext"}, map[string]bool{"zeta-3.1-flash-image-preview": false, "zeta-2-ext": true}},
		"another":   {[]string{"theta-image-turbo"}, map[string]bool{"zeta-3.1-flash-image-preview": false, "zeta-2-ext": false}},
		"all":       {nil, map[string]bool{"zeta-3.1-flash-image-preview": true, "zeta-2-ext": true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			channels, err := openChannels(all.Builtin(), domainChannels([]Channel{{
				Name: "a", Provider: "gemini", Credentials: map[string]string{"api_key": "k"}, Models: test.serves, Weight: 1,
			}}, models), providers.Options{}, fetcher{}, nil, nil)
			must(t, err)
			m, _ := models.Model("zeta-2-ext")
			for id, want := range test.want {
				if ok := len(channels.Candidates(id, m.Operations()[0].Routes(), mediagate.Job{Params: json.RawMessage(`{"prompt":"a cat"}`)}, nil)) > 0; ok != want {
					t.Errorf("%s: served %v, want %v", id, ok, want)
				}
			}
		})
	}
}
