package pgtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	pattern := filepath.Join(dir, "*", "bin")
	_, err := findServer(pattern)
	if err == nil {
		t.Fatal("found a server in an empty folder")
	}
	for _, hint := range []string{"initdb", "postgres", pattern, "MEDIAGATE_TEST_POSTGRES"} {
		if !strings.Contains(err.Error(), hint) {
			t.Errorf("%q does not name %s", err, hint)
		}
	}
	for _, name := range []string{"14/bin/initdb", "15/bin/initdb", "15/bin/postgres"} { // of 14 only the client is there
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := findServer(pattern); err != nil || got != filepath.Join(dir, "15", "bin") {
		t.Errorf("found %q, error %v", got, err)
	}
}
