package activities_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	raster "image"
	pngs "image/png"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/providers"
)

//go:embed testdata/film.mp4
var film []byte

const picture = "https://pictures.example.com/" + activitytest.Secret

// withPicture returns an image task whose request names the picture.
func withPicture(w *activitytest.World) mediagate.Task {
	task := w.NewImage()
	task.Params = json.RawMessage(`{"prompt":"p","image_urls":["https://x.example.com/1","` + picture + `"]}`)
	return task
}

// png returns a picture of that size.
func png(width, height int) []byte {
	var b bytes.Buffer
	if err := pngs.Encode(&b, raster.NewGray(raster.Rect(0, 0, width, height))); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// bomb returns a file of some bytes that claims to be a picture of that size.
func bomb(width, height uint32) string {
	b := png(1, 1)
	binary.BigEndian.PutUint32(b[16:], width)
	binary.BigEndian.PutUint32(b[20:], height)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return string(b)
}

// wants makes the synchronous vendor read a client's picture first, and return what is wrong with
// it.
func (b *bundle) wants(url string, limit int64) *[]byte {
	read := new([]byte)
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		file, _, err := job.Inputs.Open(ctx, url, limit)
		if err != nil {
			return mediagate.Submission{}, err
		}
		defer file.Close()
		if *read, err = io.ReadAll(file); err != nil {
			return mediagate.Submission{}, err
		}
		return b.Sync.Accept(job)
	}
	return read
}

// refusal returns why an attempt was rejected.
func (b *bundle) refusal(n int) *mediagate.Failure {
	b.t.Helper()
	a := b.stored(n)
	if a.Failure == nil {
		b.t.Fatalf("attempt %d was not refused: %+v", n, a)
	}
	return a.Failure
}

// TestInputs checks that a client's media that cannot be had are a proven refusal, and never
// leave the attempt unknown.
func TestInputs(t *testing.T) {
	t.Parallel()
	text := func(s string, length int64) func() (io.ReadCloser, int64, error) {
		return func() (io.ReadCloser, int64, error) { return io.NopCloser(strings.NewReader(s)), length, nil }
	}
	fails := func(kind mediagate.Kind) func() (io.ReadCloser, int64, error) {
		return func() (io.ReadCloser, int64, error) { return nil, 0, mediagate.Errorf(kind, "the provider's link") }
	}
	type want struct {
		state     mediagate.AttemptState
		says      string
		retryable bool
	}
	refused := mediagate.AttemptRejected
	whole := string(png(16, 16))
	limit := int64(len(whole))
	long := fmt.Sprintf("image_urls[1] is larger than %d bytes", limit)
	for name, c := range map[string]struct {
		file func() (io.ReadCloser, int64, error)
		want want
	}{
		"within the bound": {text(whole, -1), want{state: mediagate.AttemptAccepted}},
		"one byte more":    {text(whole+"x", -1), want{refused, long, false}},
		"an address refused": {
			fails(mediagate.KindInvalid), want{refused, "image_urls[1] has an address that is not allowed", false},
		},
		"gone": {
			fails(mediagate.KindGone), want{refused, "image_urls[1] cannot be fetched from its address", false},
		},
		"its server is away": {
			fails(mediagate.KindTransient), want{refused, "image_urls[1] cannot be fetched: its server does not answer", true},
		},
		"a bomb": {
			text(bomb(30_000, 30_000), -1), want{refused, "image_urls[1] is 30000 × 30000 pixels: at most 16384 a side", false},
		},
		"broken off": {func() (io.ReadCloser, int64, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader(whole[:40]), iotest.ErrReader(errors.New("reset")))), -1, nil
		}, want{refused, "image_urls[1] broke off", true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, withPicture)
			b.Fetcher.OnFetch = func(_ context.Context, url, channel string) (io.ReadCloser, int64, error) {
				if url != picture || channel != "" {
					t.Errorf("fetched %q, as a result of %q", url, channel)
				}
				return c.file()
			}
			read := b.wants(picture, limit)
			st := b.submit(1)
			if st.State != c.want.state {
				t.Fatalf("the attempt is %s, want %s", st.State, c.want.state)
			}
			if c.want.says == "" {
				if string(*read) != whole {
					t.Errorf("read %q", *read)
				}
				return
			}
			f := b.refusal(1)
			if f == nil || f.Code != mediagate.CodeImageProcessing || !strings.Contains(f.Message, c.want.says) ||
				f.Retryable != c.want.retryable {
				t.Errorf("failure %+v, want %+v", f, c.want)
			}
		})
	}
}

// TestInputsAreHungUpOn checks that an adapter that reads no more than it needs leaves nothing
// running.
func TestInputsAreHungUpOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, withPicture)
		ctx, cancel := context.WithCancel(t.Context())
		b.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
			return hungUp{
				io.MultiReader(
					strings.NewReader("\xff\xd8\xff\xfe\xff\xff"+strings.Repeat("x", 4000)),
					&flood{ctx: ctx, pause: time.Hour, size: 1},
				),
				cancel,
			}, -1, nil
		}
		b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
			file, _, err := job.Inputs.Open(ctx, picture, 1<<20)
			b.ok(err)
			b.ok(file.Close())
			return mediagate.Submission{}, mediagate.Errorf(mediagate.KindUnreached, "enough")
		}
		began := time.Now()
		b.submit(1)
		synctest.Wait()
		if ctx.Err() == nil || time.Since(began) > time.Minute {
			t.Errorf("the file is still open after %v", time.Since(began))
		}
	})
}

// hungUp is a body whose close ends the file that it reads from.
type hungUp struct {
	io.Reader
	cancel func()
}

func (h hungUp) Close() error {
	h.cancel()
	return nil
}

// TestInputsAreTriedForAWhile checks that after a few attempts a server that stays away is the
// client's problem.
func TestInputsAreTriedForAWhile(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.wants(picture, 8)
	b.Fetcher.OnFetch = unfetched(mediagate.KindTransient)
	for n := 1; n <= 5; n++ {
		if st := b.submit(n); st.State != mediagate.AttemptRejected || b.refusal(n).Retryable != (n < 5) {
			t.Fatalf("attempt %d: %s, %+v", n, st.State, b.refusal(n))
		}
	}
}

// TestInputsThatBreakTheCall checks media that break off while they are sent on: the vendor has
// made no job of half a request.
func TestInputsThatBreakTheCall(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(film), iotest.ErrReader(errors.New("reset")))), -1, nil
	}
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		file, _, err := job.Inputs.Open(ctx, picture, 1<<20)
		b.ok(err)
		_, _ = io.ReadAll(file)
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindUnreached, "the request could not be sent whole")
	}
	st, f := b.submit(1), b.refusal(1)
	if st.State != mediagate.AttemptRejected || f.Code != mediagate.CodeImageProcessing || !f.Retryable {
		t.Errorf("the attempt is %s, %+v", st.State, f)
	}
}

// TestInputsAfterTheFirstByte checks that the adapter's word counts once it says that something
// was sent.
func TestInputsAfterTheFirstByte(t *testing.T) {
	t.Parallel()
	b := setup(t, image)
	b.Fetcher.OnFetch = unfetched(mediagate.KindTransient)
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		_, _, err := job.Inputs.Open(ctx, picture, 8)
		return mediagate.Submission{}, mediagate.Errorf(mediagate.KindAmbiguous, "the answer was lost: %w", err)
	}
	if st := b.submit(1); st.State != mediagate.AttemptUnknown {
		t.Errorf("the attempt is %s, want unknown", st.State)
	}
}

// TestUploads checks that media that came within the request, and files of other tasks, are links
// in the job, signed for three days. They are read from the bucket if the adapter wants bytes. No
// row has such a link.
func TestUploads(t *testing.T) {
	t.Parallel()
	b := setup(t, func(w *activitytest.World) mediagate.Task {
		task := w.NewImage()
		task.Params = json.RawMessage(
			`{"prompt":"p","seed":12345678901234567890,"image_urls":[null,"https://x.example.com/1",null,"/v1/tasks/task_S/files/1"],"subjects":[{"name":"s"}]}`,
		)
		task.Plan.Uploads = map[string]string{
			"image_urls[0]": "uploads/acc_1/A", "image_urls[2]": "uploads/acc_1/B", "mask": "uploads/acc_1/C",
			"subjects[0].face.url": "uploads/acc_1/D",
		}
		return task
	})
	b.Store.EditTask(taskID, func(task *mediagate.Task) {
		task.Sources = []mediagate.TaskFile{{Field: "image_urls[3]", TaskID: "task_S", N: 1, Key: "results/task_S/1/0"}}
	})
	b.Bucket.Write("uploads/acc_1/C", string(png(16, 16)))
	var params string
	var mask []byte
	b.Sync.OnSubmit = func(ctx context.Context, job mediagate.Job) (mediagate.Submission, error) {
		params = string(job.Params)
		var p struct{ Mask string }
		b.ok(json.Unmarshal(job.Params, &p))
		file, _, err := job.Inputs.Open(ctx, p.Mask, 1000)
		b.ok(err)
		mask, err = io.ReadAll(file)
		b.ok(err)
		return b.Sync.Accept(job)
	}
	b.submit(1)
	link := func(key string) string {
		return `"https://bucket.example.com/` + key + `?signature=` + activitytest.Secret + `"`
	}
	want := `{"image_urls":[` + link("uploads/acc_1/A") + `,"https://x.example.com/1",` + link(
		"uploads/acc_1/B",
	) + `,` + link("results/task_S/1/0") + `],"mask":` + link("uploads/acc_1/C") +
		`,"prompt":"p","seed":12345678901234567890,"subjects":[{"face":{"url":` + link("uploads/acc_1/D") + `},"name":"s"}]}`
	same(t, "params", params, want)
	if !bytes.Equal(mask, png(16, 16)) || len(b.Fetcher.URLs()) != 0 {
		t.Errorf("read %q, fetched %v", mask, b.Fetcher.URLs())
	}
	for _, ttl := range b.Bucket.Signed() {
		if ttl != 72*time.Hour {
			t.Errorf("signed for %v", ttl)
		}
	}
	row, err := json.Marshal([]any{b.attempt(1), b.task()})
	b.ok(err)
	if strings.Contains(string(row), "bucket.example.com") {
		t.Errorf("a row has a link: %s", row)
	}
}

// TestUploadsThatFitNowhere checks that nothing is sent if a request has no place for its
// uploads, which is a fault of ours.
func TestUploadsThatFitNowhere(t *testing.T) {
	t.Parallel()
	b := setup(t, func(w *activitytest.World) mediagate.Task {
		task := w.NewImage()
		task.Params = json.RawMessage(`{"prompt":"p","image_urls":[]}`)
		task.Plan.Uploads = map[string]string{"prompt.url": "uploads/acc_1/A"}
		return task
	})
	st, f := b.submit(1), b.refusal(1)
	if st.State != mediagate.AttemptRejected || f.Code != mediagate.CodeInternal || f.Retryable {
		t.Errorf("the attempt is %s, %+v", st.State, f)
	}
	b.submitted()
}

// TestD4InputsHaveTheirTime checks that a call has the time to open its inputs, or to have a file
// uploaded, and that a call that does neither has not.
func TestD4InputsHaveTheirTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op   providers.Operation
		want time.Duration
	}{
		"opens media": {providers.Operation{Inputs: true}, time.Minute},
		"uploads":     {providers.Operation{Uploads: true}, time.Minute},
		"neither":     {providers.Operation{}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, image)
			c.op.Submit = 30 * time.Second
			b.Descriptions.Set(activitytest.SyncProvider, c.op)
			b.submit(1)
			if got := b.attempt(1).SendBefore.Sub(start); got != c.want {
				t.Errorf("the first byte may be written for %v, want %v", got, c.want)
			}
		})
	}
}
