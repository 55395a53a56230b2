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

// RoundArgs names a delivery round. Attempt is 1-based.
type RoundArgs struct {
	TaskID  string `json:"task"`
	Round   int    `json:"round"`
	Attempt int    `json:"attempt,omitempty"`
	// Wait is how long the workflow will wait before the attempt after this
	// one; 0 when this is the last.
	Wait time.Duration `json:"wait,omitempty"`
}

// RoundState is how far a delivery round has come.
type RoundState struct {
	Open    bool      `json:"open"` // pending, and the newest round
	Attempt int       `json:"attempt"`
	NotTill time.Time `json:"not_till,omitzero"` // when the next attempt is due
}

// LoadRound reads how far the round has come, so that a replaced run goes on
// with the attempt that is due.
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
	state := RoundState{Open: open(target, in.Round), Attempt: 1}
	for _, d := range deliveries {
		if d.Round == in.Round && d.Attempt >= state.Attempt {
			state.Attempt, state.NotTill = d.Attempt+1, d.NextAttemptAt
		}
	}
	return state, nil
}

func open(target mediagate.WebhookTarget, round int) bool {
	return target.Round == round && target.State == mediagate.WebhookPending
}

// sentDelivery is an attempt that was made and is not on record yet.
type sentDelivery struct {
	Delivery mediagate.Delivery        `json:"delivery"`
	State    mediagate.WebhookState    `json:"state,omitempty"`
	Reason   string                    `json:"reason,omitempty"`
	Outcome  mediagate.DeliveryOutcome `json:"outcome"`
	Tries    int                       `json:"tries,omitempty"` // to record it
}

// DeliverWebhook makes one delivery attempt and records it, once there is a permit
// for it: an attempt that gets none has not begun. The receiver may
// see an attempt twice when the process dies between answer and record; the
// webhook id is the same. An attempt that cannot be recorded is remembered by
// the activity, whose repetitions only record it.
func (a *Activities) DeliverWebhook(ctx context.Context, in RoundArgs) (mediagate.DeliveryOutcome, error) {
	var made atomic.Pointer[sentDelivery] // which no beat may forget, the first one included
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
	if !open(target, in.Round) {
		return mediagate.DeliveryDrop, nil
	}
	recorded, err := a.recorded(ctx, in)
	if err != nil {
		return "", a.fail(ctx, err)
	}
	if recorded {
		return mediagate.DeliveryRetry, nil // on record, and the round is open: only our answer was lost
	}
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

// deliverWithPermits sends the callback once there is a permit for it.
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

// callbackPermits takes the permits for an attempt, and waits for moments. The permit of the
// receiver comes first, so an attempt that waits for a slow receiver holds no permit that other
// receivers need. Returns errNoPermit.
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

// deliverOnce sends the callback to its receiver.
func (a *Activities) deliverOnce(
	ctx context.Context, in RoundArgs, target mediagate.WebhookTarget,
) (sentDelivery, error) {
	if len(target.Body) == 0 {
		body, err := a.callbackBody(ctx, in.TaskID)
		if err != nil {
			return sentDelivery{}, err
		}
		if target.Body, err = a.Store.StoreWebhookBody(ctx, in.TaskID, body); err != nil {
			return sentDelivery{}, err
		}
		target.BodyAt = a.Now()
	}
	failpoint.Hit(failpoint.WebhookBeforeSend)
	start := a.Now()
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
	if result.Outcome == mediagate.DeliveryRetry && in.Wait > 0 {
		sent.Delivery.NextAttemptAt = end.Add(in.Wait)
	}
	sent.State, sent.Reason = webhookEnd(result, in.Wait == 0)
	return sent, nil
}

// callbackBody is the task as its callback shows it. It is made once, by the first
// attempt: all others send the same bytes (D14).
func (a *Activities) callbackBody(ctx context.Context, taskID string) ([]byte, error) {
	t, err := a.Store.TaskByID(ctx, taskID)
	if err != nil {
		return nil, err
	}
	t.Webhook = mediagate.Webhook{}
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
	recordFor   = time.Minute      // at most, while the database is away
	recordRest  = 3 * time.Second  // of an activity's time, to tell of what it did
	recordLate  = 20 * time.Second // at most between two tries to record what the database refuses
	recordTries = 20               // then the round ends, and its wake starts it anew
)

// recordSent records the attempt, and insists while the database is away. What
// it cannot record it leaves with the activity, which is then repeated at
// growing distances: a row that is refused will not be taken a second later.
func (a *Activities) recordSent(ctx context.Context, made *atomic.Pointer[sentDelivery]) error {
	sent := *made.Load()
	record := func(ctx context.Context) error {
		return a.Store.RecordDelivery(ctx, sent.Delivery, sent.State, sent.Reason)
	}
	err := record(ctx)
	if err == nil {
		return nil
	}
	sent.Tries++
	made.Store(&sent)
	activity.RecordHeartbeat(ctx, sent)
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
		// A kind that ends the activity.
		return &mediagate.Error{Kind: mediagate.KindConflict, Message: message, Err: err}
	}
	wait := min(time.Second<<min(sent.Tries, 10), recordLate)
	return &mediagate.Error{Kind: mediagate.KindOf(err), Message: message, RetryAfter: wait, Err: err}
}

// recorded reports that the attempt is on record.
func (a *Activities) recorded(ctx context.Context, in RoundArgs) (bool, error) {
	deliveries, err := a.Store.Deliveries(ctx, in.TaskID)
	return slices.ContainsFunc(deliveries, func(d mediagate.Delivery) bool {
		return d.Round == in.Round && d.Attempt == in.Attempt
	}), err
}

// webhookEnd is the state that an attempt leaves the callback in; empty while
// another attempt follows.
func webhookEnd(r mediagate.DeliveryResult, last bool) (state mediagate.WebhookState, reason string) {
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
