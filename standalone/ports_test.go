package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mediagate/mediagate/internal/freeport"
)

// asGreedy makes the test binary a program that takes ports.
const asGreedy = "STANDALONE_TEST_GREEDY"

// Ports that servers are commonly configured with: below those that the system
// gives.
const lowestGreedy, highestGreedy = 20000, 32000

// takeGreedily listens on one port after the other, on those of the range by
// their numbers and on whatever the system gives, keeps each for a while, and
// never ends by itself.
func takeGreedily() {
	listener := &net.ListenConfig{}
	kept := make(chan net.Listener, 6000)
	for number := lowestGreedy; ; number++ {
		if number > highestGreedy {
			number = lowestGreedy
			fmt.Println("round") //nolint:forbidigo // a program's own output
		}
		for _, port := range []int{number, 0} {
			l, err := listener.Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil && !freeport.Taken(err) { // as many as a process may have
				for range 100 {
					_ = (<-kept).Close()
				}
			}
			if err != nil {
				continue
			}
			if len(kept) == cap(kept) {
				_ = (<-kept).Close()
			}
			kept <- l
		}
	}
}

// Beside a program that takes every port that it can get,
// the program starts, also again at addresses that somebody holds for it.
func TestStartsBesideAGreedyProgram(t *testing.T) {
	t.Parallel()
	greedy := launch(t, []string{asGreedy + "=1"})
	for limit := time.After(60 * time.Second); !strings.Contains(greedy.stdout.String(), "round"); {
		select {
		case <-limit:
			t.Fatal("the greedy program does not get round")
		case <-time.After(10 * time.Millisecond):
		}
	}
	for range 3 {
		data := filepath.Join(t.TempDir(), "data")
		p := launch(t, nil, infraArgs(data)...)
		awaitAnnouncement(t, p, data)
		p.signal(t, syscall.SIGKILL)
		p.wait(t)
	}

	data := filepath.Join(t.TempDir(), "data")
	args := []string{"-data", data, "-infra", "temporal,ui,s3,sandbox"}
	var held []string
	for _, server := range []string{"temporal", "ui", "s3", "sandbox"} {
		port, err := freeport.Take("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(port.Release)
		args, held = append(args, "-"+server, port.Addr()), append(held, port.Addr())
	}
	for range 3 {
		p := launch(t, nil, args...)
		at := awaitAnnouncement(t, p, data)
		for i, got := range []string{at.Temporal, at.UI, at.S3.Endpoint, at.Sandbox} {
			if strings.TrimPrefix(got, "http://") != held[i] {
				t.Errorf("it serves on %s, not on %s", got, held[i])
			}
		}
		p.signal(t, syscall.SIGKILL)
		p.wait(t)
	}
}

// A named port that another program has is reported as that.
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
				t.Errorf("it does not say what is the matter:\n%s", said)
			}
		})
	}
}
