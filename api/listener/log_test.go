package listener

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// take returns what was written since it was called last.
func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.Reset()
	return b.String()
}

// A SampledLog tells the first at once, and of others how many they were.
func TestTally(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		counted := NewSampledLog(slog.New(slog.NewTextHandler(&out, nil)), "again")
		lines := func() []string {
			synctest.Wait()
			return strings.Split(strings.TrimSpace(out.take()), "\n")
		}
		for i := range 1000 {
			counted.Count(slog.Int("i", i))
		}
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "level=WARN msg=again i=0 times=1") {
			t.Errorf("%q", got)
		}
		time.Sleep(SampleEvery)
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "i=999 times=999") {
			t.Errorf("%q", got)
		}
		time.Sleep(3 * SampleEvery)
		counted.Count()
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "times=1") {
			t.Errorf("after a rest: %q", got)
		}
	})
}

// What net/http says of itself is cut, and no more than it may be.
func TestServerLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		server := NewServerLog(slog.New(slog.NewTextHandler(&out, nil)))
		for range 100 {
			server.Printf("http: %s", strings.Repeat("x", 2*longestServerLine))
		}
		if text := out.take(); strings.Count(text, "level=WARN") != 1 || len(text) > longestServerLine+200 {
			t.Errorf("%d bytes: %.300s", len(text), text)
		}
		time.Sleep(2 * SampleEvery)
		synctest.Wait()
		out.take()
		server.Print("http: again")
		if text := out.take(); !strings.Contains(text, `says="http: again" times=1`) {
			t.Error(text)
		}
		time.Sleep(2 * SampleEvery)
	})
}
