package media

import (
	"errors"
	"io"
	"time"
)

const (
	// stallLimit is how long the vendor's file server may keep silent.
	stallLimit = 30 * time.Second
	// Of each paceLook that is spent on waiting for its bytes, paceLeast have to
	// come: some 9 kB/s, of which a picture of 5 MiB takes ten minutes. Whoever is
	// slower than that keeps everybody else's permit for a file that nobody would wait
	// for. Nothing is asked of the end of a file, nor of one that is shorter.
	paceLook  = time.Minute
	paceLeast = 512 << 10
)

// Source reads a vendor's file. It remembers whether reading failed, so that the blame
// for a broken copy is known, and gives up on a server that is silent, or that sends a
// drop at a time. Time counts while a read lasts: that our bucket or our memory is slow
// is no fault of the server's.
type Source struct {
	r     io.ReadCloser
	read  int64
	half  int64
	past  func()      // called by each read beyond half of the file; nil: nothing is
	stall *time.Timer // runs while a read does
	err   error

	waited time.Duration // of this paceLook
	came   int64         // within it

	patience *time.Duration // with all such files' servers, of which reads use up a part; nil: no bound
}

// errTrickle says that a server used up the time that there was for it.
var errTrickle = errors.New("the file came too slowly")

// NewSource reads from r. It calls giveUp once the server has been silent for too long.
func NewSource(r io.ReadCloser, giveUp func()) *Source {
	s := &Source{r: r, stall: time.AfterFunc(stallLimit, giveUp)}
	s.stall.Stop()
	return s
}

// Half has f called by each read beyond half of the length.
func (s *Source) Half(length int64, f func()) { s.half, s.past = length/2, f }

// Share bounds the file by a time that it shares with others, of which its reads use up
// a part.
func (s *Source) Share(patience *time.Duration) { s.patience = patience }

// Err is why reading failed; nil where it did not.
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

// trickles reports that a paceLook has ended with too few bytes. A read counts for
// no longer than it may last: a process that was stopped blames nobody.
func (s *Source) trickles(n int64, took time.Duration) bool {
	s.waited, s.came = s.waited+took, s.came+n
	if s.waited < paceLook {
		return false
	}
	slow := s.came < paceLeast
	s.waited, s.came = 0, 0
	return slow
}

// Close hangs up.
func (s *Source) Close() error { return s.r.Close() }

// Incoming is a file that arrives with a vendor's answer. It remembers whether reading
// failed, so that the adapter gets its own error back. The adapter closes what it reads
// from.
type Incoming struct {
	io.Reader
	Err error // why reading failed; nil where it did not
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
