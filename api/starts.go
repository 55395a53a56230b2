package api

import (
	"context"
	"log/slog"
	"sync"
	"time"

	xrate "golang.org/x/time/rate"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
)

const (
	startPatience = 5 * time.Second  // from the submit on: then the wake scan starts the task
	startDeadline = 2 * time.Second  // of one start
	reportEvery   = 10 * time.Second // between two lines about what is left to the wake scan
)

// starts are the runs that are to be started, of tasks whose clients are
// acknowledged. The row is the promise: its wake is due startPatience after the
// submit, and the wake scan starts what has no run by then (D2). A start from here
// is the fast path, and may get lost at any moment. In a burst the rows are the queue:
// the store then leaves the start to the scan.
//
// Limits.Starts bounds them, Limits.Starters those under way, accounts in turns. A
// submit never waits for a start: without room the row is left to the wake scan.
type starts struct {
	starter Starter
	queue   StartStore
	limits  *limit.Process
	log     *slog.Logger
	life    context.Context
	end     context.CancelFunc
	left    xrate.Sometimes // lines about what is left to the wake scan

	mu     sync.Mutex
	closed bool
	open   sync.WaitGroup // nothing is added once closed
}

func newStarts(starter Starter, queue StartStore, limits *limit.Process, log *slog.Logger) *starts {
	s := &starts{starter: starter, queue: queue, limits: limits, log: log, left: xrate.Sometimes{Interval: reportEvery}}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// add has the run of a task started whose row was made at that time. It returns at
// once.
func (s *starts) add(t mediagate.Task, made time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease, ok := s.limits.Starts.TryAcquire(t.AccountID, 1)
	if !ok || s.closed {
		lease.Release()
		s.leave(t.ID, nil)
		return
	}
	t = forStart(t)
	s.open.Go(func() {
		defer lease.Release()
		if err := s.start(t, made.Add(startPatience)); err != nil {
			s.leave(t.ID, err)
		}
	})
}

// start makes a start in its account's turn. One that fails is not repeated: the error
// is ambiguous, and a task that Temporal refuses must not keep the others.
func (s *starts) start(t mediagate.Task, expiry time.Time) error {
	ctx, cancel := context.WithDeadline(s.life, expiry)
	defer cancel()
	turn, err := s.limits.Starters.Acquire(ctx, t.AccountID, 1)
	if err != nil {
		return err
	}
	defer turn.Release()
	ctx, cancel = context.WithTimeout(ctx, startDeadline)
	defer cancel()
	if mine, err := s.queue.MayStart(ctx, t.ID); err != nil || !mine {
		return err
	}
	err = mediagate.Guarded(func() error { return s.starter.Start(ctx, t) })
	if mediagate.Is(err, mediagate.KindConflict) {
		return nil // the wake scan was first
	}
	return err
}

// leave says that a task is left to the wake scan. The log gets one line for many.
func (s *starts) leave(taskID string, cause error) {
	s.left.Do(func() {
		s.log.Warn("a run was not started: its wake is due in seconds", "task", taskID, "error", cause)
	})
}

// drain takes no more, and returns when nothing waits or is under way any more, or ctx
// ends. As each start has its patience, that takes some seconds at the most.
func (s *starts) drain(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		s.open.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// close leaves what waits to the wake scan, and cuts off what is under way: nobody knows
// whether that took effect.
func (s *starts) close() {
	s.end()
	s.drain(context.Background())
}

// forStart is a task without what its start does not need, which may be long.
func forStart(t mediagate.Task) mediagate.Task {
	t.Params, t.Charges, t.Webhook = nil, nil, mediagate.Webhook{}
	t.Plan.Uploads, t.Plan.Source = nil, nil
	return t
}
