package vendorhttp

import (
	"crypto/x509"
	"net/http"
	"net/url"
	"time"
)

// Options are what the process, not a channel, decides about calls to
// vendors. The zero value is usable.
type Options struct {
	Version string           // of the gateway, for User-Agent
	Now     func() time.Time // the clock of send gates and tokens; time.Now when nil

	RootCAs  *x509.CertPool                        // nil: the system's
	Proxy    func(*http.Request) (*url.URL, error) // nil: none, the environment is not looked at
	Timeouts Timeouts
	MaxBody  int64 // bytes of an answer, whatever a call allows; 0: what the call allows
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
