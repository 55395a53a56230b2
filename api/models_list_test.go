package api_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/catalog"
)

// allModels are the built-in models and aliases in the order of lists.
func allModels(t *testing.T) []string {
	t.Helper()
	var ids []string
	for _, m := range api.BuiltIn(t).Models() {
		ids = append(ids, m.ID)
	}
	return ids
}

// contracted lists the built-in models that have a contract.
func contracted(t *testing.T) []*catalog.Model {
	t.Helper()
	return slices.DeleteFunc(api.BuiltIn(t).Models(), func(m *catalog.Model) bool {
		facts, _ := m.Type.Facts()
		return facts.Operation == ""
	})
}

// ids returns the ids of a list's items.
func (a answer) ids(field, name string) []string {
	items, _ := a.data[field].([]any)
	list := []string{}
	for _, item := range items {
		one, _ := item.(map[string]any)
		id, _ := one[name].(string)
		list = append(list, id)
	}
	return list
}

// item returns the item with the id.
func (a answer) item(t *testing.T, id string) map[string]any {
	t.Helper()
	items, _ := a.data["data"].([]any)
	for _, item := range items {
		if one, _ := item.(map[string]any); one["id"] == id {
			return one
		}
	}
	t.Fatalf("%s is not in the list: %.300s", id, a.body)
	return nil
}

func keysOf(m map[string]any) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// TestModelList checks the fields of a model for each combination of requested details.
func TestModelList(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	basic := []string{"created", "id", "object", "owned_by", "supported_endpoint_types"}
	category := append([]string{"capability_tags", "category"}, basic...)
	all := append([]string{"parameters"}, category...)
	priced := append([]string{"pricing"}, category...)
	slices.Sort(category)
	slices.Sort(all)
	slices.Sort(priced)
	for query, want := range map[string][]string{
		"":                               basic,
		"?expand=":                       basic,
		"?expand=category,everything":    basic,
		"?expand=Category":               basic,
		"?category=video":                basic, // without expand it does not count
		"?expand=nonsense&category=foo":  basic,
		"?expand=category":               category,
		"?expand=parameters":             all,
		"?expand=parameters,category":    all,
		"?expand=parameters,%20category": all,
		"?expand=pricing":                priced,
		"?expand=pricing,category":       priced,
		"?expand=pricing,prices":         basic,
	} {
		a := g.get("/v1/models" + query)
		if a.status != 200 || a.data["success"] != true || a.data["object"] != "list" {
			t.Fatalf("%s: %d %.200s", query, a.status, a.body)
		}
		if diff := cmp.Diff([]string{"data", "object", "success"}, keysOf(a.data)); diff != "" {
			t.Errorf("%s: envelope: %s", query, diff)
		}
		if diff := cmp.Diff(allModels(t), a.ids("data", "id")); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
		for _, id := range allModels(t) {
			want := want
			if slices.Contains(want, "parameters") && !slices.ContainsFunc(contracted(t), func(m *catalog.Model) bool { return m.ID == id }) {
				want = category // which has no contract to show
			}
			if diff := cmp.Diff(want, keysOf(a.item(t, id))); diff != "" {
				t.Errorf("%s: %s: %s", query, id, diff)
			}
		}
	}
}

// TestModelListPricing checks that "from" and "to" are the lowest and the highest price of any operation
// that makes a task, at the prices of the caller's group.
func TestModelListPricing(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, half := g.newKey(mediagate.Key{Unlimited: true, Group: "half"})
	_, named := g.newKey(mediagate.Key{Unlimited: true, Models: []string{"unheard-of"}})
	for name, test := range map[string]struct {
		key, model, unit string
		from, to         float64
		operations       int
	}{
		"art":                   {g.key, "art", "operation", 0.01, 0.108, 12},
		"art at half the price": {half, "art", "operation", 0.005, 0.054, 12},
		"songs":                 {g.key, "music-a", "operation", 0.02, 0.25, 6},
		"speech":                {g.key, "eta-4o-mini-tts", "character", 0.00006, 0.00006, 1},
	} {
		for _, path := range []string{"/v1/models", "/v1/models/" + test.model} {
			item := g.send(request{path: path + "?expand=pricing", key: test.key}).data
			if path == "/v1/models" {
				item = answer{data: item}.item(t, test.model)
			}
			p, _ := item["pricing"].(map[string]any)
			operations, _ := p["operations"].([]any)
			got := []any{p["currency"], p["unit"], p["from"], p["to"], len(operations)}
			if want := []any{"USD", test.unit, test.from, test.to, test.operations}; !slices.Equal(got, want) {
				t.Errorf("%s: %s: %v, want %v", name, path, got, want)
			}
		}
	}
	if a := g.send(request{path: "/v1/models?expand=pricing", key: named}); a.item(t, "unheard-of")["pricing"] != nil {
		t.Errorf("a model that is in no catalog has a price: %s", a.body)
	}
}

// TestModelListCategory checks the filter by category.
func TestModelListCategory(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for _, category := range []string{"video", "image", "audio", "chat", "unknown"} {
		want := []string{}
		for _, m := range api.BuiltIn(t).Models() {
			if m.Category == category {
				want = append(want, m.ID)
			}
		}
		for _, expand := range []string{"category", "parameters"} {
			a := g.get("/v1/models?expand=" + expand + "&category=" + category)
			if diff := cmp.Diff(want, a.ids("data", "id")); diff != "" {
				t.Errorf("%s: %s", category, diff)
			}
		}
	}
	g.get("/v1/models?expand=category&category=movies").wantError(t, 400, "invalid_request_error", "category must be one of")
}

// TestVisibleModels checks that each list has the models that the key may use, by its own list
// and its group's. A model that only the key names is listed as unknown.
func TestVisibleModels(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for name, test := range map[string]struct {
		key  mediagate.Key
		want []string
	}{
		"no list":                             {mediagate.Key{}, allModels(t)},
		"everything":                          {mediagate.Key{Models: []string{"*"}}, allModels(t)},
		"a pattern":                           {mediagate.Key{Models: []string{"alpha-*"}}, []string{"alpha-v3", "alpha-video-o1"}},
		"a group":                             {mediagate.Key{Group: "images"}, []string{"theta-image-turbo"}},
		"list and group":                      {mediagate.Key{Group: "images", Models: []string{"alpha-*"}}, []string{}},
		"the id of a model":                   {mediagate.Key{Models: []string{"zeta-3.1-flash-image-preview"}}, []string{"zeta-2-ext", "zeta-3.1-flash-image-preview"}},
		"an alias":                            {mediagate.Key{Models: []string{"zeta-2-ext"}}, []string{"zeta-2-ext"}},
		"an unknown one":                      {mediagate.Key{Models: []string{"vendor/omega", "alpha-v3", "vendor/omega"}}, []string{"alpha-v3", "vendor/omega"}},
		"an unknown one that the group lacks": {mediagate.Key{Group: "images", Models: []string{"vendor/omega"}}, []string{}},
		"an unknown one that the group's list has": {mediagate.Key{Group: "images", Models: []string{"theta-9"}}, []string{"theta-9"}},
		"a group that is gone":                     {mediagate.Key{Group: "gone"}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			test.key.Unlimited = true
			_, key := g.newKey(test.key)
			a := g.send(request{path: "/v1/models", key: key})
			if diff := cmp.Diff(test.want, a.ids("data", "id")); diff != "" {
				t.Error(diff)
			}
		})
	}
	_, key := g.newKey(mediagate.Key{Unlimited: true, Models: []string{"omega"}})
	if a := g.send(request{path: "/v1/models?expand=category&category=unknown", key: key}); len(a.ids("data", "id")) != 1 {
		t.Errorf("the filter: %s", a.body)
	}
}

// TestModelListKeys checks that the lists accept the key wherever clients of other services send
// it, and that other endpoints do not.
func TestModelListKeys(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	anthropic := http.Header{"X-Api-Key": {g.key}, "Anthropic-Version": {"2023-06-01"}}
	for name, test := range map[string]struct {
		r     request
		field string // by which the shape is told; empty: form A
		want  string
	}{
		"bearer":                    {request{key: g.key}, "success", ""},
		"x-api-key":                 {request{header: http.Header{"X-Api-Key": {g.key}}}, "success", ""},
		"anthropic":                 {request{header: anthropic}, "has_more", ""},
		"anthropic, bearer":         {request{key: g.key, header: http.Header{"Anthropic-Version": {"1"}}}, "has_more", ""},
		"gemini":                    {request{header: http.Header{"X-Goog-Api-Key": {g.key}}}, "models", ""},
		"gemini, bearer":            {request{key: g.key, header: http.Header{"X-Goog-Api-Key": {g.key}}}, "models", ""},
		"all of them":               {request{key: g.key, path: "?key=" + g.key, header: http.Header{"X-Goog-Api-Key": {g.key}, "X-Api-Key": {g.key}}}, "models", ""},
		"gemini by query":           {request{path: "?key=" + g.key}, "models", ""},
		"an empty key in the query": {request{key: g.key, path: "?key="}, "success", ""},
		"anthropic wins":            {request{path: "?key=" + g.key, header: anthropic}, "has_more", ""},
		"none":                      {request{}, "", "No Authorization header"},
		"anthropic without one":     {request{header: http.Header{"Anthropic-Version": {"1"}}}, "", "No Authorization header"},
		"a wrong x-api-key":         {request{header: http.Header{"X-Api-Key": {"nonsense"}}}, "", "invalid API key"},
		"a wrong x-goog-api-key":    {request{header: http.Header{"X-Goog-Api-Key": {"nonsense"}}}, "", "invalid API key"},
		"a wrong key in the query":  {request{path: "?key=nonsense"}, "", "invalid API key"},
	} {
		for _, path := range []string{"/v1/models", "/v1beta/models"} {
			r, field := test.r, test.field
			r.path = path + test.r.path
			if path == "/v1beta/models" && field != "" {
				field = "models" // always
			}
			a := g.send(r)
			if field == "" {
				a.wantError(t, 401, "authentication_error", test.want)
				continue
			}
			if _, ok := a.data[field]; a.status != 200 || !ok {
				t.Errorf("%s, %s: %d %.200s", name, path, a.status, a.body)
			}
		}
	}
	for _, path := range []string{"/v1/tasks", "/v1/models/alpha-v3/schema", "/v1/model-schema?model=alpha-v3", "/v1/balance"} {
		for _, r := range []request{
			{path: path, header: http.Header{"X-Api-Key": {g.key}, "X-Goog-Api-Key": {g.key}}},
			{path: strings.Replace(path+"&key="+g.key, "&", map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")], 1)},
		} {
			g.send(r).wantStatus(t, 401, r.path)
		}
	}
}

// TestSeveralCredentials checks that a request with different keys is refused.
func TestSeveralCredentials(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, another := g.newKey(mediagate.Key{Unlimited: true})
	for name, header := range map[string]http.Header{
		"a bearer and x-api-key":        {"Authorization": {"Bearer " + g.key}, "X-Api-Key": {another}},
		"a bearer and nonsense":         {"Authorization": {"Bearer " + g.key}, "X-Goog-Api-Key": {"nonsense"}},
		"a wrong bearer and a key":      {"Authorization": {"Bearer nonsense"}, "X-Api-Key": {g.key}},
		"x-api-key and x-goog-api-key":  {"X-Api-Key": {g.key}, "X-Goog-Api-Key": {another}},
		"two of x-api-key":              {"X-Api-Key": {g.key, another}},
		"first and last alike":          {"X-Api-Key": {g.key, another}, "X-Goog-Api-Key": {g.key}},
		"two headers":                   {"Authorization": {"Bearer " + g.key, "Bearer " + another}},
		"two headers that are the same": {"Authorization": {"Bearer " + g.key, "Bearer " + g.key}},
		"two schemes":                   {"Authorization": {"Basic YTpi", "Bearer " + g.key}},
	} {
		for _, path := range []string{"/v1/models", "/v1beta/models"} {
			g.send(request{path: path, header: header}).wantStatus(t, 400, path, name)
		}
		if len(header["Authorization"]) < 2 {
			continue
		}
		for _, r := range []request{
			{path: "/v1/tasks"},
			{path: "/v1/balance"},
			{path: "/admin/v1/accounts"},
			{method: "POST", path: "/admin/v1/accounts", body: `{"name":"a"}`},
			{method: "POST", path: videos, body: videoBody},
		} {
			r.header = header
			g.send(r).wantError(t, 400, "invalid_request_error", "Authorization must be sent once")
		}
		g.send(request{method: "POST", path: "/v1/music/generations", body: `{}`, header: header}).
			wantErrorB(t, 400, "invalid_request", "invalid_request", "Authorization", "Authorization must be sent once")
		g.send(request{path: "/healthz", header: header}).wantStatus(t, 200, name)
	}
	g.send(request{path: "/v1/models?key=" + another, key: g.key}).wantStatus(t, 400, "a bearer and a query")
	g.send(request{path: "/v1/models?key=" + g.key + "&key=" + another}).wantStatus(t, 400, "two of a query")
}

// TestAnthropicPages walks through the list in both directions.
func TestAnthropicPages(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	all := allModels(t)
	last := len(all) - 1
	list := func(query string) answer {
		return g.send(request{path: "/v1/models" + query, key: g.key, header: http.Header{"Anthropic-Version": {"2023-06-01"}}})
	}
	for query, want := range map[string]struct {
		ids  []string
		more bool
	}{
		"":                             {all, false},
		"?limit=1000":                  {all, false},
		"?limit=2":                     {all[:2], true},
		"?limit=2&after_id=" + all[1]:  {all[2:4], true},
		"?after_id=" + all[0]:          {all[1:], false},
		"?after_id=" + all[last]:       {[]string{}, false},
		"?before_id=" + all[0]:         {[]string{}, false},
		"?before_id=" + all[3]:         {all[:3], false},
		"?limit=2&before_id=" + all[4]: {all[2:4], true},
		"?after_id=" + all[0] + "&before_id=" + all[3]: {all[1:3], false},
		"?after_id=" + all[3] + "&before_id=" + all[1]: {[]string{}, false},
		"?expand=parameters&category=nonsense":         {all, false},
	} {
		a := list(query)
		if diff := cmp.Diff(want.ids, a.ids("data", "id")); diff != "" || a.data["has_more"] != want.more {
			t.Errorf("%s: %v %s", query, a.data["has_more"], diff)
		}
		var first, end any
		if len(want.ids) > 0 {
			first, end = want.ids[0], want.ids[len(want.ids)-1]
		}
		if a.data["first_id"] != first || a.data["last_id"] != end {
			t.Errorf("%s: from %v to %v", query, a.data["first_id"], a.data["last_id"])
		}
	}
	for _, query := range []string{"?limit=0", "?limit=1001", "?limit=x", "?after_id=nonsense", "?before_id=nonsense"} {
		name, _, _ := strings.Cut(query[1:], "=")
		list(query).wantError(t, 400, "invalid_request_error", name)
	}
}

// TestGeminiPages walks through the list.
func TestGeminiPages(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	all := allModels(t)
	var seen []string
	token := ""
	for range all {
		a := g.get("/v1beta/models?pageSize=3&pageToken=" + token)
		for _, name := range a.ids("models", "name") {
			seen = append(seen, strings.TrimPrefix(name, "models/"))
		}
		next, more := a.data["nextPageToken"].(string)
		if !more {
			break
		}
		token = next
	}
	if diff := cmp.Diff(all, seen); diff != "" {
		t.Error(diff)
	}
	if a := g.get("/v1beta/models"); len(a.ids("models", "name")) != len(all) || a.data["nextPageToken"] != nil {
		t.Errorf("in one page: %s", a.body)
	}
	for _, query := range []string{"?pageSize=0", "?pageSize=1001", "?pageSize=x", "?pageToken=***"} {
		name, _, _ := strings.Cut(query[1:], "=")
		g.get("/v1beta/models"+query).wantError(t, 400, "invalid_request_error", name)
	}
}

// TestCacheable checks that large answers are compressed for clients that accept it, and are not
// sent again to clients that have them.
func TestCacheable(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	const path = "/v1/models?expand=parameters"
	plain := g.get(path)
	tag := plain.header.Get("Etag")
	if tag == "" || plain.header.Get("Content-Encoding") != "" || plain.header.Get("Accept-Ranges") != "" {
		t.Errorf("%v", plain.header)
	}
	for accept, packed := range map[string]bool{
		"gzip": true, "GZIP": true, "br, gzip;q=0.5": true, "gzip;q=1.0, identity;q=0.5": true, "deflate, gzip": true,
		"": false, "gzip;q=0": false, "gzip; q=0.000": false, "br": false, "identity": false, "zstd": false, "gzipped": false,
	} {
		a := g.send(request{path: path, key: g.key, header: http.Header{"Accept-Encoding": {accept}}})
		if got := a.header.Get("Content-Encoding") == "gzip"; got != packed {
			t.Errorf("Accept-Encoding %q: packed is %v", accept, got)
			continue
		}
		body := a.body
		if packed {
			r, err := gzip.NewReader(strings.NewReader(a.body))
			g.must(err)
			text, err := io.ReadAll(r)
			g.must(err)
			body = string(text)
		}
		if body != plain.body {
			t.Errorf("Accept-Encoding %q: another body", accept)
		}
	}
	again := g.send(request{path: path, key: g.key, header: http.Header{"If-None-Match": {tag}, "Accept-Encoding": {"gzip"}}})
	if again.status != 304 || again.body != "" || again.header.Get("Etag") != tag {
		t.Errorf("what the client has: %d with %d bytes, %v", again.status, len(again.body), again.header)
	}
	for _, accept := range []string{"gzip", "identity"} { // a length is that of GET, or there is none
		header := http.Header{"Accept-Encoding": {accept}}
		whole := g.send(request{path: path, key: g.key, header: header})
		head := g.send(request{method: http.MethodHead, path: path, key: g.key, header: header})
		if head.body != "" || head.header.Get("Etag") != tag {
			t.Errorf("HEAD, %s: %q %v", accept, head.body, head.header)
		}
		if coding := whole.header.Get("Content-Encoding"); head.header.Get("Content-Encoding") != coding {
			t.Errorf("HEAD, %s: the coding is %q, of GET %q", accept, head.header.Get("Content-Encoding"), coding)
		}
		if length := head.header.Get("Content-Length"); length != "" && length != strconv.Itoa(len(whole.body)) {
			t.Errorf("HEAD, %s: the length is %s, of GET %d", accept, length, len(whole.body))
		}
	}
	small := g.send(request{path: "/v1/models?expand=category&category=chat", key: g.key, header: http.Header{"Accept-Encoding": {"gzip"}}})
	if small.header.Get("Content-Encoding") != "" || small.body != `{"success":true,"object":"list","data":[]}`+"\n" {
		t.Errorf("small: %v %s", small.header, small.body)
	}
	tasks := g.send(request{path: "/v1/tasks", key: g.key, header: http.Header{"Accept-Encoding": {"gzip"}}})
	if tasks.header.Get("Content-Encoding") != "" || tasks.header.Get("Etag") != "" {
		t.Errorf("tasks: %v", tasks.header)
	}
}

// TestContract checks that both addresses and the list return the contract that validates a
// model's requests. The golden file has one contract; the OpenAPI document has the shape of all.
func TestContract(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	list := g.get("/v1/models?expand=parameters")
	for _, m := range contracted(t) {
		a := g.get("/v1/models/" + m.ID + "/schema")
		if b := g.get("/v1/model-schema?model=" + m.ID); b.body != a.body {
			t.Errorf("%s: another contract by query: %s", m.ID, b.body)
		}
		endpoint := map[string]string{"video": videos, "image": images}[m.Category]
		if m.Type == mediagate.TypeArt { // whose paths say the model
			endpoint = art
		}
		if a.data["id"] != m.ID || a.data["operation"] != m.Category+"_generation" || a.data["endpoint"] != endpoint ||
			a.data["schema_version"] != "2026-11-22" || a.at("response", "result_pointer") != "/data/result/"+m.Category+"s" {
			t.Errorf("%s: %v", m.ID, a.data)
		}
		var schema any
		g.must(json.Unmarshal(m.Operations()[0].Schema(), &schema))
		if diff := cmp.Diff(schema, a.data["input_schema"]); diff != "" {
			t.Errorf("%s: the schema is not the one that judges: %s", m.ID, diff)
		}
		for name, value := range list.item(t, m.ID)["parameters"].(map[string]any) {
			if diff := cmp.Diff(a.data[name], value); diff != "" {
				t.Errorf("%s: %s differs between list and contract: %s", m.ID, name, diff)
			}
		}
	}
}

// TestNoContract checks that all reasons for a missing contract give the same answer.
func TestNoContract(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, narrow := g.newKey(mediagate.Key{Unlimited: true, Models: []string{"theta-*", "omega"}})
	_, images := g.newKey(mediagate.Key{Unlimited: true, Group: "images"})
	for _, r := range []request{
		{path: "/v1/models/omega/schema", key: g.key},
		{path: "/v1/models/omega/schema", key: narrow}, // listed, but of no catalog
		{path: "/v1/models/alpha-v3/schema", key: narrow},
		{path: "/v1/models/alpha-v3/schema", key: images},
		{path: "/v1/models/ALPHA-V3/schema", key: g.key},
		{path: "/v1/model-schema?model=vendor/omega", key: g.key},
		{path: "/v1/model-schema?model=vendor%2Fomega", key: g.key},
		{path: "/v1/model-schema?model=alpha-v3", key: narrow},
	} {
		g.send(r).wantError(t, 404, "not_found_error", "not found, or it has no contract")
	}
	for _, path := range []string{"/v1/model-schema", "/v1/model-schema?model=", "/v1/model-schema?endpoint=/v1/videos/generations"} {
		g.get(path).wantError(t, 400, "invalid_request_error", "model is required")
	}
	g.get("/v1/models/alpha-v3/schema?endpoint=/v1/images/generations").wantError(t, 400, "invalid_request_error", "endpoint")
	g.get("/v1/models/alpha-v3/schema?endpoint=/v1/videos/generations").wantStatus(t, 200)
}

// TestPricingIsTheQuotes checks that the prices of the contract are those that are quoted, for
// the caller's group.
func TestPricingIsTheQuotes(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, half := g.newKey(mediagate.Key{Unlimited: true, Group: "half"})
	for _, key := range []string{g.key, half} {
		for _, m := range contracted(t) {
			a := g.send(request{path: "/v1/models/" + m.ID + "/schema", key: key})
			rows, _ := a.at("pricing", "rows").([]any)
			if len(rows) == 0 || a.at("pricing", "currency") != "USD" || a.at("pricing", "credits_per_unit") != 1000.0 {
				t.Fatalf("%s: %v", m.ID, a.data["pricing"])
			}
			for i := range rows {
				body, _ := a.at("pricing", "rows", i, "when").(map[string]any)
				body["model"], body["prompt"], body["endpoint"] = m.ID, "a cat", m.Operations()[0].Endpoint
				required, _ := a.at("input_schema", "required").([]any)
				for _, name := range required { // the contract shows how
					if name, _ := name.(string); body[name] == nil {
						body[name] = a.at("input_schema", "properties", name, "examples", 0)
					}
				}
				if body["resolution"] == "512p" { // which needs a frame
					body["first_frame_image"] = "https://media.example.com/1.png"
				}
				text, err := json.Marshal(body)
				g.must(err)
				quote := g.send(request{method: http.MethodPost, path: "/v1/quote", key: key, body: string(text)})
				line, _ := quote.at("breakdown", 0).(map[string]any)
				if line["item"] != a.at("pricing", "rows", i, "item") || line["unit_price"] != a.at("pricing", "rows", i, "unit_price") {
					t.Errorf("%s: the contract says %v, the quote of %s %s", m.ID, rows[i], text, quote.body)
				}
				quantity := 1.0
				for j := range a.at("pricing", "quantity").([]any) {
					name, _ := a.at("pricing", "quantity", j).(string)
					standard, _ := a.at("input_schema", "properties", name, "default").(float64)
					quantity *= standard
				}
				if zero, stated := a.at("pricing", "zero").(float64); stated && quantity == 0 {
					quantity = zero
				}
				if line["quantity"] != quantity {
					t.Errorf("%s: %v units quoted, the contract makes it %v", m.ID, line["quantity"], quantity)
				}
			}
		}
	}
}

// TestContractsOfSeveralEndpoints checks that a model with several contracts lists them and
// returns the requested one.
func TestContractsOfSeveralEndpoints(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) {
		c.Catalog = overlay(t, `id: theta-image-turbo
operations:
  - endpoint: /v1/videos/generations
    schema_version: 2027-01-31
    schema:
      properties:
        scene: {title: Scene, type: string, description: What moves., examples: [a cat]}
      required: [scene]
    price: {unit: operation, rows: [{price: "2"}]}
    routes: [{provider: kling, upstream: x, operation: video}]
    media: video
    expected: 600s
    timeout: 2h
    on_unknown: park
    max_bytes: 1GiB
`)
	})
	const path = "/v1/models/theta-image-turbo/schema"
	both := []any{images, videos}
	for query, want := range map[string]struct{ endpoint, field, version, every string }{
		"":                    {images, "size", "2026-11-22", "2"},
		"?endpoint=":          {images, "size", "2026-11-22", "2"},
		"?endpoint=" + images: {images, "size", "2026-11-22", "2"},
		"?endpoint=" + videos: {videos, "scene", "2027-01-31", "15"},
	} {
		a := g.get(path + query)
		every, _ := a.at("response", "poll", "interval_seconds").(float64)
		if a.data["endpoint"] != want.endpoint || a.at("input_schema", "properties", want.field) == nil ||
			a.data["schema_version"] != want.version || strconv.Itoa(int(every)) != want.every {
			t.Errorf("%s: %s", query, a.body)
		}
		if diff := cmp.Diff(both, a.data["endpoints"]); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	g.get(path+"?endpoint=/v1/music").wantError(t, 400, "invalid_request_error", "endpoint")
	if a := g.get("/v1/models?expand=parameters"); cmp.Diff(both, a.item(t, "theta-image-turbo")["parameters"].(map[string]any)["endpoints"]) != "" {
		t.Errorf("the list: %s", a.body)
	}
}
