package freeport_test

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"github.com/mediagate/mediagate/standalone/freeport"
)

func TestFindNeverRepeats(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 500 {
		port, err := freeport.Find("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Fatalf("port %d is found twice", port)
		}
		seen[port] = true
	}
}

// What one process has found, another does not take, though nobody listens.
func TestFindKeepsFromOthers(t *testing.T) {
	t.Parallel()
	if os.Getenv("FREEPORT_TRY") != "" {
		conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp4", os.Getenv("FREEPORT_TRY"))
		if err == nil {
			_ = conn.Close()
			t.Fatal("the port is not kept")
		}
		return
	}
	port, err := freeport.Find("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC() // what keeps it must not be collected
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFindKeepsFromOthers$")
	other.Env = append(os.Environ(), "FREEPORT_TRY=127.0.0.1:"+strconv.Itoa(port))
	if out, err := other.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if err := freeport.Check("127.0.0.1", port); err != nil {
		t.Errorf("its own server could not listen: %v", err)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	busy, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() })
	free, err := freeport.Find("127.0.0.1")
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
