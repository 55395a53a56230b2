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

// What net/http says of itself are warnings, in a bounded number.
func TestServerLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		server := NewServerLog(slog.New(slog.NewTextHandler(&out, nil)))
		for range 100 {
			server.Printf("http: %s", strings.Repeat("x", 2*longestServerLine))
		}
		if n := strings.Count(out.String(), "level=WARN"); n != serverLinesAtOnce || out.Len() > serverLinesAtOnce*(longestServerLine+200) {
			t.Errorf("%d lines of %d bytes", n, out.Len())
		}
		out.Reset()
		time.Sleep(time.Second)
		server.Print("http: again")
		if !strings.Contains(out.String(), `says="http: again" left_out=90`) {
			t.Errorf("%s", out.String())
		}
	})
}
