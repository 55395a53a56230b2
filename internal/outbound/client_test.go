package outbound

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

func devRules() Rules { return Rules{Allow: prefixes("127.0.0.0/8")} }

func get(t *testing.T, c *http.Client, to string, header http.Header) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(req.Header, header)
	resp, err := c.Do(req)
	if err == nil {
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	return resp, err
}

func TestMediaRedirects(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/hop/{n}", func(w http.ResponseWriter, r *http.Request) {
		if n, _ := strconv.Atoi(r.PathValue("n")); n > 0 {
			http.Redirect(w, r, fmt.Sprintf("/hop/%d", n-1), http.StatusFound)
		}
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("url"), http.StatusTemporaryRedirect)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	tests := map[string]struct {
		path string
		ok   bool
	}{
		"none":           {"/hop/0", true},
		"five":           {"/hop/5", true},
		"six":            {"/hop/6", false},
		"to private":     {"/to?url=http://10.0.0.1/", false},
		"to metadata":    {"/to?url=http://169.254.169.254/latest", false},
		"to a file":      {"/to?url=file:///etc/passwd", false},
		"to numbers":     {"/to?url=http://2130706433/", false},
		"to a user":      {"/to?url=http://u:p@8.8.8.8/", false},
		"to a full name": {"/to?url=" + server.URL + "/hop/0", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := get(t, devRules().MediaClient(), server.URL+tt.path, nil)
			if tt.ok && err != nil {
				t.Errorf("refused: %v", err)
			}
			if !tt.ok {
				wantViolation(t, err)
			}
		})
	}
}

// TestRequestLine checks that characters which a request line may not hold are encoded in the
// path and the query, of the first request and of redirects. Encoded characters are kept.
func TestRequestLine(t *testing.T) {
	t.Parallel()
	lines := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.Header.Get("Range"); to != "" { // goes along with a redirect, which ends at another path
			if !strings.HasPrefix(r.URL.Path, "/to/") {
				w.Header()["Location"] = []string{"/to" + to}
				w.WriteHeader(http.StatusFound)
				return
			}
		}
		lines <- r.RequestURI
	}))
	t.Cleanup(server.Close)
	for name, tt := range map[string]struct{ url, want string }{
		"a path":              {"/bücher/日本.png", "/b%C3%BCcher/%E6%97%A5%E6%9C%AC.png"},
		"a query":             {"/a?name=日本&x=ü", "/a?name=%E6%97%A5%E6%9C%AC&x=%C3%BC"},
		"encoded already":     {"/a%2Fb?x=%2f%c3%bc&y=a+b&z=%zz", "/a%2Fb?x=%2f%c3%bc&y=a+b&z=%zz"},
		"bytes of no text":    {"/a?x=\xfc", "/a?x=%FC"},
		"a space":             {"/a?x=b c", "/a?x=b%20c"},
		"quotes and angles":   {`/a?x="<b>"`, "/a?x=%22%3Cb%3E%22"},
		"what queries may":    {"/a?x=(b)!*'{c}|d&e[]=f;g:h@i,j$k/l?m", "/a?x=(b)!*'{c}|d&e[]=f;g:h@i,j$k/l?m"},
		"no query":            {"/a?", "/a?"},
		"a query and no path": {"/?ü", "/?%C3%BC"},
	} {
		t.Run(name, func(t *testing.T) {
			for want, ask := range map[string]func() (*http.Response, error){
				tt.want: func() (*http.Response, error) {
					return get(t, devRules().MediaClient(), server.URL+tt.url, nil)
				},
				"/to" + tt.want: func() (*http.Response, error) {
					return get(t, devRules().MediaClient(), server.URL, http.Header{"Range": {tt.url}})
				},
			} {
				resp, err := ask()
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Fatalf("%s: %v, %v", want, resp, err)
				}
				if got := <-lines; got != want {
					t.Errorf("asked for %q, want %q", got, want)
				}
			}
		})
	}
}

// TestLongestRedirect checks that a redirect to the longest host of a header costs nothing. It
// once cost over ten seconds of CPU, beyond any deadline, even if redirects were not followed.
func TestLongestRedirect(t *testing.T) {
	t.Parallel()
	var host strings.Builder
	for i := range 20_000 { // no two alike
		host.WriteRune(rune(0x4e00 + i*7919%20_000))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://"+host.String()+".com/")
		w.WriteHeader(http.StatusFound)
	}))
	t.Cleanup(server.Close)
	began := time.Now()
	resp, err := get(t, devRules().WebhookClient(0), server.URL, nil)
	if err != nil || resp.StatusCode != http.StatusFound {
		t.Errorf("not followed: %v, %v", resp, err)
	}
	_, err = get(t, devRules().MediaClient(), server.URL, nil)
	wantViolation(t, err)
	_, err = get(t, devRules().MediaClient(), "https://"+host.String()+".com/", nil)
	wantViolation(t, err)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestRedirectCarriesNoCredentials(t *testing.T) {
	t.Parallel()
	got := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/start" {
			http.Redirect(w, r, "/end", http.StatusFound) // the same host: Go alone would keep them
			return
		}
		got <- r.Header
	}))
	t.Cleanup(server.Close)
	header := http.Header{
		"Authorization": {"Bearer x"}, "Cookie": {"a=b"}, "X-Goog-Api-Key": {"x"}, "X-Custom": {"x"},
		"Accept": {"video/*"}, "User-Agent": {"test"}, "Range": {"bytes=0-"},
	}
	if _, err := get(t, devRules().MediaClient(), server.URL+"/start?signature=secret", header); err != nil {
		t.Fatal(err)
	}
	want := http.Header{"Accept": {"video/*"}, "User-Agent": {"test"}, "Range": {"bytes=0-"}, "Connection": {"close"}}
	if diff := cmp.Diff(want, <-got); diff != "" {
		t.Errorf("headers after the redirect (-want +got):\n%s", diff)
	}
}

func TestWebhookClientReturnsRedirects(t *testing.T) {
	t.Parallel()
	calls := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls <- r.URL.Path
		http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	resp, err := get(t, devRules().WebhookClient(0), server.URL+"/a", nil)
	if err != nil || resp.StatusCode != http.StatusTemporaryRedirect || len(calls) != 1 {
		t.Errorf("%v, %v after %d calls", resp, err, len(calls))
	}
}

func TestClientAllowHosts(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	neighbour := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(neighbour.Close)
	moved := httptest.NewServer(http.RedirectHandler(neighbour.URL, http.StatusFound))
	t.Cleanup(moved.Close)
	host, err := Host(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, Rules{}.MediaClient(host), server.URL, nil); err != nil {
		t.Errorf("a channel's own host: %v", err)
	}
	_, err = get(t, Rules{}.MediaClient(), server.URL, nil)
	wantViolation(t, err)
	_, err = get(t, Rules{}.MediaClient("127.0.0.2"), server.URL, nil)
	wantViolation(t, err)
	_, err = get(t, Rules{}.MediaClient(host), neighbour.URL, nil)
	wantViolation(t, err) // another port of the host
	own, err := Host(moved.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = get(t, Rules{}.MediaClient(own), moved.URL, nil)
	wantViolation(t, err) // nor by a redirect
}

// TestNoRedirectFromHTTPSToHTTP checks that a redirect from https to http sends nothing: others
// on the way could read the link.
func TestNoRedirectFromHTTPSToHTTP(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(plain.Close)
	var to string
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			return
		}
		http.Redirect(w, r, to, http.StatusFound)
	}))
	t.Cleanup(secure.Close)
	client := devRules().MediaClient()
	guarded, ok := client.Transport.(*transport)
	if !ok {
		t.Fatal("not the guarded transport")
	}
	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())
	guarded.base.TLSClientConfig.RootCAs = pool

	to = plain.URL
	_, err := get(t, client, secure.URL, nil)
	wantViolation(t, err)
	if asked.Load() != 0 {
		t.Error("it was sent all the same")
	}
	to = "/end"
	if _, err := get(t, client, secure.URL, nil); err != nil {
		t.Errorf("within https: %v", err)
	}
	start := httptest.NewServer(http.RedirectHandler(secure.URL+"/end", http.StatusFound))
	t.Cleanup(start.Close)
	if _, err := get(t, client, start.URL, nil); err != nil {
		t.Errorf("from http to https: %v", err)
	}
}

// TestProxy checks that a client with a proxy makes all connections to it, at any address. The
// addresses of names are checked as our resolver knows them; an unknown name is left to the
// proxy.
func TestProxy(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		asked <- r.URL.String()
	}))
	t.Cleanup(proxy.Close)
	through, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	rules := Rules{Resolver: dns{"cdn.example.com": {"93.184.215.14"}, "inner.example.com": {"10.0.0.1"}, "kling.internal": {"10.0.0.1"}}}
	for name, tt := range map[string]struct {
		url  string
		want string // as the proxy is asked; empty: not at all
		kind mediagate.Kind
	}{
		"a public name":             {url: "http://cdn.example.com/a", want: "http://cdn.example.com/a"},
		"a name unknown here":       {url: "http://other.example.com/a", want: "http://other.example.com/a"},
		"a public address":          {url: "http://93.184.215.14:8080/a", want: "http://93.184.215.14:8080/a"},
		"a redirect":                {url: "http://cdn.example.com/?to=http://other.example.com/b", want: "http://other.example.com/b"},
		"a private name":            {url: "http://inner.example.com/a", kind: mediagate.KindInvalid},
		"a local name":              {url: "http://db.internal/a", kind: mediagate.KindInvalid},
		"a private address":         {url: "http://10.0.0.1/a", kind: mediagate.KindInvalid},
		"the proxy itself":          {url: proxy.URL + "/a", kind: mediagate.KindInvalid},
		"a redirect into our net":   {url: "http://cdn.example.com/?to=http://inner.example.com/b", kind: mediagate.KindInvalid},
		"the channel's own host":    {url: "http://kling.internal:9900/a", want: "http://kling.internal:9900/a"},
		"another port of it":        {url: "http://kling.internal:9901/a", kind: mediagate.KindInvalid},
		"a tunnel that is not made": {url: "https://cdn.example.com/a", kind: mediagate.KindUnreached},
	} {
		t.Run(name, func(t *testing.T) {
			client := rules.Client(Options{Redirects: MediaRedirects, IgnorePorts: true, Proxy: through, AllowHosts: []string{"kling.internal:9900"}})
			_, err := get(t, client, tt.url, nil)
			got := ""
			select {
			case got = <-asked:
			default:
			}
			if got != tt.want || tt.want == "" && !mediagate.Is(err, tt.kind) || tt.want != "" && err != nil {
				t.Errorf("the proxy was asked for %q, %v; want %q", got, err, tt.want)
			}
			if tt.kind == mediagate.KindUnreached && Describe(err) != "the proxy answered 403" {
				t.Errorf("described as %q", Describe(err))
			}
		})
	}
}

// TestClientConnectionsAndBytes checks that each request has its own connection, so that each is
// checked, and that bytes arrive as they were sent.
func TestClientConnectionsAndBytes(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(make([]byte, 1000))
	_ = z.Close()
	remotes := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remotes <- r.RemoteAddr
		if e := r.Header.Get("Accept-Encoding"); e != "" {
			t.Errorf("asked for %s", e)
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}))
	t.Cleanup(server.Close)
	client := devRules().MediaClient()
	for range 2 {
		resp, err := get(t, client, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || !bytes.Equal(body, packed.Bytes()) {
			t.Errorf("%d bytes, %v; want the %d that were sent", len(body), err, packed.Len())
		}
	}
	if a, b := <-remotes, <-remotes; a == b {
		t.Error("a connection was used twice")
	}
}

func TestClientBounds(t *testing.T) {
	t.Parallel()
	c := Rules{}.WebhookClient(0)
	if c.Timeout != webhookDeadline {
		t.Errorf("timeout %s", c.Timeout)
	}
	base := c.Transport.(*transport).base
	if base.Proxy != nil {
		t.Error("a proxy would connect where the rules do not look")
	}
	if base.TLSClientConfig.MinVersion < tls.VersionTLS12 || base.TLSClientConfig.InsecureSkipVerify {
		t.Error("TLS settings")
	}
	size := make(chan int, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("a", <-size))
	}))
	t.Cleanup(server.Close)
	for n, ok := range map[int]bool{maxHeaderBytes / 2: true, 2 * maxHeaderBytes: false} {
		size <- n
		_, err := get(t, devRules().WebhookClient(0), server.URL, nil)
		if (err == nil) != ok {
			t.Errorf("header of %d bytes: %v", n, err)
		}
		if mediagate.Is(err, mediagate.KindInvalid) {
			t.Error("a large header is no broken rule")
		}
	}
}
