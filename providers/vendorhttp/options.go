package vendorhttp

import (
	"cmp"
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
	Timeouts Timeouts                              // what is zero is left to the adapter
	MaxBody  int64                                 // bytes of an answer; 0: 1 MiB
}

// Timeouts bound the phases of a call. SubmitHeader and ReadHeader run from
// the written request to the head of the answer, Submit and Read over the
// whole call.
type Timeouts struct {
	Dial         time.Duration
	TLS          time.Duration
	SubmitHeader time.Duration
	Submit       time.Duration
	ReadHeader   time.Duration
	Read         time.Duration
}

const defaultMaxBody = 1 << 20

// over fills what t leaves open from base.
func (t Timeouts) over(base Timeouts) Timeouts {
	return Timeouts{
		Dial:         cmp.Or(t.Dial, base.Dial, 5*time.Second),
		TLS:          cmp.Or(t.TLS, base.TLS, 5*time.Second),
		SubmitHeader: cmp.Or(t.SubmitHeader, base.SubmitHeader, 25*time.Second),
		Submit:       cmp.Or(t.Submit, base.Submit, 30*time.Second),
		ReadHeader:   cmp.Or(t.ReadHeader, base.ReadHeader, 10*time.Second),
		Read:         cmp.Or(t.Read, base.Read, 15*time.Second),
	}
}
