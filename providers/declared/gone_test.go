package declared_test

import (
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
	"github.com/mediagate/mediagate/providers/declared"
	"github.com/mediagate/mediagate/providers/providertest"
)

// TestModelsThatAreGone checks that a 404 retires no model, even if the answer is JSON. The 404 may
// come from a proxy or from a wrong base_url.
func TestModelsThatAreGone(t *testing.T) {
	t.Parallel()
	jobs := map[string]mediagate.Job{
		"fal": {
			TaskID: "task_1", ExternalID: "task_1", Upstream: "fal-ai/flux/schnell", Operation: "image",
			Params: []byte(`{"prompt":"a fox","size":"1:1"}`),
		},
		"musicapi": {
			TaskID: "task_1", ExternalID: "task_1", Upstream: "sonic", Operation: "sample",
			Source: &mediagate.Source{VendorID: "s-1", Own: true}, Params: []byte(`{"custom":true,"prompt":"la la"}`),
		},
	}
	for name, test := range map[string]struct {
		vendor string
		status int
		body   string
		want   mediagate.Kind
	}{
		"fal's app":                 {"fal", 404, `{"detail":"Application \"flux\" not found","error_type":"not_found"}`, mediagate.KindNotFound},
		"FastAPI's own":             {"fal", 404, `{"detail":"Not Found"}`, mediagate.KindNotFound},
		"a path of fal's":           {"fal", 404, `{"detail":"Not Found","error_type":"not_found"}`, mediagate.KindNotFound},
		"a gateway before fal":      {"fal", 404, `{"message":"no Route matched with those values"}`, mediagate.KindNotFound},
		"HTML":                      {"fal", 404, `<html>flux not found</html>`, mediagate.KindNotFound},
		"a gateway before MusicAPI": {"musicapi", 404, `{"message":"no Route matched with those values"}`, mediagate.KindNotFound},
		"a method":                  {"musicapi", 405, `{"message":"Method Not Allowed"}`, mediagate.KindNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openBuiltin(t, test.vendor, providertest.Plain(test.status, test.body))
			if _, err := p.Submit(t.Context(), jobs[test.vendor]); !mediagate.Is(err, test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

// openBuiltin opens a channel at a vendor of a built-in file.
func openBuiltin(t *testing.T, name string, replies ...providertest.Reply) providers.Provider {
	t.Helper()
	for _, v := range declared.Builtin() {
		if v.Name == name {
			_, p := open(t, v.Adapter(), replies...)
			return p
		}
	}
	t.Fatalf("no vendor %s is built in", name)
	return nil
}
