package mediainfo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// endless is a file that goes on as it does.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.read += len(p)
	return len(p), nil
}

func TestInspect(t *testing.T) {
	t.Parallel()
	trak := box("trak", tkhd(5000, 640<<16, 360<<16, upright), mdia("vide", 12800, 64000))
	ftyp := box("ftyp", []byte("isom\x00\x00\x02\x00isommp41"))
	sound := box("trak", tkhd(9000, 0, 0, upright), mdia("soun", 8000, 1))
	png := read(t, "picture.png")
	vast := bytes.Clone(png)
	binary.BigEndian.PutUint32(vast[16:], 30_000)
	binary.BigEndian.PutUint32(vast[20:], 30_000)
	binary.BigEndian.PutUint32(vast[29:], crc32.ChecksumIEEE(vast[12:29]))
	for name, c := range map[string]struct {
		file   []byte
		format string
		info   Info
		err    error
	}{
		"png":                     {file: png, format: "png", info: Info{30, 16, 0}},
		"jpeg":                    {file: read(t, "picture.jpg"), format: "jpeg", info: Info{30, 16, 0}},
		"gif":                     {file: read(t, "picture.gif"), format: "gif", info: Info{30, 16, 0}},
		"webp":                    {file: read(t, "lossless.webp"), format: "webp", info: Info{30, 16, 0}},
		"avif":                    {file: read(t, "picture.avif"), format: "avif"},
		"movie box first":         {file: read(t, "front.mp4"), format: "mp4", info: Info{64, 36, 1.5}},
		"movie box last":          {file: read(t, "tail.mp4"), format: "mp4", info: Info{64, 36, 1.5}},
		"one track":               {file: join(ftyp, box("moov", mvhd(1000, 5000), trak)), format: "mp4", info: Info{640, 360, 5}},
		"mov":                     {file: read(t, "film.mov"), format: "mov", info: Info{64, 36, 1.5}},
		"fragments":               {file: read(t, "fragmented.mp4"), format: "mp4", info: Info{64, 36, 1.628}},
		"webm":                    {file: read(t, "film.webm"), format: "webm"},
		"sound":                   {file: read(t, "sound.mp3"), format: "mp3", info: Info{0, 0, 0.2}},
		"a bomb":                  {file: vast, err: Unreadable("is 30000 × 30000 pixels: at most 16384 a side and 200000000 in all are allowed")},
		"bytes behind the end":    {file: append(bytes.Clone(png), "<script>"...), err: Unreadable("goes on after the end of the image")},
		"nothing":                 {err: unknownFormat},
		"a page":                  {file: []byte("<!DOCTYPE html><html><body>log in"), err: unknownFormat},
		"packed":                  {file: append([]byte("\x1f\x8b\x08"), make([]byte, 100)...), err: unknownFormat},
		"no movie box":            {file: join(ftyp, box("mdat", make([]byte, 5000))), err: noMovie},
		"cut before it":           {file: join(ftyp, sized(5000, "mdat", make([]byte, 99))), err: noMovie},
		"cut in it":               {file: join(ftyp, box("moov", mvhd(1000, 5000), trak)[:200]), err: unreadable},
		"the media hides it":      {file: join(ftyp, sized(0, "mdat"), box("moov", mvhd(1000, 5000), trak)), err: noMovie},
		"no tracks":               {file: join(ftyp, box("moov", mvhd(1000, 5000))), err: noPictures},
		"a track of sound alone":  {file: join(ftyp, box("moov", mvhd(1000, 5000), sound)), err: noPictures},
		"fragments that are none": {file: join(ftyp, box("moov", mvhd(1000, 0), box("mvex"), box("trak", tkhd(0, 640<<16, 360<<16, upright), mdia("vide", 1000, 0)))), format: "mp4", info: Info{640, 360, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for way, r := range map[string]io.Reader{"at once": bytes.NewReader(c.file), "byte by byte": iotest.OneByteReader(bytes.NewReader(c.file))} {
				f, err := Inspect(r)
				if !errors.Is(err, c.err) {
					t.Fatalf("%s: %v, want %v", way, err, c.err)
				}
				if diff := cmp.Diff(Facts{Info: c.info}.Info, f.Info); diff != "" || f.Format.Word() != c.format {
					t.Errorf("%s: %s (-want +got):\n%s", way, f.Format.Word(), diff)
				}
			}
		})
	}
}

// TestInspectPassesErrorsOn checks that an error of the reader is returned, whatever the file
// contains.
func TestInspectPassesErrorsOn(t *testing.T) {
	t.Parallel()
	reset := errors.New("reset")
	for name, file := range map[string][]byte{
		"at once": nil, "in an image": read(t, "picture.png")[:20], "in a film": read(t, "tail.mp4")[:3500],
	} {
		if _, err := Inspect(io.MultiReader(bytes.NewReader(file), iotest.ErrReader(reset))); !errors.Is(err, reset) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestInspectReadsNoFurther checks that an image is read to its end, and a film to the end of its
// movie box.
func TestInspectReadsNoFurther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file []byte
		most int
	}{
		"an image":                     {read(t, "picture.jpg"), 64 << 10},
		"a film":                       {read(t, "front.mp4"), 64 << 10},
		"an image that is metadata":    {append([]byte("\xff\xd8"), bytes.Repeat(append([]byte("\xff\xef\xff\xff"), make([]byte, 0xffff-2)...), 40)...), 64 << 10},
		"a movie box that is not open": {join(box("ftyp", []byte("isom\x00\x00\x02\x00isommp41")), sized(100, "moov")), 64 << 10},
	} {
		rest := new(endless)
		_, _ = Inspect(io.MultiReader(bytes.NewReader(c.file), rest))
		if rest.read > c.most {
			t.Errorf("%s: read %d bytes behind it", name, rest.read)
		}
	}
}

// TestFragments checks that the length of a fragmented film is that of its picture samples, from
// the first to the last, including those in the movie box. Inputs and results give the same
// length.
func TestFragments(t *testing.T) {
	t.Parallel()
	const pictures, sound = 1, 2
	ftyp := box("ftyp", []byte("isom\x00\x00\x02\x00isommp41"))
	defaults := box("trex", words(0, pictures, 1, 40, 0, 0))
	film := func(fragments ...[]byte) []byte {
		trak := box("trak", tkhd(0, 640<<16, 360<<16, upright), mdia("vide", 1000, 0))
		return append(join(ftyp, box("moov", mvhd(1000, 0), box("mvex", defaults), trak)), join(fragments...)...)
	}
	// begun has a second of samples in its movie box; stated has none there,
	// though the movie box says how long all of it is.
	begun := func(d uint32, fragments ...[]byte) []byte {
		trak := box("trak", tkhd(d, 640<<16, 360<<16, upright), mdia("vide", 1000, d, 25, 40))
		return append(join(ftyp, box("moov", mvhd(1000, d), trak, box("mvex", defaults)), box("mdat", make([]byte, 99))), join(fragments...)...)
	}
	stated := func(extends []byte, fragments ...[]byte) []byte {
		trak := box("trak", tkhd(9000, 640<<16, 360<<16, upright), mdia("vide", 1000, 9000))
		return append(join(ftyp, box("moov", mvhd(1000, 9000), trak, extends)), join(fragments...)...)
	}
	traf := func(track uint32, boxes ...[]byte) []byte {
		return box("moof", box("traf", append([][]byte{box("tfhd", words(0x20000, track))}, boxes...)...))
	}
	for name, c := range map[string]struct {
		file []byte
		want float64
	}{
		"the film's default":       {film(traf(pictures, box("trun", words(0, 50)))), 2},
		"the fragment's own":       {film(box("moof", box("traf", box("tfhd", words(8|1, pictures, 0, 0, 20)), box("trun", words(1, 50, 0))))), 1},
		"each sample's":            {film(traf(pictures, box("trun", words(0x100|0x200|5, 3, 0, 0, 100, 7, 200, 7, 300, 7)))), 0.6},
		"runs add up":              {film(traf(pictures, box("trun", words(0, 10)), box("trun", words(0, 10)))), 0.8},
		"fragments add up":         {film(traf(pictures, box("trun", words(0, 10))), traf(pictures, box("trun", words(0, 10)))), 0.8},
		"from the first":           {film(traf(pictures, box("tfdt", words(0, 5000)), box("trun", words(0, 10))), traf(pictures, box("tfdt", words(0, 5400)), box("trun", words(0, 10)))), 0.8},
		"a gap counts":             {film(traf(pictures, box("tfdt", words(0, 0)), box("trun", words(0, 10))), traf(pictures, box("tfdt", words(1<<24, 0, 5000)), box("trun", words(0, 10)))), 5.4},
		"sound does not count":     {film(traf(pictures, box("trun", words(0, 10))), traf(sound, box("trun", words(0x100, 1, 90000)))), 0.4},
		"more samples than stated": {film(traf(pictures, box("trun", words(0x100, 1, 100, 100, 100)))), 0.1},
		"fewer than stated":        {film(traf(pictures, box("trun", words(0x100, 9, 100, 100)))), 0.2},
		"beyond belief":            {film(traf(pictures, box("trun", words(0, 1<<31)))), 0},
		"behind the movie box":     {begun(1000, traf(pictures, box("tfdt", words(0, 1000)), box("trun", words(0, 25))), traf(pictures, box("tfdt", words(0, 2000)), box("trun", words(0, 50)))), 4},
		"behind it, no positions":  {begun(1000, traf(pictures, box("trun", words(0, 25))), traf(pictures, box("trun", words(0, 50)))), 4},
		"behind it, of sound":      {begun(1000, traf(sound, box("trun", words(0x100, 1, 90000)))), 1},
		"after it, unstated":       {begun(1000, traf(sound), box("moof", box("traf", box("tfhd", words(0x20008, pictures, 0)), box("trun", words(0, 25))))), 0},
		"after an unstated one":    {begun(0, traf(pictures, box("trun", words(0, 25)))), 0},
		"some unstated":            {film(traf(pictures, box("trun", words(0, 10))), box("moof", box("traf", box("tfhd", words(0x20008, pictures, 0)), box("trun", words(0, 25))))), 0},
		"none come":                {begun(1000), 1},
		"fewer than announced":     {stated(box("mvex", defaults), traf(pictures, box("trun", words(0, 50)))), 2},
		"the sum is stated":        {stated(box("mvex", box("mehd", words(0, 5000)), defaults), traf(pictures, box("trun", words(0, 50)))), 5},
		"fragments of no movie":    {stated(nil, traf(pictures, box("trun", words(0, 50)))), 9},
		"short boxes":              {film(box("moof", box("traf", box("tfhd"), box("tfdt", words(0)), box("trun", words(0)), box("trun")))), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, r := range []io.Reader{bytes.NewReader(c.file), iotest.OneByteReader(bytes.NewReader(c.file))} {
				if f, err := Inspect(r); err != nil || f.Duration != c.want {
					t.Errorf("%v seconds (%v), want %v", f.Duration, err, c.want)
				}
			}
			for _, piece := range []int{1, len(c.file)} {
				if got := probe(mp4, c.file, piece).Duration; got != c.want {
					t.Errorf("as a result, in pieces of %d: %v seconds, want %v", piece, got, c.want)
				}
			}
		})
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	got := [][]string{Words(ClassImage), Words(ClassVideo), Words(ClassAudio)}
	want := [][]string{{"png", "jpeg", "webp", "gif", "avif"}, {"mp4", "mov", "webm"}, {"mp3", "wav", "m4a", "ogg", "flac", "aac"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzInspect(f *testing.F) {
	for _, name := range []string{"front.mp4", "tail.mp4", "film.mov", "fragmented.mp4", "picture.png", "picture.jpg", "picture.gif", "picture.webp"} {
		f.Add(read(f, name))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		whole, err := Inspect(bytes.NewReader(file))
		cut, errCut := Inspect(iotest.OneByteReader(bytes.NewReader(file)))
		if whole != cut || !errors.Is(errCut, err) {
			t.Errorf("%+v, %v whole; %+v, %v byte by byte", whole, err, cut, errCut)
		}
		if u := Unreadable(""); err != nil && !errors.As(err, &u) {
			t.Errorf("a file that is there is no fault of its reader's: %v", err)
		}
	})
}
