package activities

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media"
)

// captured holds the cause of a failed activity attempt. CaptureCause puts it into the context of
// the attempt.
type captured struct{ cause atomic.Pointer[error] }

// capturedKey is the key of the captured cause in a context.
type capturedKey struct{}

// CaptureCause lets a caller log each activity attempt in one line. In the returned context the
// activity does not log the cause of its failure itself; the function cause returns it to the
// caller.
func CaptureCause(ctx context.Context) (_ context.Context, cause func(failure error) error) {
	n := &captured{}
	return context.WithValue(ctx, capturedKey{}, n), func(failure error) error {
		if err := n.cause.Load(); err != nil && failure != nil {
			return *err
		}
		return failure
	}
}

// fail returns the error with which an activity ends. The cause stays in this process, for the log;
// Temporal stores only the kind. A history is kept for weeks and read by operators, and an error
// may hold a vendor's words or an address.
func (a *Activities) fail(ctx context.Context, err error) error {
	// An error of ours that wraps no other says all that there is to know. It needs no line in the
	// log.
	if e, ok := errors.AsType[*mediagate.Error](err); err != nil && (!ok || e.Err != nil) {
		if n, ok := ctx.Value(capturedKey{}).(*captured); ok {
			n.cause.Store(&err)
			return toTemporal(err)
		}
		info := activity.GetInfo(ctx)
		a.Logger.WarnContext(ctx, "activity failed", "activity", info.ActivityType.Name,
			"workflow", info.WorkflowExecution.ID, "run", info.WorkflowExecution.RunID, "attempt", info.Attempt,
			"error", err)
	}
	return toTemporal(err)
}

// Guarded runs an activity attempt. If the attempt panics, Temporal by itself would store the
// value of the panic. Guarded turns it into an ordinary error, whose cause stays in this process.
func Guarded(ctx context.Context, run func() (any, error)) (result any, err error) {
	defer func() {
		if value := recover(); value != nil {
			var cause error = mediagate.Panicked(value)
			if n, ok := ctx.Value(capturedKey{}).(*captured); ok {
				n.cause.Store(&cause)
			}
			result, err = nil, toTemporal(cause)
		}
	}()
	return run()
}

// lastTry marks the error of a step that has used up its tries: Temporal does not retry it,
// although its kind would allow that. The run then asks, and the row decides what follows.
type lastTry struct{ error }

// Unwrap returns the error.
func (l lastTry) Unwrap() error { return l.error }

// errStepLost ends a step whose last try was lost with its worker.
var errStepLost = mediagate.Errorf(mediagate.KindTransient, "the step took too long")

// failTry is fail for a step that counts its tries. After the last one the step is not tried again.
// Tries without a permit do not count, see tryOf.
func (a *Activities) failTry(ctx context.Context, err error, tries int32) error {
	if tryOf(ctx) >= tries {
		err = lastTry{err}
	}
	return a.fail(ctx, err)
}

// toTemporal turns an error into an application error. Its type is the kind, and its details are
// the code. Errors of a kind that a repetition cannot mend are not retried. Only a fault of ours,
// or of a vendor's protocol, should raise an alarm; all others are marked as benign.
//
// RetryAfter becomes the pause before Temporal's next try. Zero means that the policy of the
// activity decides.
func toTemporal(err error) error {
	if err == nil {
		return nil
	}
	kind := mediagate.KindOf(err)
	_, last := errors.AsType[lastTry](err)
	opts := temporal.ApplicationErrorOptions{NonRetryable: isFinal(kind) || last}
	code := ""
	if e, ok := errors.AsType[*mediagate.Error](err); ok {
		code, opts.NextRetryDelay = e.Code, max(e.RetryAfter, 0)
	}
	opts.Details = []any{code}
	if kind != mediagate.KindInternal && kind != mediagate.KindVendor { // the cause is outside
		opts.Category = temporal.ApplicationErrorCategoryBenign
	}
	return temporal.NewApplicationErrorWithOptions(messageOf(err), kind.String(), opts)
}

// isFinal reports whether trying the same again cannot succeed. For example, KindUnavailable,
// KindTransient, KindCapacity and KindInternal are not final: time may mend their causes.
func isFinal(k mediagate.Kind) bool {
	switch k {
	case mediagate.KindInvalid, mediagate.KindConflict, mediagate.KindNotFound, mediagate.KindGone,
		mediagate.KindModerated, mediagate.KindCredentials, mediagate.KindFunds, mediagate.KindForbidden,
		mediagate.KindTooLarge, mediagate.KindShutOut, mediagate.KindNoModel:
		return true
	default:
		return false
	}
}

// FromTemporal returns the kind, code and message of an activity's error. A timeout or a lost
// worker is KindTransient. Any other error is KindInternal, with a message that does not name the
// cause.
func FromTemporal(err error) *mediagate.Error {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		var code string
		if app.HasDetails() {
			_ = app.Details(&code)
		}
		return &mediagate.Error{Kind: mediagate.ParseKind(app.Type()), Code: code, Message: app.Message(), Err: err}
	}
	if _, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return &mediagate.Error{Kind: mediagate.KindTransient, Message: "the step took too long", Err: err}
	}
	return &mediagate.Error{Kind: mediagate.KindInternal, Message: "internal error", Err: err}
}

// NoFault reports whether an activity failed only because its worker lacks the channel, because it
// waits for a permit, or because no channel takes jobs. A channel that is out is logged once, by
// its breaker. Each parked task would otherwise log it again at each of its tries.
func NoFault(err error) bool {
	e := FromTemporal(err)
	return e.Code == codeElsewhere || e.Code == codeNoPermit || e.Kind == mediagate.KindShutOut
}

// messageOf returns the message of an error of ours, which others may read. For any other error it
// returns "internal error".
func messageOf(err error) string {
	if e, ok := errors.AsType[*mediagate.Error](err); ok {
		return e.Message
	}
	return "internal error"
}

const (
	// leastWords is the length, in bytes, of the shortest text of a request that is removed.
	// Shorter texts may be words that vendors use themselves.
	leastWords = 16
	omitted    = "…"
)

// withoutRequest removes from a vendor's text whatever repeats the request: whole texts, and also
// beginnings of texts, since vendors shorten what they repeat. It is for logs, which must not hold
// the words of clients.
func withoutRequest(text string, params json.RawMessage) string {
	var request any
	if json.Unmarshal(params, &request) != nil {
		return text
	}
	_, _ = media.EachText(request, func(words string) (string, error) { // never fails
		text = withoutWords(text, words)
		return words, nil
	})
	return text
}

// withoutWords removes words, and their beginnings, from a text. It finds the first leastWords
// bytes of words, and removes from there on all that the two texts have in common. For example, if
// the prompt is "A red fox runs through the snow" and the vendor says "A red fox runs through… is
// refused", the log says "…… is refused".
func withoutWords(text, words string) string {
	if len(words) < leastWords {
		return text
	}
	start := words[:leastWords]
	for !utf8.ValidString(start) { // the cut may be within a character
		start = start[:len(start)-1]
	}
	var kept strings.Builder
	for {
		before, after, found := strings.Cut(text, start)
		kept.WriteString(before)
		if !found {
			return kept.String()
		}
		kept.WriteString(omitted)
		text = after[commonPrefix(after, words[len(start):]):]
	}
}

// commonPrefix returns how many bytes at the beginning of a and b are the same. It counts whole
// characters, so that the cut leaves valid UTF-8.
func commonPrefix(a, b string) int {
	n := 0
	for i, r := range b {
		if !strings.HasPrefix(a[i:], string(r)) {
			break
		}
		n = i + utf8.RuneLen(r)
	}
	return n
}
