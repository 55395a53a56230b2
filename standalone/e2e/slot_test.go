package e2e_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate/internal/failpoint"
)

// TestD7SlotsOutliveTheirWorker checks that an account with five slots never has a sixth job
// (D7). The worker dies between a grant and its signal, and again while jobs run. No slot is
// lost, and no submit is refused.
func TestD7SlotsOutliveTheirWorker(t *testing.T) {
	t.Parallel()
	const slots = 5
	tasks := 15
	if suite.verify {
		tasks = 150
	}
	w := newWorld(t, options{
		shape: production, failpoint: failpoint.SlotGranted,
		channels: []map[string]any{klingChannel("kling-a", klingKey+"@slots", map[string]any{"concurrency": slots})},
	})
	for range tasks {
		w.submit(job{model: alpha, directive: "duration=3s"})
	}
	watching, stop := context.WithCancel(t.Context())
	var most atomic.Int64
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for watching.Err() == nil {
			if n, err := w.running(watching); err == nil {
				most.Store(max(most.Load(), n))
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	w.victim().awaitKilled(t, crashLimit)
	w.victim().start(t)
	w.await(w.tasks[tasks/2], recoverTime, "is sent", func(o object) bool { return o.Status != "pending" })
	w.victim().kill()
	w.victim().start(t)
	w.verify(recoverTime)
	stop()
	<-watched
	if got := most.Load(); got > slots || got < 2 {
		t.Errorf("the vendor had up to %d jobs at once, want %d", got, slots)
	}
	for _, task := range w.tasks {
		if got := w.attemptChannels(task); len(got) != 1 {
			t.Errorf("%s was refused: it has attempts %v", task.id, got)
		}
	}
	if queued, err := w.column("SELECT task_id FROM queue"); err != nil || len(queued) > 0 {
		t.Errorf("still queued: %v, %v", queued, err)
	}
}

// running returns how many jobs of the world's tasks run at the vendor.
func (w *world) running(ctx context.Context) (n int64, err error) {
	a, err := request{method: http.MethodGet, url: w.sandbox + "/_sandbox/jobs"}.do(ctx)
	if err != nil {
		return 0, err
	}
	var list struct {
		Jobs []vendorJob `json:"jobs"`
	}
	if err := a.decode(&list); err != nil {
		return 0, err
	}
	ours := make(map[string]bool, len(w.tasks))
	for _, t := range w.tasks {
		ours[t.id] = true
	}
	for _, j := range list.Jobs {
		if ours[j.ExternalID] && j.State != "succeeded" && j.State != "failed" {
			n++
		}
	}
	return n, nil
}
