package api_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/api/openapitest"
	"github.com/mediagate/mediagate/catalog"
)

// contracts caches the contract of each catalog, since most servers of the tests have the same.
var contracts sync.Map

// contractOf returns the contract of the server's OpenAPI document.
func contractOf(server *api.Server) (*openapitest.Contract, error) {
	models, document := api.Document(server)
	if known, ok := contracts.Load(models); ok {
		c, _ := known.(*openapitest.Contract)
		return c, nil
	}
	text, err := document()
	if err != nil {
		return nil, err
	}
	c, err := openapitest.Parse(text)
	if err == nil {
		contracts.Store(models, c)
	}
	return c, err
}

// adminContract returns the contract of the admin API's document.
var adminContract = sync.OnceValues(func() (*openapitest.Contract, error) {
	text, err := api.AdminDocument()
	if err != nil {
		return nil, err
	}
	return openapitest.Parse(text)
})

// checkAnswers checks all answers of the server against its two documents.
func checkAnswers(t *testing.T, server *api.Server) {
	t.Helper()
	api.Watch(server, func(r *http.Request, status int, header http.Header, body []byte) {
		operators := strings.HasPrefix(r.URL.Path, "/admin/v1/")
		if operators && api.UnknownHere(server, r) {
			return
		}
		if !operators && (api.ThroughAdmin(r) || status == http.StatusOK && asksForAnotherShape(r, header)) {
			return // the document is of what clients reach, and of our own shapes
		}
		contract, err := contractOf(server)
		file := "openapi.yaml"
		if operators {
			contract, err = adminContract()
			file = "openapi_admin.yaml"
		}
		if err == nil {
			err = contract.Check(openapitest.Answer{Method: r.Method, Path: r.URL.Path, Status: status, Header: header, Body: body})
		}
		if err != nil {
			t.Errorf("this is not in api/%s, where every status, header and field of an answer has to be: %v", file, err)
		}
	})
}

// asksForAnotherShape reports a call for models in another service's shape, for pictures in
// OpenAI's, and a submit that is answered with its task: generators make one type of
// several shapes, which fits none.
func asksForAnotherShape(r *http.Request, answer http.Header) bool {
	models := strings.HasPrefix(r.URL.Path, "/v1/models") &&
		(r.Header.Get("Anthropic-Version") != "" || r.Header.Get("X-Goog-Api-Key") != "" || r.URL.Query().Get("key") != "")
	return models || r.Header.Get("Prefer") != "" || answer.Get("X-Should-Retry") != ""
}

// TestOpenAPIModelList checks that the document describes one request for the model list and one
// shape of it. Generators would make one type of several shapes, which fits none.
func TestOpenAPIModelList(t *testing.T) {
	t.Parallel()
	_, doc := newGateway(t).document()
	at := func(v any, steps ...string) any {
		for _, step := range steps {
			v = v.(map[string]any)[step]
		}
		return v
	}
	list := at(doc, "paths", "/v1/models", "get")
	if own := at(list, "security"); own != nil {
		t.Errorf("its keys are %v, want those of the document", own)
	}
	if all := at(doc, "security"); !reflect.DeepEqual(all, []any{map[string]any{"bearer": []any{}}}) {
		t.Errorf("the document's keys are %v", all)
	}
	if ref := at(list, "responses", "200", "content", "application/json", "schema", "$ref"); ref != "#/components/schemas/ModelList" {
		t.Errorf("the list is %v", ref)
	}
	var names []any
	for _, p := range parametersOf(doc, list) {
		names = append(names, p["name"])
	}
	if !reflect.DeepEqual(names, []any{"expand", "category", "If-None-Match"}) {
		t.Errorf("its parameters are %v", names)
	}
}

// TestOpenAPIServers checks that the server of the document is public_url.
func TestOpenAPIServers(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"": "/", "https://api.example.com/media": "https://api.example.com/media"} {
		g := newGateway(t, func(c *api.Config) { c.PublicURL = address })
		_, doc := g.document()
		if got := doc["servers"]; !reflect.DeepEqual(got, []any{map[string]any{"url": want}}) {
			t.Errorf("with the address %q the servers are %v", address, got)
		}
	}
}

func TestOpenAPIExamples(t *testing.T) {
	t.Parallel()
	contract, err := contractOf(newGateway(t).server)
	if err == nil {
		err = contract.CheckExamples()
	}
	if err != nil {
		t.Errorf("api/openapi.yaml: %v", err)
	}
	if contract, err = adminContract(); err == nil {
		err = contract.CheckExamples()
	}
	if err != nil {
		t.Errorf("api/openapi_admin.yaml: %v", err)
	}
}

// TestAdminOpenAPIDocument checks that only operators read the admin API's document, and that it
// has the program's version and all referenced components.
func TestAdminOpenAPIDocument(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	const path = "/admin/v1/openapi.yaml"
	g.send(request{path: path, key: g.key}).wantStatus(t, http.StatusForbidden, "a client")
	a := g.send(request{path: path, key: adminKey})
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "application/yaml" {
		t.Fatalf("%d %v", a.status, a.header)
	}
	var doc struct {
		Info  struct{ Version string }
		Paths map[string]any
	}
	g.must(yaml.Unmarshal([]byte(a.body), &doc))
	if doc.Info.Version != "1.2.3" || doc.Paths[path] == nil || strings.Contains(a.body, "\n    CreateVideo") {
		t.Errorf("version %q of %.300s", doc.Info.Version, a.body)
	}
}

// document reads the served document.
func (g *gateway) document() (text string, doc map[string]any) {
	g.t.Helper()
	a := g.send(request{path: "/openapi.json"})
	if a.status != http.StatusOK || a.data == nil {
		g.t.Fatalf("%d %s", a.status, a.body)
	}
	return a.body, a.data
}

// TestOpenAPIDocument checks that the document needs no key, is not sent again to a client that
// has it, and is compressed for clients that accept it.
func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	ask := func(header http.Header) answer { return g.send(request{path: "/openapi.json", header: header}) }
	plain := ask(nil)
	if plain.status != 200 || plain.at("openapi") != "3.1.1" || plain.at("info", "version") != "1.2.3" {
		t.Fatalf("%d %.200s", plain.status, plain.body)
	}
	etag := plain.header.Get("Etag")
	for name, test := range map[string]struct {
		header http.Header
		status int
		gzip   bool
	}{
		"the same":            {http.Header{"If-None-Match": {etag}}, 304, false},
		"another":             {http.Header{"If-None-Match": {`"x"`}}, 200, false},
		"packed":              {http.Header{"Accept-Encoding": {"br, gzip;q=0.5"}}, 200, true},
		"packed, in capitals": {http.Header{"Accept-Encoding": {"GZIP"}}, 200, true},
		"refused":             {http.Header{"Accept-Encoding": {"gzip; q=0, br"}}, 200, false},
		"part of a word":      {http.Header{"Accept-Encoding": {"xgzip"}}, 200, false},
		"the same, packed":    {http.Header{"Accept-Encoding": {"gzip"}, "If-None-Match": {etag}}, 304, true},
	} {
		a := ask(test.header)
		if a.status != test.status || a.header.Get("Etag") != etag || a.header.Get("Vary") != "Accept-Encoding" || a.header.Get("Cache-Control") != "public, max-age=60" {
			t.Errorf("%s: %d %v", name, a.status, a.header)
		}
		text := a.body
		if gzipped := a.header.Get("Content-Encoding") == "gzip"; gzipped != (test.gzip && test.status == 200) {
			t.Errorf("%s: packed: %t", name, gzipped)
		} else if gzipped {
			r, err := gzip.NewReader(strings.NewReader(a.body))
			g.must(err)
			unpacked, err := io.ReadAll(r)
			g.must(err)
			text = string(unpacked)
		}
		want := plain.body
		if test.status == 304 {
			want = ""
		}
		if text != want {
			t.Errorf("%s: another text, of %d bytes", name, len(text))
		}
	}
}

// TestOpenAPIFollowsTheCatalog checks that the document describes the current catalog.
func TestOpenAPIFollowsTheCatalog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := newGateway(t)
	before, _ := g.document()
	for _, id := range []string{"theta-image-turbo", "zeta-3.1-flash-image-preview", "alpha-v3"} {
		g.must(os.WriteFile(filepath.Join(dir, id+".yaml"), []byte("id: "+id+"\nenabled: false\n"), 0o600))
	}
	models, err := catalog.Load(dir)
	g.must(err)
	g.must(g.server.Replace(models, g.vendors))
	after, doc := g.document()
	if before == after {
		t.Error("the document is the old one")
	}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	if schemas["CreateVideo.alpha-v3"] != nil || schemas["CreateVideo.delta-02"] == nil {
		t.Errorf("of the models: %v", slices.Collect(maps.Keys(schemas)))
	}
	if image, _ := schemas["CreateImage"].(map[string]any); image["type"] != "object" || image["oneOf"] != nil {
		t.Errorf("an endpoint without models: %v", image)
	}
}

// TestOpenAPIBodies checks that submits are validated as the document says.
func TestOpenAPIBodies(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	contract, err := contractOf(g.server)
	g.must(err)
	for name, test := range map[string]struct {
		path, body string
		taken      bool
	}{
		"least":              {videos, videoBody, true},
		"alias":              {images, `{"model":"zeta-2-ext","prompt":"a","image_urls":["https://a.example/1.png",{"url":"https://a.example/2.png"}]}`, true},
		"unknown fields":     {videos, `{"model":"alpha-v3","prompt":"a","other":{"x":1}}`, true},
		"subject":            {videos, `{"model":"alpha-v3","prompt":"a @b","element_list":[{"name":"b","description":"c","element_input_urls":["https://a.example/1.png","https://a.example/2.png"]}]}`, true},
		"unknown model":      {videos, `{"model":"omega","prompt":"a"}`, false},
		"no model":           {videos, `{"prompt":"a"}`, false},
		"another endpoint's": {images, videoBody, false},
		"out of bounds":      {videos, `{"model":"alpha-v3","prompt":"a","duration":16}`, false},
		"quote":              {"/v1/quote", `{"endpoint":"/v1/videos/generations","model":"alpha-v3","prompt":"a"}`, true},
		"quote of none":      {"/v1/quote", `{"model":"alpha-v3","prompt":"a"}`, false},
		"quote of another":   {"/v1/quote", `{"endpoint":"/v1/images/generations","model":"alpha-v3","prompt":"a"}`, false},
	} {
		if a := g.post(test.path, test.body); (a.status == 200) != test.taken {
			t.Errorf("%s: the gateway answers %d %s", name, a.status, a.body)
		}
		if err := contract.CheckRequest(http.MethodPost, test.path, []byte(test.body)); (err == nil) != test.taken {
			t.Errorf("%s: the document says %v", name, err)
		}
	}
}

// TestOpenAPIParameters checks that each query parameter accepts and refuses the values that its
// schema accepts and refuses.
func TestOpenAPIParameters(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(videos, videoBody)
	g.complete(id)
	_, doc := g.document()
	if tried := g.tryParameters(doc, g.key, id); tried < 30 {
		t.Errorf("%d values tried", tried)
	}
	text, err := api.AdminDocument()
	g.must(err)
	var operators map[string]any
	g.must(json.Unmarshal(text, &operators))
	if tried := g.tryParameters(operators, adminKey, id); tried < 30 {
		t.Errorf("%d values tried of the admin API", tried)
	}
}

// tryParameters sends values for each query parameter of a document and returns their number.
func (g *gateway) tryParameters(doc map[string]any, key, taskID string) (tried int) {
	g.t.Helper()
	names := strings.NewReplacer("{task_id}", taskID, "{model}", "alpha-v3", "{account_id}", g.account.ID, "{key_id}", g.keyRow.ID)
	paths, _ := doc["paths"].(map[string]any)
	for path, item := range paths {
		get, _ := item.(map[string]any)["get"].(map[string]any)
		for _, parameter := range parametersOf(doc, get) {
			if parameter["in"] != "query" {
				continue
			}
			name, _ := parameter["name"].(string)
			schema, _ := parameter["schema"].(map[string]any)
			good, bad := valuesFor(schema)
			query := url.Values{"expand": {"category"}}
			for _, value := range append(good, bad...) {
				query.Set(name, value)
				a := g.send(request{path: names.Replace(path) + "?" + query.Encode(), key: key})
				refused := a.status == 400 && strings.Contains(a.body, name)
				if want := slices.Contains(bad, value); refused != want {
					g.t.Errorf("GET %s %s=%s: %d %s", path, name, value, a.status, a.body)
				}
				tried++
			}
		}
	}
	return tried
}

// parametersOf returns the parameters of an operation.
func parametersOf(doc map[string]any, operation any) (parameters []map[string]any) {
	list, _ := operation.(map[string]any)["parameters"].([]any)
	for _, p := range list {
		parameter, _ := p.(map[string]any)
		if ref, ok := parameter["$ref"].(string); ok {
			all, _ := doc["components"].(map[string]any)["parameters"].(map[string]any)
			parameter, _ = all[strings.TrimPrefix(ref, "#/components/parameters/")].(map[string]any)
		}
		parameters = append(parameters, parameter)
	}
	return parameters
}

// valuesFor returns values that a schema accepts and values that it refuses.
func valuesFor(schema map[string]any) (good, bad []string) {
	if enum, ok := schema["enum"].([]any); ok {
		for _, word := range enum {
			good = append(good, word.(string))
		}
		return good, []string{"Nonsense", good[0] + "x"}
	}
	if one, ok := schema["oneOf"].([]any); ok && one[1].(map[string]any)["pattern"] != nil { // a time or a date, near to another
		return []string{"1772236800", "2026-02-28T01:02:03+01:00", "2026-02-28"}, []string{"-1", "253402300800", "2026-02-30", "2026-02-28T01:02", "today"}
	}
	if one, ok := schema["oneOf"].([]any); ok && len(one) == 2 { // a time
		return []string{"0", "253402300799", "2026-03-01T12:00:00Z"}, []string{"-1", "253402300800", "2026-03-01", "today"}
	}
	if schema["type"] == "integer" {
		least, most := int(schema["minimum"].(float64)), int(schema["maximum"].(float64))
		return []string{strconv.Itoa(least), strconv.Itoa(most)}, []string{strconv.Itoa(least - 1), strconv.Itoa(most + 1), "1.5", "x"}
	}
	return nil, nil
}
