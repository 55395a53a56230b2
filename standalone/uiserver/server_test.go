package uiserver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate/freeport"
	"github.com/mediagate/mediagate/standalone/uiserver"
)

func start(t *testing.T) *uiserver.Server {
	t.Helper()
	s, err := uiserver.Start(t.Context(), uiserver.Config{Addr: "127.0.0.1:0", TemporalAddr: "127.0.0.1:1", Namespace: "media"})
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

// What the library's own server promises holds here too: pages that load in no
// foreign frame, and no change without the page's token.
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

// An address that somebody listens on is an error, not the end of the process.
func TestBusyAddress(t *testing.T) {
	t.Parallel()
	busy := strings.TrimPrefix(start(t).URL(), "http://")
	_, err := uiserver.Start(t.Context(), uiserver.Config{Addr: busy, TemporalAddr: "127.0.0.1:1"})
	if !freeport.Taken(err) || !strings.Contains(err.Error(), busy) {
		t.Errorf("%v, want one that names the address", err)
	}
}
