package activities

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/failpoint"
)

// A loop of the wake scan's activity sends events to the endpoints of accounts. An event is a row
// for each endpoint, which the transaction that ends a task writes. The loop claims rows that are
// due, sends each by the sender of callbacks, and records the attempt. If it dies, its claims end,
// and the next loop makes the attempts again, under the same ids (ADR 19).
//
// Each endpoint has its turn beside the others, so one that is slow delays none of them. An attempt
// takes the same permits as one at a callback: an account with many slow endpoints has its share.

const (
	eventsEvery  = time.Second
	endpointRoom = 256              // endpoints that have their turn at once
	endpointWide = 16               // deliveries of a claim, all at the same time
	endpointTurn = 10 * time.Second // after which an endpoint waits for its next turn
	// endpointLease is longer than an attempt takes with its permits (maxWebhookTimeout of the
	// settings is 30 s).
	endpointLease = time.Minute
	endpointAgain = 10 * time.Second // after no permit was free
)

// endpointPauses are the waits between the attempts at an endpoint, after the end of the one
// before: eight attempts within a day.
var endpointPauses = []time.Duration{
	10 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

// sendEvents gives endpoints with due deliveries their turns, until ctx ends.
func (a *Activities) sendEvents(ctx context.Context) error {
	var (
		turns sync.WaitGroup
		mu    sync.Mutex
		busy  = map[string]bool{}
	)
	defer turns.Wait()
	for ctx.Err() == nil {
		mu.Lock()
		ids := slices.Collect(maps.Keys(busy))
		mu.Unlock()
		due, err := a.Store.DueEndpoints(ctx, ids, endpointRoom-len(ids))
		if err != nil && ctx.Err() == nil { // the next look may succeed: no turn holds it up
			a.Logger.WarnContext(ctx, "endpoints with due events were not listed", "error", err)
		}
		for _, id := range due {
			mu.Lock()
			busy[id] = true
			mu.Unlock()
			turns.Go(func() {
				err := mediagate.Guarded(func() error { return a.takeTurn(ctx, id) })
				if err != nil && ctx.Err() == nil {
					a.Logger.WarnContext(ctx, "an endpoint was not told of its events", "endpoint", id, "error", err)
				}
				mu.Lock()
				defer mu.Unlock()
				delete(busy, id)
			})
		}
		select {
		case <-ctx.Done():
		case <-time.After(eventsEvery):
		}
	}
	return nil
}

// takeTurn sends deliveries of an endpoint until none is due, or its turn is over.
func (a *Activities) takeTurn(ctx context.Context, endpointID string) error {
	for began := time.Now(); ctx.Err() == nil && time.Since(began) < endpointTurn; {
		turn, err := a.Store.ClaimDeliveries(ctx, endpointID, endpointWide, endpointLease)
		if err != nil || len(turn.Deliveries) == 0 {
			return err
		}
		if err := each(ctx, turn.Deliveries, endpointWide, func(d mediagate.EndpointDelivery) error {
			return a.sendEvent(ctx, turn, d)
		}); err != nil {
			return err
		}
	}
	return nil
}

// sendEvent makes one attempt at a claimed delivery, and records it. A delivery whose attempt was
// not made is given back.
func (a *Activities) sendEvent(ctx context.Context, turn mediagate.EndpointTurn, d mediagate.EndpointDelivery) error {
	result := mediagate.EndpointResult{
		EndpointID: d.EndpointID,
		URL:        turn.Endpoint.URL,
		EventID:    d.EventID,
		Claim:      turn.Claim,
	}
	made, err := a.attemptEvent(ctx, turn, d, &result)
	storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if made {
		return a.Store.RecordEndpointAttempt(storing, result)
	}
	if mediagate.Is(err, mediagate.KindNotFound) {
		return nil // the task was erased, or the endpoint removed
	}
	next := a.Now()
	if errors.Is(err, errNoPermit) {
		next, err = next.Add(endpointAgain), nil
	}
	return errors.Join(err, a.Store.ReleaseDelivery(storing, d.EndpointID, d.EventID, turn.Claim, next))
}

// attemptEvent sends an event to its endpoint, and reports whether that counts as an attempt. A body
// that cannot be made, or signed, does: else the event would be tried for ever.
func (a *Activities) attemptEvent(
	ctx context.Context, turn mediagate.EndpointTurn, d mediagate.EndpointDelivery, result *mediagate.EndpointResult,
) (made bool, err error) {
	target := mediagate.WebhookTarget{
		AccountID: turn.Endpoint.AccountID,
		URL:       turn.Endpoint.URL,
		Exact:     true,
		Secrets:   turn.Secrets,
	}
	release, err := a.callbackPermits(ctx, target)
	if err != nil {
		return false, err
	}
	defer release()
	began := a.Now()
	target.Body, err = a.eventBody(ctx, d)
	var answer mediagate.DeliveryResult
	if err == nil {
		failpoint.Hit(failpoint.WebhookBeforeSend)
		answer, err = a.Deliverer.Deliver(ctx, d.EventID, target)
	}
	if mediagate.Is(err, mediagate.KindUnavailable) || mediagate.Is(err, mediagate.KindNotFound) {
		return false, err
	}
	if err != nil {
		a.Logger.ErrorContext(ctx, "an event could not be sent", "endpoint", d.EndpointID, "event", d.EventID, "error", err)
		answer.Error = "the event could not be made or signed"
	}
	if answer.Outcome == mediagate.DeliveryDrop {
		answer.Error = answer.Reason
	}
	end := a.Now()
	failpoint.Hit(failpoint.WebhookSent)
	result.Delivered = answer.Outcome == mediagate.DeliveryDone
	result.Attempt = mediagate.EndpointAttempt{
		At:       began,
		Status:   answer.Status,
		Error:    answer.Error,
		Answer:   answer.Answer,
		Headers:  answer.Headers,
		Duration: end.Sub(began),
	}
	if d.Attempts < len(endpointPauses) {
		result.NextAt = end.Add(endpointPauses[d.Attempts])
	}
	return true, nil
}

// eventBody returns the body of a delivery. That of a task's event is what the callback says, with
// links that are signed now. It is made and stored by the first attempt: all others send the same.
func (a *Activities) eventBody(ctx context.Context, d mediagate.EndpointDelivery) ([]byte, error) {
	if len(d.Body) > 0 {
		return d.Body, nil
	}
	task, err := a.callbackBody(ctx, d.TaskID)
	if err != nil {
		return nil, err
	}
	body, err := mediagate.EventBody(d.Type, d.CreatedAt, json.RawMessage(task))
	if err != nil {
		return nil, err
	}
	return a.Store.StoreEndpointBody(ctx, d.EndpointID, d.EventID, body)
}
