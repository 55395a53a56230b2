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

// A loop of the activity TendWakes sends events to the endpoints of accounts. The transaction that
// ends a task writes an event as one row for each endpoint. The loop claims due rows, sends each
// with the sender of callbacks, and records the attempt. If the process dies, its claims expire,
// and the loop of another process repeats the attempts under the same ids (ADR 19).
//
// Endpoints have their turns at the same time, so a slow one delays none of the others. An
// attempt takes the same permits as a callback, so an account with many slow endpoints uses only
// its own share.

const (
	eventsEvery  = time.Second
	endpointRoom = 256              // endpoints that have their turn at the same time
	endpointWide = 16               // deliveries of one claim, which are sent at the same time
	endpointTurn = 10 * time.Second // the longest turn of an endpoint
	// endpointLease is longer than an attempt and its wait for permits take: the setting for the
	// timeout allows at most 30 s.
	endpointLease = time.Minute
	endpointAgain = 10 * time.Second // the pause if no permit was free
)

// endpointPauses are the pauses between the attempts at an endpoint, each from the end of the
// attempt before. They allow eight attempts within a day.
var endpointPauses = []time.Duration{
	10 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

// sendEvents gives turns to endpoints with due deliveries, until ctx ends. It ends once the turns
// under way have ended.
func (a *Activities) sendEvents(ctx context.Context) error {
	var (
		turns sync.WaitGroup
		mu    sync.Mutex
		busy  = map[string]bool{}
	)
	defer turns.Wait()
	for ctx.Err() == nil {
		mu.Lock()
		// busy holds the endpoints that have their turn now. They are not listed again.
		ids := slices.Collect(maps.Keys(busy))
		mu.Unlock()
		// The endpoint whose last turn was longest ago comes first.
		due, err := a.Store.DueEndpoints(ctx, ids, endpointRoom-len(ids))
		if err != nil && ctx.Err() == nil { // the next try may succeed, and the turns go on meanwhile
			a.Logger.WarnContext(ctx, "endpoints with due events were not listed", "error", err)
		}
		for _, id := range due {
			mu.Lock()
			busy[id] = true
			mu.Unlock()
			turns.Go(func() {
				// A panic must not end the process, nor leave the endpoint busy for ever.
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

// takeTurn sends deliveries of an endpoint until none is due, or the turn is over. A turn that is
// over leaves the rest to the next turn, so an endpoint with a long backlog makes room after ten
// seconds. All deliveries of a claim are sent at the same time, within the lease.
func (a *Activities) takeTurn(ctx context.Context, endpointID string) error {
	for began := time.Now(); ctx.Err() == nil && time.Since(began) < endpointTurn; {
		turn, err := a.Store.ClaimDeliveries(ctx, endpointID, endpointWide, endpointLease)
		if err != nil || len(turn.Deliveries) == 0 {
			return err
		}
		if err := forEach(ctx, turn.Deliveries, endpointWide, func(d mediagate.EndpointDelivery) error {
			return a.sendEvent(ctx, turn, d)
		}); err != nil {
			return err
		}
	}
	return nil
}

// sendEvent makes one attempt at a claimed delivery, and records it. If no attempt was made, it
// gives the delivery back.
//
// The claim of the turn is the end of its lease, and is stored as the time at which the delivery is
// due again. A record or a release changes nothing if the row has another time by then: the lease
// has ended, and another sender repeats the attempt.
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
	// The attempt counts, and is recorded even if the worker stops meanwhile.
	if made {
		return a.Store.RecordEndpointAttempt(storing, result)
	}
	if mediagate.Is(err, mediagate.KindNotFound) {
		return nil // the task was erased, or the endpoint removed
	}
	// No attempt was made. Without a permit the delivery is due again after a pause, and
	// otherwise at once.
	next := a.Now()
	if errors.Is(err, errNoPermit) {
		next, err = next.Add(endpointAgain), nil
	}
	return errors.Join(err, a.Store.ReleaseDelivery(storing, d.EndpointID, d.EventID, turn.Claim, next))
}

// attemptEvent sends an event to its endpoint, and reports whether that counts as an attempt. It
// counts even if the body cannot be made or signed; otherwise the event would be tried for ever. An
// attempt that had no permit, or for which our own database or bucket was away, does not count.
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
	// The body is made after the permits are there, so that its links are fresh.
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
		// The record gets this text, and only the log gets the cause.
		answer.Error = "the event could not be made or signed"
	}
	// A callback that is dropped has no further attempt. For an endpoint a drop is one failed
	// attempt.
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
	// After the last attempt NextAt stays zero, and the delivery ends as failed.
	if d.Attempts < len(endpointPauses) {
		result.NextAt = end.Add(endpointPauses[d.Attempts])
	}
	return true, nil
}

// eventBody returns the body of a delivery. For a task's event it is what the callback says, with
// links that are signed now. The first attempt makes the body and stores it, and all others send
// the same one.
//
// Two senders may make the body at the same time, if the lease of the first one has ended. The
// store keeps the body that comes first, and both send that one.
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
