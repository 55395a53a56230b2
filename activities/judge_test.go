package activities_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/activities"
	"github.com/mediagate/mediagate/activities/activitytest"
	"github.com/mediagate/mediagate/sandbox/sample"
	"github.com/mediagate/mediagate/task"
)

// naming is a video task whose request names n images, one film and one
// sound, with the bounds of each.
func naming(bounds ...mediagate.Input) func(*activitytest.World) mediagate.Task {
	return func(w *activitytest.World) mediagate.Task {
		task := w.NewVideo()
		task.Params = json.RawMessage(`{"prompt":"p","image_urls":["https://m.example.com/0","https://m.example.com/1","https://m.example.com/2"],` +
			`"video_urls":["https://m.example.com/film"],"audio_urls":["https://m.example.com/sound"],"subjects":[{"face":{"url":"https://m.example.com/face"}}]}`)
		task.Plan.Inputs = bounds
		return task
	}
}

func input(field string, bounds mediagate.MediaBounds) mediagate.Input {
	return mediagate.Input{Field: field, MediaBounds: bounds}
}

var anImage = mediagate.MediaBounds{Kind: "image", MinSide: 128}

// serves answers for addresses by their last element; others are gone.
func (b *bundle) serves(files map[string][]byte) {
	b.Fetcher.OnFetch = func(_ context.Context, url, _ string) (io.ReadCloser, int64, error) {
		file, ok := files[strings.TrimPrefix(url, "https://m.example.com/")]
		if !ok {
			return nil, 0, mediagate.Errorf(mediagate.KindGone, "404")
		}
		return io.NopCloser(bytes.NewReader(file)), int64(len(file)), nil
	}
}

func (b *bundle) judge() (activities.Answer, error) { return b.tryStep(task.CheckInputs, 0) }

// verdict is the judgement as it is stored.
func (b *bundle) verdict() mediagate.Judgement {
	b.t.Helper()
	return b.state().Inputs
}

func box(id string, payload ...[]byte) []byte {
	body := bytes.Join(payload, nil)
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(8+len(body))), id...), body...)
}

func words(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// movie is a film of that size and length, its headers behind its pictures.
func movie(width, height uint32, milliseconds uint32) []byte {
	matrix := words(1<<16, 0, 0, 0, 1<<16, 0, 0, 0, 1<<30)
	return slices.Concat(
		box("ftyp", []byte("isom\x00\x00\x02\x00isommp41")), box("mdat", make([]byte, 70_000)),
		box("moov", box("mvhd", words(0, 0, 0, 1000, milliseconds), make([]byte, 80)),
			box("trak", box("tkhd", words(3, 0, 0, 1, 0, milliseconds, 0, 0, 0, 0), matrix, words(width<<16, height<<16)),
				box("mdia", box("hdlr", words(0, 0), []byte("vide"), make([]byte, 13))))),
	)
}

// Both sides of each bound, and the words of the one that is broken.
func TestBounds(t *testing.T) {
	t.Parallel()
	ratio := func(w, h int64) mediagate.Ratio { return mediagate.Ratio{Width: w, Height: h} }
	sides := mediagate.MediaBounds{Kind: "image", Formats: []string{"png", "jpeg", "webp"}, MinSide: 128, MaxSide: 4096, MinRatio: ratio(1, 4), MaxRatio: ratio(4, 1)}
	film := mediagate.MediaBounds{Kind: "video", Formats: []string{"mp4", "mov"}, MinSide: 240, MaxSide: 4096, MinRatio: ratio(1, 8), MaxRatio: ratio(8, 1), MinSeconds: 2, MaxSeconds: 10}
	covers := func(seconds float64) mediagate.Input {
		in := input("video_urls[0]", film)
		in.Covers = &mediagate.Covers{Field: "duration", Seconds: seconds}
		return in
	}
	picture := func(w, h uint32) []byte { return []byte(bomb(w, h)) }
	gif := []byte("GIF89a\x00\x02\x00\x02\x00\x00\x00,\x00\x00\x00\x00\x02\x00\x02\x00\x00\x02\x03\x84\x51\x05\x00;")
	song := mediagate.MediaBounds{Kind: "audio", Formats: []string{"mp3", "wav"}, MinSeconds: 2, MaxSeconds: 15}
	sound := func(file io.Reader) []byte {
		b, err := io.ReadAll(file)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const bounds, broken = mediagate.CodeInvalidParameters, mediagate.CodeImageProcessing
	for name, c := range map[string]struct {
		in   mediagate.Input
		file []byte
		code mediagate.FailureCode
		says string
	}{
		"the shortest sound":   {in: input("audio_urls[0]", song), file: sound(sample.MP3(2))},
		"the longest sound":    {in: input("audio_urls[0]", song), file: sound(sample.WAV(15))},
		"a sound too short":    {input("audio_urls[0]", song), sound(sample.WAV(1.9)), bounds, "audio_urls[0] is 1.9 seconds long, at least 2 are required"},
		"a sound too long":     {input("audio_urls[0]", song), sound(sample.MP3(15.2)), bounds, "audio_urls[0] is 15.2 seconds long, at most 15 are allowed"},
		"a sound of no length": {input("audio_urls[0]", song), []byte("\xff\xfb\x00\x00" + strings.Repeat("\x00", 500)), broken, "audio_urls[0] does not tell its length"},
		"an image for a sound": {input("audio_urls[0]", song), picture(200, 200), broken, "audio_urls[0] is an image, not a sound"},
		"the least sides":      {in: input("image_urls[1]", sides), file: picture(128, 128)},
		"one too narrow":       {input("image_urls[1]", sides), picture(127, 128), bounds, "image_urls[1] is 127 × 128 pixels, at least 128 × 128 are required"},
		"one too low":          {input("image_urls[1]", sides), picture(128, 127), bounds, "image_urls[1] is 128 × 127 pixels, at least 128 × 128 are required"},
		"the most sides":       {in: input("image_urls[1]", sides), file: picture(4096, 4096)},
		"one too wide":         {input("image_urls[1]", sides), picture(4097, 4096), bounds, "image_urls[1] is 4097 × 4096 pixels, at most 4096 × 4096 are allowed"},
		"the narrowest":        {in: input("image_urls[1]", sides), file: picture(200, 800)},
		"narrower":             {input("image_urls[1]", sides), picture(200, 801), bounds, "image_urls[1] is 200 × 801 pixels, a ratio of width to height between 1:4 and 4:1 is required"},
		"the widest":           {in: input("image_urls[1]", sides), file: picture(800, 200)},
		"wider":                {input("image_urls[1]", sides), picture(801, 200), bounds, "image_urls[1] is 801 × 200 pixels, a ratio of width to height between 1:4 and 4:1 is required"},
		"only at least":        {input("image_urls[1]", mediagate.MediaBounds{Kind: "image", MinRatio: ratio(1, 2)}), picture(100, 201), bounds, "image_urls[1] is 100 × 201 pixels, a ratio of width to height of at least 1:2 is required"},
		"only at most":         {input("image_urls[1]", mediagate.MediaBounds{Kind: "image", MaxRatio: ratio(2, 1)}), picture(201, 100), bounds, "image_urls[1] is 201 × 100 pixels, a ratio of width to height of at most 2:1 is required"},
		"another format":       {input("image_urls[1]", sides), gif, bounds, "image_urls[1] is a GIF file, PNG, JPEG or WebP is required"},
		"as many bytes":        {in: input("image_urls[1]", mediagate.MediaBounds{Kind: "image", MaxBytes: int64(len(picture(9, 9)))}), file: picture(9, 9)},
		"one byte more":        {input("image_urls[1]", mediagate.MediaBounds{Kind: "image", MaxBytes: int64(len(picture(9, 9))) - 1}), picture(9, 9), bounds, "the most that are allowed"},
		"one pixel":            {input("image_urls[1]", mediagate.MediaBounds{Kind: "image", MaxSide: 9}), picture(1, 1), broken, "image_urls[1] is 1 × 1 pixels, too small to be used"},
		"30,000 pixels":        {input("image_urls[1]", mediagate.MediaBounds{Kind: "image", MinSide: 128}), picture(30_000, 30_000), broken, "image_urls[1] is 30000 × 30000 pixels: at most 16384 a side and 200000000 in all are allowed"},
		"too many of them":     {input("image_urls[1]", mediagate.MediaBounds{Kind: "image", MinSide: 128}), picture(16_000, 16_000), broken, "is 16000 × 16000 pixels: at most 16384 a side"},
		"a film for an image":  {input("image_urls[1]", sides), movie(640, 360, 5000), broken, "image_urls[1] is a video, not an image"},
		"an image for a film":  {input("video_urls[0]", film), picture(640, 360), broken, "video_urls[0] is an image, not a video"},
		"no image":             {input("image_urls[1]", sides), []byte("<!DOCTYPE html><html>log in</html>"), broken, "image_urls[1] is not an image, a video or a sound in a format that we know"},
		"sides it hides":       {input("image_urls[1]", mediagate.MediaBounds{Kind: "image", MinSide: 1}), box("ftyp", []byte("avif\x00\x00\x00\x00avifmif1")), broken, "image_urls[1] does not tell its width and height"},
		"a film":               {in: input("video_urls[0]", film), file: movie(240, 240, 2000)},
		"of the longest":       {in: input("video_urls[0]", film), file: movie(4096, 4096, 10_000)},
		"a frame over it":      {in: input("video_urls[0]", film), file: movie(640, 360, 10_049)},
		"too long":             {input("video_urls[0]", film), movie(640, 360, 10_050), bounds, "video_urls[0] is 10.1 seconds long, at most 10 are allowed"},
		"a frame short":        {in: input("video_urls[0]", film), file: movie(640, 360, 1950)},
		"too short":            {input("video_urls[0]", film), movie(640, 360, 1949), bounds, "video_urls[0] is 1.9 seconds long, at least 2 are required"},
		"too small a film":     {input("video_urls[0]", film), movie(640, 239, 5000), bounds, "video_urls[0] is 640 × 239 pixels, at least 240 × 240 are required"},
		"the widest film":      {in: input("video_urls[0]", film), file: movie(1920, 240, 5000)},
		"too wide a film":      {input("video_urls[0]", film), movie(1928, 240, 5000), bounds, "a ratio of width to height between 1:8 and 8:1 is required"},
		"as long as asked for": {in: covers(5), file: movie(640, 360, 5000)},
		"not so long":          {covers(6), movie(640, 360, 5000), bounds, "video_urls[0] is 5 seconds long, duration asks for 6"},
		"no movie box":         {input("video_urls[0]", film), movie(640, 360, 5000)[:70_000], broken, "video_urls[0] has no moov box: the video is damaged or incomplete"},
		"no length":            {input("video_urls[0]", film), movie(640, 360, 0), broken, "video_urls[0] does not tell its length"},
		"deep in the request":  {input("subjects[0].face.url", anImage), picture(64, 64), bounds, "subjects[0].face.url is 64 × 64 pixels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for way, length := range map[string]int64{"its length is known": int64(len(c.file)), "it is not": -1} {
				b := setup(t, naming(c.in))
				b.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
					return io.NopCloser(bytes.NewReader(c.file)), length, nil
				}
				answer, err := b.judge()
				b.ok(err)
				j := b.verdict()
				if !j.Over || answer.Step.Kind == task.CheckInputs {
					t.Fatalf("%s: judgement %+v", way, j)
				}
				if c.code == "" {
					if j.Failure != nil {
						t.Errorf("%s: refused: %+v", way, j.Failure)
					}
					continue
				}
				if f := j.Failure; f == nil || f.Code != c.code || !strings.HasPrefix(f.Message, c.in.Field+" ") || !strings.Contains(f.Message, c.says) || f.Retryable {
					t.Errorf("%s: %+v, want %s: %s", way, f, c.code, c.says)
				}
			}
		})
	}
}

// A server that is away is asked again, and what was found good is not fetched
// a second time.
func TestJudgeInputsWhileAServerIsAway(t *testing.T) {
	t.Parallel()
	b := setup(t, naming(input("image_urls[0]", anImage), input("image_urls[1]", anImage), input("image_urls[2]", anImage)))
	good := []byte(bomb(256, 256))
	b.serves(map[string][]byte{"0": good, "2": good})
	files := b.Fetcher.OnFetch
	var away atomic.Bool
	away.Store(true)
	b.Fetcher.OnFetch = func(ctx context.Context, url, host string) (io.ReadCloser, int64, error) {
		switch {
		case !strings.HasSuffix(url, "/1"):
			return files(ctx, url, host)
		case away.Load():
			return nil, 0, mediagate.Errorf(mediagate.KindTransient, "503")
		default:
			return io.NopCloser(bytes.NewReader(good)), -1, nil
		}
	}
	for n := 1; n <= 2; n++ {
		_, err := b.judge()
		kind(t, err, mediagate.KindTransient, "", true)
		if diff := cmp.Diff(mediagate.Judgement{Passed: []string{"image_urls[0]", "image_urls[2]"}, Tries: n}, b.verdict()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	away.Store(false)
	answer, err := b.judge()
	b.ok(err)
	if j := b.verdict(); answer.Step.Kind != task.Submit || !j.Over || j.Failure != nil {
		t.Errorf("judgement %+v", j)
	}
	fetched := map[string]int{}
	for _, url := range b.Fetcher.URLs() {
		fetched[url[len(url)-1:]]++
	}
	if diff := cmp.Diff(map[string]int{"0": 1, "1": 3, "2": 1}, fetched); diff != "" {
		t.Errorf("fetched (-want +got):\n%s", diff)
	}
}

// One that stays away ends the task after a few tries.
func TestJudgeInputsEndsWithTheServerAway(t *testing.T) {
	t.Parallel()
	b := setup(t, naming(input("image_urls[0]", anImage)))
	b.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
		return nil, 0, mediagate.Errorf(mediagate.KindTransient, "away")
	}
	for range 4 {
		_, err := b.judge()
		kind(t, err, mediagate.KindTransient, "", true)
	}
	_, err := b.judge()
	b.ok(err)
	want := &mediagate.Failure{Code: mediagate.CodeImageProcessing, Message: "image_urls[0] cannot be fetched: its server does not answer", Retryable: true}
	if diff := cmp.Diff(want, b.verdict().Failure); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Of several bad files the first is named, whichever is known first; a bad one
// is not kept waiting by servers that are away.
func TestJudgeInputsNamesTheFirst(t *testing.T) {
	t.Parallel()
	b := setup(t, naming(input("image_urls[0]", anImage), input("image_urls[1]", anImage), input("image_urls[2]", anImage)))
	late := make(chan struct{})
	b.Fetcher.OnFetch = func(ctx context.Context, url, _ string) (io.ReadCloser, int64, error) {
		switch url[len(url)-1] {
		case '0':
			return nil, 0, mediagate.Errorf(mediagate.KindTransient, "away")
		case '1':
			<-late
			return io.NopCloser(strings.NewReader(bomb(64, 64))), -1, nil
		default:
			close(late)
			return io.NopCloser(strings.NewReader(bomb(65, 65))), -1, nil
		}
	}
	_, err := b.judge()
	b.ok(err)
	if f := b.verdict().Failure; f == nil || !strings.HasPrefix(f.Message, "image_urls[1] is 64") {
		t.Errorf("failure %+v", f)
	}
}

// Whoever dies between judging and recording leaves the work to the next, and
// the first verdict stays.
func TestJudgeInputsAfterADeath(t *testing.T) {
	t.Parallel()
	b := setup(t, naming(input("image_urls[0]", anImage)))
	b.serves(map[string][]byte{"0": []byte(bomb(64, 64))})
	b.Store.Fault = func(method string) error {
		if method == "Change" {
			return mediagate.Errorf(mediagate.KindInternal, "killed")
		}
		return nil
	}
	_, err := b.judge()
	kind(t, err, mediagate.KindInternal, "", true)
	b.Store.Fault = nil
	answer, err := b.judge()
	b.ok(err)
	if f := b.verdict().Failure; answer.Step.Kind != task.Settle || f == nil || f.Code != mediagate.CodeInvalidParameters {
		t.Fatalf("answer %+v, failure %+v", answer, f)
	}
	b.serves(map[string][]byte{"0": []byte(bomb(256, 256))})
	if _, err := b.judge(); err != nil || b.verdict().Failure == nil {
		t.Errorf("judged again: %+v, %v", b.verdict(), err)
	}
	if n := len(b.Fetcher.URLs()); n != 2 {
		t.Errorf("fetched %d times", n)
	}
}

// What came within the request is read from the bucket, not by its link.
func TestJudgeInputsOfUploads(t *testing.T) {
	t.Parallel()
	upload := func(w *activitytest.World) mediagate.Task {
		task := naming(input("first_frame_image", anImage))(w)
		task.Plan.Uploads = map[string]string{"first_frame_image": "uploads/acc_1/A"}
		return task
	}
	for name, c := range map[string]struct {
		file string
		want string
	}{
		"good":      {bomb(256, 256), ""},
		"too small": {bomb(64, 64), "first_frame_image is 64 × 64 pixels"},
		"gone":      {"", "first_frame_image is not there any more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, upload)
			if c.file != "" {
				b.Bucket.Write("uploads/acc_1/A", c.file)
			}
			_, err := b.judge()
			b.ok(err)
			f := b.verdict().Failure
			if (f != nil) != (c.want != "") || f != nil && !strings.HasPrefix(f.Message, c.want) || len(b.Fetcher.URLs()) > 0 {
				t.Errorf("failure %+v, fetched %v", f, b.Fetcher.URLs())
			}
		})
	}
}

// There is nothing to judge for a task that has ended, is to be cancelled, or
// is gone.
func TestJudgeInputsOfNobody(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*bundle){
		"ended":     func(b *bundle) { b.change(task.CancelRequested{}, task.EndDue{}) },
		"cancelled": func(b *bundle) { b.change(task.CancelRequested{}) },
		"gone":      func(b *bundle) { b.Store.Remove(taskID) },
	} {
		b := setup(t, naming(input("image_urls[0]", anImage)))
		edit(b)
		answer, err := b.judge()
		if err != nil || answer.Missing != (name == "gone") || len(b.Fetcher.URLs()) > 0 {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
	}
}

// drip sends a byte at a time, with a pause before each, until nobody listens.
type drip struct {
	file  []byte
	pause time.Duration
	ctx   context.Context
}

func (d *drip) Read(p []byte) (int, error) {
	select {
	case <-d.ctx.Done():
		return 0, errors.New("hung up")
	case <-time.After(d.pause):
	}
	n := copy(p[:1], d.file)
	if d.file = d.file[n:]; n == 0 {
		p[0], n = 'x', 1
	}
	return n, nil
}

func (d *drip) Close() error { return nil }

// Whatever a server does, it is hung up on within the limits. The clock of the
// bubble runs ahead.
func TestJudgeInputsHangsUp(t *testing.T) {
	t.Parallel()
	const crawls, silent = "image_urls[0] arrives too slowly, or does not end", "image_urls[0] cannot be fetched: its server does not answer"
	for name, c := range map[string]struct {
		fetch func(ctx context.Context) (io.ReadCloser, int64, error)
		says  string
		away  bool
		most  time.Duration
	}{
		"a byte a second": {func(ctx context.Context) (io.ReadCloser, int64, error) {
			return &drip{[]byte(bomb(256, 256)), time.Second, ctx}, -1, nil
		}, crawls, false, 31 * time.Second},
		"a byte every twenty seconds": {func(ctx context.Context) (io.ReadCloser, int64, error) {
			return &drip{[]byte(bomb(256, 256)), 20 * time.Second, ctx}, -1, nil
		}, silent, true, 46 * time.Second},
		"no answer": {func(ctx context.Context) (io.ReadCloser, int64, error) {
			<-ctx.Done()
			return nil, 0, mediagate.Errorf(mediagate.KindTransient, "no answer")
		}, silent, true, 16 * time.Second},
		"fast, and without end": {func(ctx context.Context) (io.ReadCloser, int64, error) {
			head := slices.Concat(box("ftyp", []byte("isom\x00\x00\x02\x00isommp41")), words(0), []byte("mdat"))
			return io.NopCloser(io.MultiReader(bytes.NewReader(head), &flood{ctx: ctx, pause: 10 * time.Millisecond, size: 4096})), -1, nil
		}, crawls, false, 3*time.Minute + time.Second},
		"without end at once": {func(ctx context.Context) (io.ReadCloser, int64, error) {
			head := slices.Concat(box("ftyp", []byte("isom\x00\x00\x02\x00isommp41")), words(0), []byte("mdat"))
			return io.NopCloser(io.MultiReader(bytes.NewReader(head), &flood{ctx: ctx, size: 32 << 10})), -1, nil
		}, crawls, false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, naming(input("image_urls[0]", mediagate.MediaBounds{Kind: "video", MinSide: 9})))
				b.Fetcher.OnFetch = func(ctx context.Context, _, _ string) (io.ReadCloser, int64, error) { return c.fetch(ctx) }
				began := time.Now()
				_, err := b.judge()
				if took := time.Since(began); took > c.most {
					t.Errorf("it took %v", took)
				}
				if c.away {
					kind(t, err, mediagate.KindTransient, "", true)
					if j := b.verdict(); j.Tries != 1 || j.Over {
						t.Errorf("judgement %+v", j)
					}
					return
				}
				b.ok(err)
				if f := b.verdict().Failure; f == nil || f.Code != mediagate.CodeImageProcessing || f.Message != c.says {
					t.Errorf("failure %+v", f)
				}
			})
		})
	}
}

// flood is a file without end.
type flood struct {
	ctx   context.Context
	pause time.Duration
	size  int
}

func (f *flood) Read(p []byte) (int, error) {
	if f.pause > 0 {
		select {
		case <-f.ctx.Done():
			return 0, errors.New("hung up")
		case <-time.After(f.pause):
		}
	}
	n := min(len(p), f.size)
	clear(p[:n])
	return n, nil
}

// All of a task's files have one limit.
func TestJudgeInputsHasALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var many []mediagate.Input
		for range 20 {
			many = append(many, input("video_urls[0]", mediagate.MediaBounds{Kind: "video", MinSide: 9}))
		}
		for i := range many {
			many[i].Field = "video_urls[0]"
		}
		b := setup(t, naming(many...))
		b.Fetcher.OnFetch = func(ctx context.Context, _, _ string) (io.ReadCloser, int64, error) {
			head := slices.Concat(box("ftyp", []byte("isom\x00\x00\x02\x00isommp41")), words(0), []byte("mdat"))
			return io.NopCloser(io.MultiReader(bytes.NewReader(head), &flood{ctx: ctx, pause: time.Second, size: 4096})), -1, nil
		}
		b.Activities.Settings.InputTime = 4 * time.Minute
		began := time.Now()
		_, err := b.judge()
		b.ok(err)
		if took := time.Since(began); took > b.Activities.Settings.JudgeTime+time.Second || b.verdict().Failure == nil {
			t.Errorf("it took %v: %+v", took, b.verdict())
		}
	})
}

// A file that is broken off is its server's fault, not the file's.
func TestJudgeInputsBrokenOff(t *testing.T) {
	t.Parallel()
	b := setup(t, naming(input("image_urls[0]", anImage)))
	b.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(bomb(256, 256)[:25]), iotest.ErrReader(io.ErrUnexpectedEOF))), 5000, nil
	}
	for range 4 {
		_, err := b.judge()
		kind(t, err, mediagate.KindTransient, "", true)
	}
	_, err := b.judge()
	b.ok(err)
	if f := b.verdict().Failure; f == nil || f.Message != "image_urls[0] broke off while it was fetched" {
		t.Errorf("failure %+v", f)
	}
}

// Judging takes little memory, however large the files.
func TestJudgeInputsKeepsLittle(t *testing.T) {
	t.Parallel()
	const size = 100 << 20
	b := setup(t, naming(input("video_urls[0]", mediagate.MediaBounds{Kind: "video", MinSeconds: 2, MaxBytes: size + 1<<20})))
	film := movie(640, 360, 5000)
	tail := film[bytes.Index(film, []byte("moov"))-4:]
	head := slices.Concat(box("ftyp", []byte("isom\x00\x00\x02\x00isommp41")), words(8+size), []byte("mdat"))
	var most atomic.Int64
	b.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
		body := io.MultiReader(bytes.NewReader(head), io.LimitReader(&asked{most: &most}, size), bytes.NewReader(tail))
		return io.NopCloser(body), -1, nil
	}
	_, err := b.judge()
	b.ok(err)
	if j := b.verdict(); !j.Over || j.Failure != nil {
		t.Errorf("judgement %+v", j)
	}
	if most.Load() > 64<<10 {
		t.Errorf("asked for %d bytes at once", most.Load())
	}
}

// asked notes the largest piece that is asked for.
type asked struct{ most *atomic.Int64 }

func (a *asked) Read(p []byte) (int, error) {
	a.most.Store(max(a.most.Load(), int64(len(p))))
	clear(p)
	return len(p), nil
}

// A fault of ours is nobody's verdict.
func TestJudgeInputsWithoutTheBucket(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*mediagate.Task)
		kind mediagate.Kind
	}{
		"no such field":          {func(t *mediagate.Task) { t.Plan.Inputs[0].Field = "image_urls[7]" }, mediagate.KindInternal},
		"a request that is none": {func(t *mediagate.Task) { t.Params = json.RawMessage(`{`) }, mediagate.KindInternal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, naming(input("image_urls[0]", anImage)))
			b.Store.EditTask(taskID, c.edit)
			_, err := b.judge()
			kind(t, err, c.kind, "", true)
			if diff := cmp.Diff(mediagate.Judgement{}, b.verdict()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The words of a verdict reach the client, and the money goes back.
func TestSettleAfterAVerdict(t *testing.T) {
	t.Parallel()
	b := setup(t, naming(input("image_urls[0]", anImage)))
	b.serves(map[string][]byte{"0": []byte(bomb(64, 64))})
	answer, err := b.judge()
	b.ok(err)
	if answer.Step.Kind != task.Settle {
		t.Fatalf("answer %+v", answer)
	}
	if answer = b.step(task.Settle, 0); answer.Status != mediagate.StatusFailed {
		t.Fatalf("the task is %s", answer.Status)
	}
	ended := b.task()
	want := fmt.Sprintf("%s is 64 × 64 pixels, at least 128 × 128 are required", "image_urls[0]")
	if ended.Failure == nil || ended.Failure.Code != mediagate.CodeInvalidParameters || ended.Failure.Message != want || ended.Cost != 0 {
		t.Errorf("failure %+v, cost %v", ended.Failure, ended.Cost)
	}
	if len(b.Async.Submits())+len(b.Sync.Submits()) > 0 {
		t.Error("something was submitted")
	}
}

// A file that makes a reader panic costs its own task a step, not the process
// all others'.
func TestJudgeSurvivesAPanic(t *testing.T) {
	t.Parallel()
	b := setup(t, naming(input("image_urls[0]", anImage), input("image_urls[1]", anImage)))
	b.Fetcher.OnFetch = func(context.Context, string, string) (io.ReadCloser, int64, error) {
		return io.NopCloser(panicking{}), -1, nil
	}
	_, err := b.judge()
	kind(t, err, mediagate.KindInternal, "", true)
	if j := b.verdict(); j.Over || len(j.Passed) > 0 {
		t.Errorf("%+v", j)
	}
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("index out of range") }
