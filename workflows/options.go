package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
)

// The activity profiles: where a step runs, how long it may take, how often
// it is repeated. What is used up here parks the task.

// lostWorker is after which silence a step's worker counts as dead. With the
// pause before the repetition it is what a kill -9 costs a step under way, and
// that is to be less than 15 s. Short steps without heartbeats may take as long.
const lostWorker = 10 * time.Second

// database is a short step on our own tables. It is repeated for ever: while
// the database is away nothing can be decided.
func database(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           QueueMain,
		StartToCloseTimeout: lostWorker,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 500 * time.Millisecond, MaximumInterval: 15 * time.Second},
		Summary:             summary,
	}
}

// load asks our tables within the workflow task, which adds next to nothing to the
// history. Like database, it is repeated for as long as it takes.
func load(summary string) workflow.LocalActivityOptions {
	return workflow.LocalActivityOptions{
		StartToCloseTimeout:    10 * time.Second,
		ScheduleToCloseTimeout: 10 * 365 * 24 * time.Hour, // unset, it would be as short
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 500 * time.Millisecond, MaximumInterval: 10 * time.Second},
		Summary:                summary,
	}
}

// leastPatience is the least that a step is given.
const leastPatience = time.Second

// callsPatience is longer than a synchronous submit takes, whose calls may be
// repeated that were refused for now, and than the record of it is insisted on.
const callsPatience = 10 * time.Minute

// call talks to a vendor, within what is left of the waiting for it. The
// repetitions only cover a lost worker and an absent database: what the vendor
// said is never repeated blindly, the row sees to that.
func call(provider, summary string, left time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              QueueCall(provider),
		ScheduleToCloseTimeout: max(left, leastPatience),
		StartToCloseTimeout:    callsPatience,
		HeartbeatTimeout:       lostWorker,
		WaitForCancellation:    true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, MaximumInterval: 15 * time.Second, MaximumAttempts: 12,
		},
		Summary: summary,
	}
}

// backlogLook is how long a task lies in a channel's backlog before it looks for
// another channel again. It ends the waiting where no worker serves the backlog any
// more.
const backlogLook = 5 * time.Minute

// behind is call for an attempt that waits behind a channel's calls.
func behind(channel, summary string, left time.Duration) workflow.ActivityOptions {
	options := call("", summary, left)
	options.TaskQueue, options.ScheduleToStartTimeout = QueueBacklog(channel), backlogLook
	return options
}

// How long the questions to vendors are repeated.
const (
	lookupPatience = time.Minute
	stopPatience   = 30 * time.Second
)

// ask is a question to a vendor that may be repeated freely.
func ask(provider, summary string, patience time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              QueueCall(provider),
		StartToCloseTimeout:    time.Minute,
		HeartbeatTimeout:       lostWorker,
		ScheduleToCloseTimeout: patience,
		WaitForCancellation:    true,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: 15 * time.Second},
		Summary:                summary,
	}
}

// checking fetches clients' media. Its repetitions are for servers that are away, and for
// lost workers: the activity makes an end of both. It comes again as often as it finds no
// permit.
func checking(summary string, left time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              QueueInputs,
		ScheduleToCloseTimeout: max(left, leastPatience),
		StartToCloseTimeout:    callsPatience,
		HeartbeatTimeout:       lostWorker,
		WaitForCancellation:    true,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: 15 * time.Second},
		Summary:                summary,
	}
}

// mirrorPatience is the least that a copy may take: a result that came at the last
// moment is worth copying.
const mirrorPatience = time.Hour

// copies copies a result. The deadline is that of the vendor, which is done: what is
// left until then is bounded below. The step comes again as often as it finds no
// permit. Its own failures it counts itself, and ends with.
func copies(summary string, left time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              QueueMirror,
		ScheduleToCloseTimeout: max(left, mirrorPatience),
		StartToCloseTimeout:    mediagate.CopyLimit,
		HeartbeatTimeout:       lostWorker,
		WaitForCancellation:    true,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: 10 * time.Second},
		Summary:                summary,
	}
}

// deliver makes one delivery attempt; only a lost worker or a record that
// cannot be made repeats it, and the latter not for ever: the activity ends it, and
// a round that ends with an error is replaced once its wake is due (D2). Each time that
// the attempt finds no permit counts as a repetition here, so these have no bound.
func deliver(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           QueueWebhook,
		StartToCloseTimeout: 45 * time.Second,
		HeartbeatTimeout:    lostWorker,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, MaximumInterval: 15 * time.Second,
		},
		Summary: summary,
	}
}

// removing removes a part of what is past its time. What cannot be removed is left to the
// next run.
func removing() workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              QueueChannel,
		StartToCloseTimeout:    10 * time.Minute,
		ScheduleToCloseTimeout: 15 * time.Minute,
		HeartbeatTimeout:       lostWorker,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: 30 * time.Second, MaximumAttempts: 5},
		WaitForCancellation:    true,
		Summary:                "remove what is past its time",
	}
}

// tend is a long activity that hands itself back when its worker stops.
func tend(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           QueueChannel,
		StartToCloseTimeout: 24 * time.Hour,
		HeartbeatTimeout:    lostWorker,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 1},
		Summary:             summary,
	}
}
