package activities_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/task"
)

// A delivery that finds no place has not begun: nothing is sent or on record, its
// activity is given back at once, to come again. Another account's is sent, to the
// same receiver.
func TestDeliveryWaitsForItsPlace(t *testing.T) {
	t.Parallel()
	const flood = 100
	b := ended(t)
	add := func(id, account string) {
		added := b.NewVideo()
		added.ID, added.AccountID = id, account
		b.Store.Add(added)
		_, err := b.Store.Change(t.Context(), id, task.FailRequested{}, task.EndDue{})
		b.ok(err)
	}
	release := make(chan struct{})
	var began sync.WaitGroup
	b.Deliverer.OnDeliver = func(int) (activities.DeliveryResult, error) {
		began.Done()
		<-release
		return activities.DeliveryResult{Verdict: activities.VerdictDelivered, Status: 200}, nil
	}
	var (
		mu      sync.Mutex
		waiting []error
		ran     sync.WaitGroup
	)
	began.Add(1)
	deliver := func(id string) error {
		_, err := call[activities.Verdict](b, b.Activities.DeliverWebhook, activities.RoundArgs{TaskID: id, Round: 1, Attempt: 1, Wait: time.Minute})
		return err
	}
	gone := make(chan struct{}, flood)
	for n := range flood {
		id := fmt.Sprint("task_busy_", n)
		add(id, "acc_busy")
		began.Add(1)
		ran.Go(func() {
			if err := deliver(id); err != nil {
				mu.Lock()
				waiting = append(waiting, err)
				mu.Unlock()
				began.Done()
				gone <- struct{}{}
			}
		})
	}
	<-gone // one at least, while others are under way
	add("task_other", "acc_other")
	ran.Go(func() {
		if err := deliver("task_other"); err != nil {
			t.Errorf("another account's callback: %v", err)
		}
	})
	began.Wait()
	sent := len(b.Deliverer.Bodies())
	if sent+len(waiting) != flood+1 || sent < 10 || len(waiting) < 10 {
		t.Errorf("%d under way and %d wait of %d", sent, len(waiting), flood+1)
	}
	kind(t, waiting[0], mediagate.KindCapacity, "no_place", true)
	var app *temporal.ApplicationError
	if !asApplication(waiting[0], &app) || app.NextRetryDelay() < time.Second || app.Category() != temporal.ApplicationErrorCategoryBenign {
		t.Errorf("it does not wait: %v", waiting[0])
	}
	if !activities.NoFault(waiting[0]) || !activities.WaitsForPlace(waiting[0]) || !strings.Contains(app.Message(), "waits for its turn") {
		t.Errorf("it is no waiting: %v", waiting[0])
	}
	close(release)
	ran.Wait()
	recorded := 0
	for n := range flood {
		deliveries, err := b.Store.Deliveries(t.Context(), fmt.Sprint("task_busy_", n))
		b.ok(err)
		recorded += len(deliveries)
	}
	if recorded != sent-1 {
		t.Errorf("%d deliveries on record of the flood, want the %d that were sent", recorded, sent-1)
	}
}

// That a receiver fell silent is logged with its account, at most every ten seconds
// with how many there were: clients can make it happen at will.
func TestSilentReceiversAreLogged(t *testing.T) {
	t.Parallel()
	b := ended(t)
	var lines bytes.Buffer
	b.Activities.Logger = slog.New(slog.NewTextHandler(&lines, nil))
	b.Deliverer.OnDeliver = func(int) (activities.DeliveryResult, error) {
		return activities.DeliveryResult{Verdict: activities.VerdictRetry, Error: "timeout", Silent: true}, nil
	}
	attempt := 0
	falls := func(host string) {
		b.Store.EditTask(taskID, func(task *mediagate.Task) { task.Webhook.URL = "https://hooks." + host + "/" })
		for range 10 {
			attempt++
			must[activities.Verdict](b, b.Activities.DeliverWebhook, activities.RoundArgs{TaskID: taskID, Round: 1, Attempt: attempt, Wait: time.Minute})
		}
	}
	logged := func() int { return strings.Count(lines.String(), "does not answer") }
	falls("one.com")
	if text := lines.String(); logged() != 1 || !strings.Contains(text, "account=acc_1 receiver=one.com times=1") {
		t.Errorf("logged: %s", text)
	}
	falls("two.com")
	falls("three.com")
	if logged() != 1 {
		t.Errorf("logged within ten seconds: %s", lines.String())
	}
	b.advance(10 * time.Second)
	falls("four.com")
	if text := lines.String(); logged() != 2 || !strings.Contains(text, "receiver=four.com times=3") {
		t.Errorf("logged: %s", text)
	}
}
