package vendorhttp

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/url"
	"time"
)

// Options are what the process, not a channel, decides about calls to
// vendors. The zero value is usable.
type Options struct {
	Version string           // of the gateway, for User-Agent
	Now     func() time.Time // the clock of send gates and tokens; time.Now when nil

	// Dial opens the connections; nil: over the network.
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	RootCAs  *x509.CertPool // nil: the system's
	Proxy    *url.URL       // of all calls; nil: none, the environment is not looked at
	Timeouts Timeouts
	MaxBody  int64 // bytes of an answer, whatever a call allows; 0: what the call allows

	// Watch is told when a call begins. What it returns is told when the call ends, its
	// answer included: the status, 0 where no answer came, and the error, if any. nil:
	// none.
	Watch func(ctx context.Context, effect Effect) (ended func(status int, err error))

	// Follow opens a file to which a vendor's download was redirected, through the
	// guarded client and without any credential. redirects is how many more may
	// follow. Its errors are those of providers.Opener, and KindInvalid for an
	// address that may not be reached. nil: no redirect leaves the vendor's host.
	Follow func(ctx context.Context, link string, redirects int) (file io.ReadCloser, length int64, err error)

	// Observe hears of each call once the head of its answer is there, or none will
	// come: a status of 0. nil: nobody does.
	Observe func(effect string, status int, took time.Duration)
}

// Timeouts bound the phases of all calls. Dial and TLS have defaults; the
// others only shorten what a call allows itself.
type Timeouts struct {
	Dial         time.Duration
	TLS          time.Duration
	SubmitHeader time.Duration
	Submit       time.Duration
	ReadHeader   time.Duration
	Read         time.Duration
}
