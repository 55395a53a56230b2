package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Client calls one gateway with one key. It is safe for concurrent use.
type Client struct {
	URL  string // such as https://api.example.com
	Key  string
	HTTP *http.Client // nil: http.DefaultClient
	// Strict makes the gateway refuse a request with a field that its model does not have. If it
	// is false, the key's setting decides.
	Strict bool
}

const (
	// tries is how many times a call is made if its answer is lost or the gateway asks for a
	// later attempt. The pauses between the calls double, from firstPause.
	tries      = 6
	firstPause = 500 * time.Millisecond
	// longestPause is the longest pause that a gateway can ask for.
	longestPause = time.Minute
	// largestAnswer is the largest part of an answer that is read, in bytes.
	largestAnswer = 16 << 20
	// longestSilence is the longest time without data: until the header of an answer, and
	// between two pieces of its body.
	longestSilence = 30 * time.Second
	// longestHeld is how long the gateway may hold back an answer, while it waits for a task or
	// until a speech begins.
	longestHeld = time.Minute
	// leastPace is the slowest upload that the gateway accepts, in bytes per second.
	leastPace = 16 << 10
)

// Error is an error that the gateway answers with.
type Error struct {
	Status     int    // HTTP status
	Message    string // for a refused request, names the field and the rule
	Type       string
	Param      string // the field; may be empty
	Reason     string // a stable code, such as out_of_range
	RequestID  string
	RetryAfter time.Duration // 0 if the gateway gave none

	final bool // X-Should-Retry: false
}

// Error returns the gateway's message with the details that a report about it needs.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s (%d", cmp.Or(e.Message, http.StatusText(e.Status)), e.Status)
	if e.Reason != "" {
		text += ", " + e.Reason
	}
	if e.Param != "" {
		text += " of " + e.Param
	}
	if e.RequestID != "" {
		text += ", request " + e.RequestID
	}
	return text + ")"
}

// Temporary reports whether the same call may succeed later.
func (e *Error) Temporary() bool {
	return !e.final && (e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError)
}

// request is a call and its limits.
type request struct {
	method, path string
	body         []byte // nil: none
	header       http.Header
	// held is how long the gateway may hold back the answer.
	held time.Duration
	// whole requires the body of the answer to arrive within the bound of the header. Otherwise
	// each piece of the body must arrive within longestSilence.
	whole bool
	// check returns an error if an answer with a status of success counts as lost. If check is
	// nil, no such answer does.
	check func(answer []byte) error
}

// bound returns how long the header of the answer may take.
func (r request) bound() time.Duration {
	return longestSilence + r.held + time.Duration(len(r.body))*time.Second/leastPace
}

// Call makes a call that may be repeated and returns the body of its answer. The path begins
// with a slash. If body is nil, the request has none.
//
// An answer with a status of 300 or more is an *Error. Call does not follow redirects, because
// they would take the key along.
//
// Call repeats a call whose answer is lost, or that the gateway asks to repeat later. It makes
// up to six calls in all. So if the call creates something, header must hold an Idempotency-Key.
// An answer also counts as lost if it pauses for 30 seconds, or does not begin within 90
// seconds. A large body has more time.
func (c *Client) Call(ctx context.Context, method, path string, body any, header http.Header) (json.RawMessage, error) {
	text, err := encode(body)
	if err != nil {
		return nil, err
	}
	return c.repeat(ctx, request{method: method, path: path, body: text, header: header, held: longestHeld})
}

// encode returns body as JSON, or nil for nil.
func encode(body any) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	return json.Marshal(body)
}

// get makes a call that the gateway answers without waiting for anything.
func (c *Client) get(ctx context.Context, path string) (json.RawMessage, error) {
	return c.repeat(ctx, request{method: http.MethodGet, path: path})
}

// post makes a call whose answer the gateway does not hold back.
func (c *Client) post(ctx context.Context, path string, body any, header http.Header) (json.RawMessage, error) {
	text, err := encode(body)
	if err != nil {
		return nil, err
	}
	return c.repeat(ctx, request{method: http.MethodPost, path: path, body: text, header: header})
}

// repeat makes a call up to six times, until it succeeds or the gateway refuses it for good.
func (c *Client) repeat(ctx context.Context, r request) (json.RawMessage, error) {
	pause := firstPause
	for try := 1; ; try++ {
		answer, err := c.once(ctx, r)
		refused, isRefusal := errors.AsType[*Error](err)
		if err == nil || isRefusal && !refused.Temporary() || try == tries || ctx.Err() != nil {
			return answer, err
		}
		wait := pause
		if isRefusal {
			wait = min(max(wait, refused.RetryAfter), longestPause)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w, after %w", ctx.Err(), err)
		case <-time.After(wait):
			pause *= 2
		}
	}
}

// once makes a call once.
func (c *Client) once(ctx context.Context, call request) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil { // some transports ignore the context
		return nil, err
	}
	r, err := http.NewRequestWithContext(
		ctx, call.method, strings.TrimSuffix(c.URL, "/")+call.path, bytes.NewReader(call.body))
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, call.header)
	if call.body != nil && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+c.Key)
	if c.Strict {
		r.Header.Set("Mediagate-Strict", "true")
	}
	stays := *c.http()
	stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := send(&stays, r, call.bound(), call.whole)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, largestAnswer))
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, parseError(response, text)
	}
	if call.check != nil {
		if err := call.check(text); err != nil {
			return nil, err
		}
	}
	return text, nil
}

func (c *Client) http() *http.Client { return cmp.Or(c.HTTP, http.DefaultClient) }

// parseError parses an error in any of the gateway's formats, or in that of a proxy in front of
// it.
func parseError(response *http.Response, text []byte) error {
	var body struct {
		Error struct {
			Message, Type, Reason string
			Param                 *string
			Code                  any    // the status; errors of music have no Reason, but a word here
			RequestID             string `json:"request_id"`
		}
	}
	_ = json.Unmarshal(text, &body) // if it fails, only the status is known
	e := &Error{
		Status: response.StatusCode, Message: body.Error.Message, Type: body.Error.Type, Reason: body.Error.Reason,
		RequestID: cmp.Or(body.Error.RequestID, response.Header.Get("X-Request-Id")),
		final:     response.Header.Get("X-Should-Retry") == "false",
	}
	if to := response.Header.Get("Location"); to != "" && e.Message == "" {
		e.Message = "redirected to " + to + ", which is not followed"
	}
	if word, ok := body.Error.Code.(string); ok {
		e.Reason = cmp.Or(e.Reason, word)
	}
	if body.Error.Param != nil {
		e.Param = *body.Error.Param
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}
