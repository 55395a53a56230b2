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
	startPatience = 5 * time.Second  // from the submit on; after that the wake scan starts the task
	startDeadline = 2 * time.Second  // for one start
	reportEvery   = 10 * time.Second // between two log lines about tasks that are left to the wake scan
)

// starts starts the runs of acknowledged tasks. It is only the fast path, and any of its starts
// may be lost: the wake of each task is due startPatience after the submit, and the wake scan then
// starts every task that has no run (D2). In a burst MayStart leaves starts to the scan, which
// finds the tasks by their rows.
//
// Limits.Starts bounds the waiting starts and Limits.Starters those in progress, accounts in
// round robin. A submit never waits for a start: without a permit the task is left to the wake
// scan.
type starts struct {
	starter Starter
	queue   StartStore
	limits  *limit.Process
	log     *slog.Logger
	life    context.Context
	end     context.CancelFunc
	left    xrate.Sometimes // limits the log lines about tasks that are left to the wake scan

	mu     sync.Mutex
	closed bool
	open   sync.WaitGroup // the starts that wait or run; gets none once closed is set
}

func newStarts(starter Starter, queue StartStore, limits *limit.Process, log *slog.Logger) *starts {
	s := &starts{starter: starter, queue: queue, limits: limits, log: log, left: xrate.Sometimes{Interval: reportEvery}}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// add starts the run of a task whose row was made at that time. It returns at once.
func (s *starts) add(t mediagate.Task, made time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	permit, ok := s.limits.Starts.TryAcquire(t.AccountID, 1)
	if !ok || s.closed {
		permit.Release()
		s.leaveToScan(t.ID, nil)
		return
	}
	t = forStart(t)
	s.open.Go(func() {
		defer permit.Release()
		if err := s.start(t, made.Add(startPatience)); err != nil {
			s.leaveToScan(t.ID, err)
		}
	})
}

// start starts a run once its account gets a permit. It does not retry a failed start: the start
// may have happened, and a task that Temporal refuses must not hold up the others.
func (s *starts) start(t mediagate.Task, expiry time.Time) error {
	ctx, cancel := context.WithDeadline(s.life, expiry)
	defer cancel()
	permit, err := s.limits.Starters.Acquire(ctx, t.AccountID, 1)
	if err != nil {
		return err
	}
	defer permit.Release()
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

// leaveToScan logs that a task is left to the wake scan, one line for many tasks.
func (s *starts) leaveToScan(taskID string, cause error) {
	s.left.Do(func() {
		s.log.Warn("a run was not started: its wake is due in seconds", "task", taskID, "error", cause)
	})
}

// drain accepts no more starts, and returns when none waits or is in progress, or when ctx ends.
// Since each start has a deadline, that takes a few seconds at most.
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

// close leaves the waiting starts to the wake scan, and cancels those in progress, which may have
// taken effect.
func (s *starts) close() {
	s.end()
	s.drain(context.Background())
}

// forStart returns the task without the fields that its start does not need, which may be long.
func forStart(t mediagate.Task) mediagate.Task {
	t.Params, t.Charges, t.Webhook = nil, nil, mediagate.Webhook{}
	t.Plan.Uploads, t.Plan.Source = nil, nil
	return t
}
