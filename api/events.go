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

// Server-sent events (WHATWG HTML, section 9.2): one of the name "task" for each
// visible change, whose id is the task's version.
const (
	eventStream       = "text/event-stream"
	lastEventIDHeader = "Last-Event-ID"

	// streamRest is how long a stream keeps silent at most. So often its task is
	// read anew, whatever was or was not heard of it (D19), and the key's right to
	// read it.
	streamRest = 10 * time.Second
	// streamWrite is how long one event may take to be sent.
	streamWrite = 20 * time.Second
	// farewell is the rest once the client has closed its sending side: few do
	// that and go on reading, and only failed writes tell who does.
	farewell = time.Second
)

// handleEvents streams the task, as it is and at each visible change, until it
// has ended. A client that comes again with the id of the last event gets what
// is newer; when that was the end, 204 tells it to stay away.
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
	lease, err := c.take(s.cfg.Limits.Waits, 1, waits)
	if err != nil {
		return err
	}
	defer lease.Release()
	return s.stream(c, t, language, seen)
}

// lastEventID is the version that the client has seen; -1 when it names none.
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

// stream sends the task whenever its version is another than the one seen.
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
				return err // an end without the task's: the client comes again
			}
			ok, seen = out.send(t.Version, v.In(language)), t.Version
		}
		if !ok || t.Status.Terminal() {
			return nil
		}
		if !s.nextChange(c, out, t) {
			return nil
		}
		c.within(s.cfg.StoreTimeout)
		if err := s.mayRead(c); err != nil {
			return nil //nolint:nilerr // the key's right has ended: so does the stream, and the next one is told why
		}
		fresh, err := s.readTask(c, t.ID)
		switch {
		case err == nil:
			t = fresh
		case mediagate.Is(err, mediagate.KindUnavailable): // it comes back; so does the next look
		default:
			return nil // the task was erased
		}
	}
}

// nextChange waits until the task may have changed, for a rest at most. Who has
// closed the sending side gets comments meanwhile: they ask nothing of the
// database (D19). It reports false when the server stops, or the client has left.
func (s *Server) nextChange(c *call, out *events, t mediagate.Task) bool {
	until := time.Now().Add(s.rest)
	for {
		changed := s.rests(c, t, time.Until(until))
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

// rests waits for so long, and no longer than until the client closes its sending
// side; a farewell at most once it has.
func (s *Server) rests(c *call, t mediagate.Task, rest time.Duration) (changed bool) {
	gone := c.Request().Context()
	if gone.Err() != nil {
		rest = min(rest, farewell)
	}
	ctx, cancel := c.lasting(rest)
	defer cancel()
	if gone.Err() == nil {
		defer context.AfterFunc(gone, cancel)()
	}
	return s.watch.wait(ctx, t.ID, t.Version)
}

// mayRead judges the key anew. A database that is away takes nobody's right.
func (s *Server) mayRead(c *call) error {
	err := s.again(c.ctx, c)
	if mediagate.Is(err, mediagate.KindUnavailable) {
		return nil
	}
	return err
}

// events is the answer that never grows: what was sent is forgotten.
type events struct {
	call  *call
	alive bool
}

// begin sends the header. From here on there is no other answer, and the bounds
// of ordinary ones do not hold: each piece has its own.
func (e *events) begin() {
	header := e.call.Response().Header()
	header.Set("Content-Type", eventStream)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // or proxies keep events back
	e.call.readBy(time.Time{})
	e.alive = true
	e.call.Response().WriteHeader(http.StatusOK)
}

// send writes one event. It reports whether the client was there.
func (e *events) send(version int64, task view.Task) bool {
	buf, _ := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	buf.WriteString("id: " + strconv.FormatInt(version, 10) + "\nevent: task\ndata: ")
	if err := encodeTo(buf, task); err != nil {
		e.alive = false
		return false
	}
	buf.WriteByte('\n')
	return e.write(buf.Bytes())
}

// beat writes a comment, which keeps proxies from hanging up and shows whether
// the client is there.
func (e *events) beat() bool { return e.write([]byte(":\n\n")) }

func (e *events) write(piece []byte) bool {
	e.call.writeBy(time.Now().Add(streamWrite))
	if _, err := e.call.Response().Write(piece); err != nil {
		e.alive = false
	} else if err := http.NewResponseController(e.call.Response()).Flush(); err != nil {
		e.alive = false
	}
	return e.alive
}

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
