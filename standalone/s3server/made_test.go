package s3server_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/sandbox/sample"
	"github.com/mediagate/mediagate/storage/blob"
	"github.com/mediagate/mediagate/task"
)

// made is the activities over a bucket, with a task whose vendor has ended.
func made(t *testing.T, config blob.Config, class string, o mediagate.Outcome) (*activitytest.World, *blob.Store) {
	t.Helper()
	w := activitytest.New(time.Now)
	store := open(t, config)
	if err := store.EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Activities.Bucket, w.Activities.Sweeper = stored{store}, store
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

// results are those of the attempt, each of which must be stored as it says.
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

// alive is the memory that survives a collection.
func alive() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// 200 MB of stems pass through in little memory. A copy that breaks off leaves
// nothing behind, and the next one makes the archive anew under the same key.
func TestStemsStream(t *testing.T) {
	const parts, seconds, bound = 10, 240, 64 << 20
	_, config := start(t, t.TempDir())
	o := mediagate.Outcome{Succeeded: true}
	for i := range parts {
		o.Media = append(o.Media, mediagate.Media{URL: fmt.Sprintf("https://m.example.com/%d", i), Role: mediagate.RoleStem, Index: i, Name: fmt.Sprint("track ", i)})
	}
	w, store := made(t, config, "audio", o)
	before, most, breaks := alive(), int64(0), true
	w.Fetcher.OnFetch = func(_ context.Context, url, _ string) (io.ReadCloser, int64, error) {
		most = max(most, alive()-before)
		file := sample.WAV(seconds)
		if breaks && url == "https://m.example.com/5" {
			return io.NopCloser(io.MultiReader(io.LimitReader(file, 1<<20), iotest.ErrReader(errors.New("reset")))), -1, nil
		}
		return io.NopCloser(file), file.Size(), nil
	}
	if _, err := mirror(w); err == nil {
		t.Fatal("half of the stems are enough")
	}
	folder := "results/" + activitytest.TaskID + "/"
	if n, err := store.AbortStale(t.Context(), folder, -time.Hour); err != nil || n != 0 {
		t.Errorf("%d uploads are left (%v)", n, err)
	}
	breaks = false
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
	body, _, err := store.Open(t.Context(), found[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	path := filepath.Join(t.TempDir(), "stems.zip")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := io.Copy(file, body); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(file, found[0].Size)
	if err != nil || len(archive.File) != parts || archive.File[3].Name != "track 3.wav" {
		t.Fatalf("%v (%v)", archive, err)
	}
	if unzip, err := exec.LookPath("unzip"); err == nil {
		if out, err := exec.CommandContext(t.Context(), unzip, "-tq", path).CombinedOutput(); err != nil {
			t.Errorf("unzip -t: %v\n%s", err, out)
		}
	}
	if n, err := store.DeletePrefix(t.Context(), folder); err != nil || n != 1 {
		t.Errorf("%d objects (%v), want one", n, err)
	}
}

// Four pictures are stored beside their grid, each with its sides.
func TestGridIsCut(t *testing.T) {
	t.Parallel()
	_, config := start(t, t.TempDir())
	w, store := made(t, config, "image", mediagate.Outcome{
		Succeeded: true, Media: []mediagate.Media{{URL: "https://m.example.com/grid", Role: mediagate.RoleGrid}},
	})
	w.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
		var file bytes.Buffer
		err := sample.Grid(&file, "image/webp", 1025, 1024)
		return io.NopCloser(&file), -1, err
	}
	if answer, err := mirror(w); err != nil || answer.Status != mediagate.StatusCompleted {
		t.Fatalf("answer %+v (%v)", answer, err)
	}
	found := results(t, w, store)
	if len(found) != 5 || found[0].Role != mediagate.RoleGrid {
		t.Fatalf("results %+v", found)
	}
	for i, r := range found[1:] {
		body, _, err := store.Open(t.Context(), r.Key)
		if err != nil {
			t.Fatal(err)
		}
		m, err := png.Decode(body)
		_ = body.Close()
		if err != nil || m.Bounds().Dx() != r.Width || r.Width != 512+i%2 || r.Height != 512 || r.MimeType != "image/png" || r.Index != i {
			t.Errorf("quarter %d: %+v (%v)", i, r, err)
		}
	}
}
