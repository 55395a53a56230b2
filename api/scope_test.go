package api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

// TestScopes checks that a call needs one scope at most and that the refusal names it: after the
// key is known, before anything else is checked.
func TestScopes(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	keys := map[mediagate.Scope]string{}
	for _, scope := range mediagate.Scopes() {
		_, keys[scope] = g.newKey(mediagate.Key{Unlimited: true, Scopes: []mediagate.Scope{scope}})
	}
	parameter := regexp.MustCompile(`:\w+`)
	for _, row := range api.Rows() {
		if !row.Keyed {
			continue
		}
		path := parameter.ReplaceAllString(row.Path, "x")
		for scope, key := range keys {
			a := g.send(request{method: row.Method, path: path, key: key, body: "{"})
			message, _ := a.at("error", "message").(string)
			denied := a.status == http.StatusForbidden && strings.Contains(message, "lacks the scope")
			if lacks := row.Scope != "" && row.Scope != scope; denied != lacks {
				t.Errorf("%s %s with %s: %d %s", row.Method, path, scope, a.status, a.body)
			}
			if !denied {
				continue
			}
			word := "permission_error"
			if a.at("error", "type") != word || message != "this API key lacks the scope "+string(row.Scope) {
				t.Errorf("%s %s with %s: %s", row.Method, path, scope, a.body)
			}
			openAI := path == "/v1/videos" || strings.HasPrefix(path, "/v1/videos/x")
			if formB := openAI || strings.HasPrefix(path, "/v1/music/"); formB != (a.at("error", "code") == "permission_denied") {
				t.Errorf("%s %s: not in the route's envelope: %s", row.Method, path, a.body)
			}
		}
		g.send(request{method: row.Method, path: path, body: "{"}) // its answer is judged by the document
	}
}

// TestCancelWithoutReading checks that a key that may cancel but not read tasks gets only the id
// and the status of a cancelled task.
func TestCancelWithoutReading(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, writer := g.newKey(mediagate.Key{Unlimited: true, Scopes: []mediagate.Scope{mediagate.ScopeGenerate}})
	_, both := g.newKey(mediagate.Key{Unlimited: true, Scopes: []mediagate.Scope{mediagate.ScopeGenerate, mediagate.ScopeRead}})
	cancel := func(key, id string) answer {
		return g.send(request{method: http.MethodPost, path: "/v1/tasks/" + id + "/cancel", key: key})
	}
	id := g.submit(videos, videoBody)
	if a := cancel(writer, id); a.status != 202 || a.body != `{"code":202,"data":{"id":"`+id+`","status":"pending"}}`+"\n" {
		t.Errorf("without read: %d %s", a.status, a.body)
	}
	if a := cancel(both, g.submit(videos, videoBody)); a.status != 202 || a.at("data", "model") != "alpha-v3" || a.at("data", "cancel_requested") != true {
		t.Errorf("with read: %d %s", a.status, a.body)
	}
}

// TestScopesOfRoutes checks the scope of each class of calls that the contract promises.
func TestScopesOfRoutes(t *testing.T) {
	t.Parallel()
	want := map[string]mediagate.Scope{
		"POST " + videos: mediagate.ScopeGenerate, "POST /v1/audio/speech": mediagate.ScopeGenerate, "POST /v1/uploads/images": mediagate.ScopeGenerate,
		"POST /v1/uploads/videos": mediagate.ScopeGenerate, "POST /v1/uploads/audios": mediagate.ScopeGenerate,
		"POST /v1/tasks/:task_id/cancel": mediagate.ScopeGenerate, "POST /v1/artgen/generations/modal": mediagate.ScopeGenerate,
		"POST /v1/music/generations/sample": mediagate.ScopeGenerate,
		"POST /v1/quote":                    mediagate.ScopeRead, "GET /v1/tasks": mediagate.ScopeRead, "GET /v1/tasks/:task_id/events": mediagate.ScopeRead,
		"GET /v1/models": mediagate.ScopeRead, "GET /v1beta/models": mediagate.ScopeRead, "GET /v1/model-schema": mediagate.ScopeRead,
		"GET /v1/tasks/:task_id/deliveries": mediagate.ScopeRead, "POST /v1/tasks/:task_id/redeliver": mediagate.ScopeManage,
		"GET /v1/webhooks/secret": mediagate.ScopeManage, "POST /v1/webhooks/secret": mediagate.ScopeManage, "POST /v1/webhooks/test": mediagate.ScopeManage, "PATCH /v1/account": mediagate.ScopeManage,
		"GET /v1/balance": "", "GET /user/balance": "",
	}
	for _, row := range api.Rows() {
		name := row.Method + " " + row.Path
		if scope, ok := want[name]; ok && scope != row.Scope {
			t.Errorf("%s needs %q, want %q", name, row.Scope, scope)
		}
		delete(want, name)
		if row.Keyed && row.Method == http.MethodGet && row.Scope == mediagate.ScopeGenerate {
			t.Errorf("%s reads, and needs the scope generate", name)
		}
	}
	for name := range want {
		t.Errorf("there is no %s", name)
	}
}
