package readme_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/mediagate/mediagate/internal/npmtest"
)

// TestGeneratedClient runs the client that docs/api.md shows. The command beside it generates
// the client from the served document. The client's types allow the requests that the gateway
// accepts, and no others. The client submits a video and waits for its end.
func TestGeneratedClient(t *testing.T) {
	t.Parallel()
	client := npmtest.Install(t, "openapi", filepath.Join("testdata", "client"))
	code := blocks(t, "docs/api.md", "ts client")[0]
	if err := os.WriteFile(filepath.Join(client, "client.ts"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t)
	env := []string{"MEDIAGATE_URL=" + p.API, "MEDIAGATE_API_KEY=" + p.Key}
	run := func(script string) string {
		t.Helper()
		return string(npmtest.Run(t, client, nil, env, "bash", "-euc", script))
	}
	run(blocks(t, "docs/api.md", "sh client")[0])
	run("../node_modules/.bin/tsc")
	printed := run("node out/client.js")
	want := regexp.MustCompile(`^(task_[0-9A-Z]{26}) completed http://\S+\n$`)
	match := want.FindStringSubmatch(printed)
	if match == nil {
		t.Fatalf("the client printed %q", printed)
	}
	if ended := p.task(t.Context(), t, match[1]); ended.Status != "completed" {
		t.Errorf("the task is %s", ended.Status)
	}
}
