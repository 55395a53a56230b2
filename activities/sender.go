package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// sender is what a SubmitJob knows and the database may not (D5): which sending it has
// begun, and the id of the job that the vendor made of it. Its heartbeat carries that, so
// that the next try of the activity, or the run, knows it after this process has died.
type sender struct {
	news chan chan<- struct{} // has the heartbeat report at once, and close the channel

	mu   sync.Mutex
	seen task.Seen
}

// newSender begins with what the try before had reported.
func newSender(ctx context.Context) *sender {
	s := &sender{news: make(chan chan<- struct{}, 1)}
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &s.seen) != nil {
		s.seen = task.Seen{} // of another build
	}
	return s
}

// reportPatience is how long a sender waits for its report before it calls the vendor. A
// Temporal that is away keeps no job from being sent.
const reportPatience = time.Second

// begins reports the sending that is about to be made.
func (s *sender) begins(sending task.Sending) {
	s.learns(task.Seen{Sending: sending})
	reported := make(chan struct{})
	s.news <- reported
	select {
	case <-reported:
	case <-time.After(reportPatience):
	}
}

// learns has the next report say what is seen now. It makes none: by the next regular beat
// the database has most answers.
func (s *sender) learns(seen task.Seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = seen
}

func (s *sender) details() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen.N == 0 {
		return noDetails()
	}
	return []any{s.seen}
}

// with adds to what the run has seen what this sender knows of a later sending.
func (s *sender) with(seen task.Seen) task.Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return seen.With(s.seen)
}

// recall has the row take over what the try before knew, before anything else is done.
func (a *Activities) recall(ctx context.Context, began *sender, in *StepArgs) error {
	if len(began.details()) == 0 {
		return nil
	}
	in.Seen = began.with(in.Seen)
	_, err := a.persist(ctx, in.TaskID, task.Asked{Seen: in.Seen})
	if mediagate.Is(err, mediagate.KindNotFound) {
		return nil // the step says so
	}
	return err
}
