package media

import (
	"errors"
	"io"
	"time"
)

const (
	// stallLimit is how long the vendor's file server may send nothing.
	stallLimit = 30 * time.Second
	// A server must send paceLeast bytes in each paceLook that Source waits for it: about 9 kB/s, so
	// that a picture of 5 MiB takes ten minutes. A slower server would hold a permit that other
	// files need. The last bytes of a file, and shorter files, have no minimum.
	paceLook  = time.Minute
	paceLeast = 512 << 10
)

// Source reads a vendor's file. It records whether reading failed, so that its caller can tell a
// broken file from a failure of the bucket. It ends a file whose server sends nothing, or too
// little. Only time in Read counts: a slow bucket is not the server's fault.
type Source struct {
	r     io.ReadCloser
	read  int64
	half  int64
	past  func()      // called by each read beyond half of the file; may be nil
	stall *time.Timer // runs while a read does
	err   error

	waited time.Duration // of this paceLook
	came   int64         // within it

	patience *time.Duration // left for all files that share it; nil: no limit
}

// errTrickle means that a file came too slowly.
var errTrickle = errors.New("the file came too slowly")

// NewSource returns a Source that reads from r. It calls giveUp after stallLimit without a byte.
func NewSource(r io.ReadCloser, giveUp func()) *Source {
	s := &Source{r: r, stall: time.AfterFunc(stallLimit, giveUp)}
	s.stall.Stop()
	return s
}

// Half makes each read beyond half of the length call f, which may be nil.
func (s *Source) Half(length int64, f func()) { s.half, s.past = length/2, f }

// Share bounds the file by a time that several files share, in place of the minimum pace. Its reads
// reduce patience.
func (s *Source) Share(patience *time.Duration) { s.patience = patience }

// Err returns the error of reading, if any.
func (s *Source) Err() error { return s.err }

// Read reads from the file.
func (s *Source) Read(p []byte) (int, error) {
	limit, began := stallLimit, time.Now()
	if s.patience != nil {
		if limit = min(limit, *s.patience); limit <= 0 {
			s.err = errTrickle
			return 0, errTrickle
		}
	}
	s.stall.Reset(limit)
	n, err := s.r.Read(p)
	s.stall.Stop()
	took := time.Since(began)
	if s.patience != nil {
		*s.patience -= took
	}
	s.read += int64(n)
	if s.past != nil && s.read > s.half {
		s.past()
	}
	if err == nil && s.patience == nil && s.trickles(int64(n), min(took, stallLimit)) {
		err = errTrickle
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// trickles reports whether a paceLook ended with too few bytes. took is at most stallLimit, so that a
// stopped process does not count against the server.
func (s *Source) trickles(n int64, took time.Duration) bool {
	s.waited, s.came = s.waited+took, s.came+n
	if s.waited < paceLook {
		return false
	}
	slow := s.came < paceLeast
	s.waited, s.came = 0, 0
	return slow
}

// Close closes the connection.
func (s *Source) Close() error { return s.r.Close() }

// Incoming is a file that arrives with a vendor's answer. It records whether reading failed, so that
// the adapter gets its own error back. The adapter closes the reader.
type Incoming struct {
	io.Reader
	Err error // of reading, if it failed
}

// Read reads from the file.
func (i *Incoming) Read(p []byte) (int, error) {
	n, err := i.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		i.Err = err
	}
	return n, err
}

// Close does nothing.
func (i *Incoming) Close() error { return nil }
