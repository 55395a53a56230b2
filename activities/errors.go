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

// noted is where an attempt's cause goes that is logged by somebody else.
type noted struct{ cause atomic.Pointer[error] }

type notedKey struct{}

// Noting is for who logs an activity attempt as a whole: the cause of its
// failure is then told by cause, and not logged here as well.
func Noting(ctx context.Context) (_ context.Context, cause func(failure error) error) {
	n := &noted{}
	return context.WithValue(ctx, notedKey{}, n), func(failure error) error {
		if err := n.cause.Load(); err != nil && failure != nil {
			return *err
		}
		return failure
	}
}

// fail is how an activity ends without a result. The cause stays in this
// process, for the log; what Temporal stores names only the kind.
func (a *Activities) fail(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*mediagate.Error](err); err != nil && (!ok || e.Err != nil) {
		if n, ok := ctx.Value(notedKey{}).(*noted); ok {
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

// Guarded runs an activity attempt. Where it panics, what Temporal would store by
// itself holds the value of the panic; here that is an error like any other,
// whose cause stays in this process.
func Guarded(ctx context.Context, run func() (any, error)) (result any, err error) {
	defer func() {
		if value := recover(); value != nil {
			var cause error = mediagate.Panicked(value)
			if n, ok := ctx.Value(notedKey{}).(*noted); ok {
				n.cause.Store(&cause)
			}
			result, err = nil, toTemporal(cause)
		}
	}()
	return run()
}

// lastTry is an error of a step that is not tried again, though it could.
type lastTry struct{ error }

// Unwrap is the error.
func (l lastTry) Unwrap() error { return l.error }

// errStepLost is the end of a step whose last try was lost with its worker.
var errStepLost = mediagate.Errorf(mediagate.KindTransient, "the step took too long")

// failTry is fail for a step that counts its tries, and ends with the last.
func (a *Activities) failTry(ctx context.Context, err error, tries int32) error {
	if tryOf(ctx) >= tries {
		err = lastTry{err}
	}
	return a.fail(ctx, err)
}

// toTemporal turns an error into an application error whose type is the kind
// and whose details are the code. Kinds that a repetition cannot mend are not retried.
// Only a fault of ours, or of a vendor's protocol, should raise alarms.
func toTemporal(err error) error {
	if err == nil {
		return nil
	}
	kind := mediagate.KindOf(err)
	_, last := errors.AsType[lastTry](err)
	opts := temporal.ApplicationErrorOptions{NonRetryable: final(kind) || last}
	code := ""
	if e, ok := errors.AsType[*mediagate.Error](err); ok {
		code, opts.NextRetryDelay = e.Code, max(e.RetryAfter, 0)
	}
	opts.Details = []any{code}
	if kind != mediagate.KindInternal && kind != mediagate.KindVendor { // it says something of the outside
		opts.Category = temporal.ApplicationErrorCategoryBenign
	}
	return temporal.NewApplicationErrorWithOptions(messageOf(err), kind.String(), opts)
}

// final reports that trying the same again cannot succeed.
func final(k mediagate.Kind) bool {
	switch k {
	case mediagate.KindInvalid, mediagate.KindConflict, mediagate.KindNotFound, mediagate.KindGone,
		mediagate.KindModerated, mediagate.KindCredentials, mediagate.KindFunds, mediagate.KindForbidden,
		mediagate.KindTooLarge, mediagate.KindShutOut, mediagate.KindNoModel:
		return true
	default:
		return false
	}
}

// FromTemporal recovers kind, code and message of the error that an activity
// returned. A timeout or a lost worker is KindTransient.
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

// NoFault reports that an activity failed only for running where its channel is
// not configured, since it waits for a permit, or since no channel takes jobs: that the
// channel is out was told once, and each parked task would tell it again with each of its
// tries.
func NoFault(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok {
		return false
	}
	e := FromTemporal(app)
	return e.Code == codeElsewhere || e.Code == codeNoPermit || e.Kind == mediagate.KindShutOut
}

// messageOf is what an error says to whom its kind addresses.
func messageOf(err error) string {
	if e, ok := errors.AsType[*mediagate.Error](err); ok {
		return e.Message
	}
	return "internal error"
}

const (
	// leastWords is the shortest text of a request, in bytes, that is looked for:
	// shorter ones are words that vendors use themselves.
	leastWords = 16
	omitted    = "…"
)

// withoutRequest is a vendor's text without what it repeats of the request: whole
// texts, and the beginnings of such, since vendors cut what they repeat. It is for
// logs, where words of clients are nobody's business.
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

func withoutWords(text, words string) string {
	if len(words) < leastWords {
		return text
	}
	start := words[:leastWords]
	for !utf8.ValidString(start) { // a cut within a character
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
		text = after[repeated(after, words[len(start):]):]
	}
}

// repeated is how many bytes the two begin with alike.
func repeated(a, b string) int {
	n := 0
	for i, r := range b {
		if !strings.HasPrefix(a[i:], string(r)) {
			break
		}
		n = i + utf8.RuneLen(r)
	}
	return n
}
