package activities_test

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
)

func (b *bundle) settle(status mediagate.Status, f *mediagate.Failure) mediagate.Story {
	b.t.Helper()
	return must[mediagate.Story](b, b.Activities.Settle, activities.SettleArgs{TaskID: taskID, N: 1, Status: status, Failure: f})
}

// mirrored leaves the task with its file in the bucket.
func mirrored(t *testing.T, stated, own float64) *bundle {
	t.Helper()
	outcome := activitytest.Success()
	outcome.Seconds = stated
	b := succeeded(t, outcome)
	b.Bucket.Duration = own
	if _, err := b.mirror(); err != nil {
		t.Fatal(err)
	}
	return b
}

// A video is charged by the seconds delivered, rounded up, never above the
// hold: what the vendor states, else the file's own length. A length that cannot be
// told costs the hold, and the log says so.
func TestSettleCost(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		stated, own float64
		want        mediagate.Micros
	}{
		"as held":               {5, 5, 500_000},
		"shorter":               {3, 5, 300_000},
		"rounded up":            {3.01, 0, 400_000},
		"longer than held":      {9, 0, 500_000},
		"by the file":           {0, 2.4, 300_000},
		"by the file, too long": {0, 60, 500_000},
		"nobody knows":          {0, 0, 500_000},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := mirrored(t, c.stated, c.own)
			var logged strings.Builder
			b.Activities.Logger = slog.New(slog.NewTextHandler(&logged, nil))
			b.settle(mediagate.StatusCompleted, nil)
			if got, want := strings.Contains(logged.String(), "cannot be told"), name == "nobody knows"; got != want {
				t.Errorf("the log says so: %v, want %v: %s", got, want, &logged)
			}
			if got := b.Store.Settlements(taskID)[0].Cost; got != c.want {
				t.Errorf("cost %s, want %s", got, c.want)
			}
		})
	}
}

// Of several videos those that came are charged, each by its own length up to
// what was quoted for it.
func TestSettleCostOfSeveralFiles(t *testing.T) {
	t.Parallel()
	outcome := activitytest.Success()
	outcome.Seconds = 0
	outcome.Media = []mediagate.Media{
		{URL: "https://cdn.example.com/0.mp4"}, {URL: "https://cdn.example.com/1.mp4", Index: 1}, {URL: "https://cdn.example.com/2.mp4", Index: 2},
	}
	b := setup(t, func(w *activitytest.World) mediagate.Task {
		task := w.NewVideo()
		task.Charges[0].Quantity, task.Charges[0].Files = 32, 4
		task.Hold = 3_200_000
		return task
	})
	b.submit(1)
	_, err := b.Store.RecordOutcome(t.Context(), taskID, 1, outcome)
	b.ok(err)
	b.Bucket.Duration = 8.04
	if _, err := b.mirror(); err != nil {
		t.Fatal(err)
	}
	b.settle(mediagate.StatusCompleted, nil)
	if end := b.Store.Settlements(taskID)[0]; end.Cost != 2_400_000 || len(end.Results) != 3 {
		t.Errorf("cost %s of %d files, want 2.4 of 3", end.Cost, len(end.Results))
	}
}

// D13: the client was told that its cancel counts.
func TestD13PromisedCancelHolds(t *testing.T) {
	t.Parallel()
	b := mirrored(t, 5, 5)
	_, err := b.Store.RequestCancel(t.Context(), "acc_1", taskID)
	b.ok(err)
	if st := b.settle(mediagate.StatusCompleted, nil); st.Status != mediagate.StatusCancelled || st.WebhookRound != 0 {
		t.Errorf("story %+v", st)
	}
	if end := b.Store.Settlements(taskID)[0]; end.Cost != 0 || len(end.Results) != 0 || len(end.WebhookBody) != 0 {
		t.Errorf("end %+v", end)
	}
}

func TestSettleCompleted(t *testing.T) {
	t.Parallel()
	b := mirrored(t, 5, 5)
	b.advance(90 * time.Second)
	st := b.settle(mediagate.StatusCompleted, nil)
	if st.Status != mediagate.StatusCompleted || st.WebhookRound != 1 || st.WebhookState != mediagate.WebhookPending {
		t.Errorf("story %+v", st)
	}
	if got := b.Bucket.Signed(); !slices.Equal(got, []time.Duration{7 * 24 * time.Hour}) {
		t.Errorf("links signed for %v, want 7 days", got)
	}
	body := b.Store.Settlements(taskID)[0].WebhookBody
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"webhook", "estimated_cost", "cancel_requested", "error"} {
		if _, ok := fields[field]; ok {
			t.Errorf("the callback has a field %s: %s", field, body)
		}
	}
	want := map[string]any{
		"id": taskID, "status": "completed", "progress": 100.0, "cost": 0.5, "credits_cost": 500.0, "actual_time": 90.0,
		"model": "alpha-v3", "type": "video",
	}
	for field, v := range want {
		if fields[field] != v {
			t.Errorf("%s is %v, want %v", field, fields[field], v)
		}
	}
	videos, ok := fields["result"].(map[string]any)["videos"].([]any)
	if !ok || len(videos) != 1 {
		t.Fatalf("result %v", fields["result"])
	}
	video, ok := videos[0].(map[string]any)
	if !ok || video["expires_at"] != float64(b.Now().Add(7*24*time.Hour).Unix()) || len(video["url"].([]any)) != 1 {
		t.Errorf("item %v", videos[0])
	}
}

func TestSettleFailed(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.submit(1)
	b.settle(mediagate.StatusFailed, &mediagate.Failure{Code: mediagate.CodeGenerationTimeout, Message: "too slow", Retryable: true})
	end := b.Store.Settlements(taskID)[0]
	if end.Cost != 0 || len(b.Store.Awaits()) != 0 {
		t.Errorf("cost %s, awaited %v", end.Cost, b.Store.Awaits())
	}
	body := string(end.WebhookBody)
	if !strings.Contains(body, `"code":"generation_timeout"`) || !strings.Contains(body, `"status":"failed"`) || strings.Contains(body, `"result"`) {
		t.Errorf("callback %s", body)
	}
}

// A callback spells characters as the task endpoint does, not as escapes of HTML.
func TestCallbackSpellsAsTheTaskEndpoint(t *testing.T) {
	t.Parallel()
	b := setup(t, func(w *activitytest.World) mediagate.Task {
		task := w.NewVideo()
		task.Reference = `<a href="/?x=1&y=2">`
		return task
	})
	b.submit(1)
	b.settle(mediagate.StatusFailed, &mediagate.Failure{Code: mediagate.CodeInternal, Message: "1 < 2 && 3 > 2"})
	end := b.Store.Settlements(taskID)[0]
	for _, body := range []string{string(end.WebhookBody), string(end.WithoutInputs)} {
		if !strings.Contains(body, `"reference":"<a href=\"/?x=1&y=2\">"`) || strings.Contains(body, `\u00`) || strings.HasSuffix(body, "\n") {
			t.Errorf("callback %q", body)
		}
	}
	if !strings.Contains(string(end.WebhookBody), "1 < 2 && 3 > 2") {
		t.Errorf("callback %s", end.WebhookBody)
	}
}

// Nothing is sent for a cancelled task, one without a callback, or one whose
// callback was dropped at submit.
func TestSettleWithoutACallback(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		status mediagate.Status
		edit   func(*mediagate.Task)
	}{
		"cancelled":  {mediagate.StatusCancelled, func(*mediagate.Task) {}},
		"none asked": {mediagate.StatusCompleted, func(t *mediagate.Task) { t.Webhook = nil }},
		"dropped":    {mediagate.StatusCompleted, func(t *mediagate.Task) { t.Webhook.State = mediagate.WebhookDropped }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := mirrored(t, 5, 5)
			b.Store.Edit(taskID, c.edit)
			st := b.settle(c.status, nil)
			if st.WebhookRound != 0 || st.WebhookState == mediagate.WebhookPending || b.Store.Settlements(taskID)[0].WebhookBody != nil {
				t.Errorf("story %+v", st)
			}
		})
	}
}

// D13: the first end counts, and the next is told of it.
func TestD13SettledOnce(t *testing.T) {
	t.Parallel()
	b := mirrored(t, 5, 5)
	b.settle(mediagate.StatusCancelled, nil)
	for _, status := range []mediagate.Status{mediagate.StatusCompleted, mediagate.StatusFailed, mediagate.StatusCancelled} {
		var f *mediagate.Failure
		if status == mediagate.StatusFailed {
			f = &mediagate.Failure{Code: mediagate.CodeInternal}
		}
		if st := b.settle(status, f); st.Status != mediagate.StatusCancelled {
			t.Errorf("told %s of a cancelled task", st.Status)
		}
	}
	if got := len(b.Store.Settlements(taskID)); got != 1 {
		t.Errorf("settled %d times", got)
	}
}

// A success without files is no end: it must not be charged.
func TestSettleNeedsFiles(t *testing.T) {
	t.Parallel()
	b := succeeded(t, activitytest.Success())
	_, err := call[mediagate.Story](b, b.Activities.Settle, activities.SettleArgs{TaskID: taskID, N: 1, Status: mediagate.StatusCompleted})
	kind(t, err, mediagate.KindInternal, "", true)
	if len(b.Store.Settlements(taskID)) != 0 {
		t.Error("settled all the same")
	}
}

// What came within a request goes with its task: who can pay for one, and gives
// it up each time, cannot fill the bucket. A bucket that is away holds no end up.
func TestUploadsGoWithTheirTask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		away bool
		want []string
	}{"removed": {false, []string{"uploads/acc_1/other"}}, "the bucket is away": {true, []string{"uploads/acc_1/A", "uploads/acc_1/other"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(w *activitytest.World) mediagate.Task {
				task := w.NewImage()
				task.Plan.Uploads = map[string]string{"first_frame_image": "uploads/acc_1/A"}
				return task
			})
			b.Bucket.Put("uploads/acc_1/A")
			b.Bucket.Put("uploads/acc_1/other")
			if c.away {
				b.Bucket.OnSweep = func(string) error { return mediagate.Errorf(mediagate.KindUnavailable, "away") }
			}
			if st := b.settle(mediagate.StatusCancelled, nil); st.Status != mediagate.StatusCancelled {
				t.Errorf("the task is %s", st.Status)
			}
			b.objects(c.want...)
		})
	}
}

// An end brings its callback twice: the account's row says, in the transaction of
// the end, whether it may hold what the client wrote.
func TestCallbackWithoutInputs(t *testing.T) {
	t.Parallel()
	b := setup(t, video)
	b.submit(1)
	b.settle(mediagate.StatusFailed, &mediagate.Failure{Code: mediagate.CodeContentPolicy, Message: `"a cat" shows a logo`})
	end := b.Store.Settlements(taskID)[0]
	says := func(body []byte) (message any) {
		var task struct {
			ID    string         `json:"id"`
			Error map[string]any `json:"error"`
		}
		if err := json.Unmarshal(body, &task); err != nil || task.ID != taskID {
			t.Fatalf("%s: %v", body, err)
		}
		return task.Error["message"]
	}
	if got := says(end.WebhookBody); got != `"a cat" shows a logo` {
		t.Errorf("the callback says %q", got)
	}
	if got := says(end.WithoutInputs); got != "the content did not pass the safety review" {
		t.Errorf("without inputs it says %q", got)
	}
}

// completing asks for copy and end in one step.
func (b *bundle) completing() (mediagate.Story, error) {
	return call[mediagate.Story](b, b.Activities.MirrorResult, activities.MirrorArgs{TaskID: taskID, N: 1, Settle: true})
}

// A copy ends its task, in a second transaction: what is repeated after a crash
// between the two only settles, and what keeps it from settling is left to the
// step that follows.
func TestD13CopyCompletes(t *testing.T) {
	t.Parallel()
	order := func(b *bundle, action string) {
		_, err := b.Store.RecordAction(b.t.Context(), mediagate.Action{TaskID: taskID, Action: action})
		b.ok(err)
	}
	for name, c := range map[string]struct {
		script func(*bundle)
		want   mediagate.Status
	}{
		"at once":                   {func(*bundle) {}, mediagate.StatusCompleted},
		"after a crash in between":  {func(b *bundle) { _, err := b.mirror(); b.ok(err) }, mediagate.StatusCompleted},
		"unless it was cancelled":   {func(b *bundle) { _, err := b.Store.RequestCancel(b.t.Context(), "acc_1", taskID); b.ok(err) }, mediagate.StatusCancelled},
		"unless it is to fail":      {func(b *bundle) { order(b, mediagate.ActionFail) }, mediagate.StatusProcessing},
		"though it was tried again": {func(b *bundle) { order(b, mediagate.ActionRetry) }, mediagate.StatusCompleted},
		"unless the end takes its time": {func(b *bundle) {
			b.Store.Fault = func(method string) error {
				if method == "Settle" {
					return mediagate.Errorf(mediagate.KindUnavailable, "the account is busy")
				}
				return nil
			}
		}, mediagate.StatusProcessing},
		"unless it has ended": {func(b *bundle) {
			_, _, err := b.Store.Settle(b.t.Context(), mediagate.Settlement{TaskID: taskID, Status: mediagate.StatusCancelled})
			b.ok(err)
		}, mediagate.StatusCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := succeeded(t, activitytest.Success())
			c.script(b)
			st, err := b.completing()
			b.ok(err)
			if task := b.task(); st.Status != c.want || task.Status != c.want {
				t.Errorf("told %s, the row says %s, want %s", st.Status, task.Status, c.want)
			}
			ended := 0
			if c.want.Terminal() {
				ended = 1
			} else if !st.Mirrored {
				t.Errorf("the files are not on record: %+v", st)
			}
			if got := b.Store.Settlements(taskID); len(got) != ended {
				t.Errorf("settled as %+v", got)
			}
			if again, err := b.completing(); err != nil || again.Status != st.Status || len(b.Bucket.Writes()) > 1 {
				t.Errorf("the repetition: %+v, %v, %d writes", again, err, len(b.Bucket.Writes()))
			}
		})
	}
}
