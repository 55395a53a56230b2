package activities

import (
	"context"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/failpoint"
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
	if mediagate.KindOf(err) == mediagate.KindNotFound && err != nil {
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
	return target.Round == round && target.State == mediagate.WebhookPending && len(target.Body) > 0
}

// DeliverWebhook makes one delivery attempt and records it. The receiver may
// see an attempt twice when the process dies between answer and record; the
// webhook id is the same.
func (a *Activities) DeliverWebhook(ctx context.Context, in RoundArgs) (Verdict, error) {
	target, err := a.Store.WebhookTarget(ctx, in.TaskID, in.Round)
	if mediagate.KindOf(err) == mediagate.KindNotFound && err != nil {
		return VerdictDrop, nil
	}
	if err != nil {
		return "", a.fail(ctx, err)
	}
	if !open(target, in.Round) {
		return VerdictDrop, nil
	}
	made, err := a.made(ctx, in)
	if err != nil {
		return "", a.fail(ctx, err)
	}
	if made {
		return VerdictRetry, nil // on record, and the round is open: only our answer was lost
	}
	failpoint.Hit(failpoint.WebhookBeforeSend)
	start := a.Now()
	result, err := a.Deliverer.Deliver(ctx, in.TaskID, target)
	if err != nil {
		return "", a.fail(ctx, err)
	}
	end := a.Now()
	failpoint.Hit(failpoint.WebhookSent)

	delivery := mediagate.Delivery{
		TaskID: in.TaskID, Round: in.Round, Attempt: in.Attempt, At: start,
		Status: result.Status, Error: result.Error, Duration: end.Sub(start),
	}
	if result.Verdict == VerdictRetry && in.Wait > 0 {
		delivery.NextAttemptAt = end.Add(in.Wait)
	}
	state, reason := webhookEnd(result, in.Wait == 0)
	if err := a.Store.RecordDelivery(ctx, delivery, state, reason); err != nil {
		return "", a.fail(ctx, err)
	}
	return result.Verdict, nil
}

// made reports that the attempt is on record.
func (a *Activities) made(ctx context.Context, in RoundArgs) (bool, error) {
	deliveries, err := a.Store.Deliveries(ctx, in.TaskID)
	return slices.ContainsFunc(deliveries, func(d mediagate.Delivery) bool {
		return d.Round == in.Round && d.Attempt == in.Attempt
	}), err
}

// webhookEnd is the state that an attempt leaves the callback in; empty while
// another attempt follows.
func webhookEnd(r DeliveryResult, last bool) (state mediagate.WebhookState, reason string) {
	switch r.Verdict {
	case VerdictDelivered:
		return mediagate.WebhookDelivered, ""
	case VerdictDrop:
		return mediagate.WebhookDropped, r.Reason
	case VerdictAbandon:
		return mediagate.WebhookAbandoned, r.Reason
	default:
		if last {
			return mediagate.WebhookAbandoned, "no attempt succeeded"
		}
		return "", ""
	}
}
