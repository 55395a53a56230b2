package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
)

// A header, or else the key, has every unknown top-level field refused, by its name and
// with the nearest one that there is.
func TestStrict(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	_, strict := g.newKey(mediagate.Key{Unlimited: true, Strict: true})
	send := func(key, path, body, header string) answer {
		h := http.Header{}
		if header != "" {
			h.Set("Mediagate-Strict", header)
		}
		return g.send(request{method: http.MethodPost, path: path, key: key, body: body, header: h})
	}
	const odd = `{"model":"alpha-v3","prompt":"a","durations":5}`
	for name, test := range map[string]struct {
		key, path, body, header string
		status                  int
		says                    string
	}{
		"nothing said":         {g.key, videos, odd, "", 200, ""},
		"the header":           {g.key, videos, odd, "true", 400, `"durations" is not a field of model alpha-v3: did you mean "duration"?`},
		"in capitals":          {g.key, videos, odd, "TRUE", 400, "did you mean"},
		"no":                   {g.key, videos, odd, "false", 200, ""},
		"another word":         {g.key, videos, videoBody, "yes", 400, "Mediagate-Strict must be true or false"},
		"the key":              {strict, videos, odd, "", 400, "did you mean"},
		"the header decides":   {strict, videos, odd, "false", 200, ""},
		"two letters off":      {g.key, videos, `{"model":"alpha-v3","prompt":"a","promtp_":1}`, "true", 400, `did you mean "prompt"?`},
		"near nothing":         {g.key, videos, `{"model":"alpha-v3","prompt":"a","colour":"red"}`, "true", 400, `"colour" is not a field of model alpha-v3`},
		"what all take":        {g.key, videos, `{"model":"alpha-v3","prompt":"a","duration":5,"webhook":"https://example.com","metadata":{"x":1}}`, "true", 200, ""},
		"null is absent":       {g.key, videos, `{"model":"alpha-v3","prompt":"a","colour":null}`, "true", 200, ""},
		"within is not looked": {g.key, videos, `{"model":"alpha-v3","prompt":"a","metadata":{"colour":"red"}}`, "true", 200, ""},
		"what is never taken":  {g.key, images, `{"model":"theta-image-turbo","prompt":"a","n":1}`, "true", 400, `"n" is not a field`},
		"art":                  {g.key, art, `{"prompt":"a","chaoss":1}`, "true", 400, `did you mean "chaos"?`},
		"a quote":              {g.key, "/v1/quote", `{"endpoint":"/v1/videos/generations","model":"alpha-v3","prompt":"a"}`, "true", 200, ""},
		"of what is refused":   {g.key, "/v1/quote", `{"endpoint":"/v1/videos/generations","model":"alpha-v3","prompt":"a","durations":5}`, "true", 400, "durations"},
		"speech":               {g.key, speechPath, `{"model":"eta-4o-mini-tts","input":"a","voice":"alloy","voices":"b"}`, "true", 400, `did you mean "voice"?`},
		"before the rest":      {g.key, videos, `{"model":"alpha-v3","duration":99,"durations":5}`, "true", 400, "durations"},
		"after the model":      {g.key, videos, `{"model":"nothing","durations":5}`, "true", 400, "unknown model"},
	} {
		a := send(test.key, test.path, test.body, test.header)
		message, _ := a.at("error", "message").(string)
		if a.status != test.status || !strings.Contains(message, test.says) {
			t.Errorf("%s: %d %s, want %d %s", name, a.status, a.body, test.status, test.says)
		}
	}
	if a := send(g.key, videos, odd, "true"); a.at("error", "param") != "durations" || a.at("error", "reason") != "unknown_field" {
		t.Errorf("form A: %s", a.body)
	}
	if a := send(g.key, music, `{"model":"music-a","prompt":"la","titel":"x"}`, "true"); a.at("error", "param") != "titel" || a.at("error", "code") != "invalid_request" || a.at("error", "reason") != nil {
		t.Errorf("form B: %s", a.body)
	}
}

// The setting is given, changed and shown, and a rotation keeps it.
func TestStrictKeys(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	made := g.post("/v1/keys", `{"name":"x","unlimited":true,"strict":true}`)
	id, _ := made.at("id").(string)
	if made.at("strict") != true {
		t.Fatalf("%d %s", made.status, made.body)
	}
	if a := g.post("/v1/keys/"+id+"/rotate", ""); a.at("strict") != true {
		t.Errorf("rotated: %d %s", a.status, a.body)
	}
	change := func(body string) answer {
		return g.send(request{method: http.MethodPatch, path: "/v1/keys/" + id, key: g.key, body: body})
	}
	if a := change(`{"strict":"yes"}`); a.status != http.StatusBadRequest || a.at("error", "param") != "strict" {
		t.Errorf("a word: %d %s", a.status, a.body)
	}
	if a := change(`{"name":"y"}`); a.at("strict") != true {
		t.Errorf("something else changed: %s", a.body)
	}
	if a := change(`{"strict":false}`); a.at("strict") != false || g.get("/v1/keys/"+id).at("strict") != false {
		t.Errorf("taken back: %s", a.body)
	}
	if a := g.operate(http.MethodPatch, "/keys/"+id, `{"strict":true}`); a.at("strict") != true || g.get("/v1/keys/"+id).at("strict") != true {
		t.Errorf("by the operator: %d %s", a.status, a.body)
	}
}

// Each error of form A says what is at fault and why, in words that stay.
func TestReasons(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	video := func(body string) request {
		return request{method: http.MethodPost, path: videos, key: g.key, body: body}
	}
	for name, test := range map[string]struct {
		request request
		param   any
		reason  string
	}{
		"required":      {video(`{"model":"alpha-v3"}`), "prompt", "required"},
		"no model":      {video(`{}`), "model", "required"},
		"unknown model": {video(`{"model":"x"}`), "model", "unknown_model"},
		"wrong type":    {video(`{"model":"alpha-v3","prompt":1}`), "prompt", "wrong_type"},
		"a text":        {video(`{"model":"alpha-v3","prompt":"a","duration":"5"}`), "duration", "wrong_type"},
		"below":         {video(`{"model":"alpha-v3","prompt":"a","duration":2}`), "duration", "out_of_range"},
		"above":         {video(`{"model":"alpha-v3","prompt":"a","duration":16}`), "duration", "out_of_range"},
		"not one of":    {video(`{"model":"alpha-v3","prompt":"a","mode":"best"}`), "mode", "not_one_of"},
		"a number":      {video(`{"model":"alpha-video-o1","prompt":"a","duration":6}`), "duration", "not_one_of"},
		"too long":      {video(`{"model":"alpha-v3","prompt":"` + strings.Repeat("a", 2501) + `"}`), "prompt", "too_long"},
		"too many":      {video(`{"model":"alpha-v3","prompt":"a","image_urls":["https://example.com/a","https://example.com/b","https://example.com/c"]}`), "image_urls", "too_long"},
		"no address":    {video(`{"model":"alpha-v3","prompt":"a","image_urls":["x"]}`), "image_urls[0]", "malformed"},
		"a named check": {video(`{"model":"alpha-v3","prompt":"a","multi_shot":true,"shot_type":"customize","multi_prompt":[{"index":1,"prompt":"a","duration":2}]}`), "multi_prompt", "invalid"},
		"no JSON":       {video(`{`), nil, "invalid_json"},
		"twice":         {video(`{"a":1,"a":2}`), "a", "invalid_json"},
		"no object":     {video(`[]`), nil, "wrong_type"},
		"too large":     {request{method: http.MethodPost, path: images, key: g.key, body: `{"x":"` + strings.Repeat("a", 2<<20) + `"}`}, nil, "too_large"},
		"a query":       {request{path: "/v1/tasks?limit=0", key: g.key}, "limit", "out_of_range"},
		"a word of it":  {request{path: "/v1/tasks?status=x", key: g.key}, "status", "not_one_of"},
		"a time":        {request{path: "/v1/tasks?created_after=x", key: g.key}, "created_after", "malformed"},
		"an id":         {request{path: "/v1/tasks/x", key: g.key}, "task_id", "invalid"},
	} {
		a := g.send(test.request)
		if a.at("error", "param") != test.param || a.at("error", "reason") != test.reason {
			t.Errorf("%s: %d %s, want %v %s", name, a.status, a.body, test.param, test.reason)
		}
	}
	if a := g.send(request{path: "/v1/balance"}); a.at("error", "reason") != "authentication_failed" || a.at("error", "param") != nil {
		t.Errorf("balances: %s", a.body)
	}
}
