package api_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
)

// acknowledges reports whether an answer acknowledges the task.
func acknowledges(a answer, id string) bool {
	return a.status == http.StatusOK && strings.Contains(a.body, `"status":"submitted","task_id":"`+id+`"`)
}

const boatBody = `{"model":"alpha-v3","prompt":"a red boat"}`

// TestPreferWait checks that a submit with Prefer: wait is answered with the task if it ends in
// time, otherwise with the acknowledgement. Both have the task's address.
func TestPreferWait(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	submit := func(key, prefer string, more http.Header) answer {
		header := http.Header{"Prefer": {prefer}}
		maps.Copy(header, more)
		return g.send(request{method: http.MethodPost, path: "/v1/videos/generations", key: key, body: boatBody, header: header})
	}
	idOf := func(a answer) string {
		t.Helper()
		id, found := strings.CutPrefix(a.header.Get("Location"), "/v1/tasks/")
		if a.status != http.StatusOK || !found {
			t.Fatalf("%d %s, Location %q", a.status, a.body, a.header.Get("Location"))
		}
		return id
	}

	ended := make(chan string, 1)
	answered := make(chan answer, 1)
	go func() { answered <- submit(g.key, "respond-async, WAIT=60; foo=1", nil) }()
	go func() {
		id := g.awaitStart(0).ID
		g.complete(id, mediagate.Result{Role: mediagate.RoleMain, Key: "results/" + id + "/1/0", MimeType: "video/mp4", Size: 9, SHA256: strings.Repeat("ab", 32)})
		ended <- id
	}()
	a, id := <-answered, <-ended
	if idOf(a) != id || a.at("data", "status") != "completed" || a.at("data", "id") != id {
		t.Errorf("a task that ended in time: %s", a.body)
	}

	if a := submit(g.key, "wait=1", nil); !acknowledges(a, idOf(a)) || a.header.Get("Preference-Applied") != "wait=1" {
		t.Errorf("a task that did not end: %s", a.body)
	}
	for _, prefer := range []string{"", "wait=0", "wait=x", "wait=1.5", "wait=-1", "respond-async"} {
		began := time.Now()
		if a := submit(g.key, prefer, nil); !acknowledges(a, idOf(a)) || a.header.Get("Preference-Applied") != "" {
			t.Errorf("%q: %s after %s, %v", prefer, a.body, time.Since(began), a.header)
		}
	}

	again := http.Header{"Idempotency-Key": {"k"}}
	first := idOf(submit(g.key, "", again))
	g.complete(first, mediagate.Result{Role: mediagate.RoleMain, Key: "results/" + first + "/1/0", MimeType: "video/mp4", Size: 9, SHA256: strings.Repeat("ab", 32)})
	for prefer, applied := range map[string]string{
		`wait="60"`: "60", "wait": "60", "wait=": "60", "wait=61": "60", "wait=99999999999999999999": "60", "wait=61, wait=5": "60", "wait=5": "5",
	} {
		a := submit(g.key, prefer, again)
		if a.header.Get("Idempotency-Replayed") != "true" || a.at("data", "status") != "completed" || a.header.Get("Preference-Applied") != "wait="+applied {
			t.Errorf("a repeated submit, %q: %v %s", prefer, a.header, a.body)
		}
	}

	_, writer := g.newKey(mediagate.Key{Unlimited: true, Scopes: []mediagate.Scope{mediagate.ScopeGenerate}})
	if a := submit(writer, "wait=60", again); !acknowledges(a, first) || a.header.Get("Preference-Applied") != "" {
		t.Errorf("a key that may not read tasks was shown one: %s", a.body)
	}
	if bad := g.send(request{method: http.MethodPost, path: "/v1/videos/generations", key: g.key, body: `{}`, header: http.Header{"Prefer": {"wait=5"}}}); bad.status != http.StatusBadRequest || bad.header.Get("Location") != "" {
		t.Errorf("a refused submit: %d %v", bad.status, bad.header)
	}
}

// TestResultFiles checks that a task's file has an address that redirects to a new link for as
// long as the file is kept.
func TestResultFiles(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit("/v1/images/generations", `{"model":"zeta-3.1-flash-image-preview","prompt":"a red boat","n":2}`)
	files := "/v1/tasks/" + id + "/files/"
	g.get(files+"1").wantStatus(t, http.StatusNotFound, "before the end")
	picture := func(n string) mediagate.Result {
		return mediagate.Result{Role: mediagate.RoleMain, Index: int(n[0] - '0'), Key: "results/" + id + "/1/" + n, MimeType: "image/png", Size: 9, SHA256: strings.Repeat("ab", 32), Width: 64, Height: 64}
	}
	g.complete(id, picture("0"), picture("1"))
	urls := g.get("/v1/tasks/" + id)
	for n, path := range map[string]string{"1": "results/" + id + "/1/0", "2": "results/" + id + "/1/1"} {
		a := g.get(files + n)
		if link := a.header.Get("Location"); a.status != http.StatusFound || !strings.Contains(link, path+"?") || a.header.Get("Cache-Control") != "no-store" || a.body != "" {
			t.Errorf("file %s: %d %v", n, a.status, a.header)
		}
		if !strings.Contains(urls.body, path) {
			t.Errorf("the result lacks %s: %s", path, urls.body)
		}
	}
	get, head := g.get(files+"1").header.Get("Location"), g.send(request{method: http.MethodHead, path: files + "1", key: g.key}).header.Get("Location")
	if get == "" || head == "" || get == head {
		t.Errorf("the links for GET and HEAD are %q and %q: a signature is of one method", get, head)
	}
	named := g.get(files + "1?download=..%2Fmy%20b%C3%B6at.png").header.Get("Location")
	if !strings.Contains(named, "response-content-disposition=attachment%3B%20filename%2A%3Dutf-8%27%27my%2520b%25C3%25B6at.png") {
		t.Errorf("with a name: %s", named)
	}
	for _, n := range []string{"0", "3", "-1", "01", "x", "1.0", "99999999999999999999"} {
		if a := g.get(files + n); a.status != http.StatusNotFound || a.at("error", "type") != "not_found_error" {
			t.Errorf("file %s: %d %s", n, a.status, a.body)
		}
	}
	g.send(request{path: files + "1", key: g.other()}).wantStatus(t, http.StatusBadRequest, "of another account")
	g.clock.advance(365 * 24 * time.Hour)
	if a := g.get(files + "1"); a.status != http.StatusFound { // nothing is said of how long files are kept
		t.Errorf("a year later: %d %s", a.status, a.body)
	}
}

// TestOneModel checks that one model has the fields and the shape of the list.
func TestOneModel(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	gemini, anthropic := http.Header{"X-Goog-Api-Key": {g.key}}, http.Header{"X-Api-Key": {g.key}, "Anthropic-Version": {"2023-06-01"}}
	for name, test := range map[string]struct {
		request request
		want    string
	}{
		"ours":                  {request{path: "/v1/models/alpha-v3", key: g.key}, `"object":"model"`},
		"with its category":     {request{path: "/v1/models/alpha-v3?expand=category", key: g.key}, `"category":"video"`},
		"an alias":              {request{path: "/v1/models/zeta-2-ext", key: g.key}, `"id":"zeta-2-ext"`},
		"Anthropic's":           {request{path: "/v1/models/alpha-v3", header: anthropic}, `"display_name":"alpha-v3"`},
		"Gemini's":              {request{path: "/v1beta/models/alpha-v3", header: gemini}, `"name":"models/alpha-v3"`},
		"Gemini's, by the key":  {request{path: "/v1/models/alpha-v3", header: gemini}, `"name":"models/alpha-v3"`},
		"Gemini's, with Bearer": {request{path: "/v1beta/models/alpha-v3", key: g.key}, `"name":"models/alpha-v3"`},
	} {
		if a := g.send(test.request); a.status != http.StatusOK || !strings.Contains(a.body, test.want) || strings.Contains(a.body, `"data"`) || a.header.Get("Etag") == "" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	_, narrow := g.newKey(mediagate.Key{Unlimited: true, Models: []string{"theta-*"}})
	for name, r := range map[string]request{
		"unknown":            {path: "/v1/models/nope", key: g.key},
		"unknown of Gemini":  {path: "/v1beta/models/nope", key: g.key},
		"not for the key":    {path: "/v1/models/alpha-v3", key: narrow},
		"and in Anthropic's": {path: "/v1/models/nope", header: anthropic},
	} {
		a := g.send(r)
		if message, _ := a.at("error", "message").(string); a.status != http.StatusNotFound || !strings.Contains(message, r.path[strings.LastIndex(r.path, "/")+1:]) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}
