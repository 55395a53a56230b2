package vendorhttp

import (
	"cmp"
	"net/http"
	"time"
)

// Effect is what a call does at the vendor, and so what its failure means.
type Effect int

// The effects. A call must say its own: there is no harmless default.
const (
	// Reads: harmless to repeat, such as a poll (also by POST), an upload, a
	// token. Each failure is mediagate.KindTransient.
	Reads Effect = iota + 1
	// Submits: makes a job. It is sent once, through the send gate, on a
	// connection of its own. A failure is KindUnreached when the vendor cannot
	// have a job of it, and KindAmbiguous otherwise.
	Submits
	// Stops: ends a job. It is sent once, on a connection of its own. Each
	// failure is KindTransient: whether to stop again is the caller's.
	Stops
)

// String is the effect in a word.
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

// Call is one request.
type Call struct {
	Effect     Effect
	Method     string      // empty: GET, and POST where there is a body
	Base       string      // scheme, host and prefix; empty: those of the channel
	Path       string      // appended to the base as it is
	Header     http.Header // beside those of Config
	Body       Body
	SendBefore time.Time // the first byte of a submission is written before this; zero: no bound
	Limits     Limits
}

func (c Call) method() string {
	if c.Body.empty() {
		return cmp.Or(c.Method, http.MethodGet)
	}
	return cmp.Or(c.Method, http.MethodPost)
}

// once says that the call is sent at most once.
func (c Call) once() bool { return c.Effect != Reads }

// Limits bound one call. What is zero is the default for the call's effect.
type Limits struct {
	Header time.Duration // from the written request to the head of the answer
	Total  time.Duration // of the whole call; of a stream until it is closed
	Stall  time.Duration // of a stream: how long no byte may come
	Bytes  int64         // of the answer's body
}

// The defaults. A submission answers within its description's time, which its
// adapter gives as Total; its head may take all of that.
const (
	defaultBytes       = 1 << 20
	defaultSubmitTotal = 30 * time.Second
	defaultReadHeader  = 10 * time.Second
	defaultReadTotal   = 15 * time.Second
	defaultStall       = 30 * time.Second
)

// limits are those of a call, none above what the process allows.
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

// atMost is v, or most where that is given and less.
func atMost[T int64 | time.Duration](v, most T) T {
	if most > 0 {
		return min(v, most)
	}
	return v
}
