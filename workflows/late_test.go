package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
)

// Nothing is sent for a task whose time is up: nobody would wait for it.
func TestD10NothingIsSentAfterTheDeadline(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		deadline time.Duration
		status   mediagate.Status
		submits  int
	}{
		"passed":    {-time.Second, mediagate.StatusFailed, 0},
		"right now": {0, mediagate.StatusFailed, 0},
		"ahead":     {time.Minute, mediagate.StatusCompleted, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			b.Store.Edit(taskID, func(task *mediagate.Task) { task.DeadlineAt = start.Add(c.deadline) })
			b.at(time.Second, func() {
				if c.submits > 0 {
					b.Async.End(taskID, activitytest.Success())
				}
			})
			b.run()
			if b.ended(c.status); c.status == mediagate.StatusFailed {
				b.failed(mediagate.CodeGenerationTimeout)
			}
			if got := len(b.Async.Submits()); got != c.submits {
				t.Errorf("%d submits, want %d", got, c.submits)
			}
		})
	}
}

// A vendor that loses every submit, and provably has no job each time, is not
// asked for ever.
func TestD10LostSubmitsEndAtTheDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Async.OnSubmit = func(context.Context, mediagate.Job) (mediagate.Submission, error) {
		return mediagate.Submission{}, &mediagate.Error{Kind: mediagate.KindAmbiguous, Message: "a fault of the vendor's"}
	}
	b.run()
	b.failed(mediagate.CodeGenerationTimeout)
	if got := b.endedAt(); got < deadline || got > deadline+5*time.Minute {
		t.Errorf("ended after %v, want soon after %v", got, deadline)
	}
}
