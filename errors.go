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

// The kinds up to KindUnavailable describe an answer to a client, as does
// KindStalled, KindUnsupported, KindTimeout and KindFailed; those between describe what a vendor did with a call, and
// KindShutOut why none was made. KindNoModel is what a vendor did, too.
const (
	KindInternal        Kind = iota // a fault of ours; its text never leaves the process
	KindInvalid                     // the request breaks a rule: names field and rule
	KindUnauthenticated             // no credentials, or none that we know
	KindPayment                     // not enough balance
	KindForbidden                   // known, but not allowed
	KindNotFound                    // no such thing, or not the caller's
	KindMethod                      // the path exists, the method does not
	KindConflict                    // the state of the thing forbids it
	KindTooLarge                    // the body is over its bound
	KindModerated                   // content was refused
	KindRateLimited                 // too many requests
	KindBadGateway                  // a vendor failed a synchronous call
	KindUnavailable                 // a part we need is away: try again

	KindCredentials // the vendor refused our credentials
	KindFunds       // our account with the vendor is out of money
	KindThrottled   // the vendor asks for fewer calls; the call had no effect
	KindCapacity    // the vendor's slots are full; the call had no effect
	KindUnreached   // nothing was sent: refused connection, no such host, too late
	KindTransient   // a read failed in a way that a repetition may mend
	KindAmbiguous   // the call may or may not have had its effect
	KindGone        // a media link answers 401, 403, 404 or 410
	KindVendor      // the vendor answers against its own protocol

	KindStalled // the client did not send its request in time

	KindShutOut // none of our channels takes new jobs

	KindUnsupported // the body comes in a form that nobody here reads

	KindTimeout // what the client waits for has not come in time; it goes on
	KindFailed  // the task that the client waits for has failed

	KindNoModel // the vendor says that it has no such model
)

var kindNames = [...]string{
	"internal", "invalid", "unauthenticated", "payment", "forbidden", "not_found", "method", "conflict",
	"too_large", "moderated", "rate_limited", "bad_gateway", "unavailable", "credentials", "funds", "throttled",
	"capacity", "unreached", "transient", "ambiguous", "gone", "vendor", "stalled", "shut_out", "unsupported", "timeout", "failed",
	"no_model",
}

// String names the kind in lower case, for logs and for Temporal's error types.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "internal"
}

// ParseKind is the inverse of Kind.String; an unknown name is KindInternal.
func ParseKind(s string) Kind {
	for i, name := range kindNames {
		if name == s {
			return Kind(i)
		}
	}
	return KindInternal
}

// Error is the one error type of the gateway. Message is safe to show to
// whoever the kind addresses; Err is for logs only.
type Error struct {
	Kind       Kind
	Code       string // a stable word: the envelope's code, why a request is refused, or a task's failure code
	Message    string
	Param      string // the field at fault, as multi_prompt[0].duration
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

// Short is the error of a hold for which something has too little money left. The
// reason says what.
func Short(reason string, needed, left Micros) *Error {
	return &Error{
		Kind: KindPayment, Code: "quota_not_enough",
		Message: fmt.Sprintf("%s: %s is needed, %s is left", reason, needed, max(left, 0)),
	}
}

// ErrHeldUp is the cause of a KindUnreached that says nothing of the vendor: it
// was not tried, since the time or the memory for the call had run out here. Both
// are up to the servers of clients, too.
var ErrHeldUp = errors.New("held up on our side")

// Errorf makes an Error of the kind. A %w verb sets its cause; at the end of
// the format, after a colon, the cause stays out of the message.
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

// Words for why a request is refused, beside those of the kinds.
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

// Because is the error with a word for why, which is returned.
func (e *Error) Because(reason string) *Error {
	e.Code = reason
	return e
}

// Quote puts a client's text in quotes for a message, cut to a readable length.
func Quote(s string) string {
	const most = 100
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "…"
	}
	return strconv.Quote(s)
}

// Is reports whether err is of the kind; nil is of none.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }

// KindOf returns the kind of the first Error in err's chain, and KindInternal
// for foreign errors. KindOf(nil) is meaningless.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return KindInternal
}

var panics atomic.Int64

// Panics counts what this process made errors of with Panicked.
func Panics() int64 { return panics.Load() }

// Panicked makes an error of what recover returned, with the stack as its cause.
// A fault that the runtime found is told in its words. Of any other value only
// the type is: it may hold what no log may have, such as a request or a key, and
// the stack says where to look.
func Panicked(value any) *Error {
	panics.Add(1)
	text := fmt.Sprintf("with a %T", value)
	if fault, ok := value.(runtime.Error); ok {
		text = fault.Error()
	}
	return &Error{Kind: KindInternal, Message: "panic", Err: fmt.Errorf("%s\n%s", text, debug.Stack())}
}

// Guarded is what f returns; a panic is an error like any other.
func Guarded(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = Panicked(value)
		}
	}()
	return f()
}

// TroubleOf says which trouble it is when the vendor, asked for a job, answers
// with err: that it does not let us see the job, or that we have nobody to
// ask. Others are no trouble: the answer may come next time.
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
