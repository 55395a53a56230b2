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

// The activity profiles say where a step runs, how long it may take, and how often it is tried. If
// all of that is used up, the task parks.

const (
	// workerLostAfter is the silence after which a step's worker counts as dead. If its worker is
	// killed by kill -9, a step waits for this time and then for the pause before its next try,
	// together less than 15 s. workerLostAfter is also the longest time of a short step, which
	// sends no heartbeats.
	workerLostAfter = 10 * time.Second
	// minStepTime is the least time that a step gets.
	minStepTime = time.Second
	// callTime is longer than any submit takes. A synchronous submit may repeat calls that were
	// refused for the moment, and keeps trying to store the answer while the database is away.
	callTime = 10 * time.Minute
	// questionTime bounds one try of a question to a vendor.
	questionTime = time.Minute
	// lookupTime and stopTime are how long questions to vendors are repeated.
	lookupTime = time.Minute
	stopTime   = 30 * time.Second
	// minMirrorTime is the least time that a copy gets, since a result that came at the last
	// moment is worth copying.
	minMirrorTime = time.Hour
	// submitTries is how often a submit is tried. The repetitions only cover a lost worker and an
	// absent database. They never repeat a call blindly: the row prevents that.
	submitTries = 12
	// backlogTime is how long a submit stays in a channel's backlog before its task looks for
	// another channel again. It also ends the waiting if no worker serves the backlog any more.
	backlogTime = 5 * time.Minute
)

// activityOf returns the activity of the answer's step, and its profile. left is the time that is
// left for the vendor.
//
// A check of inputs and a copy count their own failures, and stop after a number of them. Temporal
// does not limit their tries, because a try that finds no permit is not a failure.
func activityOf(answer activities.Answer, left time.Duration) (workflow.ActivityOptions, any) {
	summary, calls := activitySummary(answer), QueueCall(answer.Step.Provider)
	left = max(left, minStepTime)
	switch answer.Step.Kind {
	case task.CheckInputs:
		return stepOptions(QueueInputs, summary, left, callTime), acts.CheckInputs
	case task.Submit:
		options := stepOptions(calls, summary, left, callTime)
		options.RetryPolicy.MaximumAttempts = submitTries
		if answer.Behind != "" {
			options.TaskQueue, options.ScheduleToStartTimeout = QueueBacklog(answer.Behind), backlogTime
		}
		return options, acts.SubmitJob
	case task.Lookup:
		return stepOptions(calls, summary, lookupTime, questionTime), acts.LookUp
	case task.Mirror: // the deadline is for the vendor, which is done
		return stepOptions(QueueMirror, summary, max(left, minMirrorTime), mediagate.CopyLimit), acts.MirrorResult
	case task.CancelJob:
		return stepOptions(calls, summary, stopTime, questionTime), acts.CancelJob
	case task.Settle:
		return databaseOptions(summary), acts.Settle
	default:
		panic(fmt.Sprintf("this build does not know the step %q", answer.Step.Kind))
	}
}

// stepOptions returns the options of an activity that sends heartbeats, and whose end the
// workflow awaits after a cancel. All tries together take at most total, and one at most perTry.
func stepOptions(queue, summary string, total, perTry time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              queue,
		ScheduleToCloseTimeout: total,
		StartToCloseTimeout:    perTry,
		HeartbeatTimeout:       workerLostAfter,
		WaitForCancellation:    true,
		RetryPolicy:            retryPolicy(time.Second),
		Summary:                summary,
	}
}

// retryPolicy returns the policy of all activities but those of tendOptions: retry without limit,
// at growing intervals. Submits and removals add a limit.
func retryPolicy(first time.Duration) *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: first, MaximumInterval: 15 * time.Second}
}

// databaseRetryPause is the first pause before a step on our own tables is repeated.
const databaseRetryPause = 500 * time.Millisecond

// databaseOptions returns the options of a short step on our own tables. It is repeated for ever:
// while the database is away, nothing can be decided.
func databaseOptions(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           QueueMain,
		StartToCloseTimeout: workerLostAfter,
		RetryPolicy:         retryPolicy(databaseRetryPause),
		Summary:             summary,
	}
}

// localOptions returns the options of a question to our tables within the workflow task, which
// adds little to the history. Like a database step, it is repeated for as long as it takes.
func localOptions(summary string) workflow.LocalActivityOptions {
	return workflow.LocalActivityOptions{
		StartToCloseTimeout:    workerLostAfter,
		ScheduleToCloseTimeout: 10 * 365 * 24 * time.Hour, // the SDK's default would be StartToCloseTimeout
		RetryPolicy:            retryPolicy(databaseRetryPause),
		Summary:                summary,
	}
}

// deliveryOptions returns the options of one delivery attempt. Temporal repeats the activity after
// an error of ours, such as a lost worker, a missing permit, or a record that cannot be stored. An
// answer of the receiver, even a bad one, is a result and no error. The activity itself limits the
// tries to store the record. A round that ends with an error is replaced once its wake is due (D2).
// Temporal does not limit the tries, because a try that finds no permit is not a failure.
func deliveryOptions(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue: QueueWebhook,
		// Long enough for the permits, the longest attempt of 30 s, and the record.
		StartToCloseTimeout: 45 * time.Second,
		HeartbeatTimeout:    workerLostAfter,
		RetryPolicy:         retryPolicy(time.Second),
		Summary:             summary,
	}
}

// removalOptions returns the options of one part of the removal. What cannot be removed is left
// to the next run.
func removalOptions() workflow.ActivityOptions {
	options := stepOptions(QueueChannel, "remove what is past its time", 15*time.Minute, 10*time.Minute)
	options.RetryPolicy.MaximumAttempts = 5
	return options
}

// tendOptions returns the options of a long activity that ends when its worker stops, and is
// started again.
func tendOptions(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           QueueChannel,
		StartToCloseTimeout: 24 * time.Hour,
		HeartbeatTimeout:    workerLostAfter,
		// The pause does not grow, so that a channel is not without a poller for long.
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 1},
		Summary:     summary,
	}
}
