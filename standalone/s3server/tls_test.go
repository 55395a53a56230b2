package s3server_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/storage/blob"
)

// TestMain makes the tests trust the certificate of httptest's servers.
func TestMain(m *testing.M) { os.Exit(runTrusting(m)) }

func runTrusting(m *testing.M) int {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	server.Close()
	dir, err := os.MkdirTemp("", "s3server")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(path, certificate, 0o600); err != nil {
		panic(err)
	}
	if err := os.Setenv("SSL_CERT_FILE", path); err != nil { // crypto/x509 reads the variable once
		panic(err)
	}
	return m.Run()
}

// withoutExtensions wraps a store so that it refuses features that many services with the S3 protocol
// lack: bodies in aws-chunked chunks, trailers, and checksums other than the signature's.
func withoutExtensions(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch status := refusalStatus(r); status {
		case 0:
			next.ServeHTTP(w, r)
		case http.StatusNotImplemented:
			refuse(w, status, "NotImplemented")
		default:
			refuse(w, status, "InvalidArgument")
		}
	})
}

func refusalStatus(r *http.Request) int {
	switch {
	case strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked"), strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-"),
		r.Header.Get("X-Amz-Trailer") != "", len(r.Trailer) > 0, len(r.TransferEncoding) > 0:
		return http.StatusNotImplemented
	}
	for _, names := range []map[string][]string{r.Header, r.URL.Query()} {
		for name := range names {
			name = strings.ToLower(name)
			if strings.HasPrefix(name, "x-amz-checksum-") || name == "x-amz-sdk-checksum-algorithm" {
				return http.StatusBadRequest
			}
		}
	}
	return 0
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write([]byte("<Error><Code>" + code + "</Code><Message>refused</Message></Error>"))
}

// serveOverTLS serves the store of config over TLS as a service that is not Amazon's. It refuses the
// features that such services lack, and every request for which refuse returns a status.
func serveOverTLS(t *testing.T, config blob.Config, refuse func(*http.Request) int) blob.Config {
	t.Helper()
	to, err := url.Parse(config.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // the signature covers the host
	}}
	front := httptest.NewTLSServer(withoutExtensions(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	testStore(t, serveOverTLS(t, config, func(*http.Request) int { return 0 }))
}

// TestBucketThatTakesNoFiles checks that a bucket that answers but stores no files is detected
// by a write.
func TestBucketThatTakesNoFiles(t *testing.T) {
	_, config := start(t, t.TempDir())
	status := 0
	store := open(t, serveOverTLS(t, config, func(r *http.Request) int {
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

// TestOriginsMayReadLinks checks that, once the bucket has our rule, web pages of any origin may
// read an object by its link, also after the preflight for a range.
func TestOriginsMayReadLinks(t *testing.T) {
	_, config := start(t, t.TempDir())
	config = serveOverTLS(t, config, func(*http.Request) int { return 0 })
	store := open(t, config)
	if err := store.EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.StoreManifest(t.Context(), "results/t/1/0", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	origins := []string{"https://app.example.com", "null"} // browsers send null after a redirect by the API
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

// admits reports whether a browser's request is allowed: a GET, or the preflight of a GET with a
// range.
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
