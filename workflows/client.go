package workflows

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
)

// Client starts and signals the gateway's workflows. Every call may be
// repeated: a workflow that runs is left alone, and so is one that completed.
type Client struct {
	Temporal client.Client
}

// Start starts the task's workflow, unless it runs or ran. An error is
// ambiguous: the workflow may run.
func (c Client) Start(ctx context.Context, t mediagate.Task) error {
	return started(c.start(ctx, t, func(o *client.StartWorkflowOptions) {
		o.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
	}))
}

// startAnew starts a run of a task that has none, whatever became of the last one.
func (c Client) startAnew(ctx context.Context, t mediagate.Task) error {
	return started(c.start(ctx, t, func(o *client.StartWorkflowOptions) {
		o.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}))
}

func (c Client) start(ctx context.Context, t mediagate.Task, how func(*client.StartWorkflowOptions)) error {
	opts := client.StartWorkflowOptions{
		ID:                       t.ID,
		TaskQueue:                QueueMain,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		Priority:                 fair(t.AccountID),
		StaticSummary:            summary(t),
		StaticDetails:            skippedRoutes(t.Plan),
		TypedSearchAttributes:    startAttributes(t),
		// Enough to make good for a task whose row was lost (D17).
		Memo: map[string]any{
			"account": t.AccountID, "key": t.KeyID, "model": t.Model, "hold": t.Hold.String(),
		},
	}
	how(&opts)
	_, err := c.Temporal.ExecuteWorkflow(ctx, opts, Generate, Input{TaskID: t.ID, Provider: firstProvider(t)})
	return err
}

// startAttributes are what lists show of a run from its start on. It begins to work
// at once, and says so itself where it comes to wait: a task that goes well writes
// no others before its end.
func startAttributes(t mediagate.Task) temporal.SearchAttributes {
	status, provider := t.Status, firstProvider(t)
	updates := []temporal.SearchAttributeUpdate{
		AttrModel.ValueSet(t.Model), AttrType.ValueSet(string(t.Type)), AttrAccount.ValueSet(t.AccountID), AttrStuck.ValueSet(false),
	}
	if provider != "" {
		status = mediagate.StatusProcessing
		updates = append(updates, AttrProvider.ValueSet(provider))
	}
	return temporal.NewSearchAttributes(append(updates, AttrStatus.ValueSet(string(status)))...)
}

// fair lets accounts take turns at each queue that work of theirs waits in: the
// next is of the account that was served least. What a run starts inherits it,
// activities and children, and so does the run that continues it.
func fair(account string) temporal.Priority {
	return temporal.Priority{FairnessKey: account[:min(len(account), maxFairnessKey)]}
}

// maxFairnessKey is the longest key that Temporal takes, in bytes. Accounts of
// longer ids that begin alike would share their turns.
const maxFairnessKey = 64

// summary names in lists what the task is for.
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

// skippedRoutes is what operators read of a plan: which routes it lacks, and why.
// The reasons name fields and rules, never what a client wrote.
func skippedRoutes(p mediagate.Plan) string {
	if len(p.Skipped) == 0 {
		return ""
	}
	lines := []string{"Routes that cannot express the request:", ""}
	for _, r := range p.Skipped {
		lines = append(lines, fmt.Sprintf("- `%s` as `%s`: %s", r.Provider, r.Upstream, r.Reason))
	}
	return strings.Join(lines, "\n")
}

// started takes "already started" for success.
func started(err error) error {
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return nil
	}
	return err
}

// Begin starts the workflow of an open task of which no run was ever seen. The
// server itself tells where there is a run, or was one: only then there is
// something to ask, by Ensure.
func (c Client) Begin(ctx context.Context, t mediagate.Task) (bool, error) {
	try, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := c.start(try, t, func(o *client.StartWorkflowOptions) {
		o.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
		o.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL
		o.WorkflowExecutionErrorWhenAlreadyStarted = true
	})
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return c.Ensure(ctx, t)
	}
	return err == nil, err
}

// Runs tells whether a run of the task's workflow is under way.
func (c Client) Runs(ctx context.Context, taskID string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	desc, err := c.describe(ctx, taskID)
	return err == nil && running(desc), err
}

// AtWork tells whether a step of the task's run has just given a sign of life.
func (c Client) AtWork(ctx context.Context, taskID string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	desc, err := c.describe(ctx, taskID)
	return err == nil && running(desc) && atWork(desc, time.Now()), err
}

// Ensure starts the workflow of a task that is open if no run of it is. It asks
// for the run itself, since lists lag behind. A run that completed though the
// task is open saw an end that the database has lost, in a failover or a power
// cut: it is replaced as well, and the new one goes by the row.
func (c Client) Ensure(ctx context.Context, t mediagate.Task) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	desc, err := c.describe(ctx, t.ID)
	if err != nil || running(desc) {
		return false, err
	}
	return true, c.startAnew(ctx, t)
}

// EnsureWebhook starts a delivery round that is open, unless it runs. One that
// ran to its end and is open all the same is delivered by the row, as in Ensure.
func (c Client) EnsureWebhook(ctx context.Context, w mediagate.WebhookRound) error {
	_, err := c.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: IDWebhook(w.TaskID, w.Round), TaskQueue: QueueMain, Priority: fair(w.AccountID),
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:            "callback of " + w.TaskID,
	}, DeliverWebhook, RoundInput{TaskID: w.TaskID, Round: w.Round})
	return started(err)
}

// EnsureChannel keeps the channel's singleton running.
func (c Client) EnsureChannel(ctx context.Context, name string) error {
	_, err := c.Temporal.ExecuteWorkflow(ctx, singleton(IDChannel(name), "channel "+name), Channel, ChannelInput{Channel: name})
	return started(err)
}

// EnsureReconciler keeps the reconciler running.
func (c Client) EnsureReconciler(ctx context.Context) error {
	_, err := c.Temporal.ExecuteWorkflow(ctx, singleton(IDReconciler, "reconciler"), Reconciler)
	return started(err)
}

func singleton(id, summary string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID: id, TaskQueue: QueueMain,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:            summary,
	}
}

// SignalUpstream tells the task that the waiting of attempt n is over. It reports
// false where no run is under way.
func (c Client) SignalUpstream(ctx context.Context, taskID string, n int) (bool, error) {
	return c.reach(ctx, taskID, SignalUpstream, n)
}

// SignalSlot tells the task that a slot is granted for attempt n.
func (c Client) SignalSlot(ctx context.Context, taskID string, n int) error {
	return c.signal(ctx, taskID, SignalSlot, n)
}

// SignalWake asks the task to look at its row.
func (c Client) SignalWake(ctx context.Context, taskID string) error {
	return c.signal(ctx, taskID, SignalWake, nil)
}

// SignalCancel tells the task that its row has a cancel request.
func (c Client) SignalCancel(ctx context.Context, taskID string) error {
	return c.signal(ctx, taskID, SignalCancel, nil)
}

// Cancel is SignalCancel, as the API knows it.
func (c Client) Cancel(ctx context.Context, taskID string) error {
	return c.SignalCancel(ctx, taskID)
}

// SignalAction hands an operator's command to the task.
func (c Client) SignalAction(ctx context.Context, a mediagate.Action) error {
	return c.signal(ctx, a.TaskID, SignalAction, activities.ActionArgs{
		ID: a.ID, TaskID: a.TaskID, Action: a.Action, Reason: a.Reason,
	})
}

// signal is for those whose row says the same: no open run is no error, the
// reconciler starts one, which reads the row. Returns KindConflict where the run
// takes no signal any more: it has had as many as Temporal allows.
func (c Client) signal(ctx context.Context, id, name string, arg any) error {
	_, err := c.reach(ctx, id, name, arg)
	return err
}

func (c Client) reach(ctx context.Context, id, name string, arg any) (runs bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err = c.Temporal.SignalWorkflow(ctx, id, "", name, arg)
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return false, nil
	}
	if _, ok := errors.AsType[*serviceerror.InvalidArgument](err); ok {
		return true, &mediagate.Error{Kind: mediagate.KindConflict, Message: "the run of " + id + " takes no signal", Err: err}
	}
	return err == nil, err
}
