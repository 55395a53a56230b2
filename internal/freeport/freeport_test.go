package freeport_test

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/internal/freeport"
)

func take(t *testing.T, addr string) freeport.Port {
	t.Helper()
	p, err := freeport.Take(addr)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestTake(t *testing.T) {
	t.Parallel()
	busy := listen(t, "127.0.0.1:0").Addr().String()
	for name, test := range map[string]struct {
		addr string
		want string // of the error; empty: none
	}{
		"any":          {"127.0.0.1:0", ""},
		"every host":   {":0", ""},
		"name":         {"localhost:0", ""},
		"busy":         {busy, "another program listens on this address"},
		"no port":      {"127.0.0.1", "missing port"},
		"negative":     {"127.0.0.1:-1", "not a number"},
		"above 65535":  {"127.0.0.1:65536", "not a number"},
		"service name": {"127.0.0.1:http", "not a number"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := freeport.Take(test.addr)
			if err != nil {
				if test.want == "" || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
				if freeport.Taken(err) != (test.addr == busy) {
					t.Errorf("Taken(%v) is %v", err, freeport.Taken(err))
				}
				return
			}
			if test.want != "" {
				t.Fatalf("took %s, want an error with %q", p.Addr(), test.want)
			}
			if err := listen(t, p.Addr()).Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A program that asks for the very number comes in between: another port does,
// unless the address names one.
func TestServeTriesOthers(t *testing.T) {
	t.Parallel()
	var numbers []string
	robbed := func(times int) func(freeport.Port) (net.Listener, error) {
		return func(p freeport.Port) (net.Listener, error) {
			numbers = append(numbers, strconv.Itoa(p.Number))
			if times--; times >= 0 {
				l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", p.Addr())
				if err == nil {
					t.Cleanup(func() { _ = l.Close() })
				} else if !freeport.Taken(err) { // else somebody else was faster
					t.Error(err)
				}
			}
			return (&net.ListenConfig{}).Listen(t.Context(), "tcp", p.Addr())
		}
	}
	l, err := freeport.Serve("127.0.0.1:0", robbed(freeport.Tries-1))
	if err != nil || len(numbers) != freeport.Tries {
		t.Fatalf("tried %v: %v", numbers, err)
	}
	_ = l.Close()
	if _, err := freeport.Serve("127.0.0.1:0", robbed(freeport.Tries)); !freeport.Taken(err) {
		t.Errorf("robbed each time: %v", err)
	}

	numbers = nil
	_, err = freeport.Serve(take(t, "127.0.0.1:0").Addr(), robbed(1))
	if len(numbers) != 1 || err == nil || !strings.Contains(err.Error(), "another program listens on this address") {
		t.Errorf("a named port: tried %v, %v", numbers, err)
	}

	broken := errors.New("broken")
	numbers = nil
	if _, err := freeport.Serve("127.0.0.1:0", func(p freeport.Port) (net.Listener, error) {
		numbers = append(numbers, strconv.Itoa(p.Number))
		return nil, broken
	}); !errors.Is(err, broken) || len(numbers) != 1 {
		t.Errorf("another error: tried %v, %v", numbers, err)
	}
}
