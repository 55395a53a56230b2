package vendorhttp

import (
	"cmp"
	"net/http"
	"time"
)

// Effect is what a call does at the vendor. It decides what a failure of the call means.
type Effect int

// The effects. There is no default: each call must declare its own. A body that cannot be written
// or read has errors of its own, see JSON and Streamed.
const (
	// Reads marks a call that is harmless to repeat, such as a poll (also by POST), an upload or a
	// request for a token. Each failure is mediagate.KindTransient.
	Reads Effect = iota + 1
	// Submits marks a call that makes a job. It is sent once, through the gate, on its own
	// connection. A failure is KindUnreached if the vendor cannot have made a job, else
	// KindAmbiguous.
	Submits
	// Stops marks a call that ends a job. It is sent once, on its own connection. Each failure is
	// KindTransient: the caller decides whether to repeat the call.
	Stops
)

// String returns the effect as a word.
func (e Effect) String() string {
	switch e {
	case Submits:
		return "submits"
	case Stops:
		return "stops"
	default:
		return "reads"
	}
}

// Call is one request to a vendor.
type Call struct {
	Effect     Effect
	Method     string      // empty: POST if there is a body, else GET
	Base       string      // scheme, host and prefix; empty: the channel's
	Path       string      // appended to the base unchanged
	Header     http.Header // in addition to the header of Config
	Body       Body
	SendBefore time.Time // deadline for the first byte of a submission; zero: none
	Limits     Limits
}

func (c Call) method() string {
	if c.Body.empty() {
		return cmp.Or(c.Method, http.MethodGet)
	}
	return cmp.Or(c.Method, http.MethodPost)
}

// once reports whether the call must be sent at most once.
func (c Call) once() bool { return c.Effect != Reads }

// Limits bound one call. A zero field means the default for the call's effect.
type Limits struct {
	Header time.Duration // from the written request to the head of the answer
	Total  time.Duration // of the whole call; of a stream until it is closed
	Stall  time.Duration // of a stream: the longest pause between bytes
	Bytes  int64         // of the answer's body
}

// The default limits. For a submission, the adapter sets Total to the Submit time of its Operation,
// and the head of the answer may take all of that time.
const (
	defaultBytes       = 1 << 20
	defaultSubmitTotal = 30 * time.Second
	defaultReadHeader  = 10 * time.Second
	defaultReadTotal   = 15 * time.Second
	defaultStall       = 30 * time.Second
)

// limits returns the limits of a call. None exceeds the limit of the process.
func (c *Client) limits(call Call) Limits {
	l, most := call.Limits, c.opt.Timeouts
	if call.Effect == Submits {
		l.Total = atMost(cmp.Or(l.Total, defaultSubmitTotal), most.Submit)
		l.Header = atMost(cmp.Or(l.Header, l.Total), most.SubmitHeader)
	} else {
		if l.Total == 0 {
			l.Header = cmp.Or(l.Header, defaultReadHeader)
		}
		l.Total = atMost(cmp.Or(l.Total, defaultReadTotal), most.Read)
		l.Header = atMost(cmp.Or(l.Header, l.Total), most.ReadHeader)
	}
	l.Stall = cmp.Or(l.Stall, defaultStall)
	l.Bytes = atMost(cmp.Or(l.Bytes, defaultBytes), c.opt.MaxBody)
	return l
}

// atMost returns the lesser of v and most. most = 0 means no limit.
func atMost[T int64 | time.Duration](v, most T) T {
	if most > 0 {
		return min(v, most)
	}
	return v
}
