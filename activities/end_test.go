package activities_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/task"
)

// TestSettle checks that Settle ends a task whose end is due, once, and no other task.
func TestSettle(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.submit(1)
	if answer := b.step(task.Settle, 1); answer.Status != mediagate.StatusProcessing || answer.Step.Kind == task.Settle {
		t.Errorf("not due: %+v", answer)
	}
	b.change(task.CancelRequested{})
	writes := b.counts()
	if answer := b.step(task.Settle, 1); answer.Status != mediagate.StatusCancelled || answer.Step.Kind != task.Done {
		t.Errorf("cancelled: %+v", answer)
	}
	if got := writes(); got != "0 OpenIntent, 1 Change" {
		t.Errorf("an end takes %s", got)
	}
	b.step(task.Settle, 1)
	if end := b.Store.End(taskID); end.Times != 1 || end.Entry != mediagate.EntryVoid {
		t.Errorf("the hold was resolved %d times, by a %q", end.Times, end.Entry)
	}
}

// TestD13CancelWinsOverACopy checks that a cancel that comes before the files are stored wins.
// The files are removed, even those of a copy that ends after the task.
func TestD13CancelWinsOverACopy(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]task.Event{
		"before the end": {task.CancelRequested{}},
		"after the end":  {task.CancelRequested{}, task.EndDue{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := succeeded(t, activitytest.Success())
			b.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
				b.change(events...)
				return io.NopCloser(strings.NewReader("film")), 4, nil
			}
			answer, err := b.mirror()
			b.ok(err)
			if answer.Status != mediagate.StatusCancelled || len(b.task().Results) != 0 {
				t.Errorf("answer %+v", answer)
			}
			if end := b.Store.End(taskID); end.Times != 1 || end.Entry != mediagate.EntryVoid {
				t.Errorf("end %+v", end)
			}
			if got := b.Bucket.Writes(); len(got) != 1 {
				t.Errorf("files %v were copied, want one", got)
			}
			b.objects()
		})
	}
}

// TestD13EndBeforeTheCopySweeps checks that a success whose files were not copied yet leaves
// nothing behind either.
func TestD13EndBeforeTheCopySweeps(t *testing.T) {
	t.Parallel()
	b := succeeded(t, activitytest.Success())
	b.Bucket.Put(key(1, 0)) // from a worker that died
	b.change(task.CancelRequested{})
	b.step(task.Settle, 1)
	b.objects()
}

// TestTheEndIsAStepOfItsOwn checks that the copy stores only the files, and gives its permit
// back, if the account's row is locked for long. The end is then a step of its own.
func TestTheEndIsAStepOfItsOwn(t *testing.T) {
	t.Parallel()
	b := succeeded(t, activitytest.Success())
	b.Activities.Store = slippery{Store: b.Store, before: onceOf(fails("Change", mediagate.KindUnavailable))}
	answer, err := b.mirror()
	b.ok(err)
	if answer.Step.Kind != task.Settle || answer.Status.Terminal() || !b.attempt(1).Mirrored() {
		t.Fatalf("answer %+v", answer)
	}
	if answer = b.step(task.Settle, 1); answer.Status != mediagate.StatusCompleted || len(b.Bucket.Writes()) != 1 {
		t.Errorf("answer %+v, %d files copied", answer, len(b.Bucket.Writes()))
	}
}

// TestUploadsGoWithTheirTask checks that media that came within a request are removed with its
// task, and that a bucket that is away does not delay an end.
func TestUploadsGoWithTheirTask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		away bool
		want []string
	}{
		"removed":            {false, []string{"uploads/acc_1/other"}},
		"the bucket is away": {true, []string{"uploads/acc_1/A", "uploads/acc_1/other"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(w *activitytest.World) mediagate.Task {
				t := w.NewImage()
				t.Plan.Uploads = map[string]string{"first_frame_image": "uploads/acc_1/A"}
				return t
			})
			b.Bucket.Put("uploads/acc_1/A")
			b.Bucket.Put("uploads/acc_1/other")
			if c.away {
				b.Bucket.OnSweep = func(string) error { return mediagate.Errorf(mediagate.KindUnavailable, "away") }
			}
			b.change(task.CancelRequested{})
			if answer := b.step(task.Settle, 0); answer.Status != mediagate.StatusCancelled {
				t.Errorf("the task is %s", answer.Status)
			}
			b.objects(c.want...)
		})
	}
}

// TestEndOfAFileWithoutALength checks that seconds are charged by what the vendor states, or else
// by the file's own length. If the length is not known, the client is charged the hold, and the
// log says so.
func TestEndOfAFileWithoutALength(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stated, own float64
		want        mediagate.Micros
		told        bool
	}{
		"as stated":    {3, 5, 300_000, false},
		"by the file":  {0, 2.4, 300_000, false},
		"nobody knows": {0, 0, 500_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcome := activitytest.Success()
			outcome.Seconds = c.stated
			b := succeeded(t, outcome)
			b.Bucket.Duration = c.own
			var logged strings.Builder
			b.Activities.Logger = slog.New(slog.NewTextHandler(&logged, nil))
			_, err := b.mirror()
			b.ok(err)
			if got := strings.Contains(logged.String(), "cannot be told"); got != c.told || b.Store.End(taskID).Cost != c.want {
				t.Errorf("cost %s, the log says so: %v: %s", b.Store.End(taskID).Cost, got, &logged)
			}
		})
	}
}
