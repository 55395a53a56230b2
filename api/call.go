package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mediagate/mediagate"
)

// call is one request on its way through: what the middleware learns and the
// log line tells.
type call struct {
	echo.Context
	envelope  envelope
	requestID string
	started   time.Time
	limit     int64   // of the body
	caller    *caller // of routes that take a key
	taskID    string  // for the log
}

// callKey holds the *call in Echo's context.
const callKey = "mediagate.call"

// buffers are reused for answers: a task is read far more often than written.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// json writes the answer in one piece. Links keep their ampersands.
func (c *call) json(status int, body any) error {
	buf, _ := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	encoder := json.NewEncoder(buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return &mediagate.Error{Kind: mediagate.KindInternal, Message: "writing the answer", Err: err}
	}
	response := c.Response()
	header := response.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(buf.Len()))
	response.WriteHeader(status)
	_, _ = response.Write(buf.Bytes()) // a client that left is no error of ours
	return nil
}

// wrapped is the answer {code, data} of the task endpoints.
type wrapped struct {
	Code int `json:"code"`
	Data any `json:"data"`
}

func (c *call) ok(body any) error { return c.json(http.StatusOK, body) }
