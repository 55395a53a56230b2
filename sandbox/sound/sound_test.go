package sound_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mediagate/mediagate/sandbox/sound"
)

// The frames of an MP3 follow each other, and last as long as is wanted.
func TestMP3(t *testing.T) {
	t.Parallel()
	file := sound.MP3(3 * time.Second)
	const frame = 208
	if len(file)%frame != 0 {
		t.Fatalf("%d bytes are no whole frames", len(file))
	}
	for i := 0; i < len(file); i += frame {
		if !bytes.HasPrefix(file[i:], []byte{0xff, 0xfb}) {
			t.Fatalf("no frame at %d", i)
		}
	}
	if seconds := float64(len(file)/frame) * 1152 / 44100; seconds < 3 || seconds > 3.03 {
		t.Errorf("%g seconds", seconds)
	}
}

func TestWAV(t *testing.T) {
	t.Parallel()
	file := sound.WAV(1500 * time.Millisecond)
	if n := binary.LittleEndian.Uint32(file[4:]); int(n)+8 != len(file) {
		t.Errorf("RIFF of %d bytes in %d", n, len(file))
	}
	if n := binary.LittleEndian.Uint32(file[40:]); int(n)+44 != len(file) || n != 24000 {
		t.Errorf("data of %d bytes in %d", n, len(file))
	}
	if bytes.Count(file[44:], []byte{0}) == len(file)-44 {
		t.Error("there is no tone")
	}
}

func TestKind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		head []byte
		want string
	}{
		"mp3":       {sound.MP3(time.Second), "audio/mpeg"},
		"tagged":    {[]byte("ID3\x04"), "audio/mpeg"},
		"wav":       {sound.WAV(time.Second), "audio/wav"},
		"flac":      {[]byte("fLaC"), "audio/flac"},
		"ogg":       {[]byte("OggS"), "audio/ogg"},
		"m4a":       {[]byte("\x00\x00\x00\x20ftypM4A "), "audio/mp4"},
		"text":      {[]byte("<html>"), ""},
		"nothing":   {nil, ""},
		"one byte":  {[]byte{0xff}, ""},
		"webp":      {[]byte("RIFF\x00\x00\x00\x00WEBP"), ""},
		"jpeg":      {[]byte{0xff, 0xd8, 0xff}, ""},
		"a film":    {[]byte("\x00\x00\x00\x20ftypisom"), ""},
		"byte mark": {[]byte{0xff, 0xfe}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, ok := sound.Kind(tc.head); got != tc.want || ok != (tc.want != "") {
				t.Errorf("%q, %v, want %q", got, ok, tc.want)
			}
		})
	}
}

func TestPadded(t *testing.T) {
	t.Parallel()
	file := []byte("song")
	for size, want := range map[int64]string{0: "song", 4: "song", 7: "song\x00\x00\x00"} {
		if err := iotest.TestReader(sound.Padded(file, size), []byte(want)); err != nil {
			t.Error(err)
		}
	}
	if n, err := io.Copy(io.Discard, sound.Padded(file, 1<<24)); n != 1<<24 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
