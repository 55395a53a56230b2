package activities_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

// ended returns a failed task with a callback to deliver.
func ended(t *testing.T) *bundle {
	t.Helper()
	b := setup(t, video)
	b.submit(1)
	b.change(task.VendorEnded{N: 1, Outcome: activitytest.Failed(mediagate.CodeGenerationFailed)}, task.EndDue{})
	return b
}

func TestDeliverWebhook(t *testing.T) {
	t.Parallel()
	const pause = 30 * time.Second
	cases := map[string]struct {
		result mediagate.DeliveryResult
		wait   time.Duration
		state  mediagate.WebhookState
		reason string
		next   time.Time
	}{
		"delivered": {
			mediagate.DeliveryResult{Outcome: mediagate.DeliveryDone, Status: 204},
			pause, mediagate.WebhookDelivered, "",
			time.Time{},
		},
		"to be repeated": {
			mediagate.DeliveryResult{Outcome: mediagate.DeliveryRetry, Status: 503},
			pause, mediagate.WebhookPending, "",
			start.Add(pause),
		},
		"the last one": {
			mediagate.DeliveryResult{Outcome: mediagate.DeliveryRetry, Error: "timeout"},
			0, mediagate.WebhookAbandoned,
			"no attempt succeeded",
			time.Time{},
		},
		"refused": {
			mediagate.DeliveryResult{Outcome: mediagate.DeliveryAbandon, Status: 410, Reason: "the receiver answers 410"},
			pause,
			mediagate.WebhookAbandoned, "the receiver answers 410",
			time.Time{},
		},
		"against the rules": {
			mediagate.DeliveryResult{Outcome: mediagate.DeliveryDrop, Reason: "private address"},
			pause,
			mediagate.WebhookDropped, "private address",
			time.Time{},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := ended(t)
			b.Deliverer.OnDeliver = func(int) (mediagate.DeliveryResult, error) { return c.result, nil }
			got := must[mediagate.DeliveryOutcome](
				b, b.Activities.DeliverWebhook, activities.RoundArgs{TaskID: taskID, Round: 1, Attempt: 2, Wait: c.wait},
			)
			if got != c.result.Outcome {
				t.Errorf("verdict %s, want %s", got, c.result.Outcome)
			}
			if w := b.task().Webhook; w.State != c.state || w.Reason != c.reason {
				t.Errorf("the callback is %s, %q; want %s, %q", w.State, w.Reason, c.state, c.reason)
			}
			deliveries, err := b.Store.Deliveries(t.Context(), taskID)
			b.ok(err)
			want := []mediagate.Delivery{{
				TaskID: taskID, Round: 1, Attempt: 2, At: start, Status: c.result.Status, Error: c.result.Error,
				NextAttemptAt: c.next,
			}}
			same(t, "deliveries", deliveries, want)
		})
	}
}

// TestDeliverySendsTheSameBytes checks that every attempt sends the bytes of the first one (D14).
func TestDeliverySendsTheSameBytes(t *testing.T) {
	t.Parallel()
	b := ended(t)
	b.Deliverer.OnDeliver = func(int) (mediagate.DeliveryResult, error) {
		return mediagate.DeliveryResult{Outcome: mediagate.DeliveryRetry}, nil
	}
	for n := 1; n <= 3; n++ {
		b.advance(time.Minute)
		must[mediagate.DeliveryOutcome](
			b, b.Activities.DeliverWebhook, activities.RoundArgs{TaskID: taskID, Round: 1, Attempt: n, Wait: time.Minute},
		)
		b.Store.Exec(
			`UPDATE tasks SET document = json_set(
				document, '$.failure', json('{"code":"generation_failed","message":"another"}')) WHERE id = ?`,
			taskID,
		)
	}
	bodies := b.Deliverer.Bodies()
	want := bodies[0]
	if !bytes.Contains(want, []byte("the vendor gave up")) {
		t.Errorf("the first attempt sent %s", want)
	}
	for i, body := range bodies {
		if string(body) != string(want) {
			t.Errorf("attempt %d sent %s, want %s", i+1, body, want)
		}
	}
}

// TestD14ClosedRoundIsNotSent checks that a round that is closed, or has been followed by a newer
// one, is not sent.
func TestD14ClosedRoundIsNotSent(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*bundle){
		"delivered":     func(b *bundle) { b.change(task.Delivered{Round: 1, State: mediagate.WebhookDelivered}) },
		"a newer round": func(b *bundle) { b.change(task.RedeliverRequested{}) },
		"no callback":   func(b *bundle) { b.Store.Exec("UPDATE tasks SET webhook_state = '' WHERE id = ?", taskID) },
		"no task":       func(b *bundle) { b.Store.Remove(taskID) },
	}
	for name, leave := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := ended(t)
			leave(b)
			args := activities.RoundArgs{TaskID: taskID, Round: 1, Attempt: 1}
			if got := must[mediagate.DeliveryOutcome](b, b.Activities.DeliverWebhook, args); got != mediagate.DeliveryDrop {
				t.Errorf("verdict %s, want drop", got)
			}
			state, err := b.Activities.LoadRound(t.Context(), args)
			if err != nil || state.Open {
				t.Errorf("round %+v (%v), want it closed", state, err)
			}
			if got := len(b.Deliverer.Bodies()); got != 0 {
				t.Errorf("%d sent", got)
			}
		})
	}
}

func TestLoadRound(t *testing.T) {
	t.Parallel()
	b := ended(t)
	load := func() activities.RoundState {
		state, err := b.Activities.LoadRound(t.Context(), activities.RoundArgs{TaskID: taskID, Round: 1})
		b.ok(err)
		return state
	}
	if got, want := load(), (activities.RoundState{Open: true, Attempt: 1}); got != want {
		t.Errorf("round %+v, want %+v", got, want)
	}
	due := start.Add(10 * time.Second)
	b.ok(
		b.Store.RecordDelivery(
			t.Context(), mediagate.Delivery{TaskID: taskID, Round: 1, Attempt: 1, At: start, NextAttemptAt: due}, "", "",
		),
	)
	b.ok(b.Store.RecordDelivery(t.Context(), mediagate.Delivery{TaskID: taskID, Round: 7, Attempt: 3, At: start}, "", ""))
	if got, want := load(), (activities.RoundState{Open: true, Attempt: 2, NotBefore: due}); got != want {
		t.Errorf("round %+v, want %+v", got, want)
	}
}

// TestDeliveryIsRecordedAfterAnOutage checks that the activity waits for a database that is away
// for a moment, and sends nothing again.
func TestDeliveryIsRecordedAfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := ended(t)
		back := time.Now().Add(20 * time.Second)
		b.Store.Fault = func(method string) error {
			if method == "RecordDelivery" && time.Now().Before(back) {
				return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
			}
			return nil
		}
		must[mediagate.DeliveryOutcome](
			b, b.Activities.DeliverWebhook, activities.RoundArgs{TaskID: taskID, Round: 1, Attempt: 1},
		)
		deliveries, err := b.Store.Deliveries(t.Context(), taskID)
		if err != nil || len(deliveries) != 1 || b.task().Webhook.State != mediagate.WebhookDelivered ||
			len(b.Deliverer.Bodies()) != 1 {
			t.Errorf(
				"deliveries %v (%v), callback %s, %d sent", deliveries, err, b.task().Webhook.State, len(b.Deliverer.Bodies()),
			)
		}
	})
}

// TestUnrecordedDeliveryIsNotRepeated checks that an attempt that could not be recorded is
// remembered. The repeated activity records it, and sends nothing.
func TestUnrecordedDeliveryIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := ended(t)
	b.Deliverer.OnDeliver = func(int) (mediagate.DeliveryResult, error) {
		return mediagate.DeliveryResult{Outcome: mediagate.DeliveryRetry, Status: 503}, nil
	}
	b.Store.Fault = failsWith("RecordDelivery", errors.New("check violated"))
	args := activities.RoundArgs{TaskID: taskID, Round: 1, Attempt: 2, Wait: time.Minute}
	var remembered converter.EncodedValues
	env := newEnv(b.World)
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) { remembered = details })
	_, err := env.ExecuteActivity(b.Activities.DeliverWebhook, args)
	kind(t, err, mediagate.KindInternal, "", true)
	if remembered == nil {
		t.Fatal("the attempt is not remembered")
	}
	var details map[string]any
	b.ok(remembered.Get(&details))
	if text := fmt.Sprint(details); strings.Contains(text, activitytest.Secret) {
		t.Errorf("Temporal is told a secret: %s", text)
	}

	b.advance(time.Minute)
	b.Store.Fault = nil
	env = newEnv(b.World)
	env.SetHeartbeatDetails(details)
	value, err := env.ExecuteActivity(b.Activities.DeliverWebhook, args)
	b.ok(err)
	var verdict mediagate.DeliveryOutcome
	b.ok(value.Get(&verdict))
	deliveries, err := b.Store.Deliveries(t.Context(), taskID)
	b.ok(err)
	want := []mediagate.Delivery{{
		TaskID: taskID, Round: 1, Attempt: 2, At: start, Status: 503, NextAttemptAt: start.Add(time.Minute),
	}}
	same(t, "deliveries", deliveries, want)
	if got := len(b.Deliverer.Bodies()); got != 1 || verdict != mediagate.DeliveryRetry {
		t.Errorf("%d sent, verdict %s; want one, to be repeated", got, verdict)
	}
}

// TestUnrecordedDeliveryIsRememberedThroughAnOutage checks a repeated activity that has to wait
// for the database that did not take the record. It sends heartbeats meanwhile, and each one
// replaces what Temporal remembers: an empty one would make the attempt again.
func TestUnrecordedDeliveryIsRememberedThroughAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := ended(t)
		b.Store.Fault = func(method string) error {
			if method == "WebhookTarget" {
				time.Sleep(10 * time.Second)
				return mediagate.Errorf(mediagate.KindUnavailable, "the database is away")
			}
			return nil
		}
		beats := 0
		env := newEnv(b.World)
		env.SetHeartbeatDetails(
			map[string]any{"delivery": map[string]any{"TaskID": taskID, "Round": 1, "Attempt": 2}, "verdict": "retry"},
		)
		env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&beatWatch{onBeat: func(details []any) {
			beats++
			if len(details) != 1 || !strings.Contains(fmt.Sprint(details), taskID) {
				t.Errorf("beat %d says %v: the attempt is forgotten", beats, details)
			}
		}}}})
		_, err := env.ExecuteActivity(
			b.Activities.DeliverWebhook, activities.RoundArgs{TaskID: taskID, Round: 1, Attempt: 2, Wait: time.Minute},
		)
		kind(t, err, mediagate.KindUnavailable, "", true)
		if beats == 0 {
			t.Error("no beat: nothing is shown")
		}
	})
}

// TestRecordedDeliveryIsNotRepeated checks that nothing is sent again if the attempt is on record
// and only the activity's answer was lost.
func TestRecordedDeliveryIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := ended(t)
	b.Deliverer.OnDeliver = func(int) (mediagate.DeliveryResult, error) {
		return mediagate.DeliveryResult{Outcome: mediagate.DeliveryRetry, Status: 503}, nil
	}
	args := activities.RoundArgs{TaskID: taskID, Round: 1, Attempt: 1, Wait: 10 * time.Second}
	for range 2 {
		if got := must[mediagate.DeliveryOutcome](b, b.Activities.DeliverWebhook, args); got != mediagate.DeliveryRetry {
			t.Errorf("verdict %s, want retry", got)
		}
	}
	if got := len(b.Deliverer.Bodies()); got != 1 {
		t.Errorf("%d sent, want 1", got)
	}
}
