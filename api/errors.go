package api

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

// envelope is the shape in which a route reports errors.
type envelope uint8

const (
	envelopeA       envelope = iota // {error: {code: status, message, type}}
	envelopeMusic                   // form B with param and code
	envelopeReplace                 // form B like envelopeMusic, but too little money is a 403
	envelopeUpload                  // form B without param and code
	envelopeBalance                 // form A; a 401 also has {success: false, message}
	envelopeOpenAI                  // form B's fields with form A's types, as OpenAI's clients read it
	envelopePage                    // an HTML page
)

// envelopeFor returns the envelope of a path without a route, by the path's prefix.
func envelopeFor(path string) envelope {
	switch {
	case strings.HasPrefix(path, "/v1/music/"):
		return envelopeMusic
	case strings.HasPrefix(path, "/v1/uploads/"):
		return envelopeUpload
	default:
		return envelopeA
	}
}

// rendering says how clients see a kind of error.
type rendering struct {
	status        int
	word          string // type in form A
	wordB, codeB  string // type and code in form B
	messageAlways string // replaces the error's own message, which may name internal parts
	reason        string // in form A, if the error has no reason of its own
}

const (
	wordInvalid = "invalid_request_error"
	wordServer  = "server_error"
)

var fault = rendering{http.StatusInternalServerError, wordServer, wordServer, "internal_error", "internal error", "internal_error"}

// renderings maps kinds to answers. A kind that is not listed concerns no client. If one gets out
// all the same, the client sees an internal error.
var renderings = map[mediagate.Kind]rendering{
	mediagate.KindInternal:        fault,
	mediagate.KindInvalid:         {http.StatusBadRequest, wordInvalid, "invalid_request", "invalid_request", "", "invalid"},
	mediagate.KindUnauthenticated: {http.StatusUnauthorized, "authentication_error", "authentication_error", "authentication_failed", "", "authentication_failed"},
	mediagate.KindPayment:         {http.StatusPaymentRequired, "payment_required", "payment_required", "quota_not_enough", "", "quota_not_enough"},
	mediagate.KindForbidden:       {http.StatusForbidden, "permission_error", "permission_error", "permission_denied", "", "permission_denied"},
	mediagate.KindNotFound:        {http.StatusNotFound, "not_found_error", "not_found_error", "not_found", "", "not_found"},
	mediagate.KindMethod:          {http.StatusMethodNotAllowed, wordInvalid, "invalid_request", "invalid_request", "", "method_not_allowed"},
	mediagate.KindConflict:        {http.StatusConflict, wordInvalid, "invalid_request", "conflict", "", "conflict"},
	mediagate.KindTooLarge:        {http.StatusRequestEntityTooLarge, wordInvalid, wordInvalid, "invalid_request", "", "too_large"},
	mediagate.KindModerated:       {http.StatusUnprocessableEntity, wordInvalid, wordInvalid, "content_policy_violation", "", "content_policy_violation"},
	mediagate.KindRateLimited:     {http.StatusTooManyRequests, "rate_limit_error", "rate_limit_error", "rate_limited", "", "rate_limited"},
	mediagate.KindBadGateway:      {http.StatusBadGateway, "bad_gateway", "bad_gateway", "bad_gateway", "gateway temporarily unavailable", "bad_gateway"},
	mediagate.KindStalled:         {http.StatusRequestTimeout, wordInvalid, "invalid_request", "invalid_request", "", "request_timeout"},
	mediagate.KindUnsupported:     {http.StatusUnsupportedMediaType, wordInvalid, "invalid_request", "invalid_request", "", "unsupported_encoding"},
	mediagate.KindFailed:          {http.StatusBadGateway, "bad_gateway", "bad_gateway", "bad_gateway", "", "task_failed"},
	mediagate.KindNoModel:         {http.StatusBadGateway, "bad_gateway", "bad_gateway", "bad_gateway", "the provider no longer has the model", "model_retired"},
	mediagate.KindTimeout:         {http.StatusGatewayTimeout, wordServer, wordServer, "timeout", "", "timeout"},
	mediagate.KindUnavailable:     {http.StatusServiceUnavailable, wordServer, wordServer, "internal_error", "the service is temporarily unavailable, try again", "unavailable"},
}

// renderingOf returns the answer to a kind of error in an envelope.
func renderingOf(kind mediagate.Kind, e envelope) rendering {
	r, ok := renderings[kind]
	if !ok {
		return fault
	}
	if kind == mediagate.KindPayment && e == envelopeReplace {
		r.status, r.wordB = http.StatusForbidden, renderings[mediagate.KindForbidden].wordB
	}
	return r
}

// errorA is form A. Code is the HTTP status.
type errorA struct {
	Code      int    `json:"code"`
	Message   string `json:"message"`
	Type      string `json:"type"`
	Param     any    `json:"param"`
	Reason    string `json:"reason"`
	RequestID string `json:"request_id"`
}

// errorB is form B; uploads leave Param and Code out.
type errorB struct {
	Message   string `json:"message"`
	Type      string `json:"type"`
	Param     any    `json:"param"`
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
}

type errorUpload struct {
	Message   string `json:"message"`
	Type      string `json:"type"`
	RequestID string `json:"request_id"`
}

type envelopeBody struct {
	Success *bool  `json:"success,omitempty"`
	Message string `json:"message,omitempty"`
	Error   any    `json:"error"`
}

// domainError returns err as a *mediagate.Error. An error of another type is an internal one.
func domainError(err error) *mediagate.Error {
	if e, ok := errors.AsType[*mediagate.Error](err); ok {
		return e
	}
	return &mediagate.Error{Kind: mediagate.KindInternal, Err: err}
}

// errRoute returns the error of a request that has no route.
func errRoute(r *http.Request) error {
	return mediagate.Errorf(mediagate.KindNotFound, "no such route: %s", requestLine(r))
}

// errMethod returns the error of a request whose route does not take its method.
func errMethod(r *http.Request) error {
	return mediagate.Errorf(mediagate.KindMethod, "method not allowed: %s", requestLine(r))
}

// longestTarget bounds how much of a request an answer repeats.
const longestTarget = 200

// requestLine returns the method and path of a request, in ASCII and without the query. It writes
// HEAD as GET, so that both get the same answer.
func requestLine(r *http.Request) string {
	text := r.Method + " " + r.URL.EscapedPath()
	if r.Method == http.MethodHead {
		text = http.MethodGet + " " + r.URL.EscapedPath()
	}
	if len(text) > longestTarget {
		return text[:longestTarget] + "…"
	}
	return text
}

// renderError writes the answer to a failed call.
func renderError(c *call, err error) error {
	e := domainError(err)
	r := renderingOf(e.Kind, c.envelope)
	message := messageOf(e, r)
	header := c.Response().Header()
	switch {
	case e.RetryAfter > 0:
		header.Set("Retry-After", strconv.FormatInt(seconds(e.RetryAfter), 10))
	case r.status == http.StatusServiceUnavailable:
		header.Set("Retry-After", "1")
	}
	if isFutile(c, r.status, header) {
		header.Set(shouldRetryHeader, "false")
	}
	if r.status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", "Bearer")
	}
	if c.envelope == envelopePage {
		return c.renderPage(r.status, message)
	}
	return c.json(r.status, envelopeOf(c, r, e, message))
}

// isFutile reports whether a retry of the call cannot help: the request conflicts with what is
// stored, it is not known how long to wait, or the failed call may have stored a task and a retry
// would store a second one.
func isFutile(c *call, status int, header http.Header) bool {
	return status == http.StatusConflict ||
		status == http.StatusTooManyRequests && header.Get("Retry-After") == "" ||
		status >= http.StatusInternalServerError && c.mayHaveTask
}

// seconds returns a duration in whole seconds, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func envelopeOf(c *call, r rendering, e *mediagate.Error, message string) envelopeBody {
	switch c.envelope {
	case envelopeMusic, envelopeReplace, envelopeOpenAI:
		b := errorB{Message: message, Type: r.wordB, Code: r.codeB, RequestID: c.requestID}
		if c.envelope == envelopeOpenAI {
			b.Type = r.word
		}
		if e.Param != "" {
			b.Param = e.Param
		}
		if e.Code != "" && (e.Kind == mediagate.KindConflict || e.Kind == mediagate.KindRateLimited) {
			b.Code = e.Code
		}
		return envelopeBody{Error: b}
	case envelopeUpload:
		return envelopeBody{Error: errorUpload{Message: nameField(message, e.Param), Type: r.wordB, RequestID: c.requestID}}
	case envelopeBalance:
		body := envelopeBody{Error: formA(c, r, e, message)}
		if e.Kind == mediagate.KindUnauthenticated {
			body.Success, body.Message = new(bool), message
		}
		return body
	default:
		return envelopeBody{Error: formA(c, r, e, nameField(message, e.Param))}
	}
}

func formA(c *call, r rendering, e *mediagate.Error, message string) errorA {
	a := errorA{Code: r.status, Message: message, Type: r.word, Reason: r.reason, RequestID: c.requestID}
	if e.Param != "" {
		a.Param = e.Param
	}
	if slices.Contains(reasons(), e.Code) {
		a.Reason = e.Code
	}
	return a
}

// reasons are all values of reason in form A.
var reasons = sync.OnceValue(func() []string {
	all := []string{
		mediagate.ReasonUnknownField, mediagate.ReasonRequired, mediagate.ReasonWrongType, mediagate.ReasonOutOfRange, mediagate.ReasonNotOneOf,
		mediagate.ReasonTooLong, mediagate.ReasonTooShort, mediagate.ReasonMalformed, mediagate.ReasonUnknownModel, mediagate.ReasonInvalidJSON,
		"idempotency_conflict", "group_saturated",
	}
	for _, r := range renderings {
		all = append(all, r.reason)
	}
	slices.Sort(all)
	return slices.Compact(all)
})

func messageOf(e *mediagate.Error, r rendering) string {
	switch {
	case r.messageAlways != "":
		return r.messageAlways
	case e.Message == "":
		return strings.ToLower(http.StatusText(r.status))
	case e.Err != nil: // the cause is for the log only
		return strings.TrimSuffix(e.Message, ": "+e.Err.Error())
	default:
		return e.Message
	}
}

// nameField puts the field's name before a message that is shown without a param. It adds nothing
// if the message names the field already, as "invalid task id" names task_id.
func nameField(message, param string) string {
	if param == "" || hasWord(message, param) || hasWord(message, strings.ReplaceAll(param, "_", " ")) {
		return message
	}
	return param + ": " + message
}

// hasWord reports whether the text contains the word as a whole word.
func hasWord(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		begin, end := from+i, from+i+len(word)
		if (begin == 0 || !isNameByte(text[begin-1])) && (end == len(text) || !isNameByte(text[end])) {
			return true
		}
		from = begin + 1
	}
}

func isNameByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}
