package readme_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// The client that docs/api.md shows, generated from the served document by the
// command beside it: its types take what the gateway takes and refuse what it
// refuses, and it submits a video and waits for its end.
func TestGeneratedClient(t *testing.T) {
	t.Parallel()
	client := t.TempDir()
	if err := os.CopyFS(client, os.DirFS(filepath.Join("testdata", "client"))); err != nil {
		t.Fatal(err)
	}
	code := blocks(t, "docs/api.md", "ts client")[0]
	if err := os.WriteFile(filepath.Join(client, "client.ts"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	npm(t, client, "ci")
	p := start(t)
	run := func(script string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", script)
		cmd.Dir, cmd.Env = client, append(os.Environ(), "MEDIAGATE_URL="+p.API, "MEDIAGATE_KEY="+p.Key)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	run(blocks(t, "docs/api.md", "sh client")[0])
	run("node_modules/.bin/tsc")
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
