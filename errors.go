package mediagate

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// Kind classifies an Error. The list is closed and append-only.
type Kind uint8

// The kinds up to KindUnavailable describe an answer to a client, as do KindStalled, KindUnsupported,
// KindTimeout and KindFailed. The kinds from KindCredentials to KindVendor describe what a vendor did
// with a call, as does KindNoModel. KindShutOut says why no call was made.
const (
	KindInternal        Kind = iota // an internal error; its text never leaves the process
	KindInvalid                     // the request breaks a rule; the error names field and rule
	KindUnauthenticated             // no credentials, or unknown ones
	KindPayment                     // not enough balance
	KindForbidden                   // the caller is known, but not allowed
	KindNotFound                    // it does not exist, or is not the caller's
	KindMethod                      // the path exists, the method does not
	KindConflict                    // its state forbids the call
	KindTooLarge                    // the body is too large
	KindModerated                   // the content was refused
	KindRateLimited                 // too many requests
	KindBadGateway                  // a vendor failed a synchronous call
	KindUnavailable                 // a part that we need is away: try again

	KindCredentials // the vendor refused our credentials
	KindFunds       // our account with the vendor is out of money
	KindThrottled   // the vendor asks for fewer calls; the call had no effect
	KindCapacity    // the vendor's slots are full; the call had no effect
	KindUnreached   // nothing was sent: connection refused, no such host, too late
	KindTransient   // a read failed, and a retry may succeed
	KindAmbiguous   // the call may have had its effect
	KindGone        // a media link answers 401, 403, 404 or 410
	KindVendor      // the vendor's answer breaks its own protocol

	KindStalled // the client did not send its request in time

	KindShutOut // none of our channels takes new jobs

	KindUnsupported // the body has a form that is not supported

	KindTimeout // the task that the client waits for has not ended in time, and goes on
	KindFailed  // the task that the client waits for has failed

	KindNoModel // the vendor says that it has no such model
)

var kindNames = [...]string{
	"internal", "invalid", "unauthenticated", "payment", "forbidden", "not_found", "method", "conflict",
	"too_large", "moderated", "rate_limited", "bad_gateway", "unavailable", "credentials", "funds", "throttled",
	"capacity", "unreached", "transient", "ambiguous", "gone", "vendor", "stalled", "shut_out", "unsupported", "timeout",
	"failed", "no_model",
}

// String returns the kind in lower case, for logs and Temporal's error types.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "internal"
}

// ParseKind is the inverse of Kind.String. An unknown name is KindInternal.
func ParseKind(s string) Kind {
	for i, name := range kindNames {
		if name == s {
			return Kind(i)
		}
	}
	return KindInternal
}

// Error is the one error type of the gateway. Message is safe to show to the client or operator
// whom the kind concerns. Err is for logs only.
type Error struct {
	Kind       Kind
	Code       string // a stable word: the envelope's code, the reason for a refusal, or a task's failure code
	Message    string
	Param      string // the field at fault, such as multi_prompt[0].duration
	RetryAfter time.Duration
	Err        error
}

// Error writes kind, message and cause, for logs.
func (e *Error) Error() string {
	s := e.Kind.String() + ": " + e.Message
	if e.Param != "" {
		s += " (" + e.Param + ")"
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// NotEnough is the error of a hold that a balance, quota or cap cannot cover. The reason names
// which.
func NotEnough(reason string, needed, left Micros) *Error {
	return &Error{
		Kind: KindPayment, Code: "quota_not_enough",
		Message: fmt.Sprintf("%s: %s is needed, %s is left", reason, needed, max(left, 0)),
	}
}

// ErrHeldUp is the cause of a KindUnreached that says nothing about the vendor: the call was not
// made, because its time or memory had run out here. Slow servers of clients can cause that, too.
var ErrHeldUp = errors.New("held up on our side")

// Errorf makes an Error of the kind. The format's %w verb sets Err. If it stands at the end,
// after a colon, the cause stays out of the message.
func Errorf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	e := &Error{Kind: kind, Message: err.Error(), Err: errors.Unwrap(err)}
	if e.Err != nil {
		e.Message = strings.TrimSuffix(e.Message, ": "+e.Err.Error())
	}
	return e
}

// Invalid makes a KindInvalid error that names the field.
func Invalid(param, format string, args ...any) *Error {
	return &Error{Kind: KindInvalid, Message: fmt.Sprintf(format, args...), Param: param}
}

// The reasons for a refusal, in addition to those of the kinds.
const (
	ReasonUnknownField = "unknown_field"
	ReasonRequired     = "required"
	ReasonWrongType    = "wrong_type"
	ReasonOutOfRange   = "out_of_range"
	ReasonNotOneOf     = "not_one_of"
	ReasonTooLong      = "too_long"
	ReasonTooShort     = "too_short"
	ReasonMalformed    = "malformed"
	ReasonUnknownModel = "unknown_model"
	ReasonInvalidJSON  = "invalid_json"
)

// Because sets the reason code of the error and returns it.
func (e *Error) Because(reason string) *Error {
	e.Code = reason
	return e
}

// Quote quotes a client's text for a message, and shortens it.
func Quote(s string) string {
	const most = 100
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return strconv.Quote(s)
}

// Is reports whether err has the kind. A nil error has none.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }

// KindOf returns the kind of the first Error in err's chain, or KindInternal if there is none. Do
// not call it with nil.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return KindInternal
}

var panics atomic.Int64

// Panics returns how many panics this process has turned into errors.
func Panics() int64 { return panics.Load() }

// Panicked turns what recover returned into an error, with the stack as its cause. It includes
// the text of a runtime error. Of any other value it includes only the type: the value may hold
// something that must not be logged, such as a request or a key, and the stack shows the place.
func Panicked(value any) *Error {
	panics.Add(1)
	text := fmt.Sprintf("with a %T", value)
	if fault, ok := value.(runtime.Error); ok {
		text = fault.Error()
	}
	return &Error{Kind: KindInternal, Message: "panic", Err: fmt.Errorf("%s\n%s", text, debug.Stack())}
}

// Guarded calls f and turns a panic into an error.
func Guarded(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = Panicked(value)
		}
	}()
	return f()
}

// TroubleOf returns why polling for a job cannot go on, given the error of a poll: the vendor
// does not show us the job, or there is no account to ask with. It returns "" for other errors,
// since the next poll may succeed.
func TroubleOf(err error) ParkReason {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return ""
	}
	switch reason := ParkReason(e.Code); {
	case reason == ParkChannelMissing || reason == ParkJobLost:
		return reason
	case e.Kind == KindCredentials || e.Kind == KindForbidden:
		return ParkCredentials
	case e.Kind == KindFunds:
		return ParkFunds
	default:
		return ""
	}
}
