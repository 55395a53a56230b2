package api_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/mediagate/mediagate/internal/npmtest"
)

// TestMCPConformance runs the protocol's own conformance suite. Its other scenarios need tools,
// prompts or resources of a reference server, logging, or sessions, and do not apply to a server
// of seven tools without sessions. Later releases of the suite need a newer Node.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	folder := npmtest.Install(t, "conformance", "")
	g := newGateway(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+g.key) // which the suite cannot send
		g.server.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "dns-rebinding-protection"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			npmtest.Run(t, folder, nil, nil, filepath.Join("..", "node_modules", ".bin", "conformance"),
				"server", "--url", server.URL+"/mcp", "--scenario", scenario)
		})
	}
}
