package api

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/limit"
)

const (
	startLate     = 2 * time.Second  // from the submit on: a start that waited longer is followed without a rest
	startPatience = 5 * time.Second  // from the submit on: then the wake scan starts the task
	startDeadline = 2 * time.Second  // of one start
	startPause    = time.Second      // of a starter whose start failed
	manySubmits   = 4                // answered during a start: with more than that, the starter rests
	crowdRest     = 40               // times as long as the start took,
	longestRest   = time.Second / 4  // but no longer than that
	reportEvery   = 10 * time.Second // between two lines about what is left to the wake scan
)

// starts are the runs that are to be started, of tasks whose clients are
// acknowledged. The row is the promise: its wake is due startPatience after the
// submit, and the wake scan starts what has no run by then (D2). A start from here
// is the fast path, and may get lost at any moment.
//
// Limits.Starts bounds them, Limits.Starters those under way, accounts in turns. A
// submit never waits for a start: without room the row is left to the wake scan. Beside
// many submits starters rest most of the time, since a start costs many times what an
// answer does where Temporal is on the same cores: what a burst brings is started when
// it is over, or has waited for startLate.
type starts struct {
	starter  Starter
	limits   *limit.Process
	log      *slog.Logger
	life     context.Context
	end      context.CancelFunc
	answered atomic.Int64 // submits, so far

	mu      sync.Mutex
	waiting map[string]struct{} // ids of tasks
	open    int                 // that wait or are under way
	idle    chan struct{}       // closed while there are none
	closed  bool

	left      int         // to the wake scan, since the last report
	cause     error       // of the last of them
	reporting *time.Timer // nil: nothing to report
}

func newStarts(starter Starter, limits *limit.Process, log *slog.Logger) *starts {
	s := &starts{starter: starter, limits: limits, log: log, waiting: map[string]struct{}{}, idle: make(chan struct{})}
	close(s.idle)
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// add has the run of a task started whose row was made at that time. It returns at
// once.
func (s *starts) add(t mediagate.Task, made time.Time) {
	lease, ok := s.limits.Starts.TryAcquire(t.AccountID, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !ok || s.closed {
		lease.Release()
		s.leave(nil)
		return
	}
	if s.open == 0 {
		s.idle = make(chan struct{})
	}
	s.open++
	s.waiting[t.ID] = struct{}{}
	go s.work(forStart(t), made.Add(startPatience), lease)
}

// holds tells whether the start of a task waits here. The run that it begins reads
// the row, so it needs no signal about what is stored there.
func (s *starts) holds(taskID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, waits := s.waiting[taskID]
	return waits
}

// drain returns when nothing waits any more or ctx ends. As each start is left to the
// wake scan once its patience is over, that takes some seconds at the most.
func (s *starts) drain(ctx context.Context) {
	s.mu.Lock()
	idle, waiting := s.idle, len(s.waiting)
	s.mu.Unlock()
	if waiting > 0 {
		s.log.InfoContext(ctx, "starting what waits before the stop", "tasks", waiting)
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// close leaves what waits to the wake scan. Starts under way are cut off, and count as
// left: nobody knows whether they took effect.
func (s *starts) close() {
	s.mu.Lock()
	s.closed = true
	idle := s.idle
	s.mu.Unlock()
	s.end()
	<-idle
	s.report()
}

// work makes a start once it has its turn, if that is before its time is over.
func (s *starts) work(t mediagate.Task, expiry time.Time, lease *limit.Lease) {
	ctx, cancel := context.WithDeadline(s.life, expiry)
	defer cancel()
	turn, err := s.limits.Starters.Acquire(ctx, t.AccountID, 1)
	s.mu.Lock()
	delete(s.waiting, t.ID)
	s.mu.Unlock()
	if began, answered := time.Now(), s.answered.Load(); err != nil || !began.Before(expiry) {
		s.leaves(nil)
	} else if err := s.start(t); err != nil {
		s.leaves(err)
		s.rest(startPause)
	} else if s.answered.Load()-answered > manySubmits && began.Before(expiry.Add(startLate-startPatience)) {
		s.rest(min(crowdRest*time.Since(began), longestRest))
	}
	turn.Release()
	lease.Release()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open--; s.open == 0 {
		close(s.idle)
	}
}

func (s *starts) rest(d time.Duration) {
	rested := time.NewTimer(d)
	defer rested.Stop()
	select {
	case <-rested.C:
	case <-s.life.Done():
	}
}

// start makes one start. One that fails is not repeated: the error is ambiguous, and
// a task that Temporal refuses must not keep the others.
func (s *starts) start(t mediagate.Task) (err error) {
	ctx, cancel := context.WithTimeout(s.life, startDeadline)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = mediagate.Panicked(p)
			s.log.ErrorContext(ctx, "a start panicked", "task", t.ID, "error", err)
		}
	}()
	if err = s.starter.Start(ctx, t); mediagate.Is(err, mediagate.KindConflict) {
		return nil // the wake scan was first
	}
	return err
}

func (s *starts) leaves(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(cause)
}

// leave counts what is left to the wake scan. The log gets one line for many. It is
// called with the lock held.
func (s *starts) leave(cause error) {
	s.left++
	if cause != nil {
		s.cause = cause
	}
	if s.reporting == nil {
		s.reporting = time.AfterFunc(reportEvery, s.report)
	}
}

func (s *starts) report() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return
	}
	s.reporting.Stop()
	s.log.Warn("runs not started: their wakes are due in seconds", "tasks", s.left, "waiting", len(s.waiting), "error", s.cause)
	s.left, s.cause, s.reporting = 0, nil, nil
}

// forStart is a task without what its start does not need, which may be long.
func forStart(t mediagate.Task) mediagate.Task {
	t.Params, t.Charges, t.Webhook = nil, nil, nil
	t.Plan.Uploads, t.Plan.Inputs, t.Plan.Source = nil, nil, nil
	return t
}
