package api

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mediagate/mediagate/catalog"
	"github.com/mediagate/mediagate/npmtest"
)

// Redocly's linter finds nothing in the document, by the strictest of its rule
// sets; testdata/redocly has its version and the rules that are off.
func TestOpenAPILint(t *testing.T) {
	t.Parallel()
	models, err := catalog.Load("")
	if err != nil {
		t.Fatal(err)
	}
	document, err := describe(models, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	folder := npmtest.Install(t, filepath.Join("testdata", "redocly"))
	if err := os.WriteFile(filepath.Join(folder, "openapi.json"), document, 0o600); err != nil {
		t.Fatal(err)
	}
	quiet := []string{"REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1"}
	npmtest.Run(t, folder, nil, quiet, filepath.Join("node_modules", ".bin", "redocly"), "lint", "--config", "redocly.yaml", "openapi.json")
}
