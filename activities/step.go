package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task"
)

// Every step uses the functions of this file: to change its task, to report its end, and to send
// heartbeats while it works.

// stepDone stores what a step achieved, and that the step has ended. The answer has the next
// step. If the task has changed meanwhile and refuses what was achieved, only the end of the step
// is stored.
func (a *Activities) stepDone(ctx context.Context, in StepArgs, achieved ...task.Event) (Answer, error) {
	changed, err := a.change(ctx, in.TaskID, append(achieved, stepEnded(in), task.Asked{Seen: in.Seen})...)
	switch {
	case mediagate.Is(err, mediagate.KindNotFound):
		return Answer{Missing: true}, nil
	// The task refuses what was achieved. Store the end of the step alone.
	case mediagate.Is(err, mediagate.KindConflict) && len(achieved) > 0:
		return a.stepDone(ctx, in)
	case err != nil:
		return Answer{}, a.fail(ctx, err)
	}
	return answerTo(changed), nil
}

// stepEnded returns the event of a step that has ended without an error.
func stepEnded(in StepArgs) task.StepEnded { return task.StepEnded{Step: in.Step.Kind, N: in.Step.N} }

// change is Store.Change, followed by the effects outside of the database.
func (a *Activities) change(ctx context.Context, taskID string, events ...task.Event) (task.Changed, error) {
	changed, err := a.Store.Change(ctx, taskID, events...)
	if err == nil {
		a.carryOut(ctx, changed)
	}
	return changed, err
}

// persist is change for facts that are nowhere else, except perhaps in a sender's heartbeat. It
// goes on although the worker is being stopped. While the database is away, it repeats the change
// for as long as the activity may run, and at least for reportTime: a call may outlast its
// activity, and its answer counts all the same.
func (a *Activities) persist(
	ctx context.Context, taskID string, events ...task.Event,
) (changed task.Changed, err error) {
	left := max(time.Until(activity.GetInfo(ctx).Deadline), reportTime)
	err = a.persistWithin(ctx, left, func(ctx context.Context) (err error) {
		changed, err = a.Store.Change(ctx, taskID, events...)
		return err
	})
	if err == nil {
		a.carryOut(context.WithoutCancel(ctx), changed)
	}
	return changed, err
}

// persistWithin calls record, and repeats it while the database is away. After the time in most it
// returns the last error.
func (a *Activities) persistWithin(
	ctx context.Context, most time.Duration, record func(context.Context) error,
) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	for {
		// Each try has its own limit, so a connection that hangs does not use up the whole time.
		try, stop := context.WithTimeout(ctx, 10*time.Second)
		err := record(try)
		stop()
		// Any other error is an answer of the database. It would be the same at the next try.
		if !mediagate.Is(err, mediagate.KindUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

const (
	// heartbeatEvery is well within the heartbeat timeouts of the activities' profiles.
	heartbeatEvery = 3 * time.Second
	// reportTime is the least time that persist has to store its facts.
	reportTime = time.Minute
	// stopTime is how long a stopped activity tries to bring its task's wake forward.
	stopTime = 5 * time.Second
	// storeTimeout bounds one call to the database.
	storeTimeout = 15 * time.Second
)

// stopped is called at the end of a step. If the activity was cancelled, it brings the task's
// wake forward, since the run may be gone. Otherwise the absence of the run would be noticed only
// at the end of the step's lease. A run that lives asks at once, and renews the lease.
func (a *Activities) stopped(ctx context.Context, taskID string) {
	if ctx.Err() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if _, err := a.Store.Change(ctx, taskID, task.StepStopped{}); err != nil {
		a.Logger.DebugContext(ctx, "the wake of a stopped step was not brought forward: the lease's end is its time",
			"task", taskID, "error", err)
	}
}

// untilStopped returns a context that ends when the worker begins to stop. A step that another
// worker can repeat or continue does not delay the stop.
func untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	stop := activity.GetWorkerStopChannel(ctx)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// noDetails returns the details of a heartbeat that only shows life.
func noDetails() []any { return []any{} }

// heartbeat sends heartbeats until stop is called, so that a lost worker is noticed and a cancel
// arrives. It sends one every few seconds, and one at once for each element of news, which may be
// nil. If details returns nil, it sends none. A step that is over within the first interval sends
// no regular heartbeat, since each costs Temporal a write.
//
// ctx must be the activity's own context: if a heartbeat is cut short, the SDK takes that as a
// cancel of the activity.
func heartbeat(ctx context.Context, details func() []any, news <-chan chan<- struct{}) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	report := func() {
		if now := details(); now != nil {
			activity.RecordHeartbeat(ctx, now...)
		}
	}
	go func() {
		defer close(done)
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				report()
			case reported := <-news:
				report()
				close(reported)
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}
