package workflows_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	sdkpb "go.temporal.io/api/sdk/v1"

	"github.com/mediagate/mediagate"
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
