package temporalserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/server/temporal"

	"github.com/mediagate/mediagate/internal/freeport"
)

// TestPortsAreTakenMeanwhile takes each port of the service between its choice and its use. The
// ports of the roles must be chosen before any role listens. The error must name the port, and
// the service must start on others.
func TestPortsAreTakenMeanwhile(t *testing.T) {
	t.Parallel()
	stores, err := prepareSQLite(filepath.Join(t.TempDir(), "temporal.db"), DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	log := newLogger(slog.New(slog.NewTextHandler(t.Output(), nil)))
	for name, port := range map[string]func(p portPlan) freeport.Port{
		"frontend": func(p portPlan) freeport.Port { return p.frontend },
		"history":  func(p portPlan) freeport.Port { return p.history },
		"matching": func(p portPlan) freeport.Port { return p.matching },
		"worker":   func(p portPlan) freeport.Port { return p.worker },
	} {
		t.Run(name, func(t *testing.T) {
			var lost []string
			service, at, err := startService(t.Context(), "127.0.0.1:0", log, func(p portPlan) (temporal.Server, error) {
				if len(lost) == 0 {
					occupy(t, port(p))
				}
				service, err := startOnce(p, stores, log)
				if c := (*portTakenError)(nil); errors.As(err, &c) {
					lost = append(lost, c.addr)
					if c.addr != port(p).Addr() || !strings.Contains(err.Error(), "another program listens on "+c.addr) {
						t.Errorf("%s was taken: %v", port(p).Addr(), err)
					}
				}
				return service, err
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(lost) != 1 {
				t.Errorf("collisions at %v, want one", lost)
			}
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
			if err != nil {
				t.Errorf("no server answers on %s: %v", at, err)
			} else {
				_ = conn.Close()
			}
			stopService(t, service, log)
		})
	}
}

// TestNamedPortIsTakenMeanwhile checks that the service does not replace a port that the address
// names.
func TestNamedPortIsTakenMeanwhile(t *testing.T) {
	t.Parallel()
	stores, err := prepareSQLite(filepath.Join(t.TempDir(), "temporal.db"), DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	named, err := freeport.Take("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log, tries := newLogger(slog.New(slog.NewTextHandler(t.Output(), nil))), 0
	_, _, err = startService(t.Context(), named.Addr(), log, func(p portPlan) (temporal.Server, error) {
		tries++
		occupy(t, p.frontend)
		return startOnce(p, stores, log)
	})
	if err == nil || tries != 1 || !strings.Contains(err.Error(), "another program listens on "+named.Addr()) {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// occupy listens on the port until the test ends, as another program would.
func occupy(t *testing.T, p freeport.Port) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
}

func stopService(t *testing.T, service temporal.Server, log *logger) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	if err := (&Server{service: service, log: log}).Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}
