package vertex_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers"
)

// large starts a vendor whose operation has videos of 64 MiB each. sent counts the bytes that it
// has sent.
func large(t *testing.T, head string, videos int) (url string, sent *atomic.Int64) {
	t.Helper()
	const size = 64 << 20 / 3 * 4
	sent = new(atomic.Int64)
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			_, _ = io.WriteString(w, granted.Body)
			return
		}
		_, _ = io.WriteString(w, head)
		chunk := strings.Repeat("A", 1<<20)
		for i := range videos {
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			_, _ = io.WriteString(w, `{"bytesBase64Encoded":"`)
			for left := size; left > 0; {
				n, err := io.WriteString(w, chunk[:min(left, len(chunk))])
				sent.Add(int64(n))
				if err != nil {
					return
				}
				left -= n
			}
			_, _ = io.WriteString(w, `","mimeType":"video/mp4"}`)
		}
		_, _ = io.WriteString(w, `]}}`)
	}))
	t.Cleanup(vendor.Close)
	return vendor.URL, sent
}

// allocated returns the bytes that f allocates in total.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

const head = `{"name":"` + name + `","done":true,"response":{"videos":[`

// A poll keeps no video, and does not wait for the end of the last possible one. A fetch streams
// the file, whatever its size.
//
//nolint:paralleltest // it measures memory
func TestLargeVideos(t *testing.T) {
	const most = 24 << 20 // far below one video, but enough for the server itself
	s := suite()
	url, sent := large(t, head, 2)
	p := s.Open(t, url, providers.Options{})
	ref := s.Ref
	ref.State = "3 " + owner // three videos are possible, so the poll reads the whole answer
	var report mediagate.Report
	var err error
	if n := allocated(func() { report, err = p.Poll(t.Context(), ref) }); n > most {
		t.Errorf("a poll took %d bytes", n)
	}
	if err != nil || report.Outcome == nil || len(report.Outcome.Media) != 2 {
		t.Fatalf("%+v, %v", report, err)
	}
	sent.Store(0)
	ref.State = "1 " + owner
	report, err = p.Poll(t.Context(), ref)
	if err != nil || report.Outcome == nil || len(report.Outcome.Media) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	if n := sent.Load(); n > 32<<20 {
		t.Errorf("a poll for one video read %d bytes of it", n)
	}
	var read int64
	taken := allocated(func() {
		file, length, openErr := p.(providers.Opener).Open(t.Context(), ref, mediagate.Media{Ref: "1"})
		if openErr != nil || length != -1 {
			t.Fatalf("length %d, %v", length, openErr)
		}
		read, err = io.Copy(io.Discard, file)
		if closeErr := file.Close(); closeErr != nil {
			t.Error(closeErr)
		}
	})
	if err != nil || read != 64<<20/3*3 {
		t.Errorf("%d bytes, %v", read, err)
	}
	if taken > most {
		t.Errorf("a file took %d bytes", taken)
	}
}

// An answer with too many videos costs no more than its length: the adapter does not decode it
// again at each video, and ignores the surplus ones.
//
//nolint:paralleltest // it measures memory
func TestCrowdOfVideos(t *testing.T) {
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			_, _ = io.WriteString(w, granted.Body)
			return
		}
		one := `{"bytesBase64Encoded":"AA=="}`
		_, _ = io.WriteString(w, `{"response":{"videos":[`+strings.Repeat(one+",", 5000)+one+`]},"done":true,"name":"`+name+`"}`)
	}))
	t.Cleanup(vendor.Close)
	s := suite()
	p := s.Open(t, vendor.URL, providers.Options{})
	ref := s.Ref
	ref.State = "2 " + owner
	var report mediagate.Report
	var err error
	// Decoding the answer at each video would take hundreds of megabytes.
	if n := allocated(func() { report, err = p.Poll(t.Context(), ref) }); n > 64<<20 {
		t.Errorf("a poll took %d bytes", n)
	}
	if err != nil || report.Outcome == nil || len(report.Outcome.Media) != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}
