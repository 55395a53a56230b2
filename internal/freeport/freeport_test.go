package freeport_test

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/internal/freeport"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv("FREEPORT_SERVE"); addr != "" {
		serve(addr)
		return
	}
	os.Exit(m.Run())
}

// serve is a server of another process: it listens, says so, and ends with its
// input.
func serve(addr string) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		_, _ = io.WriteString(os.Stdout, err.Error())
		return
	}
	_, _ = io.WriteString(os.Stdout, "listening")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = l.Close()
}

// other runs serve on the port and kills it.
func other(t *testing.T, p *freeport.Port) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "FREEPORT_SERVE="+p.Addr())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 256)
	n, _ := out.Read(said)
	if string(said[:n]) != "listening" {
		t.Errorf("another process: %s", said[:n])
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	_ = in.Close()
}

// A held port is everybody's who knows its number, one after the other, and
// nobody's who takes any: not while nothing listens on it, either. It runs
// alone: a thousand sockets at once get between the others' looks.
func TestTakeHolds(t *testing.T) {
	p := take(t, "127.0.0.1:0")
	if p.Number == 0 || !p.Chosen {
		t.Fatalf("took %+v", p)
	}
	for range 2 { // a server and its restart
		other(t, p)
		greedy(t, p.Number)
	}
	same := take(t, p.Addr()) // as the program does that is told the number
	if same.Chosen {
		t.Error("a named port counts as the system's choice")
	}
}

// greedy takes ports from the system as long as it gives some, up to what a
// process may open, and fails the test when the number is among them.
func greedy(t *testing.T, number int) {
	t.Helper()
	for range 500 {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			return
		}
		defer func() { _ = l.Close() }()
		if l.Addr().(*net.TCPAddr).Port == number {
			t.Errorf("the system gave away %d", number)
		}
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		if c.LocalAddr().(*net.TCPAddr).Port == number {
			t.Errorf("an outgoing connection got %d", number)
		}
	}
}

func take(t *testing.T, addr string) *freeport.Port {
	t.Helper()
	p, err := freeport.Take(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Release)
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
			defer p.Release()
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
	robbed := func(times int) func(*freeport.Port) (net.Listener, error) {
		return func(p *freeport.Port) (net.Listener, error) {
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
	if _, err := freeport.Serve("127.0.0.1:0", func(p *freeport.Port) (net.Listener, error) {
		numbers = append(numbers, strconv.Itoa(p.Number))
		return nil, broken
	}); !errors.Is(err, broken) || len(numbers) != 1 {
		t.Errorf("another error: tried %v, %v", numbers, err)
	}
}
