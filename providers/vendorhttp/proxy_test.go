package vendorhttp

import (
	"crypto/x509"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
)

// proxy forwards requests and records each method and its authorization.
type proxy struct {
	answer int // the status of all answers; 0: forward

	mu    sync.Mutex
	asked []string
}

// ServeHTTP answers, opens a tunnel or forwards the request.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	switch {
	case p.answer != 0:
		w.WriteHeader(p.answer)
	case r.Method == http.MethodConnect:
		var dialer net.Dialer
		vendor, err := dialer.DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer vendor.Close()
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() {
			_, _ = io.Copy(vendor, client)
			_ = vendor.Close()
		}()
		_, _ = io.Copy(client, vendor)
	default:
		r.RequestURI = ""
		r.Header.Del("Proxy-Authorization")
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}
}

func (p *proxy) calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// trusting returns options that trust the test servers and use a proxy with a password.
func trusting(t *testing.T, through *httptest.Server, servers ...*httptest.Server) Options {
	t.Helper()
	u, err := url.Parse(through.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("gate", "way-in")
	opt := Options{Proxy: u, RootCAs: x509.NewCertPool()}
	for _, s := range append(servers, through) {
		if s.Certificate() != nil {
			opt.RootCAs.AddCert(s.Certificate())
		}
	}
	return opt
}

var servers = map[string]func(http.Handler) *httptest.Server{"http": httptest.NewServer, "https": httptest.NewTLSServer}

// All calls go through the proxy, with its user. The proxy forwards http calls, and opens a tunnel
// for https.
func TestProxy(t *testing.T) {
	t.Parallel()
	login := "Basic " + base64.StdEncoding.EncodeToString([]byte("gate:way-in"))
	for proxyScheme, newProxy := range servers {
		for scheme, newVendor := range servers {
			t.Run(scheme+" through "+proxyScheme, func(t *testing.T) {
				t.Parallel()
				vendor := newVendor(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Proxy-Authorization") != "" {
						t.Error("the vendor sees the proxy's user")
					}
					_, _ = io.Copy(w, r.Body)
				}))
				t.Cleanup(vendor.Close)
				p := &proxy{}
				through := newProxy(p)
				t.Cleanup(through.Close)
				c := open(t, vendor.URL, trusting(t, through, vendor))
				var want []string
				for _, effect := range []Effect{Submits, Reads, Stops} {
					answer, err := c.Do(t.Context(), Call{
						Effect: effect, Path: "/jobs", SendBefore: time.Now().Add(time.Minute), Body: JSON("hello"),
					})
					if err != nil || strings.TrimSpace(string(answer.Body)) != `"hello"` {
						t.Errorf("%s: %q, %v", effect, answer.Body, err)
					}
					method := map[string]string{"http": http.MethodPost, "https": http.MethodConnect}[scheme]
					want = append(want, method+" "+login)
				}
				if diff := cmp.Diff(want, p.calls()); diff != "" {
					t.Errorf("asked the proxy (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// D4: a failed tunnel proves that nothing was sent, and a tunnel that took too long is not used.
func TestProxyBeforeTheGate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer int
		late   bool
		away   bool
	}{
		"it refuses":       {answer: http.StatusProxyAuthRequired},
		"it fails":         {answer: http.StatusBadGateway},
		"it is away":       {away: true},
		"the tunnel is up": {late: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				t.Error("the vendor got the call")
			}))
			t.Cleanup(vendor.Close)
			p := &proxy{answer: c.answer}
			through := httptest.NewServer(p)
			t.Cleanup(through.Close)
			opt := trusting(t, through, vendor)
			before := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			opt.Now = func() time.Time {
				if c.late && len(p.calls()) > 0 {
					return before
				}
				return before.Add(-time.Second)
			}
			if c.away {
				through.Close()
			}
			call := Call{Effect: Submits, Path: "/jobs", SendBefore: before, Body: JSON("hello")}
			_, err := open(t, vendor.URL, opt).Do(t.Context(), call)
			if !mediagate.Is(err, mediagate.KindUnreached) {
				t.Errorf("%v, want unreached", err)
			}
			if err != nil && strings.Contains(err.Error(), "way-in") {
				t.Errorf("the error shows the proxy's password: %v", err)
			}
		})
	}
}

// A proxy that never answers costs no more than its time limit, and its connection is closed.
func TestProxyThatHangs(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	hungUp := make(chan struct{})
	go func() {
		defer close(hungUp)
		if conn, err := l.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	through := &url.URL{Scheme: "http", Host: l.Addr().String()}
	timeouts := Timeouts{TLS: 10 * time.Millisecond, Dial: time.Second}
	c := open(t, "https://vendor.example.com", Options{Proxy: through, Timeouts: timeouts})
	call := Call{Effect: Submits, Path: "/jobs", SendBefore: time.Now().Add(time.Hour), Body: JSON("hello")}
	_, err = c.Do(t.Context(), call)
	if !mediagate.Is(err, mediagate.KindUnreached) {
		t.Errorf("%v, want unreached", err)
	}
	<-hungUp
}
