package api_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/npmtest"
)

// TestOpenAPILint checks the served documents with the linters of Redocly and Stoplight
// (Spectral), by their strictest rule sets. testdata/lint lists the disabled rules.
func TestOpenAPILint(t *testing.T) {
	t.Parallel()
	folder := npmtest.Install(t, "lint", filepath.Join("testdata", "lint"))
	g := newGateway(t, func(c *api.Config) { c.PublicURL = "https://api.mediagate.test" })
	document, _ := g.document()
	operators := g.send(request{path: "/admin/v1/openapi.yaml", key: adminKey})
	g.must(os.WriteFile(filepath.Join(folder, "openapi.json"), []byte(document), 0o600))
	g.must(os.WriteFile(filepath.Join(folder, "admin.yaml"), []byte(operators.body), 0o600))
	quiet := []string{"REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1"}
	bin := filepath.Join("..", "node_modules", ".bin")
	npmtest.Run(t, folder, nil, quiet, filepath.Join(bin, "redocly"), "lint", "--config", "redocly.yaml", "openapi.json", "admin.yaml")
	npmtest.Run(t, folder, nil, quiet, filepath.Join(bin, "spectral"), "lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint", "openapi.json", "admin.yaml")
}

// TestOpenAPIGoClient compiles a client that oapi-codegen makes of the served document, lists
// models with it, submits a video and reads its task.
func TestOpenAPIGoClient(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	folder := t.TempDir()
	g.must(os.CopyFS(folder, os.DirFS(filepath.Join("testdata", "goclient"))))
	g.must(os.Mkdir(filepath.Join(folder, "gateway"), 0o700))
	document, _ := g.document()
	g.must(os.WriteFile(filepath.Join(folder, "openapi.json"), []byte(document), 0o600))
	env := append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "MEDIAGATE_URL=http://"+g.serve(), "MEDIAGATE_API_KEY="+g.key)
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = folder, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	run("go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "gateway", "-o", filepath.Join("gateway", "gateway.go"), "openapi.json")
	run("go", "build", "-o", "client", ".")
	printed := run(filepath.Join(folder, "client"))
	if !regexp.MustCompile(`^true task_[0-9A-Z]{26} pending 0\.252\n$`).MatchString(printed) {
		t.Errorf("the client printed %q", printed)
	}
}
