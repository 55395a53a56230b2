package sample_test

import (
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mediagate/mediagate/media/mediainfo"
	"github.com/mediagate/mediagate/sandbox/sample"
)

func TestSounds(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(float64) *io.SectionReader{"wav": sample.WAV, "mp3": sample.MP3} {
		for _, seconds := range []float64{0.1, 2.5, 240} {
			t.Run(name+" of "+strconv.FormatFloat(seconds, 'g', -1, 64), func(t *testing.T) {
				t.Parallel()
				f, err := mediainfo.Inspect(make(seconds))
				if err != nil || f.Format.Word() != name || math.Abs(f.Duration-seconds) > 0.014 {
					t.Errorf("%+v (%v), want %s of %v seconds", f, err, name, seconds)
				}
				playsAs(t, make(seconds), name, seconds)
			})
		}
	}
}

// Zeros at the end make a sound larger, but not longer.
func TestExtended(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(float64) *io.SectionReader{"wav": sample.WAV, "mp3": sample.MP3} {
		sound := make(1)
		for want, grown := range map[int64]*io.SectionReader{
			sound.Size():     sample.Extended(make(1), 1),
			sound.Size() + 1: sample.Extended(make(1), sound.Size()+1),
			8 << 20:          sample.Extended(make(1), 8<<20),
		} {
			f, err := mediainfo.Inspect(grown)
			if err != nil || f.Format.Word() != name || math.Abs(f.Duration-1) > 0.014 || grown.Size() != want {
				t.Errorf("%s of %d bytes, want %d: %+v (%v)", name, grown.Size(), want, f, err)
			}
		}
	}
}

// playsAs checks the length of a file with ffprobe, which make deps installs. Short tests skip
// it.
func playsAs(t *testing.T, file io.Reader, ext string, seconds float64) {
	t.Helper()
	if testing.Short() {
		return
	}
	path := filepath.Join(t.TempDir(), "sound."+ext)
	all, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", path).CombinedOutput()
	if got, bad := strconv.ParseFloat(strings.TrimSpace(string(out)), 64); err != nil || bad != nil || math.Abs(got-seconds) > 0.03 {
		t.Errorf("ffprobe: %v, %s", err, out)
	}
}
