package vendorhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

var (
	errNoEffect = errors.New("the call does not say its effect")
	errHead     = errors.New("the head of the answer took too long")
	errStalled  = errors.New("no more of the answer came")
	errLong     = errors.New("the answer is longer than it may be")
)

// exchange is one running call, from the first byte of the request to the end of the answer.
type exchange struct {
	client  *Client
	call    Call
	limits  Limits
	cleaner *cleaner
	gate    *gate // nil for reads
	out     *outgoing
	cancel  context.CancelCauseFunc
	done    context.CancelFunc

	answered bool // the head of the answer has arrived
	status   int
	err      error // why the call failed
	ended    func(status int, err error)
}

func (c *Client) exchange(ctx context.Context, call Call) (*exchange, context.Context) {
	x := &exchange{client: c, call: call, limits: c.limits(call), cleaner: c.cleaner.Load().at(call.Base)}
	if c.opt.Watch != nil {
		x.ended = c.opt.Watch(ctx, call.Effect)
	}
	ctx, x.done = context.WithTimeout(ctx, x.limits.Total)
	ctx, x.cancel = context.WithCancelCause(ctx)
	if call.once() {
		x.gate = &gate{now: c.now}
		if call.Effect == Submits {
			x.gate.before = call.SendBefore
		}
	}
	return x, ctx
}

// end releases what the exchange holds, and reports the end of the call to Options.Watch.
func (x *exchange) end() {
	if x.ended != nil {
		x.ended(x.status, x.err)
		x.ended = nil
	}
	x.cancel(nil)
	x.done()
}

// do sends the request and waits for the head of the answer.
func (x *exchange) do(ctx context.Context) (*http.Response, error) {
	if x.call.Effect < Reads || x.call.Effect > Stops {
		return nil, errNoEffect
	}
	client := x.client.reads
	if x.gate != nil {
		if x.gate.isLate() {
			return nil, errLate
		}
	}
	head := &headLimit{limit: x.limits.Header, expire: func() { x.cancel(errHead) }}
	defer head.stop()
	req, out, err := x.client.request(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { head.start() },
	}), x.call)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	x.out = out
	if x.gate != nil {
		client = x.client.onceClient(x.gate, req.URL.Scheme == "https")
	}
	resp, err := client.Do(req)
	if err != nil && errors.Is(context.Cause(ctx), errHead) {
		err = errHead
	}
	return resp, err
}

// headLimit bounds the time from the written request to the head of the answer.
type headLimit struct {
	limit  time.Duration
	expire func()

	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

func (h *headLimit) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.over:
	case h.timer == nil:
		h.timer = time.AfterFunc(h.limit, h.expire)
	default: // the transport has sent a read again
		h.timer.Reset(h.limit)
	}
}

func (h *headLimit) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	if h.timer != nil {
		h.timer.Stop()
	}
}

// failure classifies an error by the call's effect and by how far the call had come.
func (x *exchange) failure(err error) error {
	x.err = x.classify(err)
	return x.err
}

func (x *exchange) classify(err error) error {
	if errors.Is(err, errNoEffect) {
		return failed(mediagate.KindInternal, "the call cannot be made", err)
	}
	whole, own := true, error(nil)
	if x.out != nil {
		whole, own = x.out.end()
	}
	if e, ok := errors.AsType[*mediagate.Error](own); ok && e.Kind == mediagate.KindInvalid && !x.answered {
		x.shut()
		return e
	}
	if x.call.Effect != Submits {
		x.shut()
		return failed(mediagate.KindTransient, "the vendor could not be asked", x.cause(err))
	}
	opened, refused := x.gate.shut()
	switch {
	case x.answered, opened && whole:
		return failed(mediagate.KindAmbiguous, "the vendor's answer was lost", x.cause(err))
	case opened:
		return failed(mediagate.KindUnreached, "the request could not be sent whole", x.cause(err))
	case errors.Is(refused, errLate), errors.Is(err, errLate):
		return failed(mediagate.KindUnreached, "the request was not sent in time", errLate)
	default:
		return failed(mediagate.KindUnreached, "the vendor could not be reached", x.cause(err))
	}
}

func (x *exchange) shut() {
	if x.gate != nil {
		_, _ = x.gate.shut()
	}
}

// streamBody reads an answer within the limits of its call.
type streamBody struct {
	x      *exchange
	body   io.ReadCloser
	left   int64
	length int64
	err    error
}

func (s *streamBody) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if int64(len(p)) > s.left {
		p = p[:s.left+1] // one byte more than permitted, to notice a longer answer
	}
	stall := time.AfterFunc(s.x.limits.Stall, func() { s.x.cancel(errStalled) })
	n, err := s.body.Read(p)
	if !stall.Stop() && err != nil {
		err = errStalled
	}
	switch {
	case int64(n) > s.left:
		n, err = int(s.left), errLong
		fallthrough
	case err != nil && !errors.Is(err, io.EOF):
		err = s.x.failure(fmt.Errorf("reading the answer: %w", err))
	}
	s.left -= int64(n)
	s.err = err
	return n, err
}

// Close ends the call, even if the answer has not been read to its end.
func (s *streamBody) Close() error {
	s.x.shut()
	defer s.x.end() // end reports the failure, so the failure is recorded first
	if err := s.body.Close(); err != nil {
		return s.x.failure(fmt.Errorf("closing the answer: %w", err))
	}
	return nil
}
