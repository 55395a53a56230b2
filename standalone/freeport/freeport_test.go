package freeport_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/mediagate/mediagate/standalone/freeport"
)

func TestFindNeverRepeats(t *testing.T) {
	t.Parallel()
	taken := map[int]bool{}
	for range 50 {
		port, err := freeport.Find("127.0.0.1", taken)
		if err != nil {
			t.Fatal(err)
		}
		if !taken[port] {
			t.Fatalf("port %d is not noted as taken", port)
		}
	}
	if len(taken) != 50 {
		t.Errorf("%d different ports of 50", len(taken))
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	busy, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() })
	free, err := freeport.Find("127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		addr string
		ok   bool
	}{
		"named":        {"127.0.0.1:" + strconv.Itoa(free), true},
		"any":          {"127.0.0.1:0", true},
		"every host":   {":0", true},
		"busy":         {busy.Addr().String(), false},
		"no port":      {"127.0.0.1", false},
		"negative":     {"127.0.0.1:-1", false},
		"above 65535":  {"127.0.0.1:65536", false},
		"service name": {"127.0.0.1:http", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, port, err := freeport.Resolve(test.addr)
			if (err == nil) != test.ok {
				t.Fatalf("Resolve(%q) = %q, %d, %v", test.addr, host, port, err)
			}
			if test.ok && port == 0 {
				t.Error("port 0 was not replaced")
			}
		})
	}
}
