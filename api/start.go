package api

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	mostStarts    = 4096                   // that wait; an account has half of them when it is alone
	starters      = 4                      // at once: more start no faster, and take the cores from who answers
	busyStarters  = 1                      // at once while submits are being answered,
	starterWait   = 2 * time.Second        // for as long as no start waits longer than that;
	manySubmits   = 4                      // answered during a start: with more than that, the starter rests
	crowdRest     = 10                     // times as long as the start took,
	longestRest   = time.Second / 4        // but no longer than that
	startDeadline = 2 * time.Second        // of one start
	lateStart     = 500 * time.Millisecond // one that takes longer says that Temporal is slow
	startPause    = time.Second            // of a starter whose start failed
	drainPatience = 8 * time.Second        // of a stop, with a Temporal that takes nothing
	tendEvery     = time.Second            // between two looks at who waits
	askTimeout    = 2 * time.Second        // of prolonging leases
	reportEvery   = 10 * time.Second       // between two lines about what is left to the reconciler
)

// starts are the workflows that are still to be started: of tasks whose clients
// are acknowledged. The row is the promise, and a start only makes it come true
// early, so a start may get lost here at any moment: the reconciler finds the row.
//
// A few starters take the accounts' tasks in turns. Of these only one works while
// submits are being answered, who go first, and beside many it mostly rests: what a
// burst brings is started when it is over, or has to wait too long. The queue is
// bounded, and an account may have as many waiting as there is room left: half of
// it when it is alone, and whoever comes next finds room. A submit that finds none
// makes one of the waiting starts itself, and so is held back to the pace at which
// Temporal takes them.
//
// But only while Temporal keeps pace. When the last start failed, or one takes
// too long, a submit waits for nothing: without room its row is left to the
// reconciler.
//
// What waits is leased: the reconciler leaves a row alone for a StartLease after
// it was looked at last, and the leases are prolonged while Temporal keeps pace.
// They end by themselves with this process, and when it cannot start anything:
// then what waits is forgotten here as soon as it is the reconciler's.
type starts struct {
	starter Starter
	store   StartStore
	log     *slog.Logger
	life    context.Context
	end     context.CancelFunc

	mu       sync.Mutex
	turns    []*lineup          // whose turn it is, the next one first: all that have somebody waiting
	lineups  map[string]*lineup // by account
	waiting  int
	oldest   time.Time // nothing that waits was made before
	underway int
	hired    int  // starters at work
	submits  int  // being answered
	answered int  // submits, so far
	failed   bool // the last start did
	late     bool // a start took too long, and none has been in time since
	closed   bool
	turned   chan struct{} // closed when any of these becomes true or false, and when nothing waits any more
	tending  *time.Timer   // nil: nothing to tend
	draining *time.Timer   // ends the drain unless a start goes well before; nil: no drain

	left     int   // to the reconciler, not told yet
	cause    error // of the last one of them
	reported time.Time
}

// lineup is what waits of one account.
type lineup struct {
	account string
	tasks   []*start
}

// start is one that is to be made.
type start struct {
	task   mediagate.Task
	made   time.Time // by this process's clock, which does not step
	leased time.Time // likewise
}

func newStarts(starter Starter, store StartStore, log *slog.Logger) *starts {
	s := &starts{starter: starter, store: store, log: log, lineups: map[string]*lineup{}, turned: make(chan struct{})}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// answering says that a submit is being answered, until the function that it
// returns is called.
func (s *starts) answering() (answered func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.submits++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.submits--
		s.answered++
		s.hire()
	}
}

// add has the workflow of a task started whose row was made at that time. It
// returns at once where there is room, or Temporal does not keep pace.
func (s *starts) add(t mediagate.Task, made time.Time) {
	one := &start{task: forStart(t), made: made, leased: made}
	s.mu.Lock()
	if s.closed || !s.roomFor(t.AccountID) && s.troubled() {
		s.leave(1, nil)
		s.mu.Unlock()
		return
	}
	var due *start
	if !s.roomFor(t.AccountID) {
		due = s.take() // there is one: with none there is room
	}
	s.put(one)
	s.mu.Unlock()
	if due != nil {
		s.help(due)
	}
}

// help makes a start for a submit that found no room, and returns when it has
// ended, or Temporal no longer keeps pace.
func (s *starts) help(due *start) {
	made := make(chan struct{})
	go func() {
		defer close(made)
		s.start(due)
	}()
	for {
		s.mu.Lock()
		turned, release := s.turned, s.troubled() || s.closed
		s.mu.Unlock()
		if release {
			return
		}
		select {
		case <-made:
			return
		case <-turned:
		}
	}
}

// holds tells whether the start of a task waits here. The run that it begins
// reads the row: nobody need tell it what stands there.
func (s *starts) holds(account, taskID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lineups[account]
	return line != nil && slices.ContainsFunc(line.tasks, func(one *start) bool { return one.task.ID == taskID })
}

// drain returns when nothing waits any more, when no start has gone well for a
// drainPatience, or when ctx ends. Meanwhile what fails is tried again: nobody else may
// look at the row for a while, and a Temporal that was slow once may take it.
func (s *starts) drain(ctx context.Context) {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	s.mu.Lock()
	s.draining = time.AfterFunc(drainPatience, giveUp)
	defer s.judge(func() {
		s.draining.Stop()
		s.draining = nil
	})
	if n := s.waiting + s.underway; n > 0 {
		s.log.InfoContext(ctx, "starting what waits before the stop", "tasks", n)
	}
	for s.waiting+s.underway > 0 && ctx.Err() == nil {
		turned := s.turned
		s.mu.Unlock()
		select {
		case <-turned:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
	s.mu.Unlock()
}

// close leaves what waits to the reconciler. Starts under way are cut off, and
// count as left: nobody knows whether they took effect.
func (s *starts) close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.leave(s.forget(func(*start) bool { return true })+s.underway, nil)
		s.tell()
	}
	s.mu.Unlock()
	s.end()
}

// What follows is called with the lock held, but for run, start, call, giveWay, rest,
// tend and prolong.

// troubled tells whether Temporal does not keep pace.
func (s *starts) troubled() bool { return s.failed || s.late }

func (s *starts) roomFor(account string) bool {
	own := 0
	if line := s.lineups[account]; line != nil {
		own = len(line.tasks)
	}
	return own < mostStarts-s.waiting
}

// put lets one wait, and sees to it that somebody takes it.
func (s *starts) put(one *start) {
	line := s.lineups[one.task.AccountID]
	if line == nil {
		line = &lineup{account: one.task.AccountID}
		s.lineups[line.account] = line
		s.turns = append(s.turns, line)
	}
	line.tasks = append(line.tasks, one)
	if s.waiting == 0 || one.made.Before(s.oldest) {
		s.oldest = one.made
	}
	s.waiting++
	s.hire()
	s.watch()
}

// hire has as many starters at work as there may be and is work for.
func (s *starts) hire() {
	for n := min(s.wanted(), s.waiting+s.underway); s.hired < n; s.hired++ {
		go s.run()
	}
}

func (s *starts) wanted() int {
	if s.submits == 0 || s.overdue() {
		return starters
	}
	return busyStarters
}

// overdue tells whether a start has waited for too long. It looks for the oldest one
// only when that may be so.
func (s *starts) overdue() bool {
	limit := time.Now().Add(-starterWait)
	if s.waiting == 0 || !s.oldest.Before(limit) {
		return false
	}
	oldest := s.turns[0].tasks[0].made
	for _, line := range s.turns {
		if head := line.tasks[0].made; head.Before(oldest) {
			oldest = head
		}
		if oldest.Before(limit) {
			return true
		}
	}
	s.oldest = oldest
	return false
}

// take hands out the start whose turn it is, or nil. Its account's next one comes
// after those of all others.
func (s *starts) take() *start {
	if len(s.turns) == 0 {
		return nil
	}
	line := s.turns[0]
	s.turns = s.turns[1:]
	one := line.tasks[0]
	line.tasks[0] = nil
	line.tasks = line.tasks[1:]
	if len(line.tasks) > 0 {
		s.turns = append(s.turns, line)
	} else {
		delete(s.lineups, line.account)
	}
	s.waiting--
	s.underway++
	return one
}

// forget drops what waits and matches, and returns how much that was.
func (s *starts) forget(match func(*start) bool) int {
	before := s.waiting
	s.turns = slices.DeleteFunc(s.turns, func(line *lineup) bool {
		had := len(line.tasks)
		line.tasks = slices.DeleteFunc(line.tasks, match)
		s.waiting -= had - len(line.tasks)
		if len(line.tasks) > 0 {
			return false
		}
		delete(s.lineups, line.account)
		return true
	})
	if before > 0 && s.waiting == 0 {
		s.tell()
	}
	return before - s.waiting
}

// leave notes what is left to the reconciler. The log tells of it soon, in a line
// for many.
func (s *starts) leave(n int, cause error) {
	s.left += n
	if cause != nil {
		s.cause = cause
	}
	if s.closed {
		s.report()
		return
	}
	s.watch()
}

func (s *starts) report() {
	if s.left == 0 {
		return
	}
	s.log.Warn("workflows not started, the reconciler will", "tasks", s.left, "waiting", s.waiting, "error", s.cause)
	s.left, s.cause, s.reported = 0, nil, time.Now()
}

// watch has the queue tended.
func (s *starts) watch() {
	if s.tending == nil && !s.closed {
		s.tending = time.AfterFunc(tendEvery, s.tend)
	}
}

// tell wakes all who wait for a turn of things.
func (s *starts) tell() {
	close(s.turned)
	s.turned = make(chan struct{})
}

// run is a starter: it goes home when nothing waits, or one too many is at work.
func (s *starts) run() {
	for {
		s.mu.Lock()
		s.hire()
		var one *start
		if s.hired <= s.wanted() {
			one = s.take()
		}
		if one == nil {
			s.hired--
			s.mu.Unlock()
			return
		}
		began, answered := time.Now(), s.answered
		s.mu.Unlock()
		if s.start(one) {
			s.giveWay(time.Since(began), answered)
		} else {
			s.rest()
		}
	}
}

// start makes one start. One that fails is the reconciler's: the error is
// ambiguous, and a task that Temporal refuses must not keep the others. In a drain it
// comes once more when the others have had their turn.
func (s *starts) start(one *start) bool {
	ctx, cancel := context.WithTimeout(s.life, startDeadline)
	defer cancel()
	alarm := time.AfterFunc(lateStart, func() { s.judge(func() { s.late = true }) })
	err := s.call(ctx, one.task)
	inTime := alarm.Stop()
	s.judge(func() {
		s.underway--
		s.failed = err != nil
		switch {
		case err == nil && s.draining != nil:
			s.draining.Reset(drainPatience)
		case err != nil && s.draining != nil:
			s.cause = err
			s.put(one)
		case err != nil && !s.closed: // what is under way at the close is counted there
			s.leave(1, err)
		}
		if err == nil && inTime {
			s.late = false
		}
		if s.waiting+s.underway == 0 {
			s.tell()
		}
	})
	return err == nil
}

// judge changes what is known of Temporal's pace, and wakes who waits for that.
func (s *starts) judge(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed, late := s.failed, s.late
	change()
	if failed != s.failed || late != s.late {
		s.tell()
	}
}

func (s *starts) call(ctx context.Context, t mediagate.Task) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = mediagate.Panicked(p)
			s.log.ErrorContext(ctx, "a start panicked", "task", t.ID, "error", err)
		}
	}()
	return s.starter.Start(ctx, t)
}

// giveWay lets the starter that is at work beside submits rest after a start, which
// took so long and before which so many had been answered. When many were meanwhile
// it falls behind them anyway, and where Temporal is on the same cores a start costs
// many times what an answer does.
func (s *starts) giveWay(took time.Duration, answered int) {
	s.mu.Lock()
	crowded := s.answered-answered > manySubmits && s.wanted() == busyStarters
	s.mu.Unlock()
	if !crowded {
		return
	}
	rested := time.NewTimer(min(crowdRest*took, longestRest))
	defer rested.Stop()
	select {
	case <-rested.C:
	case <-s.life.Done():
	}
}

// rest lets a starter pause whose start failed, until another one goes well.
func (s *starts) rest() {
	pause := time.NewTimer(startPause)
	defer pause.Stop()
	for {
		s.mu.Lock()
		turned, over := s.turned, !s.failed || s.closed
		s.mu.Unlock()
		if over {
			return
		}
		select {
		case <-turned:
		case <-pause.C:
			return
		}
	}
}

// tend prolongs the leases of what waits, or forgets what is the reconciler's,
// and tells the log what was left to it.
func (s *starts) tend() {
	s.mu.Lock()
	if s.troubled() {
		if s.draining == nil {
			over := time.Now().Add(-mediagate.StartLease)
			s.leave(s.forget(func(one *start) bool { return one.leased.Before(over) }), nil)
		}
		s.mu.Unlock()
	} else {
		old := s.leasedBefore(time.Now().Add(-mediagate.StartLease / 2))
		s.mu.Unlock()
		s.prolong(old)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tending = nil
	if time.Since(s.reported) >= reportEvery {
		s.report()
	}
	if s.waiting+s.left > 0 {
		s.watch()
	}
}

func (s *starts) leasedBefore(t time.Time) (old []*start) {
	for _, line := range s.turns {
		for _, one := range line.tasks {
			if one.leased.Before(t) {
				old = append(old, one)
			}
		}
	}
	return old
}

// prolong keeps the reconciler from what waits. Where that fails it may start
// what waits here too, which does no harm.
func (s *starts) prolong(old []*start) {
	if len(old) == 0 {
		return
	}
	now := time.Now()
	ids := make([]string, len(old))
	for i, one := range old {
		ids[i] = one.task.ID
	}
	ctx, cancel := context.WithTimeout(s.life, askTimeout)
	defer cancel()
	if err := s.store.MarkChecked(ctx, ids, false); err != nil {
		if s.life.Err() == nil {
			s.log.WarnContext(ctx, "the reconciler may start what waits here", "tasks", len(ids), "error", err)
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range old {
		one.leased = now
	}
}

// forStart is a task without what its start does not need, which may be long.
func forStart(t mediagate.Task) mediagate.Task {
	t.Params, t.Charges, t.Webhook = nil, nil, nil
	t.Plan.Uploads, t.Plan.Inputs, t.Plan.Source = nil, nil, nil
	return t
}
