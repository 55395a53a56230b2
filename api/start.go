package api

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	mostStarts    = 4096             // that wait; an account has half of them when it is alone
	starters      = 4                // at once: more start no faster, and take the cores from who answers
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
// A few starters take the accounts' tasks in round robin. Beside many submits there is
// one, which rests most of the time, since a start costs many times what an answer does
// where Temporal is on the same cores: what a burst brings is started when it is over,
// or has waited for startLate. The
// queue is bounded. An account may have as many waiting as there is room left: half
// of it when it is alone, and whoever comes next finds room. A submit never waits for
// a start: without room the row is left to the wake scan.
type starts struct {
	starter  Starter
	log      *slog.Logger
	life     context.Context
	end      context.CancelFunc
	answered atomic.Int64 // submits, so far

	mu      sync.Mutex
	queues  map[string][]start // by account
	turns   []string           // accounts with a queue, the next one first
	waiting int
	working int           // starters
	idle    chan struct{} // closed while no starter works, and so nothing waits
	closed  bool

	leftInAll int64       // to the wake scan
	left      int         // of these, since the last report
	cause     error       // of the last of them
	reporting *time.Timer // nil: nothing to report
}

// start is one that is to be made.
type start struct {
	task   mediagate.Task
	expiry time.Time
}

func newStarts(starter Starter, log *slog.Logger) *starts {
	s := &starts{starter: starter, log: log, queues: map[string][]start{}, idle: make(chan struct{})}
	close(s.idle)
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// add has the run of a task started whose row was made at that time. It returns at
// once.
func (s *starts) add(t mediagate.Task, made time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.queues[t.AccountID]
	if s.closed || len(queue) >= mostStarts-s.waiting {
		s.leave(1, nil)
		return
	}
	if len(queue) == 0 {
		s.turns = append(s.turns, t.AccountID)
	}
	s.queues[t.AccountID] = append(queue, start{task: forStart(t), expiry: made.Add(startPatience)})
	s.waiting++
	if s.working == 0 {
		s.idle = make(chan struct{})
		s.working++
		go s.work()
	}
}

// hire has another starter work, if there may be one more and something waits.
func (s *starts) hire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting > 0 && s.working < starters {
		s.working++
		go s.work()
	}
}

// holds tells whether the start of a task waits here. The run that it begins reads
// the row, so it needs no signal about what is stored there.
func (s *starts) holds(account, taskID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.queues[account], func(one start) bool { return one.task.ID == taskID })
}

// drain returns when nothing waits any more or ctx ends. As each start is left to the
// wake scan once its patience is over, that takes some seconds at the most.
func (s *starts) drain(ctx context.Context) {
	s.mu.Lock()
	idle, waiting := s.idle, s.waiting
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
	s.leave(s.waiting, nil)
	s.queues, s.turns, s.waiting = nil, nil, 0
	idle := s.idle
	s.mu.Unlock()
	s.end()
	<-idle
	s.report()
}

// take hands out the next start. The account's next one comes after those of all
// others. Starts whose patience is over are left out.
func (s *starts) take() (one start, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for now := time.Now(); len(s.turns) > 0; {
		account := s.turns[0]
		queue := s.queues[account]
		one, queue[0] = queue[0], start{} // the memory of the task goes with it
		s.turns = s.turns[1:]
		if s.queues[account] = queue[1:]; len(queue) > 1 {
			s.turns = append(s.turns, account)
		} else {
			delete(s.queues, account)
		}
		s.waiting--
		if now.Before(one.expiry) {
			return one, true
		}
		s.leave(1, nil)
	}
	if s.working--; s.working == 0 {
		close(s.idle)
	}
	return start{}, false
}

// work is a starter: it ends when nothing waits.
func (s *starts) work() {
	for {
		one, ok := s.take()
		if !ok {
			return
		}
		began, answered := time.Now(), s.answered.Load()
		err := s.start(one.task)
		switch {
		case err != nil:
			s.mu.Lock()
			s.leave(1, err)
			s.mu.Unlock()
			s.rest(startPause)
		case s.answered.Load()-answered > manySubmits && began.Before(one.expiry.Add(startLate-startPatience)):
			s.rest(min(crowdRest*time.Since(began), longestRest))
		default:
			s.hire()
		}
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

// leave counts what is left to the wake scan. The log gets one line for many. It is
// called with the lock held.
func (s *starts) leave(n int, cause error) {
	s.left += n
	s.leftInAll += int64(n)
	if cause != nil {
		s.cause = cause
	}
	if s.reporting == nil && s.left > 0 {
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
	s.log.Warn("runs not started: their wakes are due in seconds", "tasks", s.left, "waiting", s.waiting, "error", s.cause)
	s.left, s.cause, s.reporting = 0, nil, nil
}

// forStart is a task without what its start does not need, which may be long.
func forStart(t mediagate.Task) mediagate.Task {
	t.Params, t.Charges, t.Webhook = nil, nil, nil
	t.Plan.Uploads, t.Plan.Inputs, t.Plan.Source = nil, nil, nil
	return t
}
