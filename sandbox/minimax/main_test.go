package minimax_test

import (
	"encoding/base64"
	"encoding/binary"
	"io"
	"testing"

	"go.uber.org/goleak"

	"github.com/mediagate/mediagate/sandbox/sample"
	"github.com/mediagate/mediagate/sandbox/sandboxtest"
)

type m = sandboxtest.M

var with = sandboxtest.With

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = map[string]string{"Authorization": "Bearer sk-sandbox-minimax"}

func call(t *testing.T, b *sandboxtest.Sandbox, method, path string, body any) sandboxtest.Answer {
	t.Helper()
	return b.Call(t, method, "/minimax"+path, key, body)
}

const picture = "https://cdn.example.com/a.png"

func uri(mimeType string, raw []byte) string {
	return "data:" + mimeType + ";base64," + base64.StdEncoding.EncodeToString(raw)
}

func pngURI(t *testing.T, width, height int) string {
	t.Helper()
	return uri("image/png", sandboxtest.PNG(t, width, height))
}

// bigURI makes a PNG of so many bytes.
func bigURI(t *testing.T, size int64) string {
	t.Helper()
	raw, err := io.ReadAll(sample.Padded(sample.Image(512, 512), size))
	if err != nil {
		t.Fatal(err)
	}
	return uri("image/png", raw)
}

func videoURI(seconds int) string {
	return uri("video/mp4", sample.Video(sample.VideoSpec{Width: 128, Height: 128, Seconds: seconds}))
}

// wavURI makes silence of so many milliseconds, with so many bytes behind it.
func wavURI(millis, more int) string {
	const rate = 8000
	raw := append([]byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"),
		binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, rate), rate)...)
	raw = append(raw, "\x01\x00\x08\x00data"...)
	raw = binary.LittleEndian.AppendUint32(raw, uint32(millis*rate/1000))
	return uri("audio/wav", append(raw, make([]byte, millis*rate/1000+more)...))
}
