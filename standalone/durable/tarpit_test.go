package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/internal/limit"
	"github.com/mediagate/mediagate/task"
	"github.com/mediagate/mediagate/worker"
	"github.com/mediagate/mediagate/workflows"
)

const tarpitURL = "https://tarpit.example.com/hook"

// tarpit is a receiver that answers nothing until it is released. Others answer at
// once.
type tarpit struct {
	release chan struct{}

	mu        sync.Mutex
	called    map[string]int // by task
	under     int
	underMost int
}

func (p *tarpit) Deliver(ctx context.Context, taskID string, target mediagate.WebhookTarget) (mediagate.DeliveryResult, error) {
	p.mu.Lock()
	p.called[taskID]++
	p.mu.Unlock()
	if target.URL == tarpitURL {
		p.enter(1)
		defer p.enter(-1)
		select {
		case <-p.release:
		case <-ctx.Done():
			return mediagate.DeliveryResult{}, &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "interrupted", Err: ctx.Err()}
		}
	}
	return mediagate.DeliveryResult{Outcome: mediagate.DeliveryDone, Status: 200}, nil
}

func (p *tarpit) enter(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under += n
	p.underMost = max(p.underMost, p.under)
}

// calls is how many tasks' callbacks were begun, and how many were under way at once.
func (p *tarpit) calls() (begun, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.called), p.underMost
}

// Callbacks to a receiver that never answers take no more than their account's
// share: another account's arrives while they wait. They say that they wait, and
// are not replaced for that. When the worker dies under them the next one goes on,
// and each is delivered.
func TestTarpit(t *testing.T) {
	t.Parallel()
	const flood = 120
	w := setup(t)
	receiver := &tarpit{release: make(chan struct{}), called: map[string]int{}}
	w.Activities.Deliverer = receiver
	w.Activities.Limits.Callbacks, w.Activities.Limits.Receivers = limit.New("callbacks", 64), limit.NewGroup("receivers", 16)
	stop := w.delivers(w.Activities)
	for n := range flood {
		w.callback(fmt.Sprintf("task_busy_%03d", n), "acc_busy", tarpitURL)
	}
	waiting := workflows.IDWebhook(fmt.Sprintf("task_busy_%03d", flood-1), 1)
	failure := func() string {
		for _, step := range w.pending(waiting) {
			return step.GetLastFailure().GetMessage()
		}
		return ""
	}
	w.awaits("the last of them waits and says so", func() bool { return strings.Contains(failure(), "waits for its turn") })
	w.callback("task_other", "acc_other", "https://good.example.com/hook")
	w.awaits("another account's callback is delivered", func() bool {
		return w.task("task_other").Webhook.State == mediagate.WebhookDelivered
	})
	if begun, most := receiver.calls(); begun > flood/2 || most > 8 {
		t.Errorf("%d of %d callbacks begun, %d at once: the tarpit has more than its share", begun, flood, most)
	}
	runs := func() string {
		d, err := w.temporal.DescribeWorkflowExecution(t.Context(), waiting, "")
		if err != nil {
			t.Fatal(err)
		}
		return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	before := runs()
	round := mediagate.WebhookRound{TaskID: fmt.Sprintf("task_busy_%03d", flood-1), AccountID: "acc_busy", Round: 1}
	if replaced, err := w.engine.ReplaceRound(t.Context(), round, "test"); err != nil || replaced || runs() != before {
		t.Errorf("a round that waits for its turn was replaced: %v, %v", replaced, err)
	}

	stop() // with some under way and the rest waiting
	next := &activities.Activities{
		Store: w.Activities.Store, Channels: w.Activities.Channels, Breakers: w.Activities.Breakers, Descriptions: w.Activities.Descriptions,
		Fetcher: w.Activities.Fetcher, Bucket: w.Activities.Bucket, Sweeper: w.Activities.Sweeper, Deliverer: receiver, Engine: w.Activities.Engine,
		Limits: w.Activities.Limits, Settings: w.Activities.Settings, StartedAt: time.Now(), Now: w.Activities.Now, Logger: w.Activities.Logger, NewID: w.Activities.NewID,
	}
	close(receiver.release)
	w.delivers(next)
	w.awaits("all are delivered", func() bool {
		for n := range flood {
			if w.task(fmt.Sprintf("task_busy_%03d", n)).Webhook.State != mediagate.WebhookDelivered {
				return false
			}
		}
		return true
	})
	for n := range flood {
		deliveries, err := w.Store.Deliveries(t.Context(), fmt.Sprintf("task_busy_%03d", n))
		if err != nil || len(deliveries) != 1 || deliveries[0].Attempt != 1 {
			t.Errorf("task %d has deliveries %+v (%v), want the first attempt alone", n, deliveries, err)
		}
	}
}

// callback ends a task, whose callback goes to url, and starts its delivery.
func (w *world) callback(id, account, url string) {
	w.t.Helper()
	t := w.NewVideo()
	t.ID, t.AccountID, t.Webhook = id, account, &mediagate.Webhook{URL: url, State: mediagate.WebhookPending}
	w.Store.Add(t)
	w.change(id, task.FailRequested{}, task.EndDue{})
	if err := w.engine.EnsureRound(w.t.Context(), mediagate.WebhookRound{TaskID: id, AccountID: account, Round: 1}); err != nil {
		w.t.Fatalf("callback of %s: %v", id, err)
	}
}

// delivers runs a worker with these activities until it is stopped. It lets nothing
// end that is under way.
func (w *world) delivers(acts *activities.Activities) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- worker.Run(ctx, worker.Config{
			Temporal: w.temporal, Activities: acts, Grace: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			w.t.Errorf("the worker failed: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}
