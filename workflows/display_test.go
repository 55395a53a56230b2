package workflows_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

// details are what the workflow's page in Temporal's interface shows of now.
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

// The details offer the signals that do something at that moment, no others.
func TestDetailsSayWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
		return nil, 0, mediagate.Errorf(mediagate.KindGone, "gone")
	}
	b.succeeds(2*time.Minute, 1)
	shows := func(d time.Duration, want, unwanted string) {
		b.at(d, func() {
			got := b.details()
			for line := range strings.Lines(want) {
				if !strings.Contains(got, strings.TrimSpace(line)) {
					t.Errorf("after %v the details lack %q:\n%s", d, line, got)
				}
			}
			if strings.Contains(got, unwanted) {
				t.Errorf("after %v the details show %q:\n%s", d, unwanted, got)
			}
		})
	}
	shows(time.Minute, "attempt 1 on channel `async-a`: accepted\nworkflow `channel/\nsignals: `fail`, `poll_now`", "parked")
	shows(10*time.Minute, "parked since\n"+string(mediagate.ParkResult)+"\nsignals: `retry`, `fail`", "poll_now")
	b.run()
}

// Of a lost submission whose vendor cannot be asked, the details promise no try
// that nobody makes, and tell what a retry costs.
func TestDetailsOfALossThatNobodyCanSettle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task           func(*activitytest.World) mediagate.Task
		want, unwanted string
	}{
		"a vendor that can be asked": {video, "Tried again by itself", "charge for both"},
		"one that cannot":            {imageThatParks, "`retry` (a new attempt, and the vendor may charge for both)", "Tried again by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.task)
			loses(b.Async, false)
			loses(b.Sync, false)
			b.Async.OnFind = func(context.Context, mediagate.JobRef) (mediagate.Report, error) {
				return mediagate.Report{}, mediagate.Errorf(mediagate.KindTransient, "away")
			}
			b.at(30*time.Minute, func() {
				if got := b.details(); !strings.Contains(got, c.want) || strings.Contains(got, c.unwanted) || strings.Contains(got, "who polls") {
					t.Errorf("the details want %q, and not %q:\n%s", c.want, c.unwanted, got)
				}
			})
			b.signal(40*time.Minute, mediagate.ActionFail, nil)
			b.run()
			b.ended(mediagate.StatusFailed)
		})
	}
}

// Of a wait for modal parameters the details name nobody who polls, and the one
// signal that does something; of its end they say why.
func TestDetailsOfAWaitForModalParameters(t *testing.T) {
	t.Parallel()
	b := setup(t, inpainting)
	b.asks(time.Minute)
	b.at(2*time.Minute, func() {
		want := "**waiting for the client's modal parameters, until 2026-03-04T05:37:07Z**\n\n- attempt 1 on channel `async-a`: accepted\n- signals: `fail`"
		if diff := cmp.Diff(want, b.details()); diff != "" {
			t.Errorf("details (-want +got):\n%s", diff)
		}
	})
	b.run()
	b.ended(mediagate.StatusFailed)
	if got := b.details(); !strings.Contains(got, "**ended: failed, modal_expired**") {
		t.Errorf("the details do not say why it failed:\n%s", got)
	}
}

// lists notes what a run writes into Temporal's lists.
type lists struct {
	interceptor.WorkerInterceptorBase
	written []string
}

func (l *lists) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
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

// Each write of an attribute is two of the server's. A run is started as one at
// work at its first provider: it writes what is otherwise, where it comes to wait,
// and its end.
func TestAttributesAreWrittenWhereTheyChange(t *testing.T) {
	t.Parallel()
	atWork := []temporal.SearchAttributeUpdate{
		workflows.AttrStatus.ValueSet("processing"), workflows.AttrProvider.ValueSet(activitytest.AsyncProvider), workflows.AttrStuck.ValueSet(false),
	}
	for name, c := range map[string]struct {
		started []temporal.SearchAttributeUpdate
		script  func(*bundle)
		want    []string
	}{
		"it goes well": {atWork, func(b *bundle) { b.succeeds(time.Minute, 1) }, []string{"completed"}},
		"it parks": {atWork, func(b *bundle) {
			b.succeeds(time.Minute, 1)
			b.bucketAway(2 * time.Minute)
		}, []string{"processing " + string(mediagate.ParkStorage), "completed"}},
		"the vendor is full at first": {atWork, func(b *bundle) {
			refuse(b.Async, 1, mediagate.KindCapacity)
			b.succeeds(time.Minute, 2)
		}, []string{"pending", "processing", "completed"}},
		"it was started by an older process": {
			[]temporal.SearchAttributeUpdate{workflows.AttrStatus.ValueSet("pending"), workflows.AttrStuck.ValueSet(false)},
			func(b *bundle) { b.succeeds(time.Minute, 1) },
			[]string{"processing " + activitytest.AsyncProvider, "completed"},
		},
		"it replaces one that was parked": {atWork, func(b *bundle) {
			b.ok(b.Store.Park(b.t.Context(), taskID, mediagate.ParkProviderAway))
			b.succeeds(time.Minute, 1)
		}, []string{"processing " + string(mediagate.ParkProviderAway), "processing", "completed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, video)
			seen := new(lists)
			b.env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{seen}})
			b.ok(b.env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(c.started...)))
			c.script(b)
			b.run()
			b.ended(mediagate.StatusCompleted)
			if diff := cmp.Diff(c.want, seen.written); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
		})
	}
}
