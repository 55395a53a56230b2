package workflows_test

import (
	"errors"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/workflows"
)

func (b *bundle) deliver() {
	b.t.Helper()
	b.env.ExecuteWorkflow(workflows.DeliverWebhook, workflows.RoundInput{TaskID: taskID, Round: 1})
	if err := b.env.GetWorkflowError(); err != nil {
		b.t.Fatalf("the round ended with %v", err)
	}
}

// attempts returns the times of the attempts, since the start.
func (b *bundle) attempts() []time.Duration {
	var out []time.Duration
	for _, at := range b.Deliverer.Times() {
		out = append(out, at.Sub(start))
	}
	return out
}

// answers gives the verdicts one after the other, and the last one for ever.
func answers(verdicts ...mediagate.DeliveryOutcome) func(int) (mediagate.DeliveryResult, error) {
	return func(n int) (mediagate.DeliveryResult, error) {
		v := verdicts[min(n, len(verdicts))-1]
		return mediagate.DeliveryResult{Outcome: v, Reason: "as " + string(v)}, nil
	}
}

func TestWebhookSchedule(t *testing.T) {
	t.Parallel()
	const (
		again  = mediagate.DeliveryRetry
		yes    = mediagate.DeliveryDone
		last   = 100 * time.Second
		second = 10 * time.Second
		third  = 40 * time.Second
	)
	cases := map[string]struct {
		verdicts []mediagate.DeliveryOutcome
		times    []time.Duration
		state    mediagate.WebhookState
	}{
		"second attempt": {
			[]mediagate.DeliveryOutcome{again, yes}, []time.Duration{0, second}, mediagate.WebhookDelivered,
		},
		"never": {
			[]mediagate.DeliveryOutcome{again}, []time.Duration{0, second, third, last}, mediagate.WebhookAbandoned,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := failed(t)
			b.Deliverer.OnDeliver = answers(c.verdicts...)
			b.deliver()
			same(t, "attempts", b.attempts(), c.times)
			if got := b.state().Webhook.State; got != c.state {
				t.Errorf("the callback is %s, want %s", got, c.state)
			}
		})
	}
}

// TestWebhookPauseCountsFromTheEnd checks that the pause counts from the end of an attempt, not
// from its start.
func TestWebhookPauseCountsFromTheEnd(t *testing.T) {
	t.Parallel()
	b := failed(t)
	b.Deliverer.OnDeliver = answers(mediagate.DeliveryRetry, mediagate.DeliveryDone)
	b.deliver()
	deliveries, err := b.Store.Deliveries(t.Context(), taskID)
	b.ok(err)
	if len(deliveries) != 2 {
		t.Fatalf("%d deliveries on record, want 2", len(deliveries))
	}
	first := deliveries[0]
	if want := first.At.Add(
		first.Duration + 10*time.Second,
	); !first.NextAttemptAt.Equal(want) || !deliveries[1].At.Equal(want) {
		t.Errorf("next attempt announced for %v, made at %v, want %v", first.NextAttemptAt, deliveries[1].At, want)
	}
	if !deliveries[1].NextAttemptAt.IsZero() {
		t.Error("a delivered callback announces another attempt")
	}
}

// TestUnrecordedDeliveryEndsItsRound checks that a delivery that can never be recorded is sent
// once. Its round ends with an error, and is replaced once its wake is due.
func TestUnrecordedDeliveryEndsItsRound(t *testing.T) {
	t.Parallel()
	b := failed(t)
	tries := 0
	b.Store.Fault = func(method string) error {
		if method == "RecordDelivery" {
			tries++
			return errors.New("check violated")
		}
		return nil
	}
	b.Deliverer.OnDeliver = answers(mediagate.DeliveryDone)
	b.env.ExecuteWorkflow(workflows.DeliverWebhook, workflows.RoundInput{TaskID: taskID, Round: 1})
	if !b.env.IsWorkflowCompleted() || b.env.GetWorkflowError() == nil {
		t.Errorf("the round ended: %v, with %v; want an error", b.env.IsWorkflowCompleted(), b.env.GetWorkflowError())
	}
	if got := len(b.attempts()); got != 1 {
		t.Errorf("the receiver was called %d times, want once", got)
	}
	if tries < 10 || tries > 30 {
		t.Errorf("it was tried %d times to record it", tries)
	}
}

// TestD14ReplacedRoundGoesOn checks that a run that replaces another continues with the attempt
// that is due.
func TestD14ReplacedRoundGoesOn(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		made   int           // the number of attempts on record
		passed time.Duration // the time since the last of them
		want   []time.Duration
	}{
		"one made, not due":  {1, 4 * time.Second, []time.Duration{6 * time.Second, 36 * time.Second, 96 * time.Second}},
		"one made, past due": {1, time.Hour, []time.Duration{0, 30 * time.Second, 90 * time.Second}},
		"three made":         {3, 20 * time.Second, []time.Duration{40 * time.Second}},
	}
	pauses := []time.Duration{0, 10 * time.Second, 30 * time.Second, 60 * time.Second}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := failed(t)
			b.Deliverer.OnDeliver = answers(mediagate.DeliveryRetry)
			for n := 1; n <= c.made; n++ {
				at := start.Add(-c.passed)
				b.ok(b.Store.RecordDelivery(t.Context(), mediagate.Delivery{
					TaskID: taskID, Round: 1, Attempt: n, At: at, NextAttemptAt: at.Add(pauses[n]),
				}, "", ""))
			}
			b.deliver()
			same(t, "attempts", b.attempts(), c.want)
			deliveries, err := b.Store.Deliveries(t.Context(), taskID)
			b.ok(err)
			if len(deliveries) != 4 || b.state().Webhook.State != mediagate.WebhookAbandoned {
				t.Errorf("%d entries, callback %s, want 4 and abandoned", len(deliveries), b.state().Webhook.State)
			}
		})
	}
}

// TestD14OldRoundSendsNothing checks that a round that a newer one has replaced sends nothing.
func TestD14OldRoundSendsNothing(t *testing.T) {
	t.Parallel()
	b := failed(t)
	b.Store.Exec("UPDATE tasks SET webhook_round = 2 WHERE id = ?", taskID)
	b.deliver()
	if got := b.attempts(); len(got) != 0 {
		t.Errorf("attempts at %v, want none", got)
	}
}

// TestD14RoundThatRunsIsLeftAlone checks that a run leaves the round alone that the wake scan has
// started earlier, and ends well.
func TestD14RoundThatRunsIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := failed(t)
	b.Deliverer.OnDeliver = answers(mediagate.DeliveryRetry, mediagate.DeliveryDone)
	var end error
	b.env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID: workflows.IDWebhook(taskID, 1), ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
		})
		early := workflow.ExecuteChildWorkflow(ctx, workflows.DeliverWebhook, workflows.RoundInput{TaskID: taskID, Round: 1})
		if err := early.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
			return err
		}
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: "run"})
		end = workflow.ExecuteChildWorkflow(ctx, workflows.Generate, workflows.Input{TaskID: taskID}).Get(ctx, nil)
		return early.Get(ctx, nil)
	})
	b.ok(b.env.GetWorkflowError())
	b.ok(end)
	same(t, "attempts", b.attempts(), []time.Duration{0, 10 * time.Second})
}

// TestD14OnlyTheNewestRoundWrites checks that an old round writes no verdict: its second attempt
// is refused by the rules for addresses after a newer round has begun.
func TestD14OnlyTheNewestRoundWrites(t *testing.T) {
	t.Parallel()
	b := failed(t)
	b.Deliverer.OnDeliver = answers(mediagate.DeliveryRetry, mediagate.DeliveryDone)
	b.at(5*time.Second, func() { b.Store.Exec("UPDATE tasks SET webhook_round = 2 WHERE id = ?", taskID) })
	b.deliver()
	if got := b.attempts(); len(got) != 1 {
		t.Errorf("attempts at %v, want the first only", got)
	}
	if got := b.state().Webhook.State; got != mediagate.WebhookPending {
		t.Errorf("the callback is %s, want pending: round 2 decides", got)
	}
}
