package activities_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

// hooks are the receivers of an account's endpoints.
type hooks struct {
	*bundle
	answer func(ctx context.Context, url string) (mediagate.DeliveryResult, error) // nil answers 204

	mu    sync.Mutex
	began time.Time
	got   []hook
}

// hook is what a receiver got.
type hook struct {
	after   time.Duration // the time since the scene began
	url, id string
	body    string
	exact   bool
	secrets int
}

// Deliver notes an attempt.
func (h *hooks) Deliver(ctx context.Context, id string, t mediagate.WebhookTarget) (mediagate.DeliveryResult, error) {
	h.mu.Lock()
	h.got = append(h.got, hook{
		after: time.Since(h.began).Truncate(time.Second), url: t.URL, id: id, body: string(t.Body), exact: t.Exact,
		secrets: len(t.Secrets),
	})
	h.mu.Unlock()
	if h.answer == nil {
		return mediagate.DeliveryResult{Outcome: mediagate.DeliveryDone, Status: 204}, nil
	}
	return h.answer(ctx, t.URL)
}

// after lets d pass while housekeeping runs, and returns what the receiver of the URL got so far.
func (h *hooks) after(d time.Duration, url string) (got []hook) {
	h.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		housekeep(h.t, h.World, min(5*time.Minute-time.Second/2, time.Until(end)))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.got {
		if one.url == url {
			got = append(got, one)
		}
	}
	return got
}

// endpoints sets the scene, inside a bubble: a task whose account has endpoints at the URLs.
func endpoints(t *testing.T, urls ...string) (h *hooks, ids []string) {
	t.Helper()
	h = &hooks{bundle: bubbled(t), began: time.Now()}
	h.Activities.Deliverer = h
	for _, url := range urls {
		e, _, err := h.Store.CreateEndpoint(t.Context(), mediagate.Endpoint{
			AccountID: h.task().AccountID, URL: url, Events: mediagate.EventTypes()[:3], Enabled: true,
		})
		h.ok(err)
		ids = append(ids, e.ID)
	}
	return h, ids
}

// told returns the deliveries of an endpoint, newest first.
func (h *hooks) told(id string) []mediagate.EndpointDelivery {
	h.t.Helper()
	deliveries, _, err := h.Store.EndpointDeliveries(context.Background(), id, "", "", 100)
	h.ok(err)
	return deliveries
}

// test sends a test event to an endpoint.
func (h *hooks) test(id string) {
	h.t.Helper()
	_, err := h.Store.SendTest(context.Background(), h.task().AccountID, id)
	h.ok(err)
}

func answering(status int) func(context.Context, string) (mediagate.DeliveryResult, error) {
	return func(context.Context, string) (mediagate.DeliveryResult, error) {
		return mediagate.DeliveryResult{Outcome: mediagate.DeliveryRetry, Status: status, Answer: "no"}, nil
	}
}

const hookA, hookB = "https://a.example.com/hook", "https://b.example.com/hook"

// TestEventOfATask checks that each endpoint receives the end of a task: what the callback says,
// signed with the endpoint's secret, under the event's id.
func TestEventOfATask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, ids := endpoints(t, hookA, hookB)
		h.submit(1)
		h.change(task.VendorEnded{N: 1, Outcome: activitytest.Failed(mediagate.CodeGenerationFailed)}, task.EndDue{})
		for _, url := range []string{hookA, hookB} {
			got := h.after(2*time.Second, url)
			if len(got) != 1 {
				t.Fatalf("%s got %d", url, len(got))
			}
			var body struct {
				Type      string    `json:"type"`
				Timestamp time.Time `json:"timestamp"`
				Data      struct {
					ID     string `json:"id"`
					Status string `json:"status"`
				} `json:"data"`
			}
			h.ok(json.Unmarshal([]byte(got[0].body), &body))
			if body.Type != "task.failed" || !body.Timestamp.Equal(h.began) || body.Data.ID != taskID ||
				body.Data.Status != "failed" {
				t.Errorf("the body is %s", got[0].body)
			}
			same(
				t, "id, exact, secrets", []any{got[0].id, got[0].exact, got[0].secrets},
				[]any{mediagate.TaskEventID(taskID), true, 1},
			)
		}
		d := h.told(ids[0])[0]
		same(t, "delivery", []any{d.State, d.Attempts, d.Last.Status}, []any{mediagate.EndpointDelivered, 1, 204})
	})
}

// TestEventIsTriedForADay checks that any answer but a 2xx is followed by another attempt: eight
// within a day, with the same bytes each time.
func TestEventIsTriedForADay(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(context.Context, string) (mediagate.DeliveryResult, error){
		"refused": func(context.Context, string) (mediagate.DeliveryResult, error) {
			return mediagate.DeliveryResult{
				Outcome: mediagate.DeliveryAbandon, Status: 404, Reason: "the receiver answered 404",
			}, nil
		},
		"away": answering(503),
		"against the rules": func(context.Context, string) (mediagate.DeliveryResult, error) {
			return mediagate.DeliveryResult{Outcome: mediagate.DeliveryDrop, Reason: "private address"}, nil
		},
		"cannot be signed": func(context.Context, string) (mediagate.DeliveryResult, error) {
			return mediagate.DeliveryResult{}, mediagate.Errorf(mediagate.KindInternal, "no secret")
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			h, ids := endpoints(t, hookA)
			h.answer = answer
			h.submit(1)
			h.change(task.VendorEnded{N: 1, Outcome: activitytest.Failed(mediagate.CodeGenerationFailed)}, task.EndDue{})
			var pauses []time.Duration
			for {
				got := h.after(2*time.Second, hookA)
				same(t, "attempts", len(got), len(pauses)+1)
				same(t, "body", got[len(pauses)].body, got[0].body)
				d := h.told(ids[0])[0]
				if d.NextAt.IsZero() {
					break
				}
				pauses = append(pauses, d.NextAt.Sub(d.Last.At))
				time.Sleep(time.Until(d.NextAt)) // nothing is due meanwhile
			}
			same(t, "pauses", pauses, []time.Duration{
				10 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour,
			})
			if took := time.Since(h.began); took > 24*time.Hour {
				t.Errorf("the last attempt came after %s", took)
			}
			same(t, "delivery", []any{h.told(ids[0])[0].State, h.told(ids[0])[0].Attempts}, []any{mediagate.EndpointFailed, 8})
		})
	}
}

// TestSlowEndpoint checks that a slow endpoint delays no other, and receives its own events in
// the end.
func TestSlowEndpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, ids := endpoints(t, hookA, hookB)
		h.answer = func(ctx context.Context, url string) (mediagate.DeliveryResult, error) {
			if url == hookA {
				select {
				case <-time.After(10 * time.Second):
				case <-ctx.Done():
					return mediagate.DeliveryResult{}, mediagate.Errorf(mediagate.KindUnavailable, "interrupted")
				}
			}
			return mediagate.DeliveryResult{Outcome: mediagate.DeliveryDone, Status: 200}, nil
		}
		for range 50 {
			h.test(ids[0])
		}
		for range 40 {
			h.test(ids[1])
		}
		if got := h.after(3*time.Second, hookB); len(got) != 40 {
			t.Errorf("beside a slow one %d of 40 were told", len(got))
		}
		pending := func(d mediagate.EndpointDelivery) bool { return d.State == mediagate.EndpointPending }
		h.after(2*time.Minute, hookA)
		if slices.ContainsFunc(h.told(ids[0]), pending) {
			t.Error("events of the slow one are pending")
		}
	})
}

// TestEventOfADeadSender checks that an attempt that was cut off, or could not be recorded, is
// made again under the same id.
func TestEventOfADeadSender(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(h *hooks){
		"its answer is not recorded": func(h *hooks) {
			h.Store.Fault = func(method string) error {
				if method == "RecordEndpointAttempt" && time.Since(h.began) < 30*time.Second {
					return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
				}
				return nil
			}
		},
		"the worker stops": func(h *hooks) {
			h.answer = func(ctx context.Context, _ string) (mediagate.DeliveryResult, error) {
				if time.Since(h.began) < 2*time.Second {
					<-ctx.Done()
					return mediagate.DeliveryResult{}, &mediagate.Error{
						Kind: mediagate.KindUnavailable, Message: "interrupted", Err: ctx.Err(),
					}
				}
				return mediagate.DeliveryResult{Outcome: mediagate.DeliveryDone, Status: 200}, nil
			}
			h.after(time.Second, hookA)
			h.after(2*time.Second, hookA)
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			h, ids := endpoints(t, hookA)
			h.test(ids[0])
			fail(h)
			got := h.after(2*time.Minute, hookA)
			if len(got) < 2 {
				t.Errorf("the receiver got %+v", got)
			}
			for _, one := range got {
				same(t, "id and body", []string{one.id, one.body}, []string{got[0].id, got[0].body})
			}
			d := h.told(ids[0])[0]
			same(t, "delivery", []any{d.State, d.Attempts}, []any{mediagate.EndpointDelivered, 1})
		})
	}
}

// TestEventsDespiteFaults checks that a database that is away ends only the attempts of that
// moment.
func TestEventsDespiteFaults(t *testing.T) {
	t.Parallel()
	for _, method := range []string{
		"DueEndpoints", "ClaimDeliveries", "RecordEndpointAttempt", "StoreEndpointBody", "NoteCrossings",
	} {
		inBubble(t, method, func(t *testing.T) {
			h, ids := endpoints(t, hookA)
			h.submit(1)
			h.change(task.VendorEnded{N: 1, Outcome: activitytest.Failed(mediagate.CodeGenerationFailed)}, task.EndDue{})
			h.Store.Fault = func(m string) error {
				if m == method && time.Since(h.began) < 10*time.Second {
					return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
				}
				return nil
			}
			h.after(2*time.Minute, hookA)
			if d := h.told(ids[0])[0]; d.State != mediagate.EndpointDelivered {
				t.Errorf("the delivery is %+v", d)
			}
		})
	}
}

// TestSlowEndpointDespiteAFault checks that a failed read of due endpoints stops no endpoint,
// however slow another one is.
func TestSlowEndpointDespiteAFault(t *testing.T) {
	t.Parallel()
	inBubble(t, "slow", func(t *testing.T) {
		h, ids := endpoints(t, hookA, hookB)
		h.answer = func(ctx context.Context, url string) (mediagate.DeliveryResult, error) {
			if url == hookA {
				select {
				case <-time.After(30 * time.Second):
				case <-ctx.Done():
					return mediagate.DeliveryResult{}, mediagate.Errorf(mediagate.KindUnavailable, "interrupted")
				}
			}
			return mediagate.DeliveryResult{Outcome: mediagate.DeliveryDone, Status: 200}, nil
		}
		h.test(ids[0])
		h.test(ids[1])
		turn, err := h.Store.ClaimDeliveries(t.Context(), ids[1], 1, time.Minute)
		h.ok(err)
		h.ok(
			h.Store.ReleaseDelivery(t.Context(), ids[1], turn.Deliveries[0].EventID, turn.Claim, time.Now().Add(2*time.Second)),
		)
		reads := 0
		h.Store.Fault = func(method string) error {
			if method != "DueEndpoints" {
				return nil
			}
			if reads++; reads == 2 { // one second after the turn of the slow endpoint began
				return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
			}
			return nil
		}
		if got := h.after(10*time.Second, hookB); len(got) != 1 {
			t.Errorf("the other got %d events, want 1", len(got))
		}
	})
}
