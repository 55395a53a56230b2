package api

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

const (
	watchEvery = 300 * time.Millisecond
	watchBatch = 1000 // ids in one query
	watchLimit = 5 * time.Second
)

// mostWaits is how many long polls and streams of one key wait at once. Each keeps a
// connection and its memory, and nobody can be sure that its client is still
// there: who closes the sending side may read, and net/http does not look past
// a next request.
const mostWaits = 1000

// shareOfAccount is how many times a key's seats the keys of an account have: a key
// may make as many keys as it likes.
const shareOfAccount = 4

// seats counts who waits, or listens.
type seats struct {
	most    int    // of a key
	what    string // those who have one do, for messages
	mu      sync.Mutex
	taken   map[string]int // by key, and by account
	held    int64
	refused int64
}

// take has a seat for the key that the call came with, or says that it or its
// account has all of its seats.
func (s *seats) take(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch common := shareOfAccount * s.most; {
	case s.taken[c.who()] >= s.most:
		return s.full(s.most, "this key")
	case s.taken[c.account()] >= common:
		return s.full(common, "this account")
	}
	s.taken[c.who()]++
	s.taken[c.account()]++
	s.held++
	return nil
}

func (s *seats) full(most int, whose string) error {
	s.refused++
	return &mediagate.Error{
		Kind: mediagate.KindRateLimited, RetryAfter: time.Second,
		Message: "too many requests: " + strconv.Itoa(most) + " of " + whose + " " + s.what + " already",
	}
}

func (s *seats) leave(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
	for _, who := range []string{c.who(), c.account()} {
		if s.taken[who]--; s.taken[who] == 0 {
			delete(s.taken, who)
		}
	}
}

// watcher serves all long polls and streams with one goroutine, which runs only while
// somebody waits and asks for the versions of all awaited tasks at once.
type watcher struct {
	store TaskStore
	log   *slog.Logger

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	loops  sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]map[*waiter]struct{} // by task id
	running bool
	ailing  bool // the last look failed: said once
}

type waiter struct {
	version int64
	changed chan struct{}
}

func newWatcher(store TaskStore, log *slog.Logger) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	return &watcher{store: store, log: log, ctx: ctx, cancel: cancel, waiting: map[string]map[*waiter]struct{}{}}
}

// wait returns true when the task is no longer at the version (or is gone),
// and false when ctx ends or the server stops.
func (w *watcher) wait(ctx context.Context, taskID string, version int64) bool {
	me := &waiter{version: version, changed: make(chan struct{})}
	if !w.enter(taskID, me) {
		return false
	}
	defer w.leave(taskID, me)
	select {
	case <-me.changed:
		return true
	case <-ctx.Done():
	case <-w.ctx.Done():
	}
	return false
}

func (w *watcher) enter(taskID string, me *waiter) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return false
	}
	if w.waiting[taskID] == nil {
		w.waiting[taskID] = map[*waiter]struct{}{}
	}
	w.waiting[taskID][me] = struct{}{}
	if !w.running {
		w.running = true
		w.loops.Go(w.loop)
	}
	return true
}

func (w *watcher) leave(taskID string, me *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(taskID, me)
}

func (w *watcher) remove(taskID string, me *waiter) {
	delete(w.waiting[taskID], me)
	if len(w.waiting[taskID]) == 0 {
		delete(w.waiting, taskID)
	}
}

func (w *watcher) loop() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			return
		}
		ids, idle := w.awaited()
		if idle {
			return
		}
		for part := range slices.Chunk(ids, watchBatch) {
			w.look(part)
		}
	}
}

// awaited returns the ids to ask for; when there are none the loop has ended.
func (w *watcher) awaited() (ids []string, idle bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		w.running = false
		return nil, true
	}
	ids = make([]string, 0, len(w.waiting))
	for id := range w.waiting {
		ids = append(ids, id)
	}
	return ids, false
}

// look wakes those whose task has changed. A database that is away wakes
// nobody: each waiter has a deadline of its own.
func (w *watcher) look(ids []string) {
	ctx, cancel := context.WithTimeout(w.ctx, watchLimit)
	defer cancel()
	versions, err := w.store.Versions(ctx, ids)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if !w.ailing && w.ctx.Err() == nil {
			w.log.Warn("versions of awaited tasks not read", "tasks", len(ids), "error", err)
		}
		w.ailing = true
		return
	}
	w.ailing = false
	for _, id := range ids {
		version, exists := versions[id]
		for one := range w.waiting[id] {
			if !exists || version != one.version {
				close(one.changed)
				w.remove(id, one)
			}
		}
	}
}

// close hands all waiters back and stops the goroutine.
func (w *watcher) close() {
	w.mu.Lock()
	w.cancel() // under the lock, so that no loop starts behind it
	w.mu.Unlock()
	w.loops.Wait()
}
