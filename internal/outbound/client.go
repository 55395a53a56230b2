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

// Limits of every exchange, of all clients.
const (
	tlsTimeout      = 10 * time.Second
	dialTimeout     = 15 * time.Second
	headerTimeout   = 60 * time.Second
	maxHeaderBytes  = 64 << 10
	webhookDeadline = 10 * time.Second
	lookupTimeout   = 2 * time.Second // of a name that a proxy resolves again
)

// MediaRedirects is the number of redirects that a download follows.
const MediaRedirects = 5

// Options shapes a client.
type Options struct {
	// Timeout limits a whole exchange, the body included. 0 leaves that to the request's context.
	Timeout time.Duration
	// Redirects is the number of redirects to follow. Each is checked like the first URL and sent
	// without credentials. A redirect from https to http is refused. With 0 the redirect itself is
	// the answer.
	Redirects int
	// IgnorePorts allows ports other than 80 and 443.
	IgnorePorts bool
	// AllowHosts lists hosts with ports (see Host) whose addresses are not checked: the base URL of
	// a vendor account may be private.
	AllowHosts []string
	// Proxy makes all connections of the client; nil: no proxy. Environment variables are ignored.
	// The proxy is an operator's setting, so its address may be private.
	Proxy *url.URL
	// KeepIdle is the number of idle connections that wait for the next request. It must be 0 for
	// hosts whose addresses are checked: the name may have another address by then.
	KeepIdle int
}

// idleTimeout is how long an idle connection is kept. Many servers close theirs after a minute.
const idleTimeout = 50 * time.Second

// Client returns an HTTP client that enforces the rules. Without KeepIdle each request has its own
// connection, so that its host is resolved and checked again. The client asks for no compression,
// so that it reads the bytes that the server sent.
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
		OnProxyConnectResponse: checkTunnel,
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

// WebhookClient returns a client for callbacks: it follows no redirects, allows ports 80 and 443,
// and has a short timeout for the whole exchange (0: ten seconds).
func (r Rules) WebhookClient(timeout time.Duration) *http.Client {
	if timeout <= 0 {
		timeout = webhookDeadline
	}
	return r.Client(Options{Timeout: timeout})
}

// MediaClient returns a client for files at URLs of vendors and clients. It follows a few redirects
// and allows any port, since vendors serve results from ports of their choice: the rule on addresses
// protects our network. A transfer may take long, so only the context limits it.
func (r Rules) MediaClient(allowHosts ...string) *http.Client {
	return r.Client(Options{Redirects: MediaRedirects, IgnorePorts: true, AllowHosts: allowHosts})
}

// transport checks the URL of each request, the first and every redirect, before it connects.
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
	if err := t.checkLocation(resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// checkLocation refuses a Location with an overlong host before http.Client sees it. http.Client
// converts the host into ASCII, even if it follows no redirect. For the longest host that fits into
// a header, that takes many seconds and ignores the deadline.
func (t *transport) checkLocation(resp *http.Response) error {
	if !t.follow {
		resp.Header.Del("Location")
		return nil
	}
	if to, err := resp.Location(); err == nil && len(to.Host) > maxHost {
		return violation(reasonName)
	}
	return nil
}

// CloseIdleConnections closes the idle connections of the base. http.Client calls it.
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

// checkTunnel refuses a proxy's answer to CONNECT unless its status is 200.
func checkTunnel(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return unreached(fmt.Sprintf("the proxy answered %d", resp.StatusCode), nil)
	}
	return nil
}

// admitByName checks the addresses of a host that a proxy connects to, as dial does. It admits a
// name that cannot be resolved here: machines behind a proxy often cannot resolve public names. The
// proxy resolves the name again, so it has to refuse private addresses itself.
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

// redirectHeaders are the request headers that a redirect keeps. All others are removed:
// credentials under any name, and the Referer, which would show a signed link to the next host.
var redirectHeaders = []string{"Accept", "Accept-Encoding", "Range", "User-Agent"}

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
			if !slices.Contains(redirectHeaders, name) {
				delete(req.Header, name)
			}
		}
		return nil
	}
}
