package activities_test

import (
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/internal/outbound"
	"github.com/mediagate/mediagate/task"
)

// TestDeliveryWaitsForAPermit checks that a delivery without a permit has not begun: nothing is
// sent or on record, and its activity gives its slot back within seconds, to come again.
// Callbacks of the same account to another receiver are sent, and so are those of another account
// to the same receiver.
func TestDeliveryWaitsForAPermit(t *testing.T) {
	t.Parallel()
	const slow, good = "https://tarpit.example.com/", "https://good.example.org/"
	b := setup(t, video)
	receivers := limit.NewGroup("receivers", 4)
	b.Activities.Limits.Receivers, b.Activities.Settings.PermitWait = receivers, time.Millisecond
	for ok := true; ok; { // other callbacks of the account to the receiver
		_, ok = receivers.TryAcquire("acc_busy", outbound.Receiver(slow), 1)
	}
	deliver := func(id, account, url string) error {
		added := b.NewVideo()
		added.ID, added.AccountID, added.Webhook.URL = id, account, url
		b.Store.Add(added)
		_, err := b.Store.Change(t.Context(), id, task.FailRequested{}, task.EndDue{})
		b.ok(err)
		_, err = call[mediagate.DeliveryOutcome](
			b, b.Activities.DeliverWebhook, activities.RoundArgs{TaskID: id, Round: 1, Attempt: 1, Wait: time.Minute},
		)
		return err
	}
	waits := deliver("task_waits", "acc_busy", slow)
	kind(t, waits, mediagate.KindCapacity, activities.CodeNoPermit, true)
	var app *temporal.ApplicationError
	if !asApplication(waits, &app) || app.NextRetryDelay() < time.Second ||
		app.Category() != temporal.ApplicationErrorCategoryBenign || !strings.Contains(app.Message(), "waits for a permit") {
		t.Errorf("it does not wait: %v", waits)
	}
	if !activities.NoFault(waits) || !activities.WaitsForPermit(waits) {
		t.Errorf("it is no waiting: %v", waits)
	}
	deliveries, err := b.Store.Deliveries(t.Context(), "task_waits")
	b.ok(err)
	if len(deliveries) != 0 || len(b.Deliverer.Bodies()) != 0 {
		t.Errorf("on record %+v, %d sent", deliveries, len(b.Deliverer.Bodies()))
	}
	b.ok(deliver("task_alongside", "acc_busy", good))
	b.ok(deliver("task_other", "acc_other", slow))
}
