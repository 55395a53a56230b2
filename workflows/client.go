package workflows

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/internal/tracing"
)

// Client starts, signals and replaces the gateway's workflows. Every call may be repeated.
type Client struct {
	Temporal  client.Client
	Namespace string // the namespace whose histories Start and Replace read
	// Pages is the address under which Temporal's UI shows the workflows of the namespace, see
	// PagesOf. It is empty if there is no such address.
	Pages string
}

// PagesOf returns the address under which Temporal's UI shows the workflows of a namespace. It is
// empty if ui, the address of the UI, is empty.
func PagesOf(ui, namespace string) string {
	if ui == "" {
		return ""
	}
	return strings.TrimSuffix(ui, "/") + "/namespaces/" + url.PathEscape(namespace) + "/workflows/"
}

// callTimeout bounds one call to Temporal.
const callTimeout = 10 * time.Second

// Start starts the task's run if none was started before, or if the last one failed. The first
// run begins with the task's first step, without a question. A run that follows another begins
// with what the earlier run had seen, and asks. Start returns KindConflict if a run is under way or
// has completed. After any other error it is not known whether a run was started.
func (c Client) Start(ctx context.Context, t mediagate.Task) error {
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	ctx = tracing.Below(ctx, t.TraceParent)
	// Almost always no run was started before, so this one call is all.
	err := c.start(ctx, t, enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		Input{TaskID: t.ID, First: activities.FirstAnswer(t, time.Now())})
	if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return err
	}
	// A run was started before. If it failed, another may follow; a run that is under way or has
	// completed is a conflict.
	desc, failed := c.describe(ctx, t.ID)
	if failed != nil {
		return failed
	}
	if !running(desc) && !completed(desc) {
		seen, failed := c.readSeen(ctx, desc)
		if failed != nil {
			return failed
		}
		// Temporal refuses this start if another process has started a run meanwhile.
		err = c.start(ctx, t, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
			Input{TaskID: t.ID, Seen: seen})
	}
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return conflict("a run of "+t.ID+" was started before", err)
	}
	return err
}

// conflict returns an error of KindConflict that wraps err.
func conflict(message string, err error) error {
	return &mediagate.Error{Kind: mediagate.KindConflict, Message: message, Err: err}
}

// start starts a run of the task, unless one is under way or the policy forbids it.
func (c Client) start(
	ctx context.Context, t mediagate.Task, reuse enumspb.WorkflowIdReusePolicy, in Input,
) error {
	opts := startOptions(t)
	opts.WorkflowIDReusePolicy = reuse
	opts.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	// Without this the SDK returns the run that was started before, and no error.
	opts.WorkflowExecutionErrorWhenAlreadyStarted = true
	_, err := c.Temporal.ExecuteWorkflow(ctx, opts, Generate, in)
	return err
}

// ensure starts a workflow unless a run of it is under way. How the last run ended does not
// matter.
func (c Client) ensure(ctx context.Context, o client.StartWorkflowOptions, workflow any, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	o.TaskQueue = QueueMain
	// With these policies two processes may both call ensure, and one run is under way afterwards.
	o.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	o.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	_, err := c.Temporal.ExecuteWorkflow(ctx, o, workflow, args...)
	return err
}

// startOptions returns the options that all runs of a task are started with. They set no timeout
// for the run: the row has the deadline of the task, and only the row decides when the task fails
// (D1).
func startOptions(t mediagate.Task) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                    t.ID,
		TaskQueue:             QueueMain,
		Priority:              fairPriority(t.AccountID),
		StaticSummary:         summary(t),
		StaticDetails:         skippedRoutes(t.Plan),
		TypedSearchAttributes: startAttributes(t),
		// The memo suffices to compensate the client of a task whose row was lost (D17).
		Memo: map[string]any{
			"account": t.AccountID, "key": t.KeyID, "model": t.Model, "hold": t.Hold.String(),
		},
	}
}

// startAttributes returns what lists show of a run from its start on. A run begins to work at
// once, so it is listed as processing. If it has to wait, it corrects that itself. A task that
// goes well writes no other attributes before its end.
func startAttributes(t mediagate.Task) temporal.SearchAttributes {
	status, provider := t.Status, ""
	if len(t.Plan.Routes) > 0 {
		provider = t.Plan.Routes[0].Provider
	}
	updates := []temporal.SearchAttributeUpdate{
		AttrModel.ValueSet(t.Model), AttrType.ValueSet(string(t.Type)), AttrAccount.ValueSet(t.AccountID),
		AttrStuck.ValueSet(false), buildIDs(),
	}
	if provider != "" {
		status = mediagate.StatusProcessing
		updates = append(updates, AttrProvider.ValueSet(provider))
	}
	return temporal.NewSearchAttributes(append(updates, AttrStatus.ValueSet(string(status)))...)
}

// fairPriority has Temporal serve accounts in round robin on each task queue. Without it, one
// account with a thousand tasks would delay all others. Activities and child workflows inherit the
// priority from the run, and so does the run that continues it as new.
func fairPriority(account string) temporal.Priority {
	return temporal.Priority{FairnessKey: account[:min(len(account), maxFairnessKey)]}
}

// maxFairnessKey is the length, in bytes, of the longest key that Temporal takes. Accounts with
// longer ids would share one place in the round robin if their ids begin alike.
const maxFairnessKey = 64

// summary says in lists what the task is for.
func summary(t mediagate.Task) string {
	what := t.Plan.Action
	if what == "" && len(t.Plan.Routes) > 0 {
		what = t.Plan.Routes[0].Operation
	}
	if what == "" {
		return string(t.Type) + " by " + t.Model
	}
	return fmt.Sprintf("%s by %s: %s", t.Type, t.Model, strings.ToLower(what))
}

// skippedRoutes tells operators which routes the plan lacks, and why. The reasons name fields and
// rules, and never what a client wrote.
func skippedRoutes(p mediagate.Plan) string {
	if len(p.Skipped) == 0 {
		return ""
	}
	lines := []string{"Routes that do not support the request:", ""}
	for _, r := range p.Skipped {
		lines = append(lines, fmt.Sprintf("- `%s` as `%s`: %s", r.Provider, r.Upstream, r.Reason))
	}
	return strings.Join(lines, "\n")
}

// Wake signals the task's run to ask for its next step. runs is false if no run is under way. Wake
// returns KindConflict if the run takes no more signals, because it has had as many as Temporal
// allows. The signal carries no run id, so it reaches the newest run, even one that has just
// replaced another (D1).
func (c Client) Wake(ctx context.Context, taskID string) (runs bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = c.Temporal.SignalWorkflow(ctx, taskID, "", SignalWake, nil)
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return false, nil
	}
	// Temporal takes a limited number of signals for one run, and then refuses them.
	if _, ok := errors.AsType[*serviceerror.InvalidArgument](err); ok {
		return true, conflict("the run of "+taskID+" takes no signal", err)
	}
	return err == nil, err
}

// Run returns the id of the task's newest run, which is empty if there is none, and the address of
// its page in Temporal's UI. If there is an error, Run returns the page all the same.
func (c Client) Run(ctx context.Context, taskID string) (runID, page string, err error) {
	_, runID, page, err = c.describeNewest(ctx, taskID)
	return runID, page, err
}

// describeNewest describes a workflow's newest run, and returns its id and its page. The
// description is nil if there is no run.
func (c Client) describeNewest(ctx context.Context, id string) (desc *description, runID, page string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if c.Pages != "" {
		page = c.Pages + url.PathEscape(id)
	}
	desc, err = c.describe(ctx, id)
	runID = desc.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	if runID != "" && page != "" {
		page += "/" + url.PathEscape(runID) + "/history"
	}
	return desc, runID, page, err
}

// Job reports how far a job for many tasks has come. It also returns the newest run of the job's
// workflow and the page of that run in Temporal's UI, as far as they are known. Job returns
// KindNotFound if Temporal does not know the job.
func (c Client) Job(ctx context.Context, id string) (status mediagate.TaskJobStatus, runID, page string, err error) {
	desc, runID, page, err := c.describeNewest(ctx, IDActions(id))
	switch {
	case err != nil:
		return status, runID, page, err
	case desc == nil:
		return status, "", page, mediagate.Errorf(mediagate.KindNotFound, "no such job")
	}
	var p activities.JobProgress
	switch desc.GetWorkflowExecutionInfo().GetStatus() {
	// Before the first heartbeat the count stays nil, since nothing is known of the progress.
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		status.State = mediagate.TaskJobRunning
		// The latest progress is in the heartbeat of the job's activity.
		for _, step := range desc.GetPendingActivities() {
			if beat := step.GetHeartbeatDetails(); beat != nil {
				status.Count = countOf(decode[activities.JobProgress](beat))
			}
		}
	// The run's result is its progress.
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		status.State = mediagate.TaskJobDone
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if err = c.Temporal.GetWorkflow(ctx, IDActions(id), runID).Get(ctx, &p); err == nil {
			status.Count = countOf(p)
		}
	default: // it failed, was cancelled, or was terminated
		status.State = mediagate.TaskJobStopped
	}
	return status, runID, page, err
}

// countOf returns the counts of a job's progress.
func countOf(p activities.JobProgress) *mediagate.TaskJobCount {
	return &mediagate.TaskJobCount{Done: p.Done, Skipped: p.Skipped, Failed: p.Failed}
}

// DescribeRun returns the state of the task's newest run. It asks for the run itself, since lists
// lag behind.
func (c Client) DescribeRun(ctx context.Context, taskID string) (activities.RunState, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	desc, err := c.describe(ctx, taskID)
	if err != nil {
		return "", err
	}
	return stateOf(desc), nil
}

// Replace starts a new run of the task. It first terminates a run that is under way. Operators
// will read the reason in Temporal. A run that is busy by now is left alone. A run that has
// completed although the task is open saw an end that the database has lost, in a failover or a
// power cut, so it is replaced as well. The new run begins with what the one before had seen (D1,
// D5).
//
// If the run ends by itself after it was described, that is no harm: the new run asks for the next
// step, learns that the task has ended, and completes.
func (c Client) Replace(ctx context.Context, t mediagate.Task, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	desc, err := c.describe(ctx, t.ID)
	if err != nil || busy(desc) {
		return err
	}
	if err := c.terminate(ctx, desc, reason); err != nil {
		return err
	}
	// Only now is the history complete: until it was terminated, the run could still see more.
	seen, err := c.readSeen(ctx, desc)
	if err != nil {
		return err
	}
	return c.ensure(tracing.Below(ctx, t.TraceParent), startOptions(t), Generate, Input{TaskID: t.ID, Seen: seen})
}

// EnsureRound starts a delivery round unless it runs. If a run has ended and the round is still
// open in its row, another run delivers it, as in Replace.
func (c Client) EnsureRound(ctx context.Context, w mediagate.WebhookRound) error {
	return c.ensure(tracing.Below(ctx, w.TraceParent), client.StartWorkflowOptions{
		ID: IDWebhook(w.TaskID, w.Round), Priority: fairPriority(w.AccountID), StaticSummary: "callback of " + w.TaskID,
	}, DeliverWebhook, RoundInput{TaskID: w.TaskID, Round: w.Round})
}

// ReplaceRound is EnsureRound for a round that makes no progress: it first terminates the run that
// is under way. A run that is busy, or waits for a permit, is left alone, since a new run would
// wait for the permit from the beginning. replaced is true once the run was terminated, even if the
// start of the new run then fails: the round's wake is due again later.
func (c Client) ReplaceRound(ctx context.Context, w mediagate.WebhookRound, reason string) (replaced bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	desc, err := c.describe(ctx, IDWebhook(w.TaskID, w.Round))
	if err != nil || busy(desc) || waitsForPermit(desc) {
		return false, err
	}
	if err := c.terminate(ctx, desc, reason); err != nil {
		return false, err
	}
	return true, c.EnsureRound(ctx, w)
}

// EnsureChannel keeps the channel's singleton running. It may be called for a channel that no
// worker has: the workflow then releases the tasks that wait for it (D11).
func (c Client) EnsureChannel(ctx context.Context, name string) error {
	options := client.StartWorkflowOptions{ID: IDChannel(name), StaticSummary: "channel " + name}
	return c.ensure(ctx, options, Channel, activities.ChannelArgs{Channel: name})
}

// ensureWake keeps the singleton running that works through due wakes.
func (c Client) ensureWake(ctx context.Context) error {
	return c.ensure(ctx, client.StartWorkflowOptions{ID: IDWake, StaticSummary: "due wakes"}, Wake)
}

// StartJob starts a job that gives a command to many tasks. A second start of the same job while it
// runs changes nothing.
func (c Client) StartJob(ctx context.Context, job mediagate.TaskJob) error {
	return c.ensure(ctx, client.StartWorkflowOptions{
		ID: IDActions(job.ID), StaticSummary: fmt.Sprintf("%s for %d tasks", job.Action, job.Matched),
	}, TaskActions, activities.JobArgs{TaskJob: job})
}
