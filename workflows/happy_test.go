package workflows_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/view"
	"github.com/mediagate/mediagate/workflows"
)

func TestVideoPath(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.succeeds(2*time.Minute, 1)
	b.run()

	b.ended(mediagate.StatusCompleted)
	b.submits(taskID)
	if got := b.endedAt(); got != 2*time.Minute {
		t.Errorf("ended after %v, want 2m0s: at once when the vendor's job ended", got)
	}
	if diff := cmp.Diff([]string{"SubmitJob", "MirrorResult", "DeliverWebhook"}, b.started); diff != "" {
		t.Errorf("activities (-want +got):\n%s", diff)
	}
	if got := b.Store.Settlements(taskID)[0].Cost; got != 500_000 {
		t.Errorf("cost %s, want 0.50", got)
	}
	if diff := cmp.Diff([]string{"results/" + taskID + "/1/0"}, b.Bucket.Objects()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	var callback view.Task
	bodies := b.Deliverer.Bodies()
	if len(bodies) != 1 || json.Unmarshal(bodies[0], &callback) != nil || callback.ID != taskID || callback.Status != mediagate.StatusCompleted {
		t.Errorf("callbacks %q, want one of the completed task", bodies)
	}
	if got := b.task().Webhook.State; got != mediagate.WebhookDelivered {
		t.Errorf("the callback is %s, want delivered", got)
	}
}

func TestImagePath(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		quick time.Duration
		want  []string
	}{
		"a file that comes at once": {time.Second, []string{"SubmitJob", "DeliverWebhook"}},
		"one that is left":          {0, []string{"SubmitJob", "MirrorResult", "DeliverWebhook"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, image)
			b.Activities.Settings.QuickCopy = c.quick
			b.answersAtOnce()
			b.run()

			b.ended(mediagate.StatusCompleted)
			b.submits(taskID)
			if len(b.Sync.Polls()) != 0 {
				t.Error("a synchronous job was polled for")
			}
			if diff := cmp.Diff(c.want, b.started); diff != "" {
				t.Errorf("activities (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVendorFailure(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	outcome := activitytest.Failed(mediagate.CodeGenerationFailed)
	b.polled(time.Minute, mediagate.PollResult{N: 1, Outcome: &outcome})
	b.run()

	b.failed(mediagate.CodeGenerationFailed)
	b.submits(taskID)
	if got := b.task().Webhook; got.State != mediagate.WebhookDelivered {
		t.Errorf("the callback of a failed task is %s, want delivered", got.State)
	}
}

func TestD1MissingRowFails(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Store.Remove(taskID)
	b.env.ExecuteWorkflow(workflows.Generate, workflows.Input{TaskID: taskID, Provider: activitytest.AsyncProvider})

	var app *temporal.ApplicationError
	if err := b.env.GetWorkflowError(); !asApplication(err, &app) || app.Type() != "row_missing" || !app.NonRetryable() {
		t.Errorf("the run ended with %v, want row_missing", err)
	}
	b.submits()
}

func TestD14TerminalAtStartOnlyStartsThePendingCallback(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		webhook *mediagate.Webhook
		want    int
	}{
		"pending":   {&mediagate.Webhook{State: mediagate.WebhookPending}, 1},
		"delivered": {&mediagate.Webhook{State: mediagate.WebhookDelivered}, 0},
		"abandoned": {&mediagate.Webhook{State: mediagate.WebhookAbandoned}, 0},
		"none":      {nil, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			_, _, err := b.Store.Settle(t.Context(), mediagate.Settlement{
				TaskID: taskID, Status: mediagate.StatusFailed, Failure: &mediagate.Failure{Code: mediagate.CodeInternal}, WebhookBody: []byte("{}"),
			})
			b.ok(err)
			b.Store.Edit(taskID, func(task *mediagate.Task) {
				if c.webhook == nil {
					task.Webhook = nil
				} else {
					task.Webhook.State = c.webhook.State
				}
			})
			b.run()
			if got := len(b.Deliverer.Bodies()); got != c.want {
				t.Errorf("%d callbacks sent, want %d", got, c.want)
			}
			b.submits()
			if got := b.count("Settle"); got != 0 {
				t.Errorf("settled %d times again", got)
			}
		})
	}
}
