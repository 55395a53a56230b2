package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mediagate/mediagate"
)

const gifFile = "GIF89a\x01\x00\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x00;"

// upload mirrors a small file into a store that answers as told.
func upload(t *testing.T, answer http.HandlerFunc) error {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	s := openTest(t, func(c *Config) { c.Endpoint = server.URL })
	_, err := s.Mirror(t.Context(), "results/t/1/0", opened(strings.NewReader(gifFile), -1), Limits{Media: "image"})
	return err
}

// Over plain HTTP, too, a file is sent as it is, and guarded by the hash that the
// signature covers.
func TestUploadIsPlain(t *testing.T) {
	t.Parallel()
	var got http.Header
	var body []byte
	hash := sha256.Sum256([]byte(gifFile))
	sum := hex.EncodeToString(hash[:])
	err := upload(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusOK)
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"X-Amz-Content-Sha256": sum,
		"X-Amz-Checksum-Crc32": "",
		"Content-Encoding":     "",
		"Content-Type":         "image/gif",
		"Content-Disposition":  `inline; filename="t-0.gif"`,
	} {
		if got.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Get(name), want)
		}
	}
	if string(body) != gifFile {
		t.Errorf("the file arrives as %q", body)
	}
}

func TestUploadRetriesAreBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		calls  int32
		code   string
	}{
		"failing":  {http.StatusServiceUnavailable, maxCallTries, CodeStorageAway},
		"refusing": {http.StatusForbidden, 1, CodeStorageRefused},
		"moved":    {http.StatusTemporaryRedirect, 1, CodeStorageRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			err := upload(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				w.Header().Set("Location", "http://elsewhere.example.com/")
				w.WriteHeader(test.status)
			})
			var e *mediagate.Error
			if !errors.As(err, &e) || e.Kind != mediagate.KindUnavailable || e.Code != test.code {
				t.Errorf("got %v, want kind unavailable, code %s", err, test.code)
			}
			if got := calls.Load(); got != test.calls {
				t.Errorf("%d calls, want %d", got, test.calls)
			}
		})
	}
}
