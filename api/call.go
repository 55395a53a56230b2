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

// call is one request on its way through the server: what the middleware learns about it, and
// what its log line reports.
type call struct {
	echo.Context
	envelope      envelope
	requestID     string
	started       time.Time
	route         route           // the zero route before one is found
	models        *models         // those in force when the call came
	credential    credential      // on routes that take a key
	caller        *caller         // on routes that take a key
	operator      operator        // on routes of the admin API
	authorizedAt  time.Time       // when the key was last checked
	client        netip.Addr      // the client's address; the zero value if it cannot be read
	taskID        string          // for the log
	mayHaveTask   bool            // a task may be stored that a retry of the call would not find
	traceParent   string          // of the task that the call makes
	streams       bool            // the answer lasts as long as the client reads it
	quiet         bool            // logged at debug level only: anybody could fill the log with such calls
	speech        *speechRequest  // also for the log
	begun         bool            // reading of the body has begun
	read          bool            // nothing more of the body is to be read
	bodyPermit    *limit.Permit   // for the bytes of the body
	requestPermit *limit.Permit   // for one of the requests in progress
	actor         mediagate.Actor // who makes the call's changes, once that is known

	waiter       *mediagate.Waiter // set if a later call may adopt the task
	stopWatching func() bool       // stops watching the waiter's client, and reports whether it was still there

	server context.Context // ends when the server has stopped
	ctx    context.Context // for queries to the database, see setTimeout
	cancel context.CancelFunc
}

// class is the metrics label of the call: its route's class, or streamClass.
func (c *call) class() string {
	if c.streams {
		return streamClass
	}
	return c.route.class()
}

// setTimeout gives the call's further queries to the database this much time. Their context is
// detached from the request's, which net/http ends when the client closes its sending side. Such a
// client may still read the answer; only a failed write shows that it does not.
func (c *call) setTimeout(d time.Duration) {
	c.cancelContext()
	c.ctx, c.cancel = c.detachedContext(d)
	if c.actor.By != "" {
		c.ctx = mediagate.WithActor(c.ctx, c.actor)
	}
}

// setActor attributes the changes that the call makes from here on to the actor.
func (c *call) setActor(a mediagate.Actor) {
	c.actor, c.ctx = a, mediagate.WithActor(c.ctx, a)
}

// setAuditReason adds the caller's reason for its changes to the audit. It may be empty.
func (c *call) setAuditReason(reason string) {
	c.actor.Reason = reason
	c.setActor(c.actor)
}

// detachedContext returns a context that ends after this time or when the server stops, but not
// when the client leaves.
func (c *call) detachedContext(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), d)
	stop := context.AfterFunc(c.server, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

func (c *call) cancelContext() {
	if c.cancel != nil {
		c.cancel()
	}
}

// withoutTimeout runs f without counting its time against the call's timeout.
func (c *call) withoutTimeout(f func()) {
	deadline, _ := c.ctx.Deadline()
	left := time.Until(deadline)
	f()
	c.setTimeout(left)
}

// answerWithin sets the deadline of the answer to half a minute after the end of the call's wait.
func (c *call) answerWithin(wait time.Duration) {
	const more = 30 * time.Second
	c.writeBy(time.Now().Add(wait + more))
}

// takeLong gives the call this much time for its queries, and slightly more for its answer.
func (c *call) takeLong(d time.Duration) {
	c.setTimeout(d)
	c.answerWithin(d)
}

// asTimeout turns an internal error into KindUnavailable if the call's time is up, since the
// timeout is then the likely cause, even if the error does not say so.
func (c *call) asTimeout(err error) error {
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

// buffers are reused for answers, so that frequent calls, such as reading a task, allocate less
// memory.
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
	_, _ = response.Write(text) // a client that has left is no error of ours
}

// wrappedTask is the answer of the task endpoints.
type wrappedTask struct {
	Code int       `json:"code"`
	Data view.Task `json:"data"`
}

// wrappedStub is the answer to a key that may act on a task but not read it.
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
