package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/task/view"
)

// RoundArgs names a delivery round. The first Attempt is 1.
type RoundArgs struct {
	TaskID  string `json:"task"`
	Round   int    `json:"round"`
	Attempt int    `json:"attempt,omitempty"`
	// Wait is how long the workflow will wait before the next attempt. It is 0 if this is the
	// last one.
	Wait time.Duration `json:"wait,omitempty"`
}

// RoundState is how far a delivery round has come.
type RoundState struct {
	Open      bool      `json:"open"` // the round is pending, and the newest one
	Attempt   int       `json:"attempt"`
	NotBefore time.Time `json:"not_till,omitzero"` // when the next attempt is due
}

// LoadRound reads how far the round has come, so that a run that replaces another continues with
// the attempt that is due. For example, attempts 1 and 2 are on record, and attempt 2 says that the
// next one is due at 12:00:40. Then a new run waits until 12:00:40 and makes attempt 3. A task that
// is gone has no open round.
func (a *Activities) LoadRound(ctx context.Context, in RoundArgs) (RoundState, error) {
	target, err := a.Store.WebhookTarget(ctx, in.TaskID, in.Round)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return RoundState{}, nil
	}
	if err != nil {
		return RoundState{}, a.fail(ctx, err)
	}
	deliveries, err := a.Store.Deliveries(ctx, in.TaskID)
	if err != nil {
		return RoundState{}, a.fail(ctx, err)
	}
	// The attempt after the last one on record is due.
	state := RoundState{Open: isOpen(target, in.Round), Attempt: 1}
	for _, d := range deliveries {
		if d.Round == in.Round && d.Attempt >= state.Attempt {
			state.Attempt, state.NotBefore = d.Attempt+1, d.NextAttemptAt
		}
	}
	return state, nil
}

// isOpen reports whether the round is the newest one and still pending.
func isOpen(target mediagate.WebhookTarget, round int) bool {
	return target.Round == round && target.State == mediagate.WebhookPending
}

// sentDelivery is an attempt that was made and is not on record yet. It holds no body and no
// address, since it is part of a heartbeat. State and Reason are what the callback's row gets with
// the record.
type sentDelivery struct {
	Delivery mediagate.Delivery        `json:"delivery"`
	State    mediagate.WebhookState    `json:"state,omitempty"`
	Reason   string                    `json:"reason,omitempty"`
	Outcome  mediagate.DeliveryOutcome `json:"outcome"`
	Tries    int                       `json:"tries,omitempty"` // how often recording it was tried
}

// DeliverWebhook makes one delivery attempt and records it. The attempt begins only once there
// are permits for it. If the process dies between the receiver's answer and the record, the
// receiver may see an attempt twice, with the same webhook id. If an attempt cannot be recorded,
// the activity remembers it in its heartbeat, and its repetitions only record it.
//
// The order is: check that the round is open, check the record, take permits, send, record. The
// check of the record comes before the sending, so that a repetition whose answer was lost does not
// send twice.
func (a *Activities) DeliverWebhook(ctx context.Context, in RoundArgs) (mediagate.DeliveryOutcome, error) {
	var made atomic.Pointer[sentDelivery] // in every heartbeat, from the first on
	var sent sentDelivery
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &sent) == nil {
		made.Store(&sent)
	}
	defer heartbeat(ctx, func() []any {
		if sent := made.Load(); sent != nil {
			return []any{*sent}
		}
		return noDetails()
	}, nil)()
	target, err := a.Store.WebhookTarget(ctx, in.TaskID, in.Round)
	if mediagate.Is(err, mediagate.KindNotFound) {
		return mediagate.DeliveryDrop, nil
	}
	if err != nil {
		return "", a.fail(ctx, err)
	}
	// A newer round has begun, or the round has ended. The workflow ends with this outcome.
	if !isOpen(target, in.Round) {
		return mediagate.DeliveryDrop, nil
	}
	// A try before may have sent and recorded the attempt.
	recorded, err := a.isRecorded(ctx, in)
	if err != nil {
		return "", a.fail(ctx, err)
	}
	if recorded {
		return mediagate.DeliveryRetry, nil // it failed, since the round is open; only our answer was lost
	}
	// The try before may have sent the attempt without recording it. Then only the record is
	// missing.
	if made.Load() == nil {
		if sent, err = a.deliverWithPermits(ctx, in, target); err != nil {
			return "", a.fail(ctx, err)
		}
		made.Store(&sent)
	}
	if err := a.recordSent(ctx, &made); err != nil {
		return "", a.fail(ctx, err)
	}
	return sent.Outcome, nil
}

// deliverWithPermits sends the callback once there are permits for it. Without permits it fails
// with a growing pause, which counts as no attempt at the receiver.
func (a *Activities) deliverWithPermits(
	ctx context.Context, in RoundArgs, target mediagate.WebhookTarget,
) (sentDelivery, error) {
	release, err := a.callbackPermits(ctx, target)
	if errors.Is(err, errNoPermit) {
		err = comeAgain(ctx, "other callbacks of the account")
	}
	if err != nil {
		return sentDelivery{}, err
	}
	defer release()
	return a.deliverOnce(ctx, in, target)
}

// callbackPermits takes the permits for an attempt, and waits a few seconds for them. It takes
// the permit for the receiver first, so an attempt that waits for a slow receiver holds no permit
// that other receivers need. It returns errNoPermit if one of the two is not free in time.
//
// The receiver's permit is one of a limit that belongs to the account, so a slow receiver takes
// nothing from other accounts. The second permit is one of the limit for all callbacks of the
// process.
func (a *Activities) callbackPermits(
	ctx context.Context, target mediagate.WebhookTarget,
) (release func(), err error) {
	receiver, err := waitForPermit(ctx, a.Settings.PermitWait, func(ctx context.Context) (*limit.Permit, error) {
		return a.Limits.Receivers.Acquire(ctx, target.AccountID, outbound.Receiver(target.URL), 1)
	})
	if err != nil {
		return nil, err
	}
	callback, err := waitForPermit(ctx, a.Settings.PermitWait, func(ctx context.Context) (*limit.Permit, error) {
		return a.Limits.Callbacks.Acquire(ctx, target.AccountID, 1)
	})
	if err != nil {
		receiver.Release()
		return nil, err
	}
	return func() {
		callback.Release()
		receiver.Release()
	}, nil
}

// deliverOnce sends the callback to its receiver. It stores nothing about the attempt: its caller
// does.
func (a *Activities) deliverOnce(
	ctx context.Context, in RoundArgs, target mediagate.WebhookTarget,
) (sentDelivery, error) {
	if len(target.Body) == 0 {
		body, err := a.callbackBody(ctx, in.TaskID)
		if err != nil {
			return sentDelivery{}, err
		}
		// Another attempt may have stored a body meanwhile. The stored body counts, so that all
		// attempts send the same bytes.
		if target.Body, err = a.Store.StoreWebhookBody(ctx, in.TaskID, body); err != nil {
			return sentDelivery{}, err
		}
	}
	failpoint.Hit(failpoint.WebhookBeforeSend)
	start := a.Now()
	// An error says nothing about the receiver, so it does not count as an attempt.
	result, err := a.Deliverer.Deliver(ctx, in.TaskID, target)
	if err != nil {
		return sentDelivery{}, err
	}
	end := a.Now()
	failpoint.Hit(failpoint.WebhookSent)

	sent := sentDelivery{Outcome: result.Outcome, Delivery: mediagate.Delivery{
		TaskID: in.TaskID, Round: in.Round, Attempt: in.Attempt, At: start,
		Status: result.Status, Error: result.Error, Duration: end.Sub(start),
	}}
	// A run that replaces this one reads from here when the next attempt is due.
	if result.Outcome == mediagate.DeliveryRetry && in.Wait > 0 {
		sent.Delivery.NextAttemptAt = end.Add(in.Wait)
	}
	sent.State, sent.Reason = stateAfter(result, in.Wait == 0)
	return sent, nil
}

// callbackBody returns the task as its callback shows it. The first attempt makes the body, and all
// others send the same bytes (D14). It signs the links of the results anew.
func (a *Activities) callbackBody(ctx context.Context, taskID string) ([]byte, error) {
	t, err := a.Store.TaskByID(ctx, taskID)
	if err != nil {
		return nil, err
	}
	// The state of the callback would say that it is pending, in the callback itself.
	t.Webhook = mediagate.Webhook{}
	// Messages of failures may repeat the request.
	if !t.InputsErasedAt.IsZero() {
		t = t.WithoutInputs()
	}
	signed := view.Links{Sign: a.Bucket.Sign, TTL: a.Settings.LinkTTL, Keep: a.Settings.Keep, Now: a.Now}
	links, err := signed.Of(ctx, &t)
	if err != nil {
		return nil, fmt.Errorf("sign the callback's link: %w", err)
	}
	return view.Of(&t, a.Settings.CreditsPerUnit, links).JSON()
}

const (
	recordFor   = time.Minute      // the longest time to try, while the database is away
	recordRest  = 3 * time.Second  // the part of an activity's time that is kept for its result
	recordLate  = 20 * time.Second // the longest pause between two tries, if the database refuses the record
	recordTries = 20               // after these the round ends, and its wake starts it anew
)

// recordSent records the attempt, and tries again while the database is away. If the attempt
// cannot be recorded, the activity remembers it and is repeated with growing pauses: a row that
// the database refuses is not accepted one second later.
//
// For example, the receiver answers at 12:00:00 and the database is away until 12:00:20. The
// activity stays in recordSent until then and does not call the receiver again. If its worker dies
// at 12:00:10, the next try finds the attempt in the heartbeat, and only records it.
func (a *Activities) recordSent(ctx context.Context, made *atomic.Pointer[sentDelivery]) error {
	sent := *made.Load()
	// A repeated record replaces the same row, so it may be tried often.
	record := func(ctx context.Context) error {
		return a.Store.RecordDelivery(ctx, sent.Delivery, sent.State, sent.Reason)
	}
	err := record(ctx)
	if err == nil {
		return nil
	}
	// From here on the attempt is made but not on record. Put it into the heartbeat before
	// anything can fail.
	sent.Tries++
	made.Store(&sent)
	activity.RecordHeartbeat(ctx, sent)
	// The database is away. Wait for it within the activity, whose heartbeats remember the
	// attempt.
	if mediagate.Is(err, mediagate.KindUnavailable) {
		left := recordFor
		if deadline, ok := ctx.Deadline(); ok {
			left = min(left, time.Until(deadline)-recordRest)
		}
		err = a.persistWithin(ctx, left, record)
	}
	if err == nil || mediagate.Is(err, mediagate.KindUnavailable) {
		return err
	}
	const message = "the delivery attempt was made and could not be recorded"
	if sent.Tries >= recordTries {
		// KindConflict ends the activity.
		return &mediagate.Error{Kind: mediagate.KindConflict, Message: message, Err: err}
	}
	// The pauses are 2, 4, 8, 16 and then 20 seconds.
	wait := min(time.Second<<min(sent.Tries, 10), recordLate)
	return &mediagate.Error{Kind: mediagate.KindOf(err), Message: message, RetryAfter: wait, Err: err}
}

// isRecorded reports whether the attempt is on record.
func (a *Activities) isRecorded(ctx context.Context, in RoundArgs) (bool, error) {
	deliveries, err := a.Store.Deliveries(ctx, in.TaskID)
	return slices.ContainsFunc(deliveries, func(d mediagate.Delivery) bool {
		return d.Round == in.Round && d.Attempt == in.Attempt
	}), err
}

// stateAfter returns the state in which an attempt leaves the callback. It is empty if another
// attempt follows. A refusal with a 4xx, and an address that breaks a rule, end the round at once:
// another attempt would meet the same.
func stateAfter(r mediagate.DeliveryResult, last bool) (state mediagate.WebhookState, reason string) {
	switch r.Outcome {
	case mediagate.DeliveryDone:
		return mediagate.WebhookDelivered, ""
	case mediagate.DeliveryDrop:
		return mediagate.WebhookDropped, r.Reason
	case mediagate.DeliveryAbandon:
		return mediagate.WebhookAbandoned, r.Reason
	default:
		if last {
			return mediagate.WebhookAbandoned, "no attempt succeeded"
		}
		return "", ""
	}
}
