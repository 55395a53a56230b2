package workflows_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

// details returns what the workflow's page in Temporal's UI shows now.
func (b *bundle) details() string {
	b.t.Helper()
	answer, err := b.env.QueryWorkflow("__temporal_workflow_metadata")
	if err != nil {
		b.t.Fatal(err)
	}
	var metadata sdkpb.WorkflowMetadata
	if err := answer.Get(&metadata); err != nil {
		b.t.Fatal(err)
	}
	return metadata.GetCurrentDetails()
}

// TestDetails checks that the details say what the run waits for, until when, and which signals
// apply.
func TestDetails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task   func(*activitytest.World) mediagate.Task
		script func(*bundle)
		want   string
	}{
		"the vendor works": {
			video, func(*bundle) {},
			"**waiting for async (attempt 1), at the latest until 2026-03-04T07:06:07Z**\n\n" +
				"- attempt 1 on channel `async-a`: accepted\n- polled by workflow `channel/async-a`\n" +
				"- then the vendor is polled a last time; if the job has not ended, the task fails and is refunded\n" +
				"- signals: `fail`, `retry`, `reroute`, `poll_now`",
		},
		"it is parked": {
			video, func(b *bundle) { b.Channels.Set() },
			"**parked: channel_missing, at the latest until …**\n\n" +
				"- parked since …: channel_missing\n" +
				"- then the step is tried again; without success, it fails and is refunded at …\n" +
				"- signals: `fail`, `retry`, `reroute`",
		},
		"nobody can be asked": {
			func(w *activitytest.World) mediagate.Task {
				t := w.NewImage()
				t.Plan.OnUnknown = mediagate.OnUnknownPark
				return t
			}, (*bundle).loses,
			"**the vendor's answer was lost, and the vendor has no lookup: check with the vendor, then decide, at the latest until …**\n\n" +
				"- attempt 1 on channel `sync-a`: unknown\n" +
				"- parked since 2026-03-04T05:06:07Z: provider_submission_unknown\n" +
				"- then the task fails and is refunded\n" +
				"- signals: `fail`, `retry`, `reroute`. `retry` makes a new attempt, and the vendor may charge for both",
		},
		"the client is asked": {inpainting, func(b *bundle) {
			b.asks(
				time.Minute,
			)
		}, "**waiting for the client's modal parameters, at the latest until 2026-03-04T05:37:07Z**\n\n" +
			"- attempt 1 on channel `async-a`: accepted\n" +
			"- then the task fails with modal_expired and is refunded\n" +
			"- signals: `fail`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.task)
			c.script(b)
			b.at(10*time.Minute, func() {
				// jitter
				got := regexp.MustCompile(
					`(missing|decide), at the latest until [^*]*`,
				).ReplaceAllString(b.details(), "$1, at the latest until …")
				got = regexp.MustCompile(`since [^ ]*: channel`).ReplaceAllString(got, "since …: channel")
				got = regexp.MustCompile(`refunded at [^\n]*`).ReplaceAllString(got, "refunded at …")
				same(t, "details", got, c.want)
			})
			b.signals(12*time.Minute, mediagate.ActionFail, nil)
			b.run()
			if got := b.details(); !strings.HasPrefix(got, "**ended: failed, ") || strings.Contains(got, "signals") {
				t.Errorf("at the end the details are:\n%s", got)
			}
		})
	}
}

// lists notes what a run writes into Temporal's lists.
type lists struct {
	interceptor.WorkerInterceptorBase
	written []string
}

func (l *lists) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &listing{interceptor.WorkflowInboundInterceptorBase{Next: next}, l}
}

type listing struct {
	interceptor.WorkflowInboundInterceptorBase
	lists *lists
}

func (l *listing) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	return l.Next.Init(&listed{interceptor.WorkflowOutboundInterceptorBase{Next: outbound}, l.lists})
}

type listed struct {
	interceptor.WorkflowOutboundInterceptorBase
	lists *lists
}

func (l *listed) UpsertTypedSearchAttributes(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) error {
	at := temporal.NewSearchAttributes(updates...)
	line, _ := at.GetKeyword(workflows.AttrStatus)
	for _, key := range []temporal.SearchAttributeKeyKeyword{workflows.AttrProvider, workflows.AttrReason} {
		if v, ok := at.GetKeyword(key); ok {
			line += " " + v
		}
	}
	l.lists.written = append(l.lists.written, line)
	return l.Next.UpsertTypedSearchAttributes(ctx, updates...)
}

// TestAttributesAreWrittenWhereTheyChange checks that a run writes its attributes only if they
// change, since each write costs two writes of the server. A run is started as one that works at
// its first provider. It writes anything else when it comes to wait, and writes its end.
func TestAttributesAreWrittenWhereTheyChange(t *testing.T) {
	t.Parallel()
	atWork := []temporal.SearchAttributeUpdate{
		workflows.AttrStatus.ValueSet("processing"), workflows.AttrProvider.ValueSet(activitytest.AsyncProvider),
		workflows.AttrStuck.ValueSet(false),
	}
	for name, c := range map[string]struct {
		started []temporal.SearchAttributeUpdate
		script  func(*bundle)
		want    []string
	}{
		"it goes well": {atWork, func(b *bundle) { b.succeeds(time.Minute, 1) }, []string{"completed"}},
		"it parks": {atWork, func(b *bundle) {
			b.succeeds(time.Minute, 1)
			b.Bucket.OnMirror = func(string) error {
				if b.env.Now().Sub(start) > 2*time.Minute {
					return nil
				}
				return &mediagate.Error{Kind: mediagate.KindUnavailable, Code: string(mediagate.ParkStorage), Message: "away"}
			}
		}, []string{"processing " + string(mediagate.ParkStorage), "completed"}},
		"the vendor is full at first": {atWork, func(b *bundle) {
			b.Async.OnSubmit = func(_ context.Context, job mediagate.Job) (mediagate.Submission, error) {
				if len(b.Async.Submits()) == 1 {
					return mediagate.Submission{}, mediagate.Errorf(mediagate.KindCapacity, "full")
				}
				return b.Async.Accept(job)
			}
			b.succeeds(time.Minute, 2)
		}, []string{"pending", "processing", "completed"}},
		"it was started of no routes": {
			[]temporal.SearchAttributeUpdate{workflows.AttrStatus.ValueSet("pending"), workflows.AttrStuck.ValueSet(false)},
			func(b *bundle) { b.succeeds(time.Minute, 1) },
			[]string{"pending " + activitytest.AsyncProvider, "processing", "completed"},
		},
		"it replaces one that was parked": {atWork, func(b *bundle) {
			b.Store.Park(taskID, mediagate.ParkProviderAway)
			b.Store.Exec("UPDATE tasks SET try_at = wait_since + 1000000 WHERE id = ?", taskID)
			b.succeeds(time.Minute, 1)
		}, []string{"pending " + string(mediagate.ParkProviderAway), "processing", "completed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			seen := new(lists)
			b.env.SetWorkerOptions(worker.Options{
				Interceptors: []interceptor.WorkerInterceptor{seen}, DeadlockDetectionTimeout: time.Minute,
			})
			b.ok(b.env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(c.started...)))
			c.script(b)
			b.run()
			b.ended(mediagate.StatusCompleted, "")
			same(t, "written", seen.written, c.want)
		})
	}
}
