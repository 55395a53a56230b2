package activities

import (
	"errors"
	"io"
	"time"

	"github.com/mediagate/mediagate/failpoint"
)

const (
	// stallLimit is how long the vendor's file server may keep silent.
	stallLimit = 30 * time.Second
	// Of each paceLook that is spent on waiting for its bytes, paceLeast have to
	// come: some 9 kB/s, of which a picture of 5 MiB takes ten minutes. Whoever is
	// slower than that keeps everybody else's place for a file that nobody would wait
	// for. Nothing is asked of the end of a file, nor of one that is shorter.
	paceLook  = time.Minute
	paceLeast = 512 << 10
)

// source remembers whether reading failed, so that the blame for a broken
// copy is known, gives up on a server that keeps silent or that sends a drop at a
// time, and passes the half-way failpoint. Time counts while a read lasts: that our
// bucket or our memory is slow is no fault of the server's.
type source struct {
	r     io.ReadCloser
	read  int64
	half  int64
	stall *time.Timer // runs while a read does
	err   error

	waited time.Duration // of this paceLook
	came   int64         // within it

	patience *time.Duration // with all such files' servers, of which reads use up a part; nil: no bound
}

// errTrickle says that a server used up the time that there was for it.
var errTrickle = errors.New("the file came too slowly")

func newSource(r io.ReadCloser, half int64, giveUp func()) *source {
	s := &source{r: r, half: half, stall: time.AfterFunc(stallLimit, giveUp)}
	s.stall.Stop()
	return s
}

func (s *source) Read(p []byte) (int, error) {
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
	if s.read > s.half {
		failpoint.Hit(failpoint.MirrorHalf)
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
func (s *source) trickles(n int64, took time.Duration) bool {
	s.waited, s.came = s.waited+took, s.came+n
	if s.waited < paceLook {
		return false
	}
	slow := s.came < paceLeast
	s.waited, s.came = 0, 0
	return slow
}

// Close hangs up.
func (s *source) Close() error { return s.r.Close() }
