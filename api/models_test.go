package api_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/catalog"
)

// overlay returns the built-in catalog with a file added.
func overlay(t *testing.T, text string) *catalog.Catalog {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600))
	c, err := catalog.Load(dir)
	must(t, err)
	return c
}

const withoutTheta = "id: theta-image-turbo\nenabled: false\n"

// TestReplace checks that a new catalog applies to the next call in every answer, and that tasks
// keep their values.
func TestReplace(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(images, imageBody)
	contract := g.get("/v1/models/theta-image-turbo/schema")
	tag := g.get("/v1/models").header.Get("Etag")

	g.must(g.server.Replace(overlay(t, withoutTheta), g.vendors))
	g.post(images, imageBody).wantError(t, 400, "invalid_request_error", `unknown model "theta-image-turbo"`)
	g.post("/v1/quote", `{"endpoint":"/v1/images/generations",`+imageBody[1:]).wantError(t, 400, "invalid_request_error", "unknown model")
	g.get("/v1/models/theta-image-turbo/schema").wantError(t, 404, "not_found_error", `model "theta-image-turbo" not found`)
	if a := g.get("/v1/models"); strings.Contains(a.body, "theta") || a.header.Get("Etag") == tag {
		t.Errorf("%s %s", a.header.Get("Etag"), a.body)
	}
	if a := g.get("/v1/tasks/" + id); a.at("data", "model") != "theta-image-turbo" || a.at("data", "status") != "pending" {
		t.Errorf("the task: %s", a.body)
	}

	g.must(g.server.Replace(api.BuiltIn(t), g.vendors))
	if a := g.get("/v1/models/theta-image-turbo/schema"); a.body != contract.body {
		t.Errorf("the contract after a way there and back: %s", a.body)
	}
}

// TestModelsThatEnd: lists, one model and its contract say when it ends and what to use
// then, and those of its aliases too.
func TestModelsThatEnd(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.must(g.server.Replace(overlay(t, "id: zeta-3.1-flash-image-preview\nends: 2027-03-31\nreplacement: theta-image-turbo\n"), g.vendors))
	for _, id := range []string{"zeta-3.1-flash-image-preview", "zeta-2-ext"} {
		items := map[string]map[string]any{
			"list": g.get("/v1/models").item(t, id), "list with parameters": g.get("/v1/models?expand=parameters").item(t, id),
			"model": g.get("/v1/models/" + id).data, "contract": g.get("/v1/models/" + id + "/schema").data,
		}
		for name, item := range items {
			if item["ends"] != "2027-03-31" || item["replacement"] != "theta-image-turbo" {
				t.Errorf("%s of %s: %v, %v", name, id, item["ends"], item["replacement"])
			}
		}
	}
	for name, item := range map[string]map[string]any{"list": g.get("/v1/models").item(t, "theta-image-turbo"), "contract": g.get("/v1/models/theta-image-turbo/schema").data} {
		if _, ends := item["ends"]; ends {
			t.Errorf("%s of a model without an end: %v", name, item["ends"])
		}
	}
	if got := g.server.ModelEnds(); len(got) != 1 || got["zeta-3.1-flash-image-preview"].Unix() != 1806451200 {
		t.Errorf("ends: %v", got)
	}
}

// TestReplaceChangesBounds checks that the maximum body size follows the catalog.
func TestReplaceChangesBounds(t *testing.T) {
	t.Parallel()
	g := newGateway(t, smallBodies(t))
	large := `{"model":"alpha-v3","prompt":"a cat","other":"` + strings.Repeat("x", 2<<20) + `"}`
	g.post(videos, large).wantError(t, http.StatusRequestEntityTooLarge, "invalid_request_error", "1048576")
	g.must(g.server.Replace(api.BuiltIn(t), g.vendors))
	a := g.post(videos, `{"model":"delta-02","prompt":"a cat","other":"`+strings.Repeat("x", 2<<20)+`"}`)
	a.wantStatus(t, http.StatusOK)
}

// TestReplaceWhileServing checks that a call uses one catalog throughout, even if it is replaced
// meanwhile.
func TestReplaceWhileServing(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	whole, less := api.BuiltIn(t), overlay(t, withoutTheta)
	listed := len(allModels(t))
	stop := make(chan struct{})
	var replacing, calling sync.WaitGroup
	replacing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := g.server.Replace([]*catalog.Catalog{less, whole}[i%2], g.vendors); err != nil {
				t.Error(err)
			}
		}
	})
	for range 4 {
		calling.Go(func() {
			for range 8 {
				if n := len(g.get("/v1/models").ids("data", "id")); n != listed && n != listed-1 {
					t.Errorf("%d models", n)
				}
				a := g.post("/v1/quote", `{"endpoint":"/v1/images/generations",`+imageBody[1:])
				if a.status != 200 && (a.status != 400 || !strings.Contains(a.body, "unknown model")) {
					t.Errorf("%d %s", a.status, a.body)
				}
			}
		})
	}
	calling.Wait()
	close(stop)
	replacing.Wait()
}
