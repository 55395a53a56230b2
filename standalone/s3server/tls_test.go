package s3server_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage/blob"
	"github.com/mediagate/mediagate/storage/blob/blobtest"
)

func TestMain(m *testing.M) { os.Exit(blobtest.Main(m)) }

// behind serves the server over TLS as a service that is not Amazon's: refusing
// what those do not know, and whatever else refuse says.
func behind(t *testing.T, config blob.Config, refuse func(*http.Request) int) blob.Config {
	t.Helper()
	to, err := url.Parse(config.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // the signature covers it
	}}
	front := httptest.NewTLSServer(blobtest.Refusing(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := refuse(r); status != 0 {
			w.WriteHeader(status)
			return
		}
		proxy.ServeHTTP(w, r)
	})))
	t.Cleanup(front.Close)
	config.Endpoint = front.URL
	return config
}

func TestConformanceOverTLS(t *testing.T) {
	_, config := start(t, t.TempDir())
	blobtest.Run(t, behind(t, config, func(*http.Request) int { return 0 }))
}

// A bucket that answers and takes no files is found by what is written to it.
func TestBucketThatTakesNoFiles(t *testing.T) {
	_, config := start(t, t.TempDir())
	status := 0
	store := open(t, behind(t, config, func(r *http.Request) int {
		if r.Method == http.MethodPut || r.Method == http.MethodPost {
			return status
		}
		return 0
	}))
	if err := store.EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, status = range []int{http.StatusInsufficientStorage, http.StatusForbidden} {
		if err := store.Ping(t.Context()); err != nil {
			t.Errorf("%d: the bucket does not answer: %v", status, err)
		}
		if err := store.Probe(t.Context()); !mediagate.Is(err, mediagate.KindUnavailable) {
			t.Errorf("%d: got %v, want kind unavailable", status, err)
		}
	}
	status = 0
	if err := store.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if n, err := store.AbortStale(t.Context(), "results/", -time.Hour); err != nil || n != 0 {
		t.Errorf("the probes leave %d uploads (%v)", n, err)
	}
}

// Pages of any origin may read an object by its link, after a preflight if they ask for a
// range, once the bucket has our rule.
func TestOriginsMayReadLinks(t *testing.T) {
	_, config := start(t, t.TempDir())
	config = behind(t, config, func(*http.Request) int { return 0 })
	store := open(t, config)
	if err := store.EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.StoreManifest(t.Context(), "results/t/1/0", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	origins := []string{"https://app.example.com", "null"} // the second is sent after a redirect of the API
	for step, want := range []bool{false, true, true} {
		if step > 0 {
			if err := store.AllowPages(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, origin := range origins {
			for _, method := range []string{http.MethodGet, http.MethodOptions} {
				if got := admits(t, store, method, origin); got != want {
					t.Errorf("step %d: %s from %s admitted: %t, want %t", step, method, origin, got, want)
				}
			}
		}
	}
}

// admits asks as a browser does, by GET or with the preflight of one for a range.
func admits(t *testing.T, store *blob.Store, method, origin string) bool {
	t.Helper()
	link, err := store.Sign(t.Context(), mediagate.Result{Key: "results/t/1/0"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, link.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", origin)
	if method == http.MethodOptions {
		req.Header.Set("Access-Control-Request-Method", http.MethodGet)
		req.Header.Set("Access-Control-Request-Headers", "range")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	allowed := resp.Header.Get("Access-Control-Allow-Origin")
	if method == http.MethodGet && resp.StatusCode != http.StatusOK {
		t.Errorf("the link answers %d", resp.StatusCode)
	}
	return allowed == origin || allowed == "*"
}
