package api

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mediagate/mediagate/catalog"
)

// systemCAs is where Debian keeps the authorities that the machine trusts. Node
// brings a list of its own and looks at no other unless told to.
const systemCAs = "/etc/ssl/certs/ca-certificates.crt"

// Redocly's linter finds nothing in the document, by the strictest of its rule
// sets; testdata/redocly has its version and the rules that are off.
func TestOpenAPILint(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil && os.Getenv("CI") == "" {
		t.Skip("npm is missing: the OpenAPI document is not linted")
	}
	models, err := catalog.Load("")
	if err != nil {
		t.Fatal(err)
	}
	document, err := describe(models, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join("testdata", "redocly"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "openapi.json"), document, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(),
			"NODE_EXTRA_CA_CERTS="+cmp.Or(os.Getenv("NODE_EXTRA_CA_CERTS"), systemCAs),
			"REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	run(filepath.Join("node_modules", ".bin", "redocly"), "lint", "--config", "redocly.yaml", "openapi.json")
}
