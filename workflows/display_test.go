package workflows_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkpb "go.temporal.io/api/sdk/v1"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
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
