package webhook_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/internal/webhook"
)

var sentAt = time.Unix(1_800_000_000, 0)

func loopback() outbound.Rules {
	return outbound.Rules{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

// setup starts a receiver and returns a sender that may reach it.
func setup(t *testing.T, handler http.HandlerFunc, change func(*webhook.Config)) (*webhook.Sender, *httptest.Server) {
	t.Helper()
	receiver := httptest.NewServer(handler)
	t.Cleanup(receiver.Close)
	config := webhook.Config{Rules: loopback(), Version: "1.2.3", Now: func() time.Time { return sentAt }}
	if change != nil {
		change(&config)
	}
	return webhook.New(config), receiver
}

func attempt(url string) webhook.Attempt {
	return webhook.Attempt{URL: url, ID: "task_01", Body: []byte(`{"id":"task_01"}`), Secrets: []string{testSecret}}
}

func deliver(t *testing.T, s *webhook.Sender, a webhook.Attempt) mediagate.DeliveryResult {
	t.Helper()
	r, err := s.Deliver(t.Context(), a)
	if err != nil {
		t.Fatalf("Deliver: %v", err)
	}
	return r
}

func TestDeliverRequest(t *testing.T) {
	t.Parallel()
	type seen struct {
		method, uri string
		header      http.Header
		body        string
	}
	got := make(chan seen, 1)
	sender, receiver := setup(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.RequestURI, r.Header, string(body)}
		w.WriteHeader(http.StatusNoContent)
	}, nil)

	a := attempt(receiver.URL + "/hook/?a=1&b=%2F#part")
	a.Secrets = []string{testSecret, vectorSecret}
	r := deliver(t, sender, a)
	if r.Outcome != mediagate.DeliveryDone || r.Status != http.StatusNoContent || r.Error != "" || r.Reason != "" {
		t.Errorf("result %+v", r)
	}

	req := <-got
	if req.method != http.MethodPost || req.uri != "/hook/callback?a=1&b=%2F" || req.body != string(a.Body) {
		t.Errorf("%s %s %q", req.method, req.uri, req.body)
	}
	first, _ := webhook.Sign(testSecret, a.ID, sentAt, a.Body)
	second, _ := webhook.Sign(vectorSecret, a.ID, sentAt, a.Body)
	want := map[string]string{
		"Content-Type":      "application/json",
		"User-Agent":        "mediagate-webhook/1.2.3",
		"Webhook-Id":        "task_01",
		"Webhook-Timestamp": "1800000000",
		"Webhook-Signature": first + " " + second,
	}
	have := map[string]string{}
	for name := range want {
		have[name] = req.header.Get(name)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, r.Headers); diff != "" {
		t.Errorf("headers as told (-want +got):\n%s", diff)
	}
	for _, secret := range a.Secrets {
		receiver, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := receiver.VerifyIgnoringTimestamp([]byte(req.body), req.header); err != nil {
			t.Errorf("a receiver does not take the signature: %v", err)
		}
	}
}

// An exact URL is called as it stands. The first kilobyte of the answer is kept, as a text.
func TestDeliverExactly(t *testing.T) {
	t.Parallel()
	calls := make(chan string, 1)
	sender, receiver := setup(t, func(w http.ResponseWriter, r *http.Request) {
		calls <- r.RequestURI
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "\x00\xff"+strings.Repeat("a", 2000))
	}, nil)
	a := attempt(receiver.URL + "/hook/?a=1#part")
	a.Exact = true
	r := deliver(t, sender, a)
	if to := <-calls; to != "/hook/?a=1" {
		t.Errorf("called %s", to)
	}
	if want := "\uFFFD\uFFFD" + strings.Repeat("a", 1022); r.Answer != want || r.Status != http.StatusTeapot {
		t.Errorf("%d, and the answer is %q", r.Status, r.Answer)
	}
}

func TestDeliverStatus(t *testing.T) {
	t.Parallel()
	tests := map[int]mediagate.DeliveryOutcome{
		200: mediagate.DeliveryDone, 201: mediagate.DeliveryDone, 299: mediagate.DeliveryDone,
		300: mediagate.DeliveryRetry, 301: mediagate.DeliveryRetry, 302: mediagate.DeliveryRetry, 307: mediagate.DeliveryRetry, 308: mediagate.DeliveryRetry, 399: mediagate.DeliveryRetry,
		400: mediagate.DeliveryAbandon, 401: mediagate.DeliveryAbandon, 404: mediagate.DeliveryAbandon, 408: mediagate.DeliveryAbandon, 410: mediagate.DeliveryAbandon,
		429: mediagate.DeliveryAbandon, 499: mediagate.DeliveryAbandon,
		500: mediagate.DeliveryRetry, 502: mediagate.DeliveryRetry, 503: mediagate.DeliveryRetry, 599: mediagate.DeliveryRetry, 600: mediagate.DeliveryRetry, 999: mediagate.DeliveryRetry,
	}
	for status, want := range tests {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			calls := make(chan string, 10)
			sender, receiver := setup(t, func(w http.ResponseWriter, r *http.Request) {
				calls <- r.URL.Path
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
			}, nil)
			r := deliver(t, sender, attempt(receiver.URL))
			if r.Outcome != want || r.Status != status || r.Error != "" {
				t.Errorf("result %+v, want %s", r, want)
			}
			if (r.Reason != "") != (want == mediagate.DeliveryAbandon) {
				t.Errorf("reason %q with %s", r.Reason, r.Outcome)
			}
			if len(calls) != 1 || <-calls != "/callback" {
				t.Error("want one call, of /callback")
			}
		})
	}
}

func TestDeliverFailure(t *testing.T) {
	t.Parallel()
	refused := func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("dial tcp 10.1.2.3:443: secret")
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	quiet := log.New(io.Discard, "", 0)
	strange := httptest.NewUnstartedServer(http.NotFoundHandler())
	strange.Config.ErrorLog = quiet
	strange.StartTLS()
	t.Cleanup(strange.Close)
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11}
	old.Config.ErrorLog = quiet
	old.StartTLS()
	t.Cleanup(old.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	rude := listen(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, "220 mail.example.com\r\n\r\n")
	})
	silent := listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })

	tests := map[string]struct {
		url     string
		rules   outbound.Rules
		timeout time.Duration
		want    string
	}{
		"refused":          {url: closed.URL, rules: loopback(), want: "connection refused"},
		"no such host":     {url: "http://nx.example.com", rules: outbound.Rules{Resolver: &fixtureDNS{asked: map[string]int{}}}, want: "host not found"},
		"lookup fails":     {url: "http://nx.example.com", rules: outbound.Rules{Resolver: brokenDNS{}}, want: "host lookup failed"},
		"other dial error": {url: "https://8.8.8.8", rules: outbound.Rules{Dial: refused}, want: "connection failed"},
		"silent":           {url: silent, rules: loopback(), timeout: 50 * time.Millisecond, want: "timeout"},
		"not HTTP":         {url: rude, rules: loopback(), want: "the answer is not HTTP"},
		"not TLS":          {url: strings.Replace(plain.URL, "http:", "https:", 1), rules: loopback(), want: "TLS handshake failed"},
		"old TLS":          {url: old.URL, rules: loopback(), want: "TLS handshake failed"},
		"bad certificate":  {url: strange.URL, rules: loopback(), want: "the certificate is not valid"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sender := webhook.New(webhook.Config{Rules: tt.rules, Timeout: tt.timeout})
			r := deliver(t, sender, attempt(tt.url))
			want := mediagate.DeliveryResult{Outcome: mediagate.DeliveryRetry, Error: tt.want, Headers: r.Headers}
			if diff := cmp.Diff(want, r); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

type brokenDNS struct{}

func (brokenDNS) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "server misbehaving", Server: "10.0.0.2:53", Name: "nx.example.com"}
}

// listen serves every connection with handle until the test ends.
func listen(t *testing.T, handle func(net.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-stopped })
	go func() {
		defer close(stopped)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			handle(c)
			_ = c.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

func TestDeliverEndlessAnswer(t *testing.T) {
	t.Parallel()
	written := make(chan int, 1)
	sender, receiver := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		n := 0
		defer func() { written <- n }()
		w.WriteHeader(http.StatusOK)
		for {
			m, err := w.Write(make([]byte, 64<<10))
			n += m
			if err != nil {
				return
			}
		}
	}, nil)
	if r := deliver(t, sender, attempt(receiver.URL)); r.Outcome != mediagate.DeliveryDone {
		t.Errorf("result %+v", r)
	}
	if n := <-written; n > 64<<20 {
		t.Errorf("the receiver could write %d bytes", n)
	}
}

// A body that never ends after a good status does not undo the status.
func TestDeliverStalledBody(t *testing.T) {
	t.Parallel()
	sender, receiver := setup(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server watch for the client's leaving
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, func(c *webhook.Config) { c.Timeout = 200 * time.Millisecond })
	if r := deliver(t, sender, attempt(receiver.URL)); r.Outcome != mediagate.DeliveryDone || r.Status != http.StatusOK {
		t.Errorf("result %+v", r)
	}
}

func TestDeliverInterrupted(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	sender, receiver := setup(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server watch for the client's leaving
		<-r.Context().Done()
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	r, err := sender.Deliver(ctx, attempt(receiver.URL))
	if !mediagate.Is(err, mediagate.KindUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("result %+v, error %v", r, err)
	}
}

func TestDeliverUnsigned(t *testing.T) {
	t.Parallel()
	for name, secrets := range map[string][]string{
		"none":           nil,
		"malformed":      {"whsec_x"},
		"second is none": {testSecret, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := make(chan struct{}, 1)
			sender, receiver := setup(t, func(http.ResponseWriter, *http.Request) { calls <- struct{}{} }, nil)
			a := attempt(receiver.URL)
			a.Secrets = secrets
			if _, err := sender.Deliver(t.Context(), a); !mediagate.Is(err, mediagate.KindInternal) {
				t.Errorf("error %v", err)
			}
			if len(calls) != 0 {
				t.Error("sent without a signature")
			}
		})
	}
}

func TestDeliverDropped(t *testing.T) {
	t.Parallel()
	calls := make(chan struct{}, 10)
	_, receiver := setup(t, func(http.ResponseWriter, *http.Request) { calls <- struct{}{} }, nil)
	tests := map[string]struct {
		url, reason string
		rules       outbound.Rules
	}{
		"loopback without exception": {url: receiver.URL, reason: "the address is not publicly reachable"},
		"other exception": {
			url: receiver.URL, reason: "the address is not publicly reachable",
			rules: outbound.Rules{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		},
		"no URL": {url: "", reason: "the URL has no scheme"},
		"private by name": {
			url: "http://lo.example.com/", reason: "the host resolves to an address that is not allowed",
			rules: outbound.Rules{Resolver: &fixtureDNS{
				sets: map[string][][]string{"lo.example.com": {{"127.0.0.1"}}}, asked: map[string]int{},
			}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := deliver(t, webhook.New(webhook.Config{Rules: tt.rules}), attempt(tt.url))
			if r.Outcome != mediagate.DeliveryDrop || r.Reason != tt.reason || r.Status != 0 || r.Error != "" {
				t.Errorf("result %+v, want %q", r, tt.reason)
			}
		})
	}
	t.Cleanup(func() {
		if len(calls) != 0 {
			t.Error("the receiver was called")
		}
	})
}
