package vendorhttp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
)

// Config is what an adapter decides about its calls.
type Config struct {
	BaseURL string             // scheme, host and prefix, as Settings.BaseURL returns them
	Header  http.Header        // of each call to BaseURL, such as the header with the key
	Secrets []mediagate.Secret // hidden in all texts
}

// Client makes the calls of one channel. It is safe for concurrent use.
type Client struct {
	base    string
	header  http.Header
	agent   string
	now     func() time.Time
	opt     Options
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config
	reads   *http.Client
	secrets []mediagate.Secret

	hiding  sync.Mutex
	fetched []mediagate.Secret // secrets given to Hide, oldest first
	cleaner atomic.Pointer[cleaner]
}

// New returns a client for one channel. It opens no connection.
func New(cfg Config, opt Options) *Client {
	c := &Client{
		base:    cfg.BaseURL,
		header:  cfg.Header,
		agent:   "mediagate/" + cmp.Or(opt.Version, "dev"),
		now:     opt.Now,
		opt:     opt,
		secrets: cfg.Secrets,
	}
	if opt.Proxy != nil {
		if password, _ := opt.Proxy.User.Password(); password != "" {
			c.secrets = append(slices.Clone(c.secrets), mediagate.NewSecret(password))
		}
	}
	c.cleaner.Store(newCleaner(c.base, c.secrets))
	if c.now == nil {
		c.now = time.Now
	}
	c.opt.Timeouts.Dial = cmp.Or(opt.Timeouts.Dial, 5*time.Second)
	c.opt.Timeouts.TLS = cmp.Or(opt.Timeouts.TLS, 5*time.Second)
	if c.dial = opt.Dial; c.dial == nil {
		c.dial = (&net.Dialer{Timeout: c.opt.Timeouts.Dial}).DialContext
	}
	c.tls = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: opt.RootCAs, NextProtos: []string{"http/1.1"}}
	reads := c.transport()
	reads.DialContext = c.dial
	if opt.Proxy != nil {
		reads.Proxy = http.ProxyURL(opt.Proxy)
	}
	reads.MaxIdleConnsPerHost = 16
	reads.IdleConnTimeout = 30 * time.Second
	c.reads = &http.Client{Transport: locationHider{reads}, CheckRedirect: noRedirect}
	return c
}

// transport returns a transport for HTTP/1.1 only. With HTTP/2, Go resends a request if it believes
// that the server has not processed it.
func (c *Client) transport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		TLSClientConfig:        c.tls,
		TLSHandshakeTimeout:    c.opt.Timeouts.TLS,
		MaxResponseHeaderBytes: maxHead,
		DisableCompression:     true,
		Protocols:              protocols,
	}
}

// onceClient returns the HTTP client for one call that must be sent once. The client has one
// connection, whose writes pass the gate. The bytes that set up a proxy's tunnel do not pass it,
// because they are not part of the request.
func (c *Client) onceClient(g *gate, secure bool) *http.Client {
	dialer := gatedDialer{gate: g, dial: c.dial, tls: c.tls, time: c.opt.Timeouts.TLS}
	t := c.transport()
	switch {
	case c.opt.Proxy == nil:
	case secure:
		dialer.dial = c.tunnel
	default: // for http, the proxy gets the request itself
		t.Proxy = http.ProxyURL(c.opt.Proxy)
	}
	t.DialContext, t.DialTLSContext = dialer.Plain, dialer.TLS
	t.DisableKeepAlives = true // the package comment says why
	return &http.Client{Transport: locationHider{t}, CheckRedirect: noRedirect}
}

// locationHider moves the Location header to locationHeader, to hide it from http.Client. Although
// the client follows no redirect, it would convert the host to ASCII, which takes many seconds for
// a very long host.
type locationHider struct{ *http.Transport }

// locationHeader is the header in which locationHider passes the Location on.
const locationHeader = "X-Mediagate-Location"

func (h locationHider) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := h.Transport.RoundTrip(req)
	if err == nil {
		resp.Header.Set(locationHeader, resp.Header.Get("Location"))
		resp.Header.Del("Location")
	}
	return resp, err
}

// maxHead bounds the head of an answer, in bytes.
const maxHead = 64 << 10

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close closes idle connections.
func (c *Client) Close() { c.reads.CloseIdleConnections() }

// Hide adds a secret that Clean hides from now on. It is for secrets that the adapter fetches with
// the channel's credentials, such as tokens. Clean hides the latest maxFetched of them.
func (c *Client) Hide(secret mediagate.Secret) {
	c.hiding.Lock()
	defer c.hiding.Unlock()
	if slices.ContainsFunc(c.fetched, secret.Equal) {
		return
	}
	c.fetched = append(c.fetched, secret)
	c.fetched = c.fetched[max(0, len(c.fetched)-maxFetched):]
	c.cleaner.Store(newCleaner(c.base, slices.Concat(c.secrets, c.fetched)))
}

// maxFetched is greater than the number of fetched secrets that running calls use at one time.
const maxFetched = 64

// Now returns the time of the client's clock.
func (c *Client) Now() time.Time { return c.now() }

// Do makes a call and reads the whole answer, whatever its status. An error is a *mediagate.Error;
// Effect documents the kinds.
func (c *Client) Do(ctx context.Context, call Call) (Answer, error) {
	s, err := c.Stream(ctx, call)
	if err != nil {
		return Answer{}, err
	}
	return s.Whole(c.limits(call).Bytes)
}

// Stream makes a call and returns when the head of the answer has arrived, whatever the status. Its
// errors, and those of the stream's reader, are like Do's.
func (c *Client) Stream(ctx context.Context, call Call) (*Stream, error) {
	if call.Body.err != nil {
		kind := mediagate.KindInternal
		if call.Effect == Submits {
			kind = mediagate.KindInvalid
		}
		return nil, mediagate.Errorf(kind, "the request cannot be written: %w", call.Body.err)
	}
	x, ctx := c.exchange(ctx, call)
	began := time.Now()
	resp, err := x.do(ctx) //nolint:bodyclose // the stream closes it
	if c.opt.Observe != nil {
		status := 0
		if err == nil {
			status = resp.StatusCode
		}
		c.opt.Observe(call.Effect.String(), status, time.Since(began))
	}
	if err != nil {
		err = x.failure(err)
		x.end()
		return nil, err
	}
	x.answered, x.status = true, resp.StatusCode
	location := resp.Header.Get(locationHeader)
	resp.Header.Del(locationHeader)
	return &Stream{
		Status: resp.StatusCode, Header: resp.Header, Location: location,
		Body: &streamBody{x: x, body: resp.Body, left: x.limits.Bytes, length: resp.ContentLength}, at: c.now(),
	}, nil
}

// Stream is an answer that is read while it arrives. The caller must close Body.
type Stream struct {
	Status   int
	Header   http.Header
	Location string        // the answer's redirect, which is not followed
	Body     io.ReadCloser // its errors are those of the call
	at       time.Time
}

// Whole reads the rest of the stream and closes it. It returns an error if the rest is longer than
// limit bytes. The call itself may permit a much longer stream, because of the files in it. limit
// keeps an error answer to such a call from taking that much memory.
func (s *Stream) Whole(limit int64) (Answer, error) {
	if b, ok := s.Body.(*streamBody); ok {
		b.left = min(b.left, limit)
	}
	body, err := io.ReadAll(s.Body)
	if closed := s.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return Answer{}, err
	}
	return Answer{Status: s.Status, Header: s.Header, Body: body, at: s.at}, nil
}

// Length returns the length of the body as the answer's head states it, or -1 if unknown.
func (s *Stream) Length() int64 {
	if b, ok := s.Body.(*streamBody); ok {
		return b.length
	}
	return -1
}

func (c *Client) request(ctx context.Context, call Call) (*http.Request, *outgoing, error) {
	req, err := http.NewRequestWithContext(ctx, call.method(), cmp.Or(call.Base, c.base)+call.Path, nil)
	if err != nil {
		return nil, nil, err
	}
	if call.Base == "" { // no other host gets the key
		maps.Copy(req.Header, c.header)
	}
	maps.Copy(req.Header, call.Header)
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	req.Header.Set("User-Agent", c.agent)
	return req, call.Body.attach(req, call.once()), nil
}

func failed(kind mediagate.Kind, message string, cause error) error {
	return &mediagate.Error{Kind: kind, Code: string(failureCodes[kind]), Message: message, Err: cause}
}

// cause returns the loggable part of a transport error: its cleaned text, and whether the caller's
// context ended the call.
func (x *exchange) cause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the text of a url.Error repeats the address
	}
	text := x.cleaner.clean(err.Error())
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return fmt.Errorf("%s: %w", text, known)
		}
	}
	return errors.New(text)
}

// BeforeSubmission turns KindTransient into KindUnreached. It is for the error of a read that
// precedes a submission, such as the request for a token or an upload: nothing was submitted then.
func BeforeSubmission(err error) error {
	e, ok := errors.AsType[*mediagate.Error](err)
	if !ok || e.Kind != mediagate.KindTransient {
		return err
	}
	before := *e
	before.Kind = mediagate.KindUnreached
	return &before
}
