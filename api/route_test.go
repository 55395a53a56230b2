package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate/api"
)

func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
	// Neither a key nor its absence matters: the route comes first.
	for _, path := range []string{
		"/", "/v1", "/v1/nothing", "/v2/tasks", "/v1/tasks/", "/v1/tasks/" + id + "/", "/v1/tasks/" + id + "/cancel/",
		"/v1/tasks//cancel", "/v1/tasks/" + id + "/extra", "/v1/tasks/" + id + "/cancel/extra", "//v1/tasks", "/V1/tasks",
		"/v1/images/generations/" + id + "/extra", "/v1/images/generations/", "/v1/videos/generations/", "/v1/balance/",
		"/admin/v1", "/admin/v1/", "/admin/v1/keys/", "/admin/v1/keys/a/b", "/admin/v1/accounts//ledger", "/healthz/", "/v1/music",
		"/v1/models/", "/v1/models/alpha-v3/schema/", "/v1beta", "/v1beta/models/", "/v1/model-schema/",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions, "FOO"} {
			g.send(request{method: method, path: path}).wantError(t, 404, "not_found_error", "no such route: "+method+" "+path)
		}
	}
}

func TestWrongMethods(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	id := "task_01JZZZZZZZZZZZZZZZZZZZZZZZ"
	for path, allowed := range map[string][]string{
		videos: {"POST"}, "/v1/tasks": {"GET", "HEAD"}, "/healthz": {"GET", "HEAD"},
		"/v1/tasks/" + id: {"DELETE", "GET", "HEAD"}, "/v1/tasks/" + id + "/cancel": {"POST"},
		"/v1/webhooks/secret": {"GET", "HEAD", "POST"}, "/v1/keys/a": {"DELETE", "GET", "HEAD", "PATCH"},
		"/admin/v1/accounts": {"GET", "HEAD", "POST"}, "/admin/v1/accounts/a": {"GET", "HEAD", "PATCH"},
	} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "FOO"} {
			if slices.Contains(allowed, method) {
				continue
			}
			a := g.send(request{method: method, path: path})
			a.wantError(t, 405, "invalid_request_error", "method not allowed: "+method+" "+path)
			got := slices.Sorted(slices.Values(strings.Split(a.header.Get("Allow"), ", ")))
			if !slices.Equal(got, allowed) {
				t.Errorf("%s %s: Allow is %v, want %v", method, path, got, allowed)
			}
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	var database, clock, temporal, bucket, models error
	g := newGateway(t, func(c *api.Config) {
		c.Checks = api.Checks{
			Database: func(context.Context) error { return database },
			Clock:    func(context.Context) error { return clock },
			Temporal: func(context.Context) error { return temporal },
			Bucket:   func(context.Context) error { return bucket },
			Catalog:  func(context.Context) error { return models },
		}
	})
	temporal = errAway
	if a := g.send(request{path: "/readyz"}); a.status != 200 || !slices.Equal(texts(a.at("degraded")), []string{"temporal"}) {
		t.Errorf("without Temporal: %d %s", a.status, a.body)
	}
	bucket, models = errAway, errors.New("a.yaml: price: is missing")
	g.clock.advance(time.Second) // so long an answer is kept
	a := g.send(request{path: "/readyz"})
	if !slices.Equal(texts(a.at("degraded")), []string{"temporal", "bucket", "catalog"}) || a.status != 200 ||
		a.at("status") != "degraded" || strings.Contains(a.body, "a.yaml") {
		t.Errorf("without three: %d %s", a.status, a.body)
	}
	temporal, bucket, models, clock = nil, nil, nil, errAway
	g.clock.advance(time.Second)
	g.send(request{path: "/readyz"}).wantError(t, 503, "server_error", "the clock of this server is wrong") // D10
	database = errAway
	g.clock.advance(time.Second)
	g.send(request{path: "/readyz"}).wantError(t, 503, "server_error", "database")
	g.send(request{path: "/healthz"}).wantStatus(t, 200, "healthz without the database")
}

func texts(v any) []string {
	var out []string
	list, _ := v.([]any)
	for _, one := range list {
		s, _ := one.(string)
		out = append(out, s)
	}
	return out
}

func TestCORS(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) { c.CORSOrigins = []string{"https://app.example.com"} })
	const ours, foreign = "https://app.example.com", "https://other.example.com"
	// What clients of other vendors' SDKs send along.
	const asked = "authorization,content-type,x-stainless-lang,x-stainless-retry-count,x-api-key,anthropic-version,last-event-id"
	tests := map[string]struct {
		method, path, origin string
		preflight            bool
		status               int
		allow                string
	}{
		"balance, any origin":             {"GET", "/v1/balance", foreign, false, 401, "*"},
		"balance, short path":             {"GET", "/balance", foreign, false, 401, "*"},
		"balance, wrong method":           {"POST", "/v1/balance", foreign, false, 405, "*"},
		"balance, preflight":              {"OPTIONS", "/v1/balance", foreign, true, 204, "*"},
		"user balance, foreign":           {"GET", "/v1/user/balance", foreign, false, 401, ""},
		"user balance, ours":              {"GET", "/v1/user/balance", ours, false, 401, ours},
		"tasks, ours":                     {"GET", "/v1/tasks", ours, false, 401, ours},
		"tasks, foreign":                  {"GET", "/v1/tasks", foreign, false, 401, ""},
		"tasks, preflight of ours":        {"OPTIONS", "/v1/tasks", ours, true, 204, ours},
		"tasks, preflight of foreign":     {"OPTIONS", "/v1/tasks", foreign, true, 405, ""},
		"tasks, preflight of nobody":      {"OPTIONS", "/v1/tasks", "", true, 405, ""},
		"tasks, OPTIONS of ours":          {"OPTIONS", "/v1/tasks", ours, false, 405, ours},
		"balance, preflight of nobody":    {"OPTIONS", "/v1/balance", "", true, 405, "*"},
		"balance, OPTIONS":                {"OPTIONS", "/v1/balance", foreign, false, 405, "*"},
		"unknown route, ours":             {"GET", "/v1/nothing", ours, false, 404, ours},
		"unknown route, preflight":        {"OPTIONS", "/v1/nothing", ours, true, 404, ours},
		"tasks, without origin":           {"GET", "/v1/tasks", "", false, 401, ""},
		"balance, slash is another route": {"GET", "/v1/balance/", foreign, false, 404, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			if test.origin != "" {
				h.Set("Origin", test.origin)
			}
			if test.preflight {
				h.Set("Access-Control-Request-Method", "GET")
				h.Set("Access-Control-Request-Headers", asked)
			}
			a := g.send(request{method: test.method, path: test.path, header: h})
			if got := a.header.Get("Access-Control-Allow-Origin"); a.status != test.status || got != test.allow {
				t.Errorf("%d, Allow-Origin %q, want %d, %q", a.status, got, test.status, test.allow)
			}
			admitted := test.preflight && test.origin != "" && test.allow != ""
			if allow := a.header.Get("Allow"); (allow == "GET, HEAD") != (test.status == 405) {
				t.Errorf("Allow %q", allow)
			}
			if got := a.header.Get("Access-Control-Allow-Headers"); (got == asked) != admitted || !admitted && got != "" {
				t.Errorf("Allow-Headers %q", got)
			}
			if admitted && !slices.Contains(a.header.Values("Vary"), "Access-Control-Request-Headers") {
				t.Errorf("Vary %q", a.header.Values("Vary"))
			}
			exposed := a.header.Get("Access-Control-Expose-Headers")
			for _, name := range []string{
				"Content-Disposition", "ETag", "Idempotency-Replayed", "Link", "Preference-Applied", "RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-Id", "X-Should-Retry",
			} {
				if slices.Contains(strings.Split(exposed, ", "), name) != (test.allow != "") {
					t.Errorf("%s is not among Expose-Headers %q", name, exposed)
				}
			}
			if test.allow == "*" && admitted && a.header.Get("Access-Control-Allow-Methods") != "GET" {
				t.Errorf("Allow-Methods %q", a.header.Get("Access-Control-Allow-Methods"))
			}
		})
	}
	plain := newGateway(t)
	if a := plain.send(request{path: "/v1/tasks", header: http.Header{"Origin": {ours}}}); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("an origin is admitted without the setting")
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	g := newGateway(t, smallBodies(t))
	s := httptest.NewServer(g.server)
	t.Cleanup(s.Close)
	transport := &http.Transport{ExpectContinueTimeout: time.Minute}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	pad := func(size int) []byte { // a body of exactly so many bytes
		start, end := `{"model":"alpha-v3","prompt":"a","metadata":{"x":"`, `"}}`
		return []byte(start + strings.Repeat("x", size-len(start)-len(end)) + end)
	}
	const limit = 1 << 20
	tests := map[string]struct {
		body    []byte
		chunked bool // of unknown length
		expect  bool // asks before it sends
		status  int
	}{
		"at the limit":            {body: pad(limit), status: 200},
		"above the limit":         {body: pad(limit + 1), status: 413},
		"at the limit, in chunks": {body: pad(limit), chunked: true, status: 200},
		"above, in chunks":        {body: pad(limit + 1), chunked: true, status: 413},
		"at the limit, asking":    {body: pad(limit), expect: true, status: 200},
		"above the limit, asking": {body: pad(limit + 1), expect: true, status: 413},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var body io.Reader = bytes.NewReader(test.body)
			if test.chunked {
				body = io.MultiReader(body)
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+videos, body)
			must(t, err)
			req.Header.Set("Authorization", "Bearer "+g.key)
			if test.expect {
				req.Header.Set("Expect", "100-continue")
			}
			resp, err := client.Do(req)
			must(t, err)
			defer func() { _ = resp.Body.Close() }()
			got, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != test.status {
				t.Errorf("%d %s", resp.StatusCode, got)
			}
			if test.status == 413 && (!strings.Contains(string(got), `"type":"invalid_request_error"`) || !strings.Contains(string(got), "1048576 bytes")) {
				t.Errorf("envelope: %s", got)
			}
		})
	}
}

func TestPanicIsAFault(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) {
		c.Checks.Database = nil
		c.CheckWebhookURL = func(string) error { panic("secret detail") }
	})
	a := g.post(videos, `{"model":"alpha-v3","prompt":"a","webhook":"https://example.com"}`)
	a.wantError(t, 500, "server_error", "internal error")
	if strings.Contains(a.body, "secret detail") {
		t.Error("the panic's text left the process")
	}
	if log := g.log.String(); !strings.Contains(log, "with a string") || !strings.Contains(log, "route_test.go") || strings.Contains(log, "secret detail") {
		t.Errorf("the log does not tell the panic's kind and place, or tells its text:\n%s", log)
	}
}

func TestLogHasNoSecrets(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	a := g.send(request{method: http.MethodPost, path: videos + "?token=query-secret", key: g.key, body: `{"model":"alpha-v3","prompt":"prompt-secret"}`})
	id := a.taskID(t)
	g.send(request{path: "/v1/tasks/" + id + "?language=query-secret", key: g.key})
	g.send(request{path: "/v1/tasks", key: "mgk_bad-secret"})
	g.operate(http.MethodPost, "/accounts", `{"name":"name-secret","group":"group-secret"}`)
	log := g.log.String()
	for _, secret := range []string{g.key, adminKey, "query-secret", "prompt-secret", "bad-secret", "group-secret", "name-secret"} {
		if strings.Contains(log, secret) {
			t.Errorf("%s is in the log:\n%s", secret, log)
		}
	}
	line, _, _ := strings.Cut(log, "\n")
	for _, part := range []string{
		`"method":"POST"`, `"route":"/v1/videos/generations"`, `"status":200`, `"duration_ms":`, `"request":"req_`,
		`"client":"192.0.2.1"`, `"account":"` + g.account.ID + `"`, `"key":"` + g.keyRow.Prefix + `"`, `"task":"` + id + `"`,
	} {
		if !strings.Contains(line, part) {
			t.Errorf("the line of the submit lacks %s: %s", part, line)
		}
	}
	if lines := strings.Count(log, "\n"); lines != 4 {
		t.Errorf("%d lines for 4 requests:\n%s", lines, log)
	}
}

func TestNewNamesAllProblems(t *testing.T) {
	t.Parallel()
	_, err := api.New(api.Config{Groups: map[string]api.Group{"a": {PriceFactor: "x"}}, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{"Store", "Catalog", "Routes", "Uploads", "Starter", "Signer", "groups.a.price_factor"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %s", err, part)
		}
	}
}
