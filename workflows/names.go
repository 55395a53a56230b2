package workflows

import (
	"strconv"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/task"
)

// Task queues. Each has its own bound in the worker (D18).
const (
	QueueMain    = "mediagate" // workflows and short database activities
	QueueChannel = "channel"   // the long activities of singletons
	QueueMirror  = "mirror"
	QueueInputs  = "inputs" // the checks of clients' media
	QueueWebhook = "webhook"
)

// QueueCall returns the queue of the calls to a provider's vendor.
func QueueCall(provider string) string { return "call/" + provider }

// QueueBacklog returns the queue of the submits that wait behind the calls of a channel, because
// no other channel takes them.
func QueueBacklog(channel string) string { return "backlog/" + channel }

// SignalWake makes a task's run ask for its next step. It has no input. Operators send other
// signals from Temporal's UI: "retry", "fail", "poll_now" and "reroute". The last may have a
// channel as its input.
const SignalWake = "wake"

// IDWake is the workflow id of the singleton that works through due wakes.
const IDWake = "wake"

// IDChannel returns the workflow id of a channel's singleton.
func IDChannel(name string) string { return "channel/" + name }

// IDWebhook returns the workflow id of a delivery round.
func IDWebhook(taskID string, round int) string {
	return "webhook/" + taskID + "/" + strconv.Itoa(round)
}

// IDActions returns the workflow id of a job that gives a command to many tasks.
func IDActions(job string) string { return "actions/" + job }

// Search attributes of a task's workflow.
var (
	AttrModel    = temporal.NewSearchAttributeKeyKeyword("MediagateModel")
	AttrType     = temporal.NewSearchAttributeKeyKeyword("MediagateType")
	AttrProvider = temporal.NewSearchAttributeKeyKeyword("MediagateProvider")
	AttrAccount  = temporal.NewSearchAttributeKeyKeyword("MediagateAccount")
	AttrStatus   = temporal.NewSearchAttributeKeyKeyword("MediagateStatus")
	AttrStuck    = temporal.NewSearchAttributeKeyBool("MediagateStuck")
	AttrReason   = temporal.NewSearchAttributeKeyKeyword("MediagateReason")

	// attrBuilds is one of Temporal's own attributes, see buildIDs.
	attrBuilds = temporal.NewSearchAttributeKeyKeywordList("BuildIds")
)

// BuildID names the build of our workers to Temporal. It is the same for all builds: replay
// decides which build may continue a run, not Temporal's versioning.
const BuildID = "mediagate"

// buildIDs returns the value that Temporal gives to the attribute BuildIds in the first workflow
// task of a run. A run that is started with that value saves Temporal one write to its lists.
func buildIDs() temporal.SearchAttributeUpdate {
	return attrBuilds.ValueSet([]string{"unversioned", "unversioned:" + BuildID})
}

// Input is the input of a task's run. Seen is what the runs before it have seen (D5). Only the
// first run of a task has First, the answer to its first question (D1).
type Input struct {
	TaskID string             `json:"task"`
	Seen   task.Seen          `json:"seen,omitzero"`
	First  *activities.Answer `json:"first,omitempty"`
}

// RoundInput is the input of a delivery round.
type RoundInput struct {
	TaskID string `json:"task"`
	Round  int    `json:"round"`
}

// Register registers the workflows of this build with a worker or a replayer.
func Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflow(Generate)
	r.RegisterWorkflow(DeliverWebhook)
	r.RegisterWorkflow(Channel)
	r.RegisterWorkflow(Wake)
	r.RegisterWorkflow(Expire)
	r.RegisterWorkflow(TaskActions)
}

// acts names the activities. Its methods are never called.
var acts *activities.Activities

// Local activities are given by name. For a function value, the SDK would call the method of acts,
// which is nil.
const (
	nameAsk       = "Ask"
	nameLoadRound = "LoadRound"
)
