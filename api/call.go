package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/task/view"
)

// call is one request on its way through: what the middleware learns and the
// log line tells.
type call struct {
	echo.Context
	envelope    envelope
	requestID   string
	started     time.Time
	route       route           // once it is admitted to one
	models      *models         // of the moment in which it came
	credential  credential      // of routes that take a key
	caller      *caller         // of routes that take a key
	operator    operator        // of routes of the admin API
	judged      time.Time       // when it was
	client      netip.Addr      // from which the call came; the zero one when that cannot be read
	taskID      string          // for the log
	mayHaveTask bool            // a task may be stored that a repetition of the call would not find
	traceParent string          // of the task that it makes
	streams     bool            // the answer lasts as long as its client reads
	quiet       bool            // is no line of the log, which anybody could fill
	speech      *speechRequest  // also for the log
	begun       bool            // something of the body was asked for
	read        bool            // nothing more of it is to be read
	held        *limit.Permit   // of the body
	place       *limit.Permit   // among the requests under way
	actor       mediagate.Actor // once it is known

	waiter *mediagate.Waiter // of a task that a later call may adopt
	stays  func() bool       // reports, and decides, that the waiter's client is still there

	server context.Context // ends when the server has stopped
	ctx    context.Context // of what is asked of the database; see within
	cancel context.CancelFunc
}

// class is what the call is counted as: its route's, or that of streams.
func (c *call) class() string {
	if c.streams {
		return streamClass
	}
	return c.route.class()
}

// within gives what the call asks of the database from here on so much time.
// The request's own context is no part of it: net/http ends that one when the
// client closes its sending side, which is no abort, and nothing but a failed
// write tells whether somebody still reads.
func (c *call) within(d time.Duration) {
	c.release()
	c.ctx, c.cancel = c.lasting(d)
	if c.actor.By != "" {
		c.ctx = mediagate.WithActor(c.ctx, c.actor)
	}
}

// acts says who makes the changes that the call asks for from here on.
func (c *call) acts(a mediagate.Actor) {
	c.actor, c.ctx = a, mediagate.WithActor(c.ctx, a)
}

// actsFor adds to the audit why the call makes its changes; empty where it does not say.
func (c *call) actsFor(reason string) {
	c.actor.Reason = reason
	c.acts(c.actor)
}

// lasting is a context that ends after so much time or with the server.
func (c *call) lasting(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), d)
	stop := context.AfterFunc(c.server, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

func (c *call) release() {
	if c.cancel != nil {
		c.cancel()
	}
}

// uncounted runs what is not to take from that time.
func (c *call) uncounted(f func()) {
	deadline, _ := c.ctx.Deadline()
	left := time.Until(deadline)
	f()
	c.within(left)
}

// answerWithin gives the answer as much more time as the call waits, beside that of
// an answer that is made at once.
func (c *call) answerWithin(wait time.Duration) {
	const more = 30 * time.Second
	c.writeBy(time.Now().Add(wait + more))
}

// late words a fault whose likely reason is that the time was up: what breaks
// then does not always say so.
func (c *call) late(err error) error {
	if !mediagate.Is(err, mediagate.KindInternal) || !errors.Is(c.ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	if _, ok := balanceFailure(err); ok {
		return err
	}
	return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "not done in time", Err: err}
}

// callKey holds the *call in Echo's context.
const callKey = "mediagate.call"

// buffers are reused for answers: a task is read far more often than written.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// json answers with a body as JSON.
func (c *call) json(status int, body any) error {
	buf, _ := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	if err := encodeTo(buf, body); err != nil {
		return err
	}
	c.text(status, "application/json", buf.Bytes())
	return nil
}

// text writes an answer in one piece.
func (c *call) text(status int, format string, text []byte) {
	response := c.Response()
	header := response.Header()
	header.Set("Content-Type", format)
	header.Set("Content-Length", strconv.Itoa(len(text)))
	response.WriteHeader(status)
	_, _ = response.Write(text) // a client that left is no error of ours
}

// wrappedTask is the answer of the task endpoints.
type wrappedTask struct {
	Code int       `json:"code"`
	Data view.Task `json:"data"`
}

// wrappedStub is what a key that may not read tasks sees of one that it acts on.
type wrappedStub struct {
	Code int      `json:"code"`
	Data taskStub `json:"data"`
}

type taskStub struct {
	ID     string           `json:"id"`
	Status mediagate.Status `json:"status"`
}

// wrappedMusicTask is the answer of the music endpoint.
type wrappedMusicTask struct {
	Code int            `json:"code"`
	Data view.MusicTask `json:"data"`
}

func (c *call) ok(body any) error { return c.json(http.StatusOK, body) }
