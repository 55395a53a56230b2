package pgtest

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/internal/freeport"
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

// A port that another process listens on before the server does is no failure
// of the cluster: Start tries another one.
func TestTakenPortIsTold(t *testing.T) {
	t.Parallel()
	port, err := freeport.Take("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", port.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	bin, err := findServer(packagedServers)
	if err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	for _, d := range []string{filepath.Dir(parent), parent} { // the server may run as another user
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(parent, "cluster")
	c, err := Start(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	account, err := runAs(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = serve(dir, bin, port, account, "")
	if !errors.Is(err, errPortTaken) {
		t.Errorf("error %v, want one that says so", err)
	}
}
