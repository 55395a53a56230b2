package api

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	watchEvery = 300 * time.Millisecond
	watchBatch = 1000 // ids in one query
	watchLimit = 5 * time.Second
)

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
