package mediainfo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func read(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// probe feeds the file in pieces.
func probe(f Format, file []byte, piece int) Info {
	p := NewProbe(f)
	for len(file) > 0 {
		n := min(piece, len(file))
		if m, err := p.Write(file[:n]); m != n || err != nil {
			panic("a probe takes everything")
		}
		file = file[n:]
	}
	return p.Info()
}

func TestFiles(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		mime  string
		class Class
		ext   string
		info  Info
	}{
		// The sound of these films lasts 1.6 s: the pictures count.
		"front.mp4":      {"video/mp4", ClassVideo, ".mp4", Info{64, 36, 1.5}},
		"tail.mp4":       {"video/mp4", ClassVideo, ".mp4", Info{64, 36, 1.5}},
		"film.mov":       {"video/quicktime", ClassVideo, ".mov", Info{64, 36, 1.5}},
		"fragmented.mp4": {"video/mp4", ClassVideo, ".mp4", Info{64, 36, 1.628}},
		"film.webm":      {"video/webm", ClassVideo, ".webm", Info{}},
		"picture.png":    {"image/png", ClassImage, ".png", Info{30, 16, 0}},
		"picture.jpg":    {"image/jpeg", ClassImage, ".jpg", Info{30, 16, 0}},
		"picture.gif":    {"image/gif", ClassImage, ".gif", Info{30, 16, 0}},
		"picture.webp":   {"image/webp", ClassImage, ".webp", Info{30, 16, 0}},
		"lossless.webp":  {"image/webp", ClassImage, ".webp", Info{30, 16, 0}},
		"picture.avif":   {"image/avif", ClassImage, ".avif", Info{}},
		"sound.mp3":      {"audio/mpeg", ClassAudio, ".mp3", Info{0, 0, 0.2}},
		"sound.wav":      {"audio/wav", ClassAudio, ".wav", Info{0, 0, 0.02}},
		"sound.m4a":      {"audio/mp4", ClassAudio, ".m4a", Info{0, 0, 1.6}},
		"sound.ogg":      {"audio/ogg", ClassAudio, ".ogg", Info{}},
		"sound.aac":      {"audio/aac", ClassAudio, ".aac", Info{0, 0, 0.256}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := read(t, name)
			f, detected, ok := Detect(file)
			if diff := cmp.Diff(Format{MIME: want.mime, Class: want.class, Ext: want.ext}, f); !ok || diff != "" {
				t.Fatalf("detected %s (-want +got):\n%s", detected, diff)
			}
			for _, piece := range []int{1, 7, 8, 9, 16, 100, len(file)} {
				if diff := cmp.Diff(want.info, probe(f, file, piece)); diff != "" {
					t.Errorf("in pieces of %d (-want +got):\n%s", piece, diff)
				}
			}
			if err := fault(t, file, 1000); err != nil {
				t.Errorf("what an encoder made has a fault: it %v", err)
			}
			// A file that breaks off tells no wrong things.
			for cut := range len(file) {
				got := probe(f, file[:cut], len(file))
				if got != (Info{}) && (got.Width != want.info.Width && got.Width != 0 || got.Duration > max(1.6, want.info.Duration)) {
					t.Errorf("cut at %d: %+v", cut, got)
				}
			}
		})
	}
}

func TestDetectRefuses(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"nothing": "",
		"html":    "<!DOCTYPE html><html>",
		"xhtml":   `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">`,
		"svg":     `<svg xmlns="http://www.w3.org/2000/svg"/>`,
		"json":    `{"code":403}`,
		"pdf":     "%PDF-1.7\n",
		"zip":     "PK\x03\x04",
		"tiff":    "II*\x00\x08\x00\x00\x00",
		"zeros":   string(make([]byte, 5000)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if f, detected, ok := Detect([]byte(head)); ok {
				t.Errorf("%s is taken for %+v", detected, f)
			}
		})
	}
}

var mp4 = Format{MIME: "video/mp4", Class: ClassVideo, Ext: ".mp4"}

func box(id string, payload ...[]byte) []byte {
	body := bytes.Join(payload, nil)
	return append(append(words(uint32(8+len(body))), id...), body...)
}

// longBox writes its size in 64 bits.
func longBox(id string, payload ...[]byte) []byte {
	body := bytes.Join(payload, nil)
	b := append(words(1), id...)
	b = binary.BigEndian.AppendUint64(b, uint64(16+len(body)))
	return append(b, body...)
}

func sized(size uint32, id string, payload ...[]byte) []byte {
	return append(append(words(size), id...), bytes.Join(payload, nil)...)
}

func words(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func mvhd(scale, d uint32) []byte { return box("mvhd", words(0, 0, 0, scale, d), make([]byte, 80)) }

func mvhd1(scale uint32, d uint64) []byte {
	b := binary.BigEndian.AppendUint64(append(words(1<<24), make([]byte, 16)...), 0)[:20]
	b = append(b, words(scale)...)
	return box("mvhd", binary.BigEndian.AppendUint64(b, d), make([]byte, 80))
}

var (
	upright = words(1<<16, 0, 0, 0, 1<<16, 0, 0, 0, 1<<30)
	turned  = words(0, 1<<16, 0, math.MaxUint32-1<<16+1, 0, 0, 0, 0, 1<<30)
)

func tkhd(d, width, height uint32, matrix []byte) []byte {
	return box("tkhd", words(3, 0, 0, 1, 0, d, 0, 0, 0, 0), matrix, words(width, height))
}

func tkhd1(d uint64, width, height uint32) []byte {
	b := append(words(1<<24|3), make([]byte, 24)...)
	b = binary.BigEndian.AppendUint64(b, d)
	return box("tkhd", b, make([]byte, 16), upright, words(width, height))
}

// mdia is the media of a track, with the runs of samples in its table: how many,
// and how long each lasts.
func mdia(handler string, scale, d uint32, runs ...uint32) []byte {
	return box("mdia",
		box("mdhd", words(0, 0, 0, scale, d, 0)),
		box("hdlr", words(0, 0), []byte(handler), make([]byte, 13)),
		box("minf", box("hdlr", words(0, 0), []byte("url "), make([]byte, 13)), box("stbl", box("stsd", make([]byte, 8)), box("stts", words(0, uint32(len(runs)/2)), words(runs...)))),
	)
}

func TestBoxes(t *testing.T) {
	t.Parallel()
	ftyp := box("ftyp", []byte("isom\x00\x00\x02\x00isom"))
	trak := box("trak", tkhd(5000, 640<<16, 360<<16, upright), mdia("vide", 12800, 64000))
	full := Info{640, 360, 5}
	for name, test := range map[string]struct {
		file []byte
		want Info
	}{
		"plain":                     {join(ftyp, box("moov", mvhd(1000, 5000), trak), box("mdat", make([]byte, 99))), full},
		"movie box last":            {join(ftyp, box("mdat", make([]byte, 99)), box("moov", mvhd(1000, 5000), trak)), full},
		"64-bit sizes":              {join(ftyp, longBox("mdat", make([]byte, 99)), longBox("moov", mvhd(1000, 5000), trak)), full},
		"movie box to the end":      {join(ftyp, sized(0, "moov", mvhd(1000, 5000), trak)), full},
		"media to the end":          {join(ftyp, box("moov", mvhd(1000, 5000), trak), sized(0, "mdat", make([]byte, 99))), full},
		"media to the end hides it": {join(ftyp, sized(0, "mdat"), box("moov", mvhd(1000, 5000), trak)), Info{}},
		"version 1":                 {box("moov", mvhd1(90000, 450000), box("trak", tkhd1(450000, 640<<16, 360<<16), mdia("vide", 0, 0))), full},
		"turned by a quarter":       {box("moov", mvhd(1000, 5000), box("trak", tkhd(5000, 640<<16, 360<<16, turned), mdia("vide", 0, 0))), Info{360, 640, 5}},
		"the longest sides": {
			box("moov", box("trak", tkhd(0, 65535<<16, 65535<<16, upright), mdia("vide", 0, 0))), Info{65535, 65535, 0},
		},
		"sides of nothing":           {box("moov", box("trak", tkhd(0, 0, 0, upright), mdia("vide", 0, 0))), Info{}},
		"half pixels are rounded":    {box("moov", mvhd(1000, 5000), box("trak", tkhd(5000, 640<<16-1, 360<<16+1, upright), mdia("vide", 0, 0))), full},
		"sound first":                {box("moov", mvhd(1000, 9000), box("trak", tkhd(9000, 0, 0, upright), mdia("soun", 8000, 1)), trak), full},
		"two films: the first":       {box("moov", mvhd(1000, 9000), trak, box("trak", tkhd(9000, 1<<16, 1<<16, upright), mdia("vide", 1, 9))), full},
		"unknown length: the media":  {box("moov", mvhd(1000, 9000), box("trak", tkhd(math.MaxUint32, 640<<16, 360<<16, upright), mdia("vide", 12800, 64000))), full},
		"no track length: the movie": {box("moov", mvhd(1000, 5000), box("trak", tkhd(0, 640<<16, 360<<16, upright), mdia("vide", 0, 7))), full},
		"fragments: their length":    {box("moov", mvhd(1000, 0), box("mvex", box("mehd", words(0, 5000))), box("trak", tkhd(0, 640<<16, 360<<16, upright), mdia("vide", 1, 0))), full},
		"header after its tracks":    {box("moov", trak, mvhd(1000, 5000)), full},
		"padding in the movie":       {join(ftyp, box("moov", mvhd(1000, 5000), trak, words(0)), box("mdat")), full},
		"second movie box ignored":   {join(box("moov", mvhd(1000, 5000), trak), box("moov", mvhd(1, 9))), full},
		"headers elsewhere":          {join(mvhd(1000, 5000), box("free", trak)), Info{}},
		"no scale":                   {box("moov", mvhd(0, 5000)), Info{}},
		"all ones, version 1":        {box("moov", mvhd1(1000, math.MaxUint64)), Info{}},
		"beyond belief":              {box("moov", mvhd1(1, math.MaxUint64-1)), Info{}},
		"longest believable":         {box("moov", mvhd(1, 1_000_000)), Info{Duration: 1_000_000}},
		"one second more":            {box("moov", mvhd(1, 1_000_001)), Info{}},
		"child over its parent":      {box("moov", sized(500, "mvhd", make([]byte, 92))), Info{}},
		"size below the header":      {join(sized(7, "free"), box("moov", mvhd(1000, 5000))), Info{}},
		"huge 64-bit size":           {join(words(1), []byte("mdat"), words(math.MaxUint32, math.MaxUint32), box("moov", mvhd(1000, 5000))), Info{}},
		"64-bit size below 16":       {join(words(1), []byte("mdat"), words(0, 15), box("moov", mvhd(1000, 5000))), Info{}},
		"short headers":              {box("moov", box("mvhd", words(0)), box("trak", box("tkhd", words(0, 1)), box("mdia", box("hdlr"), box("mdhd", []byte{0})))), Info{}},
		"deep nesting":               {nested(10_000), Info{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, piece := range []int{1, 5, len(test.file)} {
				if diff := cmp.Diff(test.want, probe(mp4, test.file, piece)); diff != "" {
					t.Errorf("in pieces of %d (-want +got):\n%s", piece, diff)
				}
			}
		})
	}
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func nested(depth int) []byte {
	var b []byte
	for i := range depth {
		b = append(b, sized(uint32(8*(depth-i)), [...]string{"moov", "trak", "mdia", "moov"}[i%4])...)
	}
	return b
}

func TestImageHeads(t *testing.T) {
	t.Parallel()
	jpeg := read(t, "picture.jpg")
	// A JPEG whose size comes after much metadata.
	padded := func(n int) []byte {
		b := bytes.Clone(jpeg[:2])
		for range n {
			b = append(append(b, 0xff, 0xef, 0xff, 0xff), make([]byte, 0xffff-2)...)
		}
		return append(b, jpeg[2:]...)
	}
	png := read(t, "picture.png")
	vast := bytes.Clone(png)
	binary.BigEndian.PutUint32(vast[16:], math.MaxInt32) // its checksum is wrong now, too
	for name, test := range map[string]struct {
		mime string
		file []byte
		want Info
	}{
		"metadata of 640 KB":        {"image/jpeg", padded(10), Info{30, 16, 0}},
		"metadata beyond the bound": {"image/jpeg", padded(20), Info{}},
		"vast":                      {"image/png", vast, Info{}},
		"cut":                       {"image/png", png[:20], Info{}},
		"of another type":           {"image/gif", png, Info{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, probe(Format{MIME: test.mime}, test.file, 32<<10)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzProbe holds that no file makes a probe panic, keep much, state what
// cannot be, or depend on how the file is cut.
func FuzzProbe(f *testing.F) {
	for _, name := range []string{"front.mp4", "tail.mp4", "film.mov", "fragmented.mp4", "sound.m4a", "picture.png", "picture.jpg", "picture.gif", "picture.webp"} {
		f.Add(read(f, name), uint16(5))
	}
	f.Add(nested(50), uint16(1))
	f.Fuzz(func(t *testing.T, file []byte, piece uint16) {
		for _, format := range []Format{mp4, {MIME: "image/png"}, {MIME: "image/jpeg"}, {MIME: "image/gif"}, {MIME: "image/webp"}} {
			whole := probe(format, file, len(file))
			if cut := probe(format, file, int(piece)+1); cut != whole {
				t.Errorf("%s: %+v whole, %+v in pieces of %d", format.MIME, whole, cut, piece+1)
			}
			if a, b := faultOf(format, file, max(len(file), 1)), faultOf(format, file, int(piece)+1); !errors.Is(a, b) {
				t.Errorf("%s: %v whole, %v in pieces of %d", format.MIME, a, b, piece+1)
			}
			if whole.Width < 0 || whole.Width > maxSide || whole.Height < 0 || whole.Height > maxSide ||
				!(whole.Duration >= 0 && whole.Duration <= maxSeconds) || (whole.Width == 0) != (whole.Height == 0) {
				t.Errorf("%s: %+v cannot be", format.MIME, whole)
			}
		}
		p := NewProbe(mp4)
		_, _ = p.Write(file)
		if n := len(p.boxes.open); n > 5 {
			t.Errorf("%d boxes are open at once", n)
		}
	})
}
