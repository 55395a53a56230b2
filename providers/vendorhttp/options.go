package vendorhttp

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/url"
	"time"
)

// Options are the settings of the process, not of a channel, for calls to vendors. The zero value
// is usable.
type Options struct {
	Version string           // the gateway's, for User-Agent
	Now     func() time.Time // the clock of gates and tokens; nil: time.Now

	// Dial opens the connections. nil: the network.
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	RootCAs  *x509.CertPool // nil: the system's
	Proxy    *url.URL       // for all calls; nil: none, not even one from the environment
	Timeouts Timeouts
	MaxBody  int64 // bounds each answer in bytes, in addition to the call's limit; 0: no bound

	// Watch is called when a call begins. The function that it returns is called when the call has
	// ended, including its answer. status is 0 if no answer came; err is the call's error, if any.
	// nil: no calls are watched.
	Watch func(ctx context.Context, effect Effect) (ended func(status int, err error))

	// Follow opens a file to which a vendor's download was redirected. It uses the guarded client
	// and sends no credentials. redirects is the number of further redirects that it may follow.
	// Its errors are those of providers.Opener. nil: no redirect may leave the vendor's host.
	Follow func(ctx context.Context, link string, redirects int) (file io.ReadCloser, length int64, err error)

	// Observe is called once for each call, when the head of the answer has arrived or the call has
	// failed. A failed call has status 0. nil: calls are not observed.
	Observe func(effect string, status int, took time.Duration)
}

// Timeouts bound the phases of all calls. Dial and TLS have defaults. The other fields only shorten
// the limits of a call.
type Timeouts struct {
	Dial         time.Duration
	TLS          time.Duration
	SubmitHeader time.Duration
	Submit       time.Duration
	ReadHeader   time.Duration
	Read         time.Duration
}
