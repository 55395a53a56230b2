package s3server_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/sandbox/sample"
	"github.com/mediagate/mediagate/storage/blob"
	"github.com/mediagate/mediagate/task"
)

// made returns activities over a bucket, and a task whose job has ended at the vendor.
func made(t *testing.T, config blob.Config, class string, o mediagate.Outcome) (*activitytest.World, *blob.Store) {
	t.Helper()
	w := activitytest.New(t, time.Now)
	store := open(t, config)
	if err := store.EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Activities.Bucket, w.Activities.Sweeper = bucketAdapter{store}, store
	video := w.NewVideo()
	video.Plan.Media, video.Plan.MaxBytes = class, 512<<20
	w.Store.Add(video)
	if _, err := (handover{}).call(w, w.Activities.SubmitJob, task.Step{Kind: task.Submit, N: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Store.Change(t.Context(), video.ID, task.VendorEnded{N: 1, Outcome: o}); err != nil {
		t.Fatal(err)
	}
	return w, store
}

func mirror(w *activitytest.World) (activities.Answer, error) {
	return handover{}.call(w, w.Activities.MirrorResult, task.Step{Kind: task.Mirror, N: 1})
}

// results returns the results of the attempt and checks that each is stored as its row says.
func results(t *testing.T, w *activitytest.World, store *blob.Store) []mediagate.Result {
	t.Helper()
	row, err := w.Store.Attempt(t.Context(), activitytest.TaskID, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range row.Results {
		if err := store.Verify(t.Context(), r); err != nil {
			t.Errorf("%s: %v", r.Key, err)
		}
	}
	return row.Results
}

// alive returns the size of the memory that survives a garbage collection.
func alive() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestStemsStream checks that 200 MB of stems pass through in little memory.
func TestStemsStream(t *testing.T) {
	const parts, seconds, bound = 10, 240, 64 << 20
	_, config := start(t, t.TempDir())
	o := mediagate.Outcome{Succeeded: true}
	for i := range parts {
		o.Media = append(o.Media, mediagate.Media{URL: fmt.Sprintf("https://m.example.com/%d", i), Role: mediagate.RoleStem, Index: i, Name: fmt.Sprint("track ", i)})
	}
	w, store := made(t, config, "audio", o)
	before, most := alive(), int64(0)
	w.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
		most = max(most, alive()-before)
		file := sample.WAV(seconds)
		return io.NopCloser(file), file.Size(), nil
	}
	if answer, err := mirror(w); err != nil || answer.Status != mediagate.StatusCompleted {
		t.Fatalf("answer %+v (%v)", answer, err)
	}
	found := results(t, w, store)
	if len(found) != 1 || found[0].Size < 200<<20 || found[0].MimeType != "application/zip" {
		t.Fatalf("results %+v", found)
	}
	if most > bound {
		t.Errorf("%d MiB are held", most>>20)
	}
}
