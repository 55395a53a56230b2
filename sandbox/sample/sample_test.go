package sample_test

import (
	"bytes"
	"encoding/binary"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/sandbox/sample"
)

func TestVideo(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spec sample.VideoSpec
		want string
	}{
		"cropped": {sample.VideoSpec{Width: 1080, Height: 1920, Seconds: 4, Watermark: true}, "h264 1080x1920 96 frames"},
		"4k":      {sample.VideoSpec{Width: 3840, Height: 2160, Seconds: 1}, "h264 3840x2160 24 frames"},
		"sound":   {sample.VideoSpec{Width: 1280, Height: 720, Seconds: 5, Sound: true}, "h264 1280x720 120 frames, aac 215 frames"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := sample.Video(tc.spec)
			if !bytes.Equal(file, sample.Video(tc.spec)) {
				t.Error("two files of one spec differ")
			}
			if got := boxes(t, file); !cmp.Equal(got, []string{"ftyp", "moov", "mdat"}) {
				t.Errorf("boxes %v", got)
			}
			if got := movieSeconds(t, file); got != tc.spec.Seconds {
				t.Errorf("index says %d s, want %d", got, tc.spec.Seconds)
			}
			if testing.Short() {
				return
			}
			if got := probe(t, file); got != tc.want {
				t.Errorf("ffprobe sees %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPadded(t *testing.T) {
	t.Parallel()
	video := sample.Video(sample.VideoSpec{Width: 640, Height: 360, Seconds: 1})
	image := sample.Image(512, 512)
	const full = 1<<20 + 12
	cases := map[string]struct {
		file       []byte
		size, want int64
	}{
		"unasked":                 {video, 0, int64(len(video))},
		"shorter":                 {video, 5, int64(len(video))},
		"mp4 one byte":            {video, int64(len(video)) + 1, int64(len(video)) + 8},
		"mp4 more":                {video, 3_000_001, 3_000_001},
		"png one byte":            {image, int64(len(image)) + 1, int64(len(image)) + 12},
		"png full chunk":          {image, int64(len(image)) + full, int64(len(image)) + full},
		"png a byte over a chunk": {image, int64(len(image)) + full + 1, int64(len(image)) + full + 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := io.ReadAll(sample.Padded(tc.file, tc.size))
			if err != nil {
				t.Fatal(err)
			}
			if int64(len(got)) != tc.want {
				t.Fatalf("%d bytes, want %d", len(got), tc.want)
			}
			if bytes.HasPrefix(got, []byte("\x89PNG")) {
				if _, err := png.Decode(bytes.NewReader(got)); err != nil {
					t.Errorf("no PNG any more: %v", err)
				}
				return
			}
			boxes(t, got)
			if !testing.Short() {
				probe(t, got)
			}
		})
	}
}

func TestPaddedNeedsNoMemory(t *testing.T) {
	t.Parallel()
	video := sample.Video(sample.VideoSpec{Width: 640, Height: 360, Seconds: 1})
	const size = 20 << 30
	file := sample.Padded(video, size)
	if file.Size() != size {
		t.Fatalf("%d bytes, want %d", file.Size(), int64(size))
	}
	// Beyond 4 GiB the box needs its long form: 1, "free", then 64 bits.
	header := make([]byte, 16)
	if _, err := file.ReadAt(header, int64(len(video))); err != nil {
		t.Fatal(err)
	}
	if got := binary.BigEndian.Uint64(header[8:]); got != size-uint64(len(video)) || string(header[:8]) != "\x00\x00\x00\x01free" {
		t.Errorf("header %x says %d", header, got)
	}
	tail := make([]byte, 10)
	if n, err := file.ReadAt(tail, size-4); n != 4 || err != io.EOF {
		t.Errorf("at the end read %d, %v", n, err)
	}
}

// boxes returns the names of the top-level boxes and checks that they fill the file.
func boxes(t *testing.T, file []byte) []string {
	t.Helper()
	var names []string
	for len(file) > 0 {
		if len(file) < 8 {
			t.Fatalf("%d bytes after the last box", len(file))
		}
		size := binary.BigEndian.Uint32(file)
		if size < 8 || int(size) > len(file) {
			t.Fatalf("box %q has size %d of %d", file[4:8], size, len(file))
		}
		names = append(names, string(file[4:8]))
		file = file[size:]
	}
	return names
}

func movieSeconds(t *testing.T, file []byte) int {
	t.Helper()
	at := bytes.Index(file, []byte("mvhd"))
	if at < 0 {
		t.Fatal("no mvhd")
	}
	scale, length := binary.BigEndian.Uint32(file[at+16:]), binary.BigEndian.Uint32(file[at+20:])
	return int(length / scale)
}

// probe decodes the whole file with ffprobe, which make deps installs.
func probe(t *testing.T, file []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.mp4")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "ffprobe", "-v", "error", "-count_frames",
		"-show_entries", "stream=codec_name,width,height,nb_read_frames", "-of", "csv=p=0", path).CombinedOutput()
	if err != nil {
		t.Fatalf("ffprobe: %v: %s", err, out)
	}
	var parts []string
	for l := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(l), ",")
		switch len(f) {
		case 4:
			parts = append(parts, f[0]+" "+f[1]+"x"+f[2]+" "+f[3]+" frames")
		case 2:
			parts = append(parts, f[0]+" "+f[1]+" frames")
		default:
			t.Fatalf("ffprobe complains: %s", out)
		}
	}
	return strings.Join(parts, ", ")
}
