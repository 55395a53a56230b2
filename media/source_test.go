package media

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestSourcePace checks that a server's pace counts only the time of waiting for its bytes, not
// that of the bucket, and that a file that ends early is not too slow.
func TestSourcePace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		every, rest time.Duration // before a read ends, and before the next one
		bytes       int           // of a read
		size        int
		slow        bool
	}{
		"a drop at a time":              {29 * time.Second, 0, 1, 1000, true},
		"just too slow":                 {time.Second, 0, paceLeast/60 - 10, 20 << 20, true},
		"just fast enough":              {time.Second, 0, paceLeast/60 + 10, 20 << 20, false},
		"a bucket that is slow":         {time.Millisecond, time.Minute, 100, 10_000, false},
		"a small file of a slow server": {25 * time.Second, 0, 100, 200, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				file := bytes.NewReader(make([]byte, c.size))
				s := NewSource(io.NopCloser(readerFunc(func(p []byte) (int, error) {
					time.Sleep(c.every)
					return file.Read(p[:min(len(p), c.bytes)])
				})), func() { t.Error("it is taken for silent") })
				var err error
				for p := make([]byte, 32<<10); err == nil; time.Sleep(c.rest) {
					_, err = s.Read(p)
				}
				if slow := errors.Is(err, errTrickle) && errors.Is(s.Err(), errTrickle); slow != c.slow {
					t.Errorf("it ended with %v, %d bytes unread", err, file.Len())
				}
			})
		})
	}
}
