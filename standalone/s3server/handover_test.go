package s3server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/internal/failpoint"
	"github.com/mediagate/mediagate/storage/blob"
	"github.com/mediagate/mediagate/task"
)

// bucketAdapter adapts the store to the activities.
type bucketAdapter struct{ *blob.Store }

func (s bucketAdapter) Mirror(ctx context.Context, key string, open activities.Opener, l activities.Limits) (mediagate.Result, error) {
	return s.Store.Mirror(ctx, key, blob.Opener(open), blob.Limits(l))
}

// handover holds the values that the killed process and its successor share.
type handover struct {
	Endpoint string
	Dir      string // of the failpoint
	Before   time.Time
}

func (h handover) bucket() blob.Config {
	return blob.Config{
		Endpoint: h.Endpoint, Region: "us-east-1", Bucket: "media",
		AccessKeyID: "test-access", SecretAccessKey: "test-secret", PathStyle: true,
	}
}

// world returns activities over the bucket, and a task whose vendor hands over a picture that is
// larger than one part of an upload.
func (h handover) world(t *testing.T) *activitytest.World {
	t.Helper()
	w := activitytest.New(t, time.Now)
	store := open(t, h.bucket())
	w.Activities.Bucket, w.Activities.Sweeper = bucketAdapter{store}, store
	one := w.NewImage()
	one.Plan.MaxBytes = 64 << 20
	w.Store.Add(one)
	w.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		var file bytes.Buffer
		if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
			return mediagate.Submission{}, err
		}
		m, err := job.Sink.Store(ctx, 0, io.MultiReader(&file, bytes.NewReader(make([]byte, 12<<20))))
		return mediagate.Submission{
			Ref: mediagate.JobRef{JobID: "request-1"}, Outcome: &mediagate.Outcome{Succeeded: true, Media: []mediagate.Media{m}},
		}, err
	}
	return w
}

func (h handover) call(w *activitytest.World, activity any, step task.Step) (answer activities.Answer, err error) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(w.Activities)
	value, err := env.ExecuteActivity(activity, activities.StepArgs{TaskID: activitytest.TaskID, Step: step})
	if err == nil {
		err = value.Get(&answer)
	}
	return answer, err
}

// TestD6HandedOverBeforeAKill kills a process between the write to the bucket and the write to
// the row (D6). Its successor finds the whole file and does not call the vendor.
func TestD6HandedOverBeforeAKill(t *testing.T) {
	if text := os.Getenv("HANDOVER_TEST"); text != "" {
		var h handover
		if err := json.Unmarshal([]byte(text), &h); err != nil {
			t.Fatal(err)
		}
		if err := failpoint.Arm(failpoint.HandedOver, h.Dir); err != nil {
			t.Fatal(err)
		}
		w := h.world(t)
		_, err := h.call(w, w.Activities.SubmitJob, task.Step{Kind: task.Submit, N: 1})
		t.Fatalf("the sender lives: %v", err)
	}

	_, config := start(t, t.TempDir())
	h := handover{Endpoint: config.Endpoint, Dir: t.TempDir(), Before: time.Now().Add(10 * time.Second)}
	if err := open(t, h.bucket()).EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "HANDOVER_TEST="+string(text))
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the sender ends with %v, want SIGKILL\n%s", err, out)
	}

	w := h.world(t)
	intent := task.IntentStored{Sending: task.Sending{ // as the killed process has stored it
		N: 1, Channel: activitytest.SyncChannel, Provider: activitytest.SyncProvider, Fingerprint: "account-s",
		Route: w.NewImage().Plan.Routes[0], ExternalID: activitytest.TaskID, SendBefore: h.Before, CallEnds: h.Before,
	}}
	if _, err := w.Store.OpenIntent(t.Context(), activitytest.TaskID, mediagate.Slots{}, intent); err != nil {
		t.Fatal(err)
	}
	answer, err := h.call(w, w.Activities.SubmitJob, task.Step{Kind: task.Submit, N: 1})
	if err != nil || answer.Step.Kind != task.Mirror {
		t.Fatalf("answer %+v (%v)", answer, err)
	}
	if answer, err = mirror(w); err != nil || answer.Status != mediagate.StatusCompleted {
		t.Fatalf("answer %+v (%v)", answer, err)
	}
	if n := len(w.Sync.Submits()); n != 0 {
		t.Errorf("the vendor was called %d times again", n)
	}
	row, err := w.Store.Attempt(t.Context(), activitytest.TaskID, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(row.Results) != 1 || row.Results[0].Width != 3 || row.Results[0].Size < 12<<20 || row.Ref.JobID != "request-1" {
		t.Errorf("row %+v", row)
	}
	store := open(t, h.bucket())
	if err := store.Verify(t.Context(), row.Results[0]); err != nil {
		t.Errorf("the file: %v", err)
	}
}
