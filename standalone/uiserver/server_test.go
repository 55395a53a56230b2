package uiserver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate/internal/freeport"
	"github.com/mediagate/mediagate/standalone/hostguard"
	"github.com/mediagate/mediagate/standalone/uiserver"
)

func start(t *testing.T) *uiserver.Server {
	t.Helper()
	s, err := uiserver.Start(t.Context(), uiserver.Config{Addr: "127.0.0.1:0", TemporalAddr: "127.0.0.1:1", Namespace: "media", Names: hostguard.Names{"temporal.example"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestPages checks two promises of the library's own server: no foreign frame can load the
// pages, and no change works without the page's token.
func TestPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, test := range map[string]struct {
		method, path string
		status       int
		header       map[string]string
	}{
		"page":                   {http.MethodGet, "/namespaces/media/workflows", 200, map[string]string{"Content-Type": "text/html", "X-Frame-Options": "SAMEORIGIN"}},
		"settings":               {http.MethodGet, "/api/v1/settings", 200, map[string]string{"Content-Type": "application/json"}},
		"health":                 {http.MethodGet, "/healthz", 200, nil},
		"a change without token": {http.MethodPost, "/api/v1/namespaces/media/workflows/x/terminate", 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(t.Context(), test.method, s.URL()+test.path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			if resp.StatusCode != test.status {
				t.Errorf("status %d, want %d", resp.StatusCode, test.status)
			}
			for name, want := range test.header {
				if got := resp.Header.Get(name); !strings.HasPrefix(got, want) {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

// TestChangesOfOtherPages checks that the interface accepts the requests of its own pages, with
// the token from the cookie. It must refuse the same requests from another page or under another
// host name. Package hostguard tests which pages and names those are.
func TestChangesOfOtherPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	send := func(t *testing.T, method, path, host, origin, token string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Content-Type", "application/json")
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		if token != "" {
			req.AddCookie(&http.Cookie{Name: "_csrf", Value: token})
			req.Header.Set("X-CSRF-TOKEN", token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp
	}
	token := ""
	for _, c := range send(t, http.MethodGet, "/", "", "", "").Cookies() {
		if c.Name == "_csrf" {
			token = c.Value
		}
	}
	if token == "" {
		t.Fatal("the page sets no token")
	}
	const terminate = "/api/v1/namespaces/media/workflows/wake/terminate"
	for name, test := range map[string]struct {
		host, origin string
		refused      bool
	}{
		"its own page":         {origin: s.URL()},
		"a page elsewhere":     {origin: "http://evil.example", refused: true},
		"a program that lies":  {host: "evil.example", refused: true},
		"a name that is known": {host: "temporal.example", origin: "https://temporal.example"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for method, path := range map[string]string{http.MethodPost: terminate, http.MethodGet: "/api/v1/settings"} {
				resp := send(t, method, path, test.host, test.origin, token)
				if (resp.StatusCode == http.StatusForbidden) != test.refused {
					t.Errorf("%s %s: status %d", method, path, resp.StatusCode)
				}
				if allowed := resp.Header.Get("Access-Control-Allow-Origin"); test.refused && allowed != "" {
					t.Errorf("%s %s: open to %s", method, path, allowed)
				}
			}
		})
	}
}

// TestBusyAddress checks that Start returns an error if another program listens on the address,
// instead of ending the process.
func TestBusyAddress(t *testing.T) {
	t.Parallel()
	busy := strings.TrimPrefix(start(t).URL(), "http://")
	_, err := uiserver.Start(t.Context(), uiserver.Config{Addr: busy, TemporalAddr: "127.0.0.1:1"})
	if !freeport.Taken(err) || !strings.Contains(err.Error(), busy) {
		t.Errorf("%v, want one that names the address", err)
	}
}
