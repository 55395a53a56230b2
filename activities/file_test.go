package activities_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
)

const site = "http://127.0.0.1:8080/"

// ourFile returns an upload of that time, and its link.
func ourFile(t *testing.T, created time.Time) (mediagate.File, string) {
	t.Helper()
	f, ok := mediagate.NewFile(created, "image/png")
	if !ok {
		t.Fatal("no name")
	}
	return f, site + f.Key()
}

// fileOf knows the links below the site.
func fileOf(url string) (mediagate.File, bool) {
	name, below := strings.CutPrefix(url, site+mediagate.FileFolder)
	f, ok := mediagate.ParseFile(name)
	return f, below && ok
}

// TestFilesOfClients checks that the link of an upload goes to the vendor as it is, unless it
// ends before the task stops waiting for the vendor. The upload's bytes come from the bucket,
// even when the link has ended, and never over the network.
func TestFilesOfClients(t *testing.T) {
	t.Parallel()
	const waits = 2 * time.Hour // how long a task of the tests waits for its vendor
	for name, c := range map[string]struct {
		left   time.Duration // what is left of the link's life
		signed bool
	}{
		"just long enough": {waits + time.Hour, false},
		"a second less":    {waits + time.Hour - time.Second, true},
		"ended":            {-time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, link := ourFile(t, start.Add(c.left-mediagate.FileLife))
			foreign := "https://x.example.com/" + f.Key()
			b := setup(t, func(w *activitytest.World) mediagate.Task {
				task := w.NewImage()
				task.DeadlineAt = start.Add(waits)
				task.Params = json.RawMessage(
					`{"prompt":"see ` + link + `","seed":12345678901234567890,"image_urls":["` + foreign + `","` + link +
						`"],"subject":{"url":"` + link + `"}}`,
				)
				return task
			})
			b.Activities.FileOf = fileOf
			b.Bucket.Write(f.Key(), string(png(16, 16)))
			var params string
			var read []byte
			b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
				params = string(job.Params)
				var p struct {
					Images []string `json:"image_urls"`
				}
				b.ok(json.Unmarshal(job.Params, &p))
				file, _, err := job.Inputs.Open(ctx, p.Images[1], 1000)
				b.ok(err)
				read, err = io.ReadAll(file)
				b.ok(err)
				return b.Sync.Accept(job)
			}
			b.submit(1)
			want := string(b.task().Params)
			if c.signed {
				to := `"https://bucket.example.com/` + f.Key() + `?signature=` + activitytest.Secret + `"`
				want = `{"image_urls":["` + foreign + `",` + to + `],"prompt":"see ` + link +
					`","seed":12345678901234567890,"subject":{"url":` + to + `}}`
			}
			same(t, "params", params, want)
			if !bytes.Equal(read, png(16, 16)) || len(b.Fetcher.URLs()) != 0 {
				t.Errorf("read %q, fetched %v", read, b.Fetcher.URLs())
			}
			for _, ttl := range b.Bucket.Signed() {
				if ttl != 72*time.Hour {
					t.Errorf("signed for %v", ttl)
				}
			}
			if row := string(b.task().Params); strings.Contains(row, "bucket.example.com") {
				t.Errorf("the row has a signed link: %s", row)
			}
		})
	}
}

// TestCheckInputsInTheBucket checks that files in the bucket are read there, and not fetched by a
// link: media that came within the request, an upload whose link the request has, and a file of
// another task.
func TestCheckInputsInTheBucket(t *testing.T) {
	t.Parallel()
	const within = "uploads/acc_1/A"
	f, link := ourFile(t, start.Add(-100*time.Hour))
	for name, c := range map[string]struct {
		field, key string
		edit       func(*mediagate.Task)
	}{
		"within the request": {"first_frame_image", within, func(task *mediagate.Task) {
			task.Plan.Uploads = map[string]string{"first_frame_image": within}
		}},
		"a file of another task": {"image_urls[2]", "results/task_S/1/0", func(task *mediagate.Task) {
			task.Sources = []mediagate.TaskFile{{Field: "image_urls[2]", TaskID: "task_S", N: 1, Key: "results/task_S/1/0"}}
		}},
		"an upload": {"image_urls[0]", f.Key(), func(task *mediagate.Task) {
			task.Params = json.RawMessage(`{"prompt":"p","image_urls":["` + link + `"]}`)
		}},
	} {
		for what, file := range map[string]struct{ content, says string }{
			"good":      {bomb(256, 256), ""},
			"too small": {bomb(64, 64), " is 64 × 64 pixels"},
			"gone":      {"", " is not there any more"},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				b := setup(t, naming(input(c.field, anImage)))
				b.Store.EditTask(taskID, c.edit)
				b.Activities.FileOf = fileOf
				if file.content != "" {
					b.Bucket.Write(c.key, file.content)
				}
				_, err := b.check()
				b.ok(err)
				failure := b.found().Failure
				if (failure != nil) != (file.says != "") || failure != nil && !strings.HasPrefix(
					failure.Message, c.field+file.says,
				) {
					t.Errorf("failure %+v", failure)
				}
				if len(b.Fetcher.URLs()) > 0 {
					t.Errorf("fetched %v", b.Fetcher.URLs())
				}
			})
		}
	}
}

// TestFilesAreRemoved checks that an upload is removed when its link has ended, but not while a
// task is open that was submitted before that.
func TestFilesAreRemoved(t *testing.T) {
	t.Parallel()
	const age = mediagate.FileLife + time.Hour
	for name, c := range map[string]struct {
		submitted time.Duration // time from the upload to the submit; 0 for no task
		ended     bool
		passed    time.Duration // time since the upload
		gone      bool
	}{
		"at the bound":                      {0, false, age, false},
		"past it":                           {0, false, age + time.Second, true},
		"needed by a task of hour 71":       {71 * time.Hour, false, 200 * time.Hour, false},
		"that task has ended":               {71 * time.Hour, true, 200 * time.Hour, true},
		"a task of the last moment":         {age - time.Second, false, 200 * time.Hour, false},
		"a task that came when it was over": {age + time.Second, false, 200 * time.Hour, true},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := activitytest.New(t, time.Now)
			task := w.NewImage()
			uploaded := time.Now()
			task.CreatedAt = uploaded.Add(c.submitted)
			if c.submitted == 0 || c.ended {
				task.Status, task.EndedAt, task.Failure = mediagate.StatusFailed, task.CreatedAt, &mediagate.Failure{
					Code: mediagate.CodeGenerationFailed,
				}
			}
			w.Store.Add(task)
			f, _ := ourFile(t, uploaded)
			w.Bucket.Write(f.Key(), "file")
			w.Bucket.Write("results/of/others", "file")
			time.Sleep(c.passed)
			remove(t, w, mediagate.RemoveFiles)
			objects := w.Bucket.Objects()
			if gone := !slices.Contains(objects, f.Key()); gone != c.gone {
				t.Errorf("gone: %v, want %v", gone, c.gone)
			}
			if !slices.Contains(objects, "results/of/others") {
				t.Error("another folder was swept")
			}
		})
	}
}

// TestFilesStayWithoutTheDatabase checks that all uploads stay while the database is away, since
// it is not known which are needed.
func TestFilesStayWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := activitytest.New(t, time.Now)
		f, _ := ourFile(t, time.Now())
		w.Bucket.Write(f.Key(), "file")
		w.Store.Fault = failsWith("OldestOpen", mediagate.Errorf(mediagate.KindUnavailable, "away"))
		time.Sleep(200 * time.Hour)
		if _, err := tryRemove(w, mediagate.RemoveFiles); err == nil {
			t.Error("no error")
		}
		if !slices.Contains(w.Bucket.Objects(), f.Key()) {
			t.Error("the upload is gone")
		}
	})
}
