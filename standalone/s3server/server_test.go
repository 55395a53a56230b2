package s3server_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/standalone/s3server"
	"github.com/mediagate/mediagate/storage/blob"
)

// A process can run only one server at a time, so no test here is parallel.

func start(t *testing.T, dir string) (*s3server.Server, blob.Config) {
	t.Helper()
	server, err := s3server.Start(t.Context(), s3server.Config{
		Addr: "127.0.0.1:0", Dir: dir, AccessKey: "test-access", SecretKey: "test-secret", Region: "us-east-1",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, server) })
	return server, blob.Config{
		Endpoint: server.Endpoint, Region: "us-east-1", Bucket: "media",
		AccessKeyID: "test-access", SecretAccessKey: "test-secret", PathStyle: true,
	}
}

func stop(t *testing.T, server *s3server.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	defer cancel()
	if err := server.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func open(t *testing.T, c blob.Config) *blob.Store {
	t.Helper()
	store, err := blob.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

func TestConformance(t *testing.T) {
	_, config := start(t, t.TempDir())
	testStore(t, config)
}

// TestRestart checks that objects survive the server with their types, in both places where the
// types may be stored.
func TestRestart(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"attributes in the file system": func(*testing.T, string) {},
		"attributes beside the objects": func(t *testing.T, dir string) {
			t.Helper()
			if err := os.MkdirAll(filepath.Join(dir, "meta"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			prepare(t, dir)
			server, config := start(t, dir)
			store := open(t, config)
			if err := store.EnsureBucket(t.Context()); err != nil {
				t.Fatal(err)
			}
			file := openerOf(bytes.NewReader(picture(t, 2, 2)))
			result, err := store.Mirror(t.Context(), "results/task/1/0", file, blob.Limits{Media: "image"})
			if err != nil {
				t.Fatal(err)
			}
			stop(t, server)
			stop(t, server) // a second Stop is harmless
			if err := store.Ping(t.Context()); !mediagate.Is(err, mediagate.KindUnavailable) {
				t.Errorf("a stopped server: got %v, want kind unavailable", err)
			}

			_, config = start(t, dir)
			link, err := open(t, config).Sign(t.Context(), result, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			got := fetch(t, link.URL)
			if got.status != http.StatusOK || got.size != result.Size || got.header.Get("Content-Type") != "image/png" {
				t.Errorf("got status %d, %d bytes, type %q", got.status, got.size, got.header.Get("Content-Type"))
			}
		})
	}
}

func TestAddressInUse(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for name, addr := range map[string]string{
		"in use":         l.Addr().String(),
		"no address":     "nowhere",
		"not our own":    "192.0.2.1:0",
		"no such number": "127.0.0.1:70000",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s3server.Start(t.Context(), s3server.Config{Addr: addr, Dir: t.TempDir(), AccessKey: "a", SecretKey: "b"})
			if err == nil {
				t.Error("the server starts")
			}
		})
	}
}

func TestNoGoroutineIsLeft(t *testing.T) {
	before := goleak.IgnoreCurrent()
	server, config := start(t, t.TempDir())
	store := open(t, config)
	if err := store.EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop(t, server)
	store.Close()
	goleak.VerifyNone(t, before,
		// The HTTP library's cleaner notices the end after ten seconds.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		// The library's clock runs for ever once a first server has started.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
	)
}
