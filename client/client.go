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

// Client speaks to one gateway with one key. Any number of goroutines may use it.
type Client struct {
	URL  string // such as https://api.example.com
	Key  string
	HTTP *http.Client // http.DefaultClient, if nil
	// Strict has a request refused that names a field which its model does not take. Without
	// it, the key's setting decides.
	Strict bool
}

const (
	// tries is how often a call is made whose answer was lost, or whom the gateway asks to
	// come back; the pauses between double from firstPause.
	tries      = 6
	firstPause = 500 * time.Millisecond
	// longestPause is the most that is waited because the gateway asks for it.
	longestPause = time.Minute
	// largestAnswer is the most that is read of an answer, in bytes.
	largestAnswer = 16 << 20
	// longestSilence bounds how long nothing may come: until the header of an answer, and
	// between two pieces of its body.
	longestSilence = 30 * time.Second
	// longestHeld is the most that the gateway holds back an answer: while it waits for a
	// task, or until a speech has begun.
	longestHeld = time.Minute
	// leastPace is in bytes a second. The gateway takes no body that comes more slowly.
	leastPace = 16 << 10
)

// Error is an answer that is an error.
type Error struct {
	Status     int    // of HTTP
	Message    string // names the field and the rule of a request that was refused
	Type       string
	Param      string // the field, where there is one
	Reason     string // a word that stays the same, such as out_of_range
	RequestID  string
	RetryAfter time.Duration // 0 where the gateway named none

	final bool // X-Should-Retry: false
}

// Error is the gateway's message, with what a report about it needs.
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

// request is a call, and what bounds it.
type request struct {
	method, path string
	body         []byte // nil: none
	header       http.Header
	// held is how long the gateway may hold back the answer.
	held time.Duration
	// whole: the body of the answer has to come within the bound of its header. Without it,
	// each piece of the body has longestSilence.
	whole bool
	// check reports an answer that counts as lost, though its status is one of success; nil
	// takes any.
	check func(answer []byte) error
}

// bound is how long the header of the answer may take.
func (r request) bound() time.Duration {
	return longestSilence + r.held + time.Duration(len(r.body))*time.Second/leastPace
}

// Call makes a call that may be repeated and returns the body of its answer. The path
// begins with a slash; a nil body is none. An answer from 300 on is an *Error: a redirect
// is not followed, since it would take the key along. Of a call
// that makes something, header holds the Idempotency-Key: calls whose answer is lost, and
// those that are to come back later, are made again, up to six times. An answer is lost, too,
// if it does not begin within 90 seconds, or pauses for 30.
func (c *Client) Call(ctx context.Context, method, path string, body any, header http.Header) (json.RawMessage, error) {
	text, err := encode(body)
	if err != nil {
		return nil, err
	}
	return c.repeat(ctx, request{method: method, path: path, body: text, header: header, held: longestHeld})
}

// encode writes a body as JSON; nil is none.
func encode(body any) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	return json.Marshal(body)
}

// get makes a call that asks for something which is at hand.
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

// repeat makes a call until its answer counts, up to six times.
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

// once makes a call.
func (c *Client) once(ctx context.Context, call request) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil { // not every transport looks
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, call.method, strings.TrimSuffix(c.URL, "/")+call.path, bytes.NewReader(call.body))
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
		return nil, refusal(response, text)
	}
	if call.check != nil {
		if err := call.check(text); err != nil {
			return nil, err
		}
	}
	return text, nil
}

func (c *Client) http() *http.Client { return cmp.Or(c.HTTP, http.DefaultClient) }

// refusal reads an error of any of the gateway's forms, or of a proxy before it.
func refusal(response *http.Response, text []byte) error {
	var body struct {
		Error struct {
			Message, Type, Reason string
			Param                 *string
			Code                  any    // beside Reason the status; music has a word here, and no Reason
			RequestID             string `json:"request_id"`
		}
	}
	_ = json.Unmarshal(text, &body) // else the status is all that is known
	e := &Error{
		Status: response.StatusCode, Message: body.Error.Message, Type: body.Error.Type, Reason: body.Error.Reason,
		RequestID: cmp.Or(body.Error.RequestID, response.Header.Get("X-Request-Id")), final: response.Header.Get("X-Should-Retry") == "false",
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
