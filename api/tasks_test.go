package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api"
)

const noTask = "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"

func TestBadTaskIDs(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(videos, videoBody)
	for _, bad := range []string{noTask, "task_1", "task_%00", "%ff", "task_%2f", "..a"} {
		for _, r := range []request{
			{path: "/v1/tasks/" + bad},
			{path: images + "/" + bad},
			{method: http.MethodDelete, path: "/v1/tasks/" + bad},
			{method: http.MethodPost, path: "/v1/tasks/" + bad + "/cancel"},
		} {
			r.key = g.key
			g.send(r).wantError(t, 400, "invalid_request_error", "invalid task id")
		}
	}
	if _, sibling := g.newKey(mediagate.Key{Quota: 1}); g.send(request{path: "/v1/tasks/" + id, key: sibling}).status != 200 {
		t.Error("another key of the account may not read the task")
	}
}

// The request that a client gets back makes the same task again.
func TestRequestOfATask(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	request := func(id string) map[string]any {
		a := g.get("/v1/tasks/" + id + "?request=true")
		body, _ := a.at("data", "request").(map[string]any)
		if a.status != http.StatusOK || body == nil {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return body
	}
	params := func(id string) string {
		task := g.row(id)
		return task.Model + string(task.Params)
	}
	endpoint := func(id string) any { return g.get("/v1/tasks/"+id+"?request=true").at("data", "endpoint") }
	first := g.submit(images,
		`{"model":"zeta-2-ext","prompt":"a <cat> & a dog","webhook":"https://example.com","metadata":{"reference":"r"}}`)
	body := request(first)
	text, err := json.Marshal(body)
	g.must(err)
	if again := g.submit(images, string(text)); params(again) != params(first) {
		t.Errorf("%s makes %s, not %s", text, params(again), params(first))
	}
	if body["webhook"] != nil || body["metadata"] != nil {
		t.Errorf("webhook or metadata in %s", text)
	}
	if got := endpoint(first); got != images {
		t.Errorf("the endpoint is %v", got)
	}
	if a := g.get("/v1/tasks/" + first); a.at("data", "request") != nil || a.at("data", "endpoint") != nil {
		t.Errorf("unasked: %s", a.body)
	}
	g.get("/v1/tasks/"+first+"?request=1").wantError(t, 400, "invalid_request_error", "request must be one of true, false")

	within := g.submit(videos, `{"model":"delta-02","prompt":"a","first_frame_image":"`+dataOf(aPicture)+`"}`)
	if body := request(within); body["prompt"] != "a" || body["first_frame_image"] != nil {
		t.Errorf("media within the request: %v", body)
	}
	openAI := func(reference string) map[string]any {
		a := g.post(openAIVideos, `{"model":"alpha-v3","prompt":"a","input_reference":{"image_url":"`+reference+`"}}`)
		if got := endpoint(fmt.Sprint(a.at("id"))); got != videos {
			t.Errorf("the endpoint of a request of OpenAI's form is %v", got)
		}
		return request(fmt.Sprint(a.at("id")))
	}
	if body := openAI(dataOf(aPicture)); body["prompt"] != "a" || body["image_urls"] != nil {
		t.Errorf("media within a request of OpenAI's form: %v", body)
	}
	if body := openAI("https://example.com/a.png"); fmt.Sprint(body["image_urls"]) != "[https://example.com/a.png]" {
		t.Errorf("a link in a request of OpenAI's form: %v", body)
	}
}

func TestLongPoll(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(videos, videoBody)

	// Nothing happens: the state as it is when the time is up.
	start := time.Now()
	if a := g.get("/v1/tasks/" + id + "?wait=1"); a.status != 200 || a.at("data", "status") != "pending" {
		t.Errorf("after the time: %d %s", a.status, a.body)
	}
	if waited := time.Since(start); waited < time.Second {
		t.Errorf("answered after %s", waited)
	}

	// Becoming processing is no reason to answer, the end is.
	answered := make(chan answer, 2)
	for range 2 {
		go func() { answered <- g.get("/v1/tasks/" + id + "?wait=60") }()
	}
	awaitWaiting(t, g.server, 1)
	g.accept(id)
	g.complete(id, mediagate.Result{Key: "a/b.mp4", MimeType: "video/mp4", Size: 5})
	for range 2 {
		if a := <-answered; a.at("data", "status") != "completed" || a.at("data", "result", "videos", 0, "url", 0) == nil {
			t.Errorf("at the end: %s", a.body)
		}
	}
}

// awaitWaiting returns when so many tasks are waited for.
func awaitWaiting(t *testing.T, s *api.Server, n int) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for api.Waiting(s) != n {
		select {
		case <-deadline:
			t.Fatalf("%d tasks are waited for, want %d", api.Waiting(s), n)
		case <-time.After(time.Millisecond):
		}
	}
}

// TestLongPollOfAClosedSide: whoever waits with a closed sending side is told
// of the end like everybody else, and who has left ends nothing but itself.
func TestLongPollOfAClosedSide(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	address := g.serve()
	id := g.submit(videos, videoBody)
	poll := request{path: "/v1/tasks/" + id + "?wait=60", key: g.key}.text("1.1")
	waits, left := dial(t, address), dial(t, address)
	for _, s := range []*socket{waits, left} {
		s.send(poll)
	}
	waits.finish()
	left.abort()
	awaitWaiting(t, g.server, 1)
	g.complete(id, mediagate.Result{Key: "a/b.mp4", MimeType: "video/mp4", Size: 5})
	if a := waits.answer(); a.at("data", "status") != "completed" {
		t.Errorf("%d %s", a.status, a.body)
	}
	awaitWaiting(t, g.server, 0)
	if strings.Contains(g.log.String(), `"level":"ERROR"`) {
		t.Errorf("a client that leaves is no fault: %s", g.log)
	}
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	var ids []string // newest first
	add := func(path, body string) {
		ids = slices.Insert(ids, 0, g.submit(path, body))
		g.clock.advance(time.Minute)
	}
	start := g.clock.now()
	add(videos, `{"model":"alpha-v3","prompt":"0","metadata":{"reference":"a b&c"}}`)
	add(images, imageBody)
	add(videos, `{"model":"alpha-video-o1","prompt":"2","webhook":"ftp://hooks.example.com"}`)
	add(videos, `{"model":"alpha-v3","prompt":"a cat","webhook":"https://hooks.example.com"}`)
	g.cancel(ids[0])
	tests := map[string]struct {
		query string
		want  []string
	}{
		"all":                    {"", ids},
		"empty parameters":       {"?limit=&after=&status=&model=&type=&reference=&webhook=&created_after=&created_before=", ids},
		"callback dropped":       {"?webhook=dropped", ids[:2]},
		"after":                  {"?after=" + ids[1], ids[2:]},
		"after the last":         {"?after=" + ids[3], nil},
		"pending":                {"?status=pending", ids[1:]},
		"model":                  {"?model=alpha-v3", []string{ids[0], ids[3]}},
		"model that is none":     {"?model=omega%00", nil},
		"model, invalid UTF-8":   {"?model=%ff", nil},
		"type":                   {"?type=image", ids[2:3]},
		"reference":              {"?reference=a%20b%26c", ids[3:]},
		"reference, NUL":         {"?reference=%00", nil},
		"reference, semicolon":   {"?reference=a;b", nil},
		"reference, half escape": {"?reference=100%", nil},
		"unknown, half escape":   {"?limit=2&colour=100%&a;b=c", ids[:2]},
		"created before":         {"?created_before=" + start.Add(90*time.Second).Format(time.RFC3339), ids[2:]},
		"created between":        {"?created_after=2026-03-01T12:00:30Z&created_before=2026-03-01T12:01:30Z", ids[2:3]},
		"before the first day":   {"?created_before=0001-01-01T00:00:00Z", nil},
		"before it, with a zone": {"?created_before=0001-01-01T01:00:00%2B01:00", nil},
		"before the year 1":      {"?created_before=0000-01-01T00:00:00Z", nil},
		"just before the year 1": {"?created_before=0000-12-31T23:59:59.9999999Z", nil},
		"and of a status":        {"?status=pending&created_before=0000-12-31T23:59:59.9999999Z", nil},
		"since the year 0":       {"?created_after=0000-01-01T00:00:00Z", ids},
		"all filters at once":    {"?status=pending&model=alpha-v3&type=video&limit=5", ids[3:]},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := g.get("/v1/tasks" + test.query)
			if a.status != 200 || a.at("object") != "list" {
				t.Fatalf("%d %s", a.status, a.body)
			}
			data, _ := a.at("data").([]any)
			var got []string
			for i := range data {
				id, _ := a.at("data", i, "id").(string)
				got = append(got, id)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if len(test.want) == 0 {
				if a.at("first_id") != nil || a.at("last_id") != nil || a.data["data"] == nil || !strings.Contains(a.body, `"first_id":null`) {
					t.Errorf("empty page: %s", a.body)
				}
				return
			}
			if a.at("first_id") != got[0] || a.at("last_id") != got[len(got)-1] {
				t.Errorf("ends: %s", a.body)
			}
		})
	}
	for query, more := range map[string]bool{"?limit=3": true, "?limit=4": false} {
		if got := g.get("/v1/tasks" + query).at("has_more"); got != more {
			t.Errorf("%s: has_more %v", query, got)
		}
	}
	foreign := g.send(request{method: http.MethodPost, path: videos, key: g.other(), body: videoBody}).taskID(t)
	for query, param := range map[string]string{
		"after=x": "after", "after=" + noTask: "after", "after=" + foreign: "after", "after=%00": "after",
		"after=" + noTask + "&reference=%00": "after", "limit=5;": "limit", "status=%zz": "status", "created_after=0%": "created_after",
	} {
		g.get("/v1/tasks?"+query).wantError(t, 400, "invalid_request_error", param)
	}
}

// A list shows by which key each task was submitted, and with prompt=true what it was asked for: the beginning
// of the prompt, the endpoint and, of an art task, the action.
func TestListKeysAndPrompts(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	own := g.submit(videos, `{"model":"alpha-v3","prompt":"`+strings.Repeat("é", 300)+`"}`)
	another, secret := g.newKey(mediagate.Key{Unlimited: true})
	theirs := g.send(request{
		method: http.MethodPost, path: music, key: secret,
		body: `{"model":"MUSIC-B","sound_prompt":"a calm song"}`,
	}).taskID(t)
	third, artist := g.newKey(mediagate.Key{Unlimited: true})
	described := g.send(request{
		method: http.MethodPost, path: art + "/describe", key: artist, body: `{"image_urls":["https://example.com/a.png"]}`,
	}).taskID(t)
	for query, want := range map[string][]any{
		"?key=" + g.keyRow.ID:                         {own, g.keyRow.ID, nil, nil, nil},
		"?key=" + another.ID + "&prompt=true":         {theirs, another.ID, "a calm song", music, nil},
		"?key=" + another.ID + "&type=music":          {theirs, another.ID, nil, nil, nil},
		"?key=" + third.ID + "&prompt=true":           {described, third.ID, nil, art + "/describe", "DESCRIBE"},
		"?prompt=true&type=video":                     {own, g.keyRow.ID, strings.Repeat("é", 200) + "…", videos, nil},
		"?key=" + another.ID + "&type=video":          {nil, nil, nil, nil, nil},
		"?key=key_01KAJ5XW4M9Q7T2C8N6BVRE3HD&limit=1": {nil, nil, nil, nil, nil},
	} {
		a := g.get("/v1/tasks" + query)
		var got []any
		for _, field := range []string{"id", "key", "prompt", "endpoint", "action"} {
			got = append(got, a.at("data", 0, field))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
		if a.at("data", 1) != nil {
			t.Errorf("%s: more than one task", query)
		}
	}
	g.get("/v1/tasks?key=x").wantError(t, 400, "invalid_request_error", "key")
	g.get("/v1/tasks?prompt=yes").wantError(t, 400, "invalid_request_error", "prompt")
}

func TestDefaultLimit(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for range 21 {
		g.submit(images, imageBody)
	}
	a := g.get("/v1/tasks")
	if data, _ := a.at("data").([]any); len(data) != 20 || a.at("has_more") != true {
		t.Errorf("%d tasks, has_more %v", len(data), a.at("has_more"))
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := g.submit(videos, videoBody)
	api.AwaitStarts(g.server)
	for range 2 { // asking again changes nothing
		a := g.post("/v1/tasks/"+id+"/cancel", "")
		if a.status != 202 || a.at("code") != 202.0 || a.at("data", "id") != id || a.at("data", "cancel_requested") != true ||
			a.at("data", "status") != "pending" {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if !slices.Equal(g.starter.woken, []string{id, id}) {
		t.Errorf("signalled: %v", g.starter.woken)
	}
	g.starter.fail = errAway
	running := g.submit(videos, videoBody)
	g.accept(running)
	if a := g.post("/v1/tasks/"+running+"/cancel", "no JSON"); a.status != 202 || a.at("data", "status") != "processing" {
		t.Errorf("a wish is stored without Temporal, too: %d %s", a.status, a.body)
	}
	if a := g.get("/v1/tasks/" + id); a.at("data", "cancel_requested") != true {
		t.Errorf("before the end: %s", a.body)
	}
	g.cancel(id)
	for _, a := range []answer{g.get("/v1/tasks/" + id), g.get("/v1/tasks?status=cancelled")} {
		if strings.Contains(a.body, "cancel_requested") {
			t.Errorf("after the end: %s", a.body)
		}
	}
	g.post("/v1/tasks/"+id+"/cancel", "").wantError(t, 409, "invalid_request_error", "")
}

// TestHEAD: what answers GET answers HEAD alike, without the body.
func TestHEAD(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	s := httptest.NewServer(g.server)
	t.Cleanup(s.Close)
	id := g.submit(videos, videoBody)
	stranger, _ := api.NewKey()
	for path, test := range map[string]struct {
		key    string
		status int
	}{
		"/healthz": {"", 200}, "/readyz": {"", 200}, "/v1/tasks/" + id: {g.key, 200}, "/v1/tasks": {g.key, 200},
		"/v1/balance": {g.key, 200}, "/admin/v1/accounts": {adminKey, 200}, "/v1/tasks/" + noTask: {g.key, 400},
		"/v1/webhooks/secret": {stranger, 401}, "/v1/nothing": {"", 404}, "/v1/quote": {g.key, 405},
	} {
		t.Run(path, func(t *testing.T) {
			ask := func(method string) (status int, length int64, kind string) {
				t.Helper()
				req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
				g.must(err)
				if test.key != "" {
					req.Header.Set("Authorization", "Bearer "+test.key)
				}
				resp, err := s.Client().Do(req)
				g.must(err)
				body, err := io.ReadAll(resp.Body)
				g.must(err)
				g.must(resp.Body.Close())
				if method == http.MethodHead && len(body) > 0 {
					t.Errorf("a body: %s", body)
				}
				return resp.StatusCode, resp.ContentLength, resp.Header.Get("Content-Type")
			}
			status, length, kind := ask(http.MethodHead)
			if status != test.status || length <= 0 || kind != "application/json" {
				t.Errorf("%d, %d bytes of %s announced, want %d", status, length, kind, test.status)
			}
			if s, l, k := ask(http.MethodGet); s != status || l != length || k != kind {
				t.Errorf("GET answers %d, %d bytes of %s", s, l, k)
			}
		})
	}
}
