package api

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/task/view"
)

// Server-sent events (WHATWG HTML, section 9.2): one event named "task" for each visible change.
// Its id is the task's version.
const (
	lastEventIDHeader = "Last-Event-ID"

	// streamInterval is the longest silence of a stream. After it the stream reads the task anew,
	// even if no change was reported (D19), and checks the key's right to read it.
	streamInterval = 10 * time.Second
	// streamWrite bounds the sending of one event.
	streamWrite = 20 * time.Second
	// halfClosedInterval replaces streamInterval once the client has closed its sending side. Few
	// such clients go on reading, and only a failed write shows which of them have left.
	halfClosedInterval = time.Second
)

// handleEvents streams the task: its present state, and its new state after each visible change,
// until its end. A client that reconnects with the id of its last event gets only newer ones. If
// that event was the end, 204 tells the client not to come back.
func (s *Server) handleEvents(c *call) error {
	language, err := oneOfQuery(c.query(), "language", view.Languages()...)
	if err != nil {
		return err
	}
	seen, err := lastEventID(c.Request().Header)
	if err != nil {
		return err
	}
	t, err := s.pathTask(c)
	if err != nil {
		return err
	}
	if t.Status.Terminal() && seen == t.Version {
		return c.NoContent(http.StatusNoContent)
	}
	lease, err := c.tryAcquire(s.cfg.Limits.Waits, 1, waits)
	if err != nil {
		return err
	}
	defer lease.Release()
	return s.stream(c, t, language, seen)
}

// lastEventID returns the version that the client has seen, or -1 if it names none.
func lastEventID(h http.Header) (int64, error) {
	text := strings.TrimSpace(h.Get(lastEventIDHeader))
	if text == "" {
		return -1, nil
	}
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < 0 {
		return 0, mediagate.Invalid(lastEventIDHeader, "%s must be the id of an event of this task", lastEventIDHeader)
	}
	return version, nil
}

// stream sends the task whenever its version differs from the one that the client has seen.
func (s *Server) stream(c *call, t mediagate.Task, language string, seen int64) error {
	out := &events{call: c}
	out.begin()
	if c.Request().Method == http.MethodHead {
		return nil
	}
	for {
		var ok bool
		if t.Version == seen {
			ok = out.beat()
		} else {
			v, err := s.view(c.ctx, &t)
			if err != nil {
				return err // the stream ends without the task's end, and the client reconnects
			}
			ok, seen = out.send(t.Version, v.In(language)), t.Version
		}
		if !ok || t.Status.Terminal() {
			return nil
		}
		if !s.nextChange(c, out, t) {
			return nil
		}
		c.setTimeout(s.cfg.StoreTimeout)
		if err := s.mayRead(c); err != nil {
			return nil //nolint:nilerr // the key may no longer read the task; the answer to the next stream says why
		}
		fresh, err := s.readTask(c, t.ID)
		switch {
		case err == nil:
			t = fresh
		case mediagate.Is(err, mediagate.KindUnavailable): // the database is away: try again after the next interval
		default:
			return nil // the task was erased
		}
	}
}

// nextChange waits until the task may have changed, at most for streamInterval. A client that has
// closed its sending side gets comments meanwhile, which cost the database nothing (D19). It
// reports false if the server stops or the client has left.
func (s *Server) nextChange(c *call, out *events, t mediagate.Task) bool {
	until := time.Now().Add(s.streamInterval)
	for {
		changed := s.waitForChange(c, t, time.Until(until))
		switch {
		case s.watch.ctx.Err() != nil, s.life.Err() != nil:
			return false
		case changed, !time.Now().Before(until):
			return true
		case !out.beat():
			return false
		}
	}
}

// waitForChange waits at most this long. It stops when the client closes its sending side; after
// that it waits for halfClosedInterval at most.
func (s *Server) waitForChange(c *call, t mediagate.Task, wait time.Duration) (changed bool) {
	gone := c.Request().Context()
	if gone.Err() != nil {
		wait = min(wait, halfClosedInterval)
	}
	ctx, cancel := c.detachedContext(wait)
	defer cancel()
	if gone.Err() == nil {
		defer context.AfterFunc(gone, cancel)()
	}
	return s.watch.wait(ctx, t.ID, t.Version)
}

// mayRead checks the key again. While the database is away it assumes that nothing has changed.
func (s *Server) mayRead(c *call) error {
	err := s.reauthorize(c.ctx, c)
	if mediagate.Is(err, mediagate.KindUnavailable) {
		return nil
	}
	return err
}

// events writes the answer of a stream. It keeps nothing of what it has sent.
type events struct{ call *call }

// begin sends the header. After the header no other answer is possible. Instead of one deadline for
// the answer, each piece then has its own.
func (e *events) begin() {
	header := e.call.Response().Header()
	header.Set("Content-Type", typeEvents)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // or proxies would hold events back
	e.call.readBy(time.Time{})
	e.call.Response().WriteHeader(http.StatusOK)
}

// send writes one event. It reports whether the client is still there.
func (e *events) send(version int64, task view.Task) bool {
	buf, _ := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	buf.WriteString("id: " + strconv.FormatInt(version, 10) + "\nevent: task\ndata: ")
	if err := encodeTo(buf, task); err != nil {
		return false
	}
	buf.WriteByte('\n')
	return e.write(buf.Bytes())
}

// beat writes a comment, which keeps proxies from closing the connection and shows whether the
// client is still there.
func (e *events) beat() bool { return e.write([]byte(":\n\n")) }

func (e *events) write(piece []byte) bool {
	e.call.writeBy(time.Now().Add(streamWrite))
	if _, err := e.call.Response().Write(piece); err != nil {
		return false
	}
	return http.NewResponseController(e.call.Response()).Flush() == nil
}

const (
	watchEvery = 300 * time.Millisecond
	watchBatch = 1000 // ids in one query
	watchLimit = 5 * time.Second
)

// watcher serves all long polls and streams with one goroutine. The goroutine runs only while a
// call waits. It reads the versions of the awaited tasks in batches, one query a batch.
type watcher struct {
	store TaskStore
	log   *slog.Logger

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	loops  sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]map[*waiter]struct{} // by task id
	running bool
	failing bool // the last query failed, which is logged once
}

type waiter struct {
	version int64
	changed chan struct{}
}

func newWatcher(store TaskStore, log *slog.Logger) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	return &watcher{store: store, log: log, ctx: ctx, cancel: cancel, waiting: map[string]map[*waiter]struct{}{}}
}

// wait returns true once the task has another version or is gone, and false when ctx ends or the
// server stops.
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
		ids, idle := w.awaitedIDs()
		if idle {
			return
		}
		for part := range slices.Chunk(ids, watchBatch) {
			w.wakeChanged(part)
		}
	}
}

// awaitedIDs returns the ids of the awaited tasks. If there are none, it marks the loop as ended.
func (w *watcher) awaitedIDs() (ids []string, idle bool) {
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

// wakeChanged wakes the waiters of tasks that have changed. While the database is away it wakes
// none: each waiter has its own deadline.
func (w *watcher) wakeChanged(ids []string) {
	ctx, cancel := context.WithTimeout(w.ctx, watchLimit)
	defer cancel()
	versions, err := w.store.Versions(ctx, ids)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if !w.failing && w.ctx.Err() == nil {
			w.log.Warn("versions of awaited tasks were not read", "tasks", len(ids), "error", err)
		}
		w.failing = true
		return
	}
	w.failing = false
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

// close releases all waiters and stops the goroutine.
func (w *watcher) close() {
	w.mu.Lock()
	w.cancel() // under the lock, so that no loop starts after it
	w.mu.Unlock()
	w.loops.Wait()
}
