package workflows

import (
	"strconv"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/task"
)

// Task queues, each with its own bound in the worker (D18).
const (
	QueueMain    = "mediagate" // workflows and short database activities
	QueueChannel = "channel"   // the long activities of singletons
	QueueMirror  = "mirror"
	QueueInputs  = "inputs" // the checks of clients' media
	QueueWebhook = "webhook"
)

// QueueCall is the queue of the calls to a provider's vendor.
func QueueCall(provider string) string { return "call/" + provider }

// QueueBacklog is the queue of those who wait behind the calls of a channel,
// since no other takes them.
func QueueBacklog(channel string) string { return "backlog/" + channel }

// SignalWake asks a task's run to ask for its next step. It has no input. By hand, from
// Temporal's UI, operators send "retry", "fail", "poll_now", and "reroute", which may
// have a channel as its input.
const SignalWake = "wake"

// IDWake is the workflow id of the singleton that works through due wakes.
const IDWake = "wake"

// IDChannel is the workflow id of a channel's singleton.
func IDChannel(name string) string { return "channel/" + name }

// IDWebhook is the workflow id of a delivery round.
func IDWebhook(taskID string, round int) string {
	return "webhook/" + taskID + "/" + strconv.Itoa(round)
}

// IDActions is the workflow id of a job that gives a command to many tasks.
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

	// attrBuilds is an attribute of Temporal's own, see builds.
	attrBuilds = temporal.NewSearchAttributeKeyKeywordList("BuildIds")
)

// BuildID names the build of our workers to Temporal. It is the same for all builds: which of
// them may go on with a run is decided by replay, not by Temporal's versioning.
const BuildID = "mediagate"

// builds is what the first workflow task of a run adds to its search attributes. A run that
// is started with it saves a write of the list.
func builds() temporal.SearchAttributeUpdate {
	return attrBuilds.ValueSet([]string{"unversioned", "unversioned:" + BuildID})
}

// Input is what a task's run starts with. Seen is what the runs before it have seen (D5).
// Only the first run of a task has First, the answer to its first question (D1).
type Input struct {
	TaskID string             `json:"task"`
	Seen   task.Seen          `json:"seen,omitzero"`
	First  *activities.Answer `json:"first,omitempty"`
}

// ChannelInput is what a channel's workflow starts with.
type ChannelInput struct {
	Channel string `json:"channel"`
}

// RoundInput is what a delivery round starts with.
type RoundInput struct {
	TaskID string `json:"task"`
	Round  int    `json:"round"`
}

// Register makes the workflows of this build known to a worker, or to a replayer.
func Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflow(Generate)
	r.RegisterWorkflow(DeliverWebhook)
	r.RegisterWorkflow(Channel)
	r.RegisterWorkflow(Wake)
	r.RegisterWorkflow(Expire)
	r.RegisterWorkflow(TaskActions)
}

// acts names the activities; its methods are never called.
var acts *activities.Activities

// Local activities go by name, since a function value would be called as it is.
const (
	nameAsk       = "Ask"
	nameLoadRound = "LoadRound"
)
