package media_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	raster "image"
	pngs "image/png"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/media"
	"github.com/mediagate/mediagate/sandbox/sample"
)

var pace = media.Pace{Silence: 15 * time.Second, Whole: 3 * time.Minute}

var anImage = mediagate.MediaBounds{Kind: "image", MinSide: 128}

func input(field string, bounds mediagate.MediaBounds) mediagate.Input {
	return mediagate.Input{Field: field, MediaBounds: bounds}
}

// png is a picture of that size.
func png(width, height int) []byte {
	var b bytes.Buffer
	if err := pngs.Encode(&b, raster.NewGray(raster.Rect(0, 0, width, height))); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// bomb is a file of some bytes that claims to be a picture of that size.
func bomb(width, height uint32) string {
	b := png(1, 1)
	binary.BigEndian.PutUint32(b[16:], width)
	binary.BigEndian.PutUint32(b[20:], height)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return string(b)
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

// TestBounds checks both sides of each bound, and the words about the broken one.
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
				err := pace.Check(t.Context(), c.in, func(context.Context) (io.ReadCloser, int64, error) {
					return io.NopCloser(bytes.NewReader(c.file)), length, nil
				})
				if c.code == "" {
					if err != nil {
						t.Errorf("%s: refused: %v", way, err)
					}
					continue
				}
				e, _ := errors.AsType[*mediagate.Error](err)
				if e == nil || e.Kind != mediagate.KindInvalid || e.Code != string(c.code) || !strings.HasPrefix(e.Message, c.in.Field+" ") || !strings.Contains(e.Message, c.says) {
					t.Errorf("%s: %v, want %s: %s", way, err, c.code, c.says)
				}
			}
		})
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

// TestCheckHangsUp checks that Check ends within its limits, whatever a server does. The bubble's
// clock runs fast.
func TestCheckHangsUp(t *testing.T) {
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
		}, crawls, false, 12 * time.Second},
		"a byte every twenty seconds": {func(ctx context.Context) (io.ReadCloser, int64, error) {
			return &drip{[]byte(bomb(256, 256)), 20 * time.Second, ctx}, -1, nil
		}, silent, true, 16 * time.Second},
		"no answer": {func(ctx context.Context) (io.ReadCloser, int64, error) {
			<-ctx.Done()
			return nil, 0, media.NotOpened("image_urls[0]", mediagate.Errorf(mediagate.KindTransient, "no answer"))
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
				began := time.Now()
				err := pace.Check(t.Context(), input("image_urls[0]", mediagate.MediaBounds{Kind: "video", MinSide: 9}), c.fetch)
				if took := time.Since(began); took > c.most {
					t.Errorf("it took %v", took)
				}
				want := mediagate.KindInvalid
				if c.away {
					want = mediagate.KindTransient
				}
				if e, _ := errors.AsType[*mediagate.Error](err); e == nil || e.Kind != want || e.Message != c.says {
					t.Errorf("%v, want %v: %s", err, want, c.says)
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

// TestCheckBrokenOff checks that a file that breaks off is an error of its server, not of the
// file.
func TestCheckBrokenOff(t *testing.T) {
	t.Parallel()
	err := pace.Check(t.Context(), input("image_urls[0]", anImage), func(context.Context) (io.ReadCloser, int64, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(bomb(256, 256)[:25]), iotest.ErrReader(io.ErrUnexpectedEOF))), 5000, nil
	})
	if e, _ := errors.AsType[*mediagate.Error](err); e == nil || e.Kind != mediagate.KindTransient || e.Message != "image_urls[0] broke off while it was fetched" {
		t.Errorf("%v", err)
	}
}

// TestCheckKeepsLittle checks that Check needs little memory for a file of any size.
func TestCheckKeepsLittle(t *testing.T) {
	t.Parallel()
	const size = 100 << 20
	film := movie(640, 360, 5000)
	tail := film[bytes.Index(film, []byte("moov"))-4:]
	head := slices.Concat(box("ftyp", []byte("isom\x00\x00\x02\x00isommp41")), words(8+size), []byte("mdat"))
	most := 0
	in := input("video_urls[0]", mediagate.MediaBounds{Kind: "video", MinSeconds: 2, MaxBytes: size + 1<<20})
	err := pace.Check(t.Context(), in, func(context.Context) (io.ReadCloser, int64, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(head), io.LimitReader(&asked{&most}, size), bytes.NewReader(tail))), -1, nil
	})
	if err != nil || most > 64<<10 {
		t.Errorf("%v, asked for %d bytes at once", err, most)
	}
}

// asked notes the largest piece that is asked for.
type asked struct{ most *int }

func (a *asked) Read(p []byte) (int, error) {
	*a.most = max(*a.most, len(p))
	clear(p)
	return len(p), nil
}
