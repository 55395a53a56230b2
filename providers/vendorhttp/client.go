package vendorhttp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/mediagate/mediagate"
)

// Config is what an adapter decides about its calls.
type Config struct {
	BaseURL  string   // scheme, host and prefix, as ParseBaseURL returns it
	Secrets  []string // never to appear in any text
	Timeouts Timeouts
}

// Client makes the calls of one channel. It is safe for concurrent use.
type Client struct {
	base     string
	agent    string
	now      func() time.Time
	timeouts Timeouts
	maxBody  int64
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	tls      *tls.Config
	proxy    func(*http.Request) (*url.URL, error)
	reads    *http.Client
	cleaner  *cleaner
}

// New makes a client; it opens no connection.
func New(cfg Config, opt Options) *Client {
	c := &Client{
		base:     cfg.BaseURL,
		agent:    "mediagate/" + cmp.Or(opt.Version, "dev"),
		now:      opt.Now,
		timeouts: opt.Timeouts.over(cfg.Timeouts),
		maxBody:  cmp.Or(opt.MaxBody, defaultMaxBody),
		cleaner:  newCleaner(cfg.BaseURL, cfg.Secrets),
	}
	if c.now == nil {
		c.now = time.Now
	}
	c.dial = (&net.Dialer{Timeout: c.timeouts.Dial}).DialContext
	c.tls = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: opt.RootCAs, NextProtos: []string{"http/1.1"}}
	c.proxy = opt.Proxy
	reads := c.transport()
	reads.DialContext = c.dial
	reads.ResponseHeaderTimeout = c.timeouts.ReadHeader
	reads.MaxIdleConnsPerHost = 16
	reads.IdleConnTimeout = 30 * time.Second
	c.reads = &http.Client{Transport: unled{reads}, CheckRedirect: noRedirect}
	return c
}

// transport speaks HTTP/1.1 only: HTTP/2 replays requests that it believes
// unprocessed.
func (c *Client) transport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  c.proxy,
		TLSClientConfig:        c.tls,
		TLSHandshakeTimeout:    c.timeouts.TLS,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
		Protocols:              protocols,
	}
}

// through makes the client of one submission, whose one connection runs
// through the gate.
func (c *Client) through(g *gate) *http.Client {
	dialer := gatedDialer{gate: g, dial: c.dial, tls: c.tls, time: c.timeouts.TLS}
	t := c.transport()
	t.DialContext, t.DialTLSContext = dialer.Plain, dialer.TLS
	t.ResponseHeaderTimeout = c.timeouts.SubmitHeader
	t.DisableKeepAlives = true // see the package comment
	return &http.Client{Transport: unled{t}, CheckRedirect: noRedirect}
}

// unled drops where answers lead to. Nothing is followed, but http.Client would
// turn the host into ASCII first, which takes many seconds for the longest.
type unled struct{ *http.Transport }

func (u unled) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := u.Transport.RoundTrip(req)
	if err == nil {
		resp.Header.Del("Location")
	}
	return resp, err
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close drops idle connections.
func (c *Client) Close() { c.reads.CloseIdleConnections() }

// Now is the clock that the client was given.
func (c *Client) Now() time.Time { return c.now() }

// Call is one request. Path is appended to the base URL as it is.
type Call struct {
	Path       string
	Header     http.Header
	Body       []byte    // JSON, for submissions
	SendBefore time.Time // the first byte of a submission is written before this; zero: no bound
}

// Submit POSTs the call's body once and reads the answer, whatever its status.
// An error is a *mediagate.Error: KindUnreached when nothing was written,
// KindAmbiguous otherwise.
func (c *Client) Submit(ctx context.Context, call Call) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeouts.Submit)
	defer cancel()
	gate := &gate{before: call.SendBefore, now: c.now}
	if gate.late() {
		return Answer{}, failed(mediagate.KindUnreached, "the request was not sent in time", errLate)
	}
	req, err := c.request(ctx, http.MethodPost, call)
	if err != nil {
		return Answer{}, failed(mediagate.KindUnreached, "the request could not be made", c.cause(err))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(call.Body)), int64(len(call.Body))
	req.GetBody = nil // so that no transport can send it again
	answer, err := c.do(c.through(gate), req)
	opened, refused := gate.shut()
	switch {
	case err == nil:
		return answer, nil
	case opened:
		return Answer{}, failed(mediagate.KindAmbiguous, "the vendor's answer was lost", c.cause(err))
	case errors.Is(refused, errLate):
		return Answer{}, failed(mediagate.KindUnreached, "the request was not sent in time", errLate)
	default:
		return Answer{}, failed(mediagate.KindUnreached, "the vendor could not be reached", c.cause(err))
	}
}

// Get reads, whatever the status of the answer. An error is a
// *mediagate.Error of KindTransient.
func (c *Client) Get(ctx context.Context, call Call) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeouts.Read)
	defer cancel()
	req, err := c.request(ctx, http.MethodGet, call)
	var answer Answer
	if err == nil {
		answer, err = c.do(c.reads, req)
	}
	if err != nil {
		return Answer{}, failed(mediagate.KindTransient, "the vendor could not be asked", c.cause(err))
	}
	return answer, nil
}

func (c *Client) request(ctx context.Context, method string, call Call) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+call.Path, nil)
	if err != nil {
		return nil, err
	}
	if call.Header != nil {
		req.Header = call.Header.Clone()
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.agent)
	return req, nil
}

// do runs the exchange and reads the answer whole, within its bound.
func (c *Client) do(client *http.Client, req *http.Request) (_ Answer, err error) {
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	var body bytes.Buffer
	n, err := io.Copy(&body, io.LimitReader(resp.Body, c.maxBody+1))
	switch {
	case err != nil:
		return Answer{}, fmt.Errorf("reading the answer: %w", err)
	case n > c.maxBody:
		return Answer{}, fmt.Errorf("the answer is longer than %d bytes", c.maxBody)
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: body.Bytes(), at: c.now()}, nil
}

func failed(kind mediagate.Kind, message string, cause error) error {
	return &mediagate.Error{Kind: kind, Code: string(failureCodes[kind]), Message: message, Err: cause}
}

// cause keeps of a transport error what may be logged: its cleaned text, and
// whether the caller's own context ended it.
func (c *Client) cause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // its text repeats the address
	}
	text := c.Clean(err.Error())
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return fmt.Errorf("%s: %w", text, known)
		}
	}
	return errors.New(text)
}
