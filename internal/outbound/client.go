package outbound

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Bounds of every exchange, whatever the client is for.
const (
	tlsTimeout      = 10 * time.Second
	dialTimeout     = 15 * time.Second
	headerTimeout   = 60 * time.Second
	maxHeaderBytes  = 64 << 10
	webhookDeadline = 10 * time.Second
	lookupTimeout   = 2 * time.Second // of a name that a proxy resolves as well
)

// MediaRedirects is how many redirects of a download are followed.
const MediaRedirects = 5

// Options shapes a client.
type Options struct {
	// Timeout bounds a whole exchange, the body included; 0 leaves that to
	// the request's context.
	Timeout time.Duration
	// Redirects is how many are followed, each judged like the first URL and
	// sent without credentials, and none from https to http. With 0 the redirect itself is the answer.
	Redirects int
	// IgnorePorts allows ports other than 80 and 443.
	IgnorePorts bool
	// AllowHosts are hosts with their ports (see Host) whose addresses are not
	// judged, on that port: a vendor account's own base URL may be private.
	AllowHosts []string
	// Proxy makes all connections of the client; nil: none. Variables of the environment
	// are never looked at. It is an operator's setting, so its own address may be private.
	Proxy *url.URL
	// KeepIdle is how many connections wait for the next request. Of a host that
	// is judged there must be none: its name may lead elsewhere by then.
	KeepIdle int
}

// idleTimeout is how long a connection waits. Servers that close theirs after a
// minute are many.
const idleTimeout = 50 * time.Second

// Client returns an HTTP client that keeps the rules. It shares no connection between requests unless it may keep idle ones, so that
// each is resolved and judged anew, and asks for no compression, so that what it
// reads is what was sent.
func (r Rules) Client(o Options) *http.Client {
	g := &guard{rules: r, anyPort: o.IgnorePorts, trusted: slices.Clone(o.AllowHosts)}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dial, proxy := g.dialWithin, (func(*http.Request) (*url.URL, error))(nil)
	if o.Proxy != nil {
		dial, proxy = (&net.Dialer{Timeout: dialTimeout}).DialContext, http.ProxyURL(o.Proxy)
	}
	base := &http.Transport{
		Proxy:                  proxy,
		OnProxyConnectResponse: tunnelled,
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    tlsTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableKeepAlives:      o.KeepIdle == 0,
		MaxIdleConns:           o.KeepIdle,
		MaxIdleConnsPerHost:    o.KeepIdle,
		IdleConnTimeout:        idleTimeout,
		DisableCompression:     true,
		Protocols:              protocols,
	}
	return &http.Client{
		Transport:     &transport{guard: g, base: base, follow: o.Redirects > 0, proxied: o.Proxy != nil},
		Timeout:       o.Timeout,
		CheckRedirect: redirects(o.Redirects),
	}
}

// WebhookClient is for callbacks: no redirects, ports 80 and 443, a short
// bound on the whole exchange (0: ten seconds).
func (r Rules) WebhookClient(timeout time.Duration) *http.Client {
	if timeout <= 0 {
		timeout = webhookDeadline
	}
	return r.Client(Options{Timeout: timeout})
}

// MediaClient is for files that a vendor or a client points to: a few
// redirects and any port, since vendors serve results from ports of their
// choice; what protects our network is the rule on addresses. The context
// bounds the transfer, which may rightly take long.
func (r Rules) MediaClient(allowHosts ...string) *http.Client {
	return r.Client(Options{Redirects: MediaRedirects, IgnorePorts: true, AllowHosts: allowHosts})
}

// transport judges the URL of each request, the first and every redirect,
// before a connection is made for it.
type transport struct {
	guard   *guard
	base    *http.Transport
	follow  bool // redirects
	proxied bool
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	err := t.guard.admit(req)
	if err == nil && t.proxied {
		err = t.guard.admitByName(req)
	}
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper closes the body, also on errors
		}
		return nil, err
	}
	if query := escapeQuery(req.URL.RawQuery); query != req.URL.RawQuery {
		to := *req.URL
		to.RawQuery = query
		req = req.WithContext(req.Context()) // a RoundTripper leaves the request as it is
		req.URL = &to
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := t.leads(resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// leads judges where an answer leads to before http.Client looks at it: that
// turns the host into ASCII, which takes many seconds for the longest that fits
// into a header, whatever the deadline, and also where nothing is followed.
func (t *transport) leads(resp *http.Response) error {
	if !t.follow {
		resp.Header.Del("Location")
		return nil
	}
	if to, err := resp.Location(); err == nil && len(to.Host) > maxHost {
		return violation(reasonName)
	}
	return nil
}

// CloseIdleConnections is what http.Client calls by the same name.
func (t *transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

func (g *guard) admit(req *http.Request) error {
	to, err := inspect(req.URL)
	if err != nil {
		return err
	}
	if slices.Contains(g.trusted, to.hostPort()) {
		return nil
	}
	return g.rules.screen(to, g.anyPort)
}

// tunnelled refuses an answer of a proxy to CONNECT that is no tunnel.
func tunnelled(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return unreached(fmt.Sprintf("the proxy answered %d", resp.StatusCode), nil)
	}
	return nil
}

// admitByName checks the addresses of a host that a proxy connects to, as dial does. A name
// that cannot be resolved here is left to the proxy: behind one, names of the public DNS often
// cannot be. The proxy resolves the name again, so it has to refuse private addresses itself.
func (g *guard) admitByName(req *http.Request) error {
	to, err := inspect(req.URL)
	if err != nil || to.addr.IsValid() { // admit has checked the address
		return err
	}
	ctx, cancel := context.WithTimeout(req.Context(), lookupTimeout)
	defer cancel()
	addrs, err := g.resolve(ctx, to.host)
	if err != nil {
		if localName(to.host) && !slices.Contains(g.trusted, to.hostPort()) {
			return violation(reasonLocal)
		}
		return nil
	}
	check := g.checkOf(to.host, netip.Addr{}, strconv.FormatUint(uint64(to.port), 10))
	for _, addr := range addrs {
		if err := check(addr); err != nil {
			return err
		}
	}
	return nil
}

// carried are the request headers that go along with a redirect. Everything
// else stays behind: credentials of any name, and the Referer, which would
// show a signed link to the next host.
var carried = []string{"Accept", "Accept-Encoding", "Range", "User-Agent"}

func redirects(limit int) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if limit == 0 {
			return http.ErrUseLastResponse
		}
		if len(via) > limit {
			return violation("too many redirects")
		}
		if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
			return violation("a redirect leads from https to http")
		}
		for name := range req.Header {
			if !slices.Contains(carried, name) {
				delete(req.Header, name)
			}
		}
		return nil
	}
}
