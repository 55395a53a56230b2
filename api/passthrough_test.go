package api_test

import (
	"net/http"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/catalog"
)

// withPassthrough adds a film that some channel serves.
func withPassthrough(t *testing.T) func(*api.Config) {
	t.Helper()
	models, err := catalog.Load("", catalog.WithPassthrough([]catalog.Passthrough{{
		ID: "vendor/film", Type: mediagate.TypeVideo, Price: "0.25", OnUnknown: mediagate.OnUnknownPark, Where: "channel one",
		Routes: []mediagate.Route{{Provider: "acme", Upstream: "film-1", Operation: "base_video"}},
	}}))
	must(t, err)
	return func(c *api.Config) { c.Catalog = models }
}

// TestPassthroughModels checks that a model outside the catalog is only for keys that name it
// exactly. It has the base contract if a channel serves it.
func TestPassthroughModels(t *testing.T) {
	t.Parallel()
	g := newGateway(t, withPassthrough(t))
	named := func(k mediagate.Key) string {
		k.Unlimited = true
		_, key := g.newKey(k)
		return key
	}
	key := named(mediagate.Key{Models: []string{"vendor/film", "vendor/none"}})
	const body = `{"model":"vendor/film","prompt":"a cat","duration":5}`
	id := g.send(request{method: http.MethodPost, path: videos, key: key, body: body}).taskID(t)
	task := g.row(id)
	if task.Model != "vendor/film" || task.Type != mediagate.TypeVideo || task.Hold.String() != "0.25" || string(task.Params) != `{"duration":5,"prompt":"a cat"}` ||
		len(task.Plan.Routes) != 1 || !task.Plan.Routes[0].Passthrough || task.Plan.Routes[0].Upstream != "film-1" {
		t.Errorf("%+v", task)
	}
	quote := g.send(request{method: http.MethodPost, path: "/v1/quote", key: key, body: `{"endpoint":"/v1/videos/generations",` + body[1:]})
	if quote.status != 200 || quote.data["cost"] != 0.25 {
		t.Errorf("%d %s", quote.status, quote.body)
	}
	for name, tt := range map[string]struct {
		key, body string
		status    int
		message   string
	}{
		"a key without a list":     {g.key, body, 400, `unknown model "vendor/film"`},
		"a pattern":                {named(mediagate.Key{Models: []string{"vendor/*"}}), body, 400, `unknown model "vendor/film"`},
		"everything":               {named(mediagate.Key{Models: []string{"*"}}), body, 400, `unknown model "vendor/film"`},
		"one that no channel has":  {key, `{"model":"vendor/none","prompt":"a cat"}`, 400, `unknown model "vendor/none"`},
		"one that the group lacks": {named(mediagate.Key{Group: "images", Models: []string{"vendor/film"}}), body, 403, "may not use"},
	} {
		kind := map[int]string{400: "invalid_request_error", 403: "permission_error"}[tt.status]
		for _, call := range []request{
			{method: http.MethodPost, path: videos, key: tt.key, body: tt.body},
			{method: http.MethodPost, path: "/v1/quote", key: tt.key, body: `{"endpoint":"/v1/videos/generations",` + tt.body[1:]},
		} {
			t.Log(name, call.path)
			g.send(call).wantError(t, tt.status, kind, tt.message)
		}
	}

	list := g.send(request{path: "/v1/models?expand=parameters&category=unknown", key: key})
	if ids := list.ids("data", "id"); len(ids) != 2 {
		t.Fatalf("%v", ids)
	}
	film, none := list.item(t, "vendor/film"), list.item(t, "vendor/none")
	contract := g.send(request{path: "/v1/model-schema?model=vendor/film", key: key})
	if p, _ := film["parameters"].(map[string]any); p["source"] != "base" || film["category"] != "unknown" || film["capability_tags"] != nil {
		t.Errorf("%v", film)
	}
	if none["parameters"] != nil || none["category"] != "unknown" {
		t.Errorf("%v", none)
	}
	if contract.data["source"] != "base" || contract.data["category"] != "unknown" || contract.data["operation"] != "video_generation" ||
		contract.at("input_schema", "properties", "model", "const") != "vendor/film" || contract.at("pricing", "rows", 0, "unit_price") != 0.25 {
		t.Errorf("%s", contract.body)
	}
	if byPath := g.send(request{path: "/v1/models/vendor%2Ffilm/schema", key: key}); byPath.body != contract.body {
		t.Errorf("by path: %d %s", byPath.status, byPath.body)
	}
	for _, r := range []request{
		{path: "/v1/model-schema?model=vendor/none", key: key}, {path: "/v1/model-schema?model=vendor/film", key: g.key},
	} {
		g.send(r).wantError(t, 404, "not_found_error", "not found, or it has no contract")
	}
	if all := g.get("/v1/models"); len(all.ids("data", "id")) != len(allModels(t)) {
		t.Errorf("a key without a list sees %v", all.ids("data", "id"))
	}
}
