package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	raster "image"
	"image/png"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/workflows"
)

// withImage is a video task whose request names an image of 128 pixels or more.
func withImage(w *activitytest.World) mediagate.Task {
	t := w.NewVideo()
	t.Params = json.RawMessage(`{"image_urls":["https://m.example.com/` + activitytest.Secret + `"]}`)
	t.Plan.Inputs = []mediagate.Input{{Field: "image_urls[0]", MediaBounds: mediagate.MediaBounds{Kind: "image", MinSide: 128}}}
	return t
}

// answers makes the media's server answer the nth call, from 1.
func (b *bundle) answers(f func(ctx context.Context, n int) ([]byte, error)) {
	var calls atomic.Int64
	b.Fetcher.OnFetch = func(ctx context.Context, url, _ string) (io.ReadCloser, int64, error) {
		if !bytes.HasPrefix([]byte(url), []byte("https://m.example.com/")) {
			return io.NopCloser(bytes.NewReader([]byte(url))), int64(len(url)), nil // the result
		}
		file, err := f(ctx, int(calls.Add(1)))
		return io.NopCloser(bytes.NewReader(file)), int64(len(file)), err
	}
}

func square(t *testing.T, side int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, raster.NewGray(raster.Rect(0, 0, side, side))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The media are judged before anything is submitted, while the task is pending.
func TestJudge(t *testing.T) {
	t.Parallel()
	b := setup(t, withImage)
	b.answers(func(context.Context, int) ([]byte, error) {
		if got := b.task().Status; got != mediagate.StatusPending {
			t.Errorf("the task is %s", got)
		}
		return square(t, 128), nil
	})
	b.succeeds(time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID)
	if n := b.count("JudgeInputs"); n != 1 {
		t.Errorf("judged %d times", n)
	}
	for _, info := range b.infos {
		if info.ActivityType.Name == "JudgeInputs" && info.TaskQueue != workflows.QueueInputs {
			t.Errorf("judged on %s", info.TaskQueue)
		}
	}
}

// A verdict ends the task, with the money back.
func TestJudgeRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t, withImage)
	b.answers(func(context.Context, int) ([]byte, error) { return square(t, 127), nil })
	b.run()
	b.failed(mediagate.CodeInvalidParameters)
	b.submits()
	if got, want := b.task().Failure.Message, "image_urls[0] is 127 × 127 pixels, at least 128 × 128 are required"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A server that is away is asked again for half a minute or so.
func TestJudgeWaitsForAServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		back int // the call that is answered
		end  mediagate.Status
	}{
		"it comes back": {4, mediagate.StatusCompleted},
		"it does not":   {99, mediagate.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, withImage)
			b.answers(func(_ context.Context, n int) ([]byte, error) {
				if n < c.back {
					return nil, mediagate.Errorf(mediagate.KindTransient, "503")
				}
				return square(t, 128), nil
			})
			b.succeeds(time.Minute, 1)
			b.run()
			b.ended(c.end)
			if c.end == mediagate.StatusFailed {
				b.failed(mediagate.CodeImageProcessing)
				b.submits()
				within(t, "the end", b.endedAt(), 10*time.Second, time.Minute)
			}
		})
	}
}

// What ends a task is heard while its media are judged.
func TestJudgeIsInterrupted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		order func(*bundle)
		end   mediagate.Status
	}{
		"cancel": {func(b *bundle) {
			_, err := b.Store.RequestCancel(context.Background(), "acc_1", taskID)
			b.ok(err)
			b.env.SignalWorkflow(workflows.SignalCancel, nil)
		}, mediagate.StatusCancelled},
		"fail by hand": {func(b *bundle) { b.env.SignalWorkflow(mediagate.ActionFail, nil) }, mediagate.StatusFailed},
		"fail by row": {func(b *bundle) {
			row, err := b.Store.RecordAction(context.Background(), mediagate.Action{TaskID: taskID, Action: mediagate.ActionFail})
			b.ok(err)
			b.env.SignalWorkflow(workflows.SignalAction, activities.ActionArgs{ID: row.ID, TaskID: taskID, Action: row.Action})
		}, mediagate.StatusFailed},
		"cancel of the run": {func(b *bundle) { b.env.CancelWorkflow() }, mediagate.StatusCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, withImage)
			b.answers(func(ctx context.Context, n int) ([]byte, error) {
				if n == 1 {
					c.order(b)
				}
				return square(t, 128), nil
			})
			b.run()
			b.ended(c.end)
			b.submits()
			within(t, "the end", b.endedAt(), 0, 5*time.Second)
		})
	}
}

// A run that takes over finds what the one before it had judged.
func TestJudgeIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t, withImage)
	b.answers(func(context.Context, int) ([]byte, error) { return square(t, 128), nil })
	b.ok(b.Store.StoreJudgement(t.Context(), taskID, mediagate.Judgement{Passed: []string{"image_urls[0]"}, Over: true}))
	b.succeeds(time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
	if n := b.count("JudgeInputs"); n != 0 {
		t.Errorf("judged %d times more", n)
	}
}

// A fault of ours parks the task; mended, it goes on.
func TestJudgeParks(t *testing.T) {
	t.Parallel()
	b := setup(t, withImage)
	b.Store.Edit(taskID, func(t *mediagate.Task) { t.Plan.Inputs[0].Field = "image_urls[9]" })
	b.answers(func(context.Context, int) ([]byte, error) { return square(t, 128), nil })
	b.at(3*time.Minute, func() {
		if got := b.task().ParkReason; got != mediagate.ParkInternal {
			t.Errorf("parked for %q", got)
		}
		b.Store.Edit(taskID, func(t *mediagate.Task) { t.Plan.Inputs[0].Field = "image_urls[0]" })
	})
	b.succeeds(20*time.Minute, 1)
	b.run()
	b.ended(mediagate.StatusCompleted)
	b.submits(taskID)
}

// On a queue that nobody serves the deadline ends the task.
func TestJudgeIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, withImage)
	b.answers(func(context.Context, int) ([]byte, error) {
		return nil, mediagate.Errorf(mediagate.KindTransient, "away")
	})
	b.run()
	for _, info := range b.infos {
		if info.ActivityType.Name == "JudgeInputs" && info.ScheduleToCloseTimeout != deadline {
			t.Errorf("judging may take %v, want %v", info.ScheduleToCloseTimeout, deadline)
		}
	}
}
