package media_test

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mediagate/mediagate/media"
	"github.com/mediagate/mediagate/sandbox/sample"
)

func readAll(tb testing.TB, r io.Reader) []byte {
	tb.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// TestArchive checks that stems become an archive that other programs read, with safe file names.
func TestArchive(t *testing.T) {
	t.Parallel()
	vocals, drums := readAll(t, sample.MP3(2)), readAll(t, sample.WAV(3))
	var archive media.Archive
	for i, name := range []string{"vocals", "Drums", "../../etc/passwd", "vocals", "VOCALS", "", strings.Repeat("é", 200), "a\x00b:c|d\\e"} {
		file := vocals
		if i == 1 {
			file = drums
		}
		archive.Stems = append(archive.Stems, media.Stem{Name: name, Index: i, Open: func(context.Context) (io.ReadCloser, int64, error) {
			return io.NopCloser(bytes.NewReader(file)), int64(len(file)), nil
		}})
	}
	body, length, err := archive.Open(t.Context())
	if err != nil || length != -1 {
		t.Fatalf("a length of %d, %v", length, err)
	}
	defer body.Close()
	file := readAll(t, body)
	if _, err := archive.Fault(); err != nil {
		t.Fatal(err)
	}
	read, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, f := range read.File {
		names = append(names, f.Name)
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		want := vocals
		if i == 1 {
			want = drums
		}
		if !bytes.Equal(readAll(t, r), want) {
			t.Errorf("%s is another file", f.Name)
		}
	}
	want := []string{
		"vocals.mp3", "Drums.wav", "______etc_passwd.mp3", "vocals-2.mp3", "VOCALS-3.mp3", "stem-6.mp3", strings.Repeat("é", 64) + ".mp3", "a_b_c_d_e.mp3",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	unzips(t, file)
}

// unzips tests an archive with unzip, if it is installed.
func unzips(t *testing.T, file []byte) {
	t.Helper()
	unzip, err := exec.LookPath("unzip")
	if err != nil {
		return
	}
	path := filepath.Join(t.TempDir(), "stems.zip")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), unzip, "-t", path).CombinedOutput(); err != nil {
		t.Errorf("unzip -t: %v\n%s", err, out)
	}
}
