package api_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mediagate/mediagate/api"
)

const consoleNoFiles = "This build has no console: build it with Node to have one.\n"

// newConsole returns a gateway with a console of some files.
func newConsole(t *testing.T) *gateway {
	t.Helper()
	return newGateway(t, func(c *api.Config) {
		c.Console = fstest.MapFS{
			"index.html": {Data: []byte("<!doctype html>")}, "favicon.svg": {Data: []byte("<svg/>")},
			"assets/index-1.js": {Data: []byte(strings.Repeat("let x = 1;\n", 1000))}, "assets/index-1.css": {Data: []byte("a{}")},
			"assets/font-1.woff2": {Data: []byte("wOF2")}, "assets/odd-1.xyz": {Data: []byte("?")},
		}
		c.MediaOrigins = []string{"https://media.s3.example.com", "https://api.example.com"}
	})
}

func (a answer) wantConsoleHeader(t *testing.T, media string) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data: blob:" + media +
			"; media-src 'self' blob:" + media + "; connect-src 'self'" + media + "; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "X-Frame-Options": "DENY",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestConsoleFiles(t *testing.T) {
	t.Parallel()
	g := newConsole(t)
	const page, forEver, asked = "<!doctype html>", "public, max-age=31536000, immutable", "no-cache"
	for path, want := range map[string]struct{ body, format, caching string }{
		"/console":                     {page, "text/html; charset=utf-8", asked},
		"/console/":                    {page, "text/html; charset=utf-8", asked},
		"/console/index.html":          {page, "text/html; charset=utf-8", asked},
		"/console/tasks/task_1":        {page, "text/html; charset=utf-8", asked},
		"/console/tasks/":              {page, "text/html; charset=utf-8", asked},
		"/console/operator/a%2Fb?x=1":  {page, "text/html; charset=utf-8", asked},
		"/console/assets":              {page, "text/html; charset=utf-8", asked},
		"/console/favicon.svg":         {"<svg/>", "image/svg+xml", asked},
		"/console/assets/index-1.css":  {"a{}", "text/css; charset=utf-8", forEver},
		"/console/assets/index-1.js":   {strings.Repeat("let x = 1;\n", 1000), "text/javascript; charset=utf-8", forEver},
		"/console/assets/font-1.woff2": {"wOF2", "font/woff2", forEver},
		"/console/assets/odd-1.xyz":    {"?", "application/octet-stream", forEver},
	} {
		a := g.send(request{path: path})
		if a.status != 200 || a.body != want.body || a.header.Get("Content-Type") != want.format || a.header.Get("Cache-Control") != want.caching {
			t.Errorf("%s: %d %v %.50q", path, a.status, a.header, a.body)
		}
		a.wantConsoleHeader(t, " https://media.s3.example.com https://api.example.com")
		if head := g.send(request{method: http.MethodHead, path: path}); head.status != 200 || head.header.Get("Content-Type") != want.format {
			t.Errorf("HEAD %s: %d %v", path, head.status, head.header)
		}
	}
	for _, path := range []string{"/console/assets/", "/console/assets/index-2.js", "/console/assets/../index.html"} {
		a := g.send(request{path: path})
		a.wantError(t, 404, "not_found_error", "no such file: GET "+path)
		if got := a.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control is %q", path, got)
		}
		a.wantConsoleHeader(t, " https://media.s3.example.com https://api.example.com")
	}
	packed := http.Header{"Accept-Encoding": {"br, gzip"}}
	if a := g.send(request{path: "/console/assets/index-1.js", header: packed}); a.header.Get("Content-Encoding") != "gzip" {
		t.Errorf("not packed: %v", a.header)
	}
	if a := g.send(request{method: http.MethodPost, path: "/console/tasks"}); a.status != 405 || a.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d, Allow is %q", a.status, a.header.Get("Allow"))
	}
	for _, path := range []string{"/consoles", "/console2/x", "//console", "/v1/console"} {
		g.send(request{path: path}).wantError(t, 404, "not_found_error", "no such route: GET "+path)
	}
	if log := g.log.String(); !strings.Contains(log, `"route":"/console/*"`) || strings.Contains(log, "task_1") {
		t.Errorf("the log names no route, or a page:\n%s", log)
	}
}

// TestRootShowsConsole checks that a browser's request for the root is redirected to the console.
func TestRootShowsConsole(t *testing.T) {
	t.Parallel()
	g := newConsole(t)
	page := http.Header{"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		a := g.send(request{method: method, path: "/", header: page})
		if a.status != 302 || a.header.Get("Location") != "/console" || a.header.Get("Vary") != "Accept" {
			t.Errorf("%s: %d %v", method, a.status, a.header)
		}
	}
	g.send(request{path: "/"}).wantError(t, 404, "not_found_error", "no such route: GET /")
	g.send(request{method: http.MethodPost, path: "/", header: page}).wantError(t, 404, "not_found_error", "no such route: POST /")
	newGateway(t).send(request{path: "/", header: page}).wantError(t, 404, "not_found_error", "no such route: GET /")
}

func TestNoConsole(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	for _, path := range []string{"/console", "/console/", "/console/tasks", "/console/assets/index-1.js"} {
		a := g.send(request{path: path})
		if a.status != 404 || a.body != consoleNoFiles || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %d %v %s", path, a.status, a.header, a.body)
		}
		a.wantConsoleHeader(t, "")
	}
}
