package activities_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/task"
)

// TestDeliveryWaitsForAPermit checks that a delivery without a permit has not begun: nothing is
// sent or on record, and its activity gives its slot back within seconds, to come again.
// Callbacks of the same account to another receiver are sent, and so are those of another account
// to the same receiver.
func TestDeliveryWaitsForAPermit(t *testing.T) {
	t.Parallel()
	const flood = 30
	b := ended(t)
	b.Activities.Limits.Callbacks, b.Activities.Limits.Receivers = limit.New(
		"callbacks", 40,
	), limit.NewGroup("receivers", 20)
	b.Activities.Settings.PermitWait = time.Millisecond
	release := make(chan struct{})
	var under atomic.Int32
	b.Deliverer.OnDeliver = func(int) (mediagate.DeliveryResult, error) {
		under.Add(1)
		<-release
		return mediagate.DeliveryResult{Outcome: mediagate.DeliveryDone, Status: 200}, nil
	}
	var (
		ended  sync.WaitGroup
		failed = make(chan error, flood)
		ids    []string
	)
	begin := func(id, account, url string) {
		added := b.NewVideo()
		added.ID, added.AccountID, added.Webhook.URL = id, account, url
		b.Store.Add(added)
		_, err := b.Store.Change(t.Context(), id, task.FailRequested{}, task.EndDue{})
		b.ok(err)
		ids = append(ids, id)
		ended.Go(func() {
			if _, err := call[mediagate.DeliveryOutcome](
				b, b.Activities.DeliverWebhook, activities.RoundArgs{TaskID: id, Round: 1, Attempt: 1, Wait: time.Minute},
			); err != nil {
				failed <- err
			}
		})
	}
	for n := range flood {
		begin(fmt.Sprint("task_busy_", n), "acc_busy", "https://tarpit.example.com/")
	}
	var waits error
	for range flood - 10 { // half of what one account has for its receivers
		waits = <-failed
	}
	kind(t, waits, mediagate.KindCapacity, "no_place", true)
	var app *temporal.ApplicationError
	if !asApplication(waits, &app) || app.NextRetryDelay() < time.Second ||
		app.Category() != temporal.ApplicationErrorCategoryBenign {
		t.Errorf("it does not wait: %v", waits)
	}
	if !activities.NoFault(waits) || !activities.WaitsForPermit(waits) || !strings.Contains(
		app.Message(), "waits for a permit",
	) {
		t.Errorf("it is no waiting: %v", waits)
	}
	begin("task_alongside", "acc_busy", "https://good.example.org/")
	begin("task_other", "acc_other", "https://tarpit.example.com/")
	for under.Load() < 12 && len(failed) == 0 {
		runtime.Gosched()
	}
	close(release)
	ended.Wait()
	recorded := 0
	for _, id := range ids {
		deliveries, err := b.Store.Deliveries(t.Context(), id)
		b.ok(err)
		recorded += len(deliveries)
	}
	if recorded != 12 || len(failed) > 0 {
		t.Errorf("%d deliveries on record, and %d gave up: want 10 of the flood and the two others", recorded, len(failed))
	}
}
