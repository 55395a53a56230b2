package api_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate/api"
)

// TestReadyOutlivesAPanic checks that a check that panics reports its part as away.
func TestReadyOutlivesAPanic(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(c *api.Config) { c.Checks = api.Checks{Bucket: func(context.Context) error { panic("a bug") }} })
	if a := g.send(request{path: "/readyz"}); a.status != http.StatusOK || !strings.Contains(a.body, `"degraded":["bucket"]`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestReadyChecksOnceForAll checks that concurrent requests share a check of the bucket, since
// anyone can call readiness without a key.
func TestReadyChecksOnceForAll(t *testing.T) {
	t.Parallel()
	models := api.BuiltIn(t)
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		release := make(chan struct{})
		server, err := api.New(api.Config{
			Store: struct{ api.Store }{}, Starter: &starter{}, Runs: &starter{}, Signer: struct{ api.Signer }{}, Remover: &bucket{}, Speaker: &speaker{}, Catalog: models, Routes: &vendors{}, Uploads: &bucket{}, Files: &bucket{}, FileURL: fileURL, Operators: admins(adminKey), Logger: slog.New(slog.DiscardHandler), Now: time.Now,
			Checks: api.Checks{Bucket: func(context.Context) error {
				looks.Add(1)
				<-release
				return nil
			}},
		})
		must(t, err)
		defer server.Close()
		ask := func() {
			w := httptest.NewRecorder()
			server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"status":"ready"`) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
		for range 50 {
			go ask()
		}
		synctest.Wait() // all of them ask
		if n := looks.Load(); n != 1 {
			t.Errorf("%d looks for 50 questions", n)
		}
		close(release)
		synctest.Wait()
		for range 1000 {
			ask()
		}
		if n := looks.Load(); n != 1 {
			t.Errorf("%d looks within a second", n)
		}
		time.Sleep(time.Second)
		for range 1000 {
			ask()
		}
		if n := looks.Load(); n != 2 {
			t.Errorf("%d looks in two seconds", n)
		}
	})
}
