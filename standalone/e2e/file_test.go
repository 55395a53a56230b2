package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/sandbox"
)

// TestVendorOfFile checks that a vendor and models that are defined by files serve tasks like
// any other, also when the worker dies after it has seen the job's end. If the model refuses the
// request, which shows in the answer with the result, the task fails. A cancel takes effect within
// seconds, and stops the job at the vendor.
func TestVendorOfFile(t *testing.T) {
	t.Parallel()
	folder, err := filepath.Abs("../../examples/models")
	if err != nil {
		t.Fatal(err)
	}
	channels := sandbox.Channels("")
	fal := channels[slices.IndexFunc(channels, func(c sandbox.Channel) bool { return c.Provider == "fal" })]
	w := newWorld(t, options{
		shape: production, failpoint: failpoint.PollTerminal, settings: map[string]any{"catalog_dir": folder},
		channels: []map[string]any{{"name": "fal-a", "provider": "fal", "credentials": fal.Credentials}},
	})
	two := w.submit(job{model: flux, fields: map[string]any{"n": 2, "size": "16:9"}})
	two.files, two.price = 2, "0.012"
	w.victim().awaitKilled(t, crashLimit)
	w.victim().start(t)
	w.submit(job{model: ltx, fields: map[string]any{"duration": 8, "aspect_ratio": "9:16"}}).price = "0.64"
	refused := w.submit(job{model: ltx, directive: "fail=moderation, at=poll"})
	refused.wantStatus, refused.wantCode = "failed", "content_policy_violation"
	stopped := w.submit(job{model: ltx, directive: "duration=30m"})
	stopped.wantStatus = "cancelled"
	w.awaitProcessing(stopped)
	w.cancel(stopped)
	w.await(stopped, 45*time.Second, "is cancelled", func(o object) bool { return o.Status == "cancelled" })
	eventually(t, 30*time.Second, "the vendor has stopped the job of "+stopped.id, func() error {
		jobs, err := w.jobs(stopped)
		if err == nil && (len(jobs) != 1 || jobs[0].State != "cancelled") {
			err = fmt.Errorf("the vendor's jobs: %+v", jobs)
		}
		return err
	})
	w.verify(recoverTime)
}
