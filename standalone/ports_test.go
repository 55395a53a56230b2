package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamedPortIsTaken checks the error if another program listens on a port that an option
// names.
func TestNamedPortIsTaken(t *testing.T) {
	t.Parallel()
	busy, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() })
	for _, server := range []string{"temporal", "ui", "s3", "sandbox"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			p := launch(t, nil, "-data", filepath.Join(t.TempDir(), "data"), "-infra", server, "-"+server, busy.Addr().String())
			if status := p.wait(t); status != exitFailed {
				t.Errorf("exit %d, want %d", status, exitFailed)
			}
			if said := p.stderr.String(); !strings.Contains(said, busy.Addr().String()) || !strings.Contains(said, "address already in use") {
				t.Errorf("the error does not name the cause:\n%s", said)
			}
		})
	}
}
