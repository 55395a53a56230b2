package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mediagate/mediagate"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestShapes records the complete answer of each endpoint and state.
func TestShapes(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	var archive txtar.Archive
	record := func(name string, a answer) answer {
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: g.render(a)})
		return a
	}
	failure := mediagate.Failure{Code: mediagate.CodeGenerationTimeout, Message: "the vendor did not finish in time", Retryable: true}
	video := mediagate.Result{Key: "tasks/v.mp4", MimeType: "video/mp4", Size: 1234, SHA256: strings.Repeat("ab", 32), Width: 1280, Height: 720, Duration: 5.04}
	image := mediagate.Result{Key: "tasks/i.png", MimeType: "image/png", Size: 99, SHA256: strings.Repeat("cd", 32), Width: 1024, Height: 1024}

	pending := record("submit", g.post(videos, `{"model":"alpha-v3","prompt":"a","webhook":"https://hooks.example.com","metadata":{"reference":"order 7"}}`)).taskID(t)
	record("pending", g.get("/v1/tasks/"+pending))
	record("pending, legacy", g.get(images+"/"+pending))
	record("quote", g.post("/v1/quote", `{"endpoint":"/v1/videos/generations","model":"alpha-v3","prompt":"a"}`))
	g.clock.advance(time.Minute)
	g.accept(pending)
	record("processing", g.get("/v1/tasks/"+pending))
	record("processing, legacy", g.get(images+"/"+pending))
	record("cancel asked for", g.post("/v1/tasks/"+pending+"/cancel", ""))
	g.cancel(pending)
	record("cancelled", g.get("/v1/tasks/"+pending))
	record("cancelled, legacy", g.get(images+"/"+pending))
	record("cancel of an ended task", g.post("/v1/tasks/"+pending+"/cancel", ""))
	record("erasure", g.send(request{method: http.MethodDelete, path: "/v1/tasks/" + pending, key: g.key}))
	record("erased task", g.get("/v1/tasks/"+pending))

	done := g.submit(videos, `{"model":"alpha-v3","prompt":"a","webhook":"http://127.0.0.1/"}`)
	g.accept(done)
	g.clock.advance(90500 * time.Millisecond)
	g.complete(done, video)
	record("completed video", g.get("/v1/tasks/"+done))
	record("completed video, legacy", g.get(images+"/"+done))

	picture := g.submit(images, imageBody)
	g.clock.advance(4 * time.Second)
	g.complete(picture, image)
	record("completed image", g.get("/v1/tasks/"+picture))
	record("completed image, legacy", g.get(images+"/"+picture))

	broken := g.submit(videos, `{"model":"alpha-video-o1","prompt":"a"}`)
	g.fail(broken, failure)
	record("failed", g.get("/v1/tasks/"+broken))
	record("failed, in Korean", g.get("/v1/tasks/"+broken+"?language=ko"))
	record("failed, legacy", g.get(images+"/"+broken))

	called := g.submit(videos, `{"model":"alpha-v3","prompt":"a","webhook":"https://hooks.example.com"}`)
	record("no deliveries", g.get("/v1/tasks/"+called+"/deliveries"))
	record("redelivery of an open task", g.post("/v1/tasks/"+called+"/redeliver", ""))
	g.complete(called, video)
	g.deliver(called, 1, 1, 0, "")
	g.deliver(called, 1, 2, 204, mediagate.WebhookDelivered)
	record("deliveries", g.get("/v1/tasks/"+called+"/deliveries"))
	record("redelivery", g.post("/v1/tasks/"+called+"/redeliver", ""))
	record("redelivery of a task without a callback", g.post("/v1/tasks/"+broken+"/redeliver", ""))
	record("list", g.get("/v1/tasks?limit=2"))
	record("empty list", g.get("/v1/tasks?type=art"))
	_, images := g.newKey(mediagate.Key{Unlimited: true, Models: []string{"theta-*", "zeta-*", "vendor/omega"}}) // so that the lists are short
	record("models", g.send(request{path: "/v1/models", key: images}))
	record("models with categories", g.send(request{path: "/v1/models?expand=category", key: images}))
	record("models, Anthropic", g.send(request{path: "/v1/models?limit=2", header: http.Header{"X-Api-Key": {images}, "Anthropic-Version": {"2023-06-01"}}}))
	record("models, Gemini", g.send(request{path: "/v1beta/models?pageSize=2&key=" + images}))
	record("models, wrong category", g.get("/v1/models?expand=category&category=movie"))
	record("contract", g.get("/v1/models/theta-image-turbo/schema"))
	record("no contract", g.get("/v1/model-schema?model=omega"))
	record("contract of no model", g.get("/v1/model-schema"))
	record("token balance", g.get("/v1/balance"))
	record("user balance", g.get("/v1/user/balance"))
	record("webhook secret", g.get("/v1/webhooks/secret"))
	record("healthz", g.send(request{path: "/healthz"}))
	record("readyz", g.send(request{path: "/readyz"}))

	record("no header", g.send(request{path: "/v1/tasks"}))
	record("no header, balance", g.send(request{path: "/v1/balance"}))
	record("unknown key", g.send(request{path: "/v1/tasks", key: "nonsense"}))
	record("unknown key, balance", g.send(request{path: "/v1/balance", key: "nonsense"}))
	record("invalid field", g.post(videos, `{"model":"alpha-v3","prompt":"a","duration":16}`))
	record("unknown model", g.post(videos, `{"model":"omega-9","prompt":"a"}`))
	record("invalid task id", g.get("/v1/tasks/nonsense"))
	record("unknown route", g.send(request{path: "/v1/nothing"}))
	record("unknown route, music", g.send(request{path: "/v1/music/nothing"}))
	record("unknown route, uploads", g.send(request{path: "/v1/uploads/nothing"}))
	record("wrong method", g.send(request{method: http.MethodDelete, path: "/v1/tasks"}))

	record("account", g.operate(http.MethodPost, "/accounts", `{"name":"ada"}`))
	record("accounts", g.operate(http.MethodGet, "/accounts?limit=1", ""))
	record("grant", g.operate(http.MethodPost, "/accounts/"+g.account.ID+"/grants", `{"amount":"12.50","reference":"invoice 1"}`))
	record("ledger", g.operate(http.MethodGet, "/accounts/"+g.account.ID+"/ledger?limit=4", ""))
	record("key made", g.operate(http.MethodPost, "/accounts/"+g.account.ID+"/keys", `{"name":"ci","quota":5}`))
	record("keys", g.operate(http.MethodGet, "/keys?limit=1", ""))
	g.must(g.store.SeenChannel(t.Context(), []string{"kling-a"}))
	record("channels", g.operate(http.MethodGet, "/channels", ""))
	record("channel disabled", g.operate(http.MethodPatch, "/channels/kling-a", `{"enabled":false,"reason":"INC-7"}`))
	record("unknown channel", g.operate(http.MethodGet, "/channels/nobody", ""))
	stuck := g.submit(videos, hooked)
	g.park(stuck, mediagate.ParkFunds)
	record("stuck tasks", g.operate(http.MethodGet, "/tasks?stuck=true&total=true", ""))
	record("command", g.act(stuck, `{"action":"reroute","channel":"kling-b","reason":"kling-a has no funds"}`))
	record("command that does not apply", g.act(stuck, `{"action":"redeliver","reason":"x"}`))
	record("story", g.story(stuck))
	record("story of a completed task", g.story(called))
	record("unknown task, as operators read", g.story(unknownID))
	record("ledger check", g.operate(http.MethodGet, "/ledger/check", ""))

	own := record("own key made", g.post("/v1/keys", `{"name":"bounded","quota":"5","caps":{"day":1},"rate":60,"in_flight":4,"scopes":["read","manage"]}`))
	secret, _ := own.at("key").(string)
	id, _ := own.at("id").(string)
	record("own keys", g.get("/v1/keys?limit=1"))
	record("own key changed", g.send(request{method: http.MethodPatch, path: "/v1/keys/" + id, key: g.key, body: `{"caps":{"week":"3.5"},"rate":null}`}))
	record("a key that gives too much", g.send(request{method: http.MethodPost, path: "/v1/keys", key: secret, body: `{"name":"a","unlimited":true}`}))
	record("a missing scope", g.send(request{method: http.MethodPost, path: videos, key: secret, body: videoBody}))
	record("a missing scope, music", g.send(request{method: http.MethodPost, path: "/v1/music/generations", key: secret, body: `{}`}))
	record("unknown key's id", g.get("/v1/keys/nothing"))
	record("own key rotated", g.post("/v1/keys/"+id+"/rotate", ""))
	record("own key rotated again", g.post("/v1/keys/"+id+"/rotate", ""))
	g.post("/v1/webhooks/secret", "")
	record("webhook secret rotated again", g.post("/v1/webhooks/secret", ""))
	record("account suspended", g.operate(http.MethodPatch, "/accounts/"+g.account.ID, `{"suspended":true,"reason":"does not pay"}`))
	record("submit of a suspended account", g.post(videos, videoBody))
	record("audit", g.operate(http.MethodGet, "/audit?limit=3", ""))

	got := txtar.Format(&archive)
	file := filepath.Join("testdata", "shapes.txtar")
	if *update {
		g.must(os.MkdirAll("testdata", 0o755))
		g.must(os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	g.must(err)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("answers have changed (-update accepts them):\n%s", diff)
	}
}

// Values that differ from run to run, and their placeholders.
var varying = []struct {
	pattern *regexp.Regexp
	stands  string
}{
	{regexp.MustCompile(`(task|req|acc|key|[a-z]{2,4})_[0-9A-HJKMNP-TV-Z]{26}`), "${1}_ID"},
	{regexp.MustCompile(`"checked": \d+`), `"checked": "COUNT"`},
	{regexp.MustCompile(`mgk_[0-9A-Za-z]+`), "mgk_KEY"},
	{regexp.MustCompile(`"last_four": "[0-9A-Za-z]{4}"`), `"last_four": "LAST"`},
	{regexp.MustCompile(`whsec_[0-9A-Za-z+/=]{44}`), "whsec_SECRET"},
	{regexp.MustCompile(`X-Amz-Signature=[0-9a-f]{64}`), "X-Amz-Signature=SIGNATURE"},
}

// render formats an answer for people.
func (g *gateway) render(a answer) []byte {
	g.t.Helper()
	var out bytes.Buffer
	fmt.Fprintf(&out, "HTTP %d\n", a.status)
	for _, name := range []string{"Allow", "Cache-Control", "Content-Type", "Etag", "Retry-After", "Vary", "Www-Authenticate"} {
		if v := a.header.Values(name); len(v) > 0 {
			fmt.Fprintf(&out, "%s: %s\n", name, strings.Join(slices.Sorted(slices.Values(v)), ", "))
		}
	}
	out.WriteByte('\n')
	if a.body != "" {
		g.must(json.Indent(&out, []byte(a.body), "", "  "))
	}
	text := out.Bytes()
	for _, v := range varying {
		text = v.pattern.ReplaceAll(text, []byte(v.stands))
	}
	return text
}
