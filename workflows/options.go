package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/task"
)

// The activity profiles: where a step runs, how long it may take, how often
// it is repeated. What is used up here parks the task.

const (
	// lostWorker is after which silence a step's worker counts as dead. With the
	// pause before the repetition it is what a kill -9 costs a step under way, and
	// that is to be less than 15 s. Short steps without heartbeats may take as long.
	lostWorker = 10 * time.Second
	// leastPatience is the least that a step is given.
	leastPatience = time.Second
	// callsPatience is longer than a synchronous submit takes, whose calls may be
	// repeated that were refused for now, and than the record of it is insisted on.
	callsPatience = 10 * time.Minute
	// questionTime bounds one try of a question to a vendor.
	questionTime = time.Minute
	// lookupPatience and stopPatience are how long the questions to vendors are repeated.
	lookupPatience = time.Minute
	stopPatience   = 30 * time.Second
	// mirrorPatience is the least that a copy may take: a result that came at the last
	// moment is worth copying.
	mirrorPatience = time.Hour
	// submitTries is how often a submit is tried. The repetitions only cover a lost worker
	// and an absent database: what the vendor said is never repeated blindly, the row sees
	// to that.
	submitTries = 12
	// backlogLook is how long a task lies in a channel's backlog before it looks for
	// another channel again. It ends the waiting where no worker serves the backlog any
	// more.
	backlogLook = 5 * time.Minute
)

// activityOf returns the activity of the answer's step, and its profile. left is what is
// left of the waiting for the vendor.
//
// A check of inputs and a copy count their own failures, and end with the last. So their
// tries have no bound, and they come again as often as they find no permit.
func activityOf(answer activities.Answer, left time.Duration) (workflow.ActivityOptions, any) {
	summary, calls := doing(answer), QueueCall(answer.Step.Provider)
	left = max(left, leastPatience)
	switch answer.Step.Kind {
	case task.CheckInputs:
		return profile(QueueInputs, summary, left, callsPatience), acts.CheckInputs
	case task.Submit:
		options := profile(calls, summary, left, callsPatience)
		options.RetryPolicy.MaximumAttempts = submitTries
		if answer.Behind != "" {
			options.TaskQueue, options.ScheduleToStartTimeout = QueueBacklog(answer.Behind), backlogLook
		}
		return options, acts.SubmitJob
	case task.Lookup:
		return profile(calls, summary, lookupPatience, questionTime), acts.LookUp
	case task.Mirror: // the deadline is that of the vendor, which is done
		return profile(QueueMirror, summary, max(left, mirrorPatience), mediagate.CopyLimit), acts.MirrorResult
	case task.CancelJob:
		return profile(calls, summary, stopPatience, questionTime), acts.CancelJob
	case task.Settle:
		return database(summary), acts.Settle
	default:
		panic(fmt.Sprintf("this build does not know the step %q", answer.Step.Kind))
	}
}

// profile is that of an activity that beats, and of whose cancel the workflow awaits the
// end: all tries take at most whole, and one at most once.
func profile(queue, summary string, whole, once time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              queue,
		ScheduleToCloseTimeout: whole,
		StartToCloseTimeout:    once,
		HeartbeatTimeout:       lostWorker,
		WaitForCancellation:    true,
		RetryPolicy:            retried(time.Second),
		Summary:                summary,
	}
}

// retried is the policy of all activities: for ever, at growing distances.
func retried(first time.Duration) *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: first, MaximumInterval: 15 * time.Second}
}

// soon is the first pause before a step on our own tables is repeated.
const soon = 500 * time.Millisecond

// database is a short step on our own tables. It is repeated for ever: while
// the database is away nothing can be decided.
func database(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue: QueueMain, StartToCloseTimeout: lostWorker, RetryPolicy: retried(soon), Summary: summary,
	}
}

// load asks our tables within the workflow task, which adds next to nothing to the
// history. Like database, it is repeated for as long as it takes.
func load(summary string) workflow.LocalActivityOptions {
	return workflow.LocalActivityOptions{
		StartToCloseTimeout:    lostWorker,
		ScheduleToCloseTimeout: 10 * 365 * 24 * time.Hour, // unset, it would be as short
		RetryPolicy:            retried(soon),
		Summary:                summary,
	}
}

// deliver makes one delivery attempt; only a lost worker or a record that
// cannot be made repeats it, and the latter not for ever: the activity ends it, and
// a round that ends with an error is replaced once its wake is due (D2). Each time that
// the attempt finds no permit counts as a repetition here, so these have no bound.
func deliver(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue: QueueWebhook, StartToCloseTimeout: 45 * time.Second, HeartbeatTimeout: lostWorker,
		RetryPolicy: retried(time.Second), Summary: summary,
	}
}

// removing removes a part of what is past its time. What cannot be removed is left to the
// next run.
func removing() workflow.ActivityOptions {
	options := profile(QueueChannel, "remove what is past its time", 15*time.Minute, 10*time.Minute)
	options.RetryPolicy.MaximumAttempts = 5
	return options
}

// tend is a long activity that hands itself back when its worker stops.
func tend(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue: QueueChannel, StartToCloseTimeout: 24 * time.Hour, HeartbeatTimeout: lostWorker,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 1}, Summary: summary,
	}
}
