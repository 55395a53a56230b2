package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// sender is what one SubmitJob knows and the database may lack (D5): the sending that it has
// begun, and the id of the job that the vendor made of it. Its heartbeat carries both. If this
// process dies, Temporal hands them to the next try of the activity, or to the run.
type sender struct {
	news chan chan<- struct{} // asks for a heartbeat at once; the sent channel is closed after it

	mu   sync.Mutex
	seen task.Seen
}

// newSender returns a sender that knows what the try before had reported.
func newSender(ctx context.Context) *sender {
	s := &sender{news: make(chan chan<- struct{}, 1)}
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &s.seen) != nil {
		s.seen = task.Seen{} // of another build
	}
	return s
}

// reportTimeout is how long a sender waits for its report before it calls the vendor. A Temporal
// that is away does not keep a job from being sent.
const reportTimeout = time.Second

// reportSending reports the sending that is about to be made.
//
// If the process then dies in the call, the next try finds the sending in the heartbeat. If the
// database has lost the intent meanwhile, that try puts it back, and looks for the job instead of
// making a second one.
func (s *sender) reportSending(sending task.Sending) {
	s.setSeen(task.Seen{Sending: sending})
	reported := make(chan struct{})
	s.news <- reported
	select {
	case <-reported:
	// Without the report, a crash in the call leaves only the stored intent.
	case <-time.After(reportTimeout):
	}
}

// setSeen sets what the next heartbeat says. It sends none itself: most answers are in the
// database before the next regular heartbeat is due.
func (s *sender) setSeen(seen task.Seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = seen
}

// details returns the details of a heartbeat.
func (s *sender) details() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen.N == 0 {
		return noDetails()
	}
	return []any{s.seen}
}

// addTo returns what the run has seen, together with what this sender knows of a later sending.
func (s *sender) addTo(seen task.Seen) task.Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return seen.With(s.seen)
}

// adoptReported lets the row adopt what the try before had reported, before anything else is done.
// An activity that is tried for the first time has no such report.
func (a *Activities) adoptReported(ctx context.Context, began *sender, in *StepArgs) error {
	if len(began.details()) == 0 {
		return nil
	}
	// The heartbeat may know more than the run that scheduled this activity.
	in.Seen = began.addTo(in.Seen)
	_, err := a.persist(ctx, in.TaskID, task.Asked{Seen: in.Seen})
	if mediagate.Is(err, mediagate.KindNotFound) {
		return nil // the step reports that the task is missing
	}
	return err
}
