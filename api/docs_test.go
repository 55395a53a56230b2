package api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/api"
)

var (
	linkIn   = regexp.MustCompile(`href="([^"]*)"`)
	anchorIn = regexp.MustCompile(`id="([^"]*)"`)
)

// TestDocs checks that the program serves each page, that a page loads nothing from elsewhere,
// and that each internal link works.
func TestDocs(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	bodies, pending := map[string]string{}, []string{"/docs", "/docs/runbook/ProviderOutOfFunds"}
	for len(pending) > 0 {
		path := pending[0]
		pending = pending[1:]
		if _, known := bodies[path]; known {
			continue
		}
		a := g.send(request{path: path})
		bodies[path] = a.body
		if a.status != http.StatusOK || a.header.Get("Etag") == "" {
			t.Errorf("%s: %d", path, a.status)
			continue
		}
		if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
			continue
		}
		if policy := a.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, a.header)
		}
		if strings.Contains(a.body, "<script") || strings.Contains(a.body, " style=") {
			t.Errorf("%s runs or styles something itself", path)
		}
		for _, link := range linkIn.FindAllStringSubmatch(a.body, -1) {
			if to, _, _ := strings.Cut(link[1], "#"); strings.HasPrefix(to, "/") {
				pending = append(pending, to)
			}
		}
	}
	if len(bodies) < 20 || bodies["/docs/models/alpha-v3"] == "" || bodies["/docs/reference"] == "" || bodies["/docs/api.md"] == "" || bodies["/docs/repairing"] == "" {
		t.Errorf("%d pages", len(bodies))
	}
	for path, body := range bodies {
		for _, link := range linkIn.FindAllStringSubmatch(body, -1) {
			to, fragment, has := strings.Cut(link[1], "#")
			if to == "" {
				to = path
			}
			if !has || !strings.HasPrefix(to, "/docs") {
				continue
			}
			found := false
			for _, anchor := range anchorIn.FindAllStringSubmatch(bodies[to], -1) {
				found = found || anchor[1] == fragment
			}
			if !found {
				t.Errorf("%s: %s leads nowhere", path, link[1])
			}
		}
	}
	for _, path := range []string{"/docs/nothing", "/docs/testing", "/docs/models/nothing", "/docs/runbook/nothing", "/docs/..", "/docs/api.html"} {
		g.send(request{path: path}).wantError(t, http.StatusNotFound, "not_found_error", "no such route: GET "+path)
	}
}

// TestLLMs checks the list of documents for language models, and each document.
func TestLLMs(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	a := g.send(request{path: "/llms.txt"})
	if a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") || !strings.HasPrefix(a.body, "# mediagate\n") {
		t.Fatalf("%d %v\n%s", a.status, a.header, a.body)
	}
	for _, link := range regexp.MustCompile(`\]\(([^)]*)\)`).FindAllStringSubmatch(a.body, -1) {
		g.send(request{path: link[1]}).wantStatus(t, http.StatusOK, link[1])
	}
	with := newGateway(t, func(c *api.Config) { c.PublicURL = "https://api.example.com/" })
	if a := with.send(request{path: "/llms.txt"}); !strings.Contains(a.body, "(https://api.example.com/docs/api.md)") {
		t.Errorf("with an address of its own:\n%s", a.body)
	}
}

// TestModelPagesOfTheDefaultGroup checks that the pages, which are read without a key, show the
// models of the group default at its prices.
func TestModelPagesOfTheDefaultGroup(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) {
		c.Groups = map[string]api.Group{"default": {PriceFactor: "2", Models: []string{"alpha-*"}}, "others": {}}
	})
	if a := g.send(request{path: "/docs/models/alpha-v3.md"}); !strings.Contains(a.body, "| `std` | `false` | 0.168 |") {
		t.Errorf("not at the group's prices: %d\n%s", a.status, a.body)
	}
	if a := g.send(request{path: "/docs/models.md"}); !strings.Contains(a.body, "[alpha-v3]") || strings.Contains(a.body, "[art]") {
		t.Errorf("the index: %d\n%s", a.status, a.body)
	}
	g.send(request{path: "/docs/models/art"}).wantStatus(t, http.StatusNotFound)
}
