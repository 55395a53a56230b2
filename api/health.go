package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

// checkDeadline bounds one check of the parts that the API depends on.
const checkDeadline = 2 * time.Second

type health struct {
	Status  string `json:"status"`
	Version string `json:"version,omitempty"`
}

func (s *Server) handleHealth(c *call) error {
	return c.ok(health{"ok", s.cfg.Version})
}

type readiness struct {
	Status   string   `json:"status"`
	Degraded []string `json:"degraded,omitempty"`
	Error    *errorA  `json:"error,omitempty"`
}

// handleReady answers with the result of a check that is at most a second old.
func (s *Server) handleReady(c *call) error {
	report := s.ready.Get()
	answer := readiness{Status: "ready", Degraded: report.degraded}
	switch {
	case report.unready != "":
		answer.Status = "unavailable"
		answer.Error = &errorA{
			Code: http.StatusServiceUnavailable, Message: report.unready, Type: wordServer,
			Reason: renderings[mediagate.KindUnavailable].reason, RequestID: c.requestID,
		}
		return c.json(http.StatusServiceUnavailable, answer)
	case len(report.degraded) > 0:
		answer.Status = "degraded"
	}
	return c.ok(answer)
}

// partsReport is the result of a check of all parts.
type partsReport struct {
	degraded []string
	unready  string // why the process is not ready, as the answer says it; empty if it is
}

// checkParts checks all parts at once. The process stays ready without most of them. Without
// Temporal or the bucket it still acknowledges submits. If it could not load a new catalog, list
// of words or list of operators, it uses the one before. Without the identity provider operators'
// keys work. Only the database and the clock decide: a process with a wrong clock would compute
// wrong deadlines (D10, D20).
func (s *Server) checkParts() (report partsReport) {
	checks := []struct {
		name    string
		check   func(ctx context.Context) error
		unready string // why the process is not ready if the check fails; empty if it stays ready
	}{
		{"database", s.cfg.Checks.Database, "the database is not reachable"},
		{"clock", s.cfg.Checks.Clock, "the clock of this server is wrong"},
		{"temporal", s.cfg.Checks.Temporal, ""},
		{"bucket", s.cfg.Checks.Bucket, ""},
		{"catalog", s.cfg.Checks.Catalog, ""},
		{"moderation", s.cfg.Checks.Moderation, ""},
		{"operators", s.cfg.Checks.Operators, ""},
		{"oidc", s.cfg.Checks.OIDC, ""},
	}
	failures := make([]error, len(checks))
	ctx, cancel := context.WithTimeout(s.life, checkDeadline)
	defer cancel()
	var running sync.WaitGroup
	for i, part := range checks {
		if part.check != nil {
			running.Go(func() { failures[i] = mediagate.Guarded(func() error { return part.check(ctx) }) })
		}
	}
	running.Wait()
	for i, part := range checks {
		switch {
		case failures[i] == nil:
		case part.unready == "":
			report.degraded = append(report.degraded, part.name)
			s.log.WarnContext(ctx, "degraded", "part", part.name, "error", failures[i])
		case report.unready == "":
			s.log.WarnContext(ctx, part.unready, "error", failures[i])
			report.unready = part.unready
		}
	}
	return report
}

// recentFor is how old an answer about the process's health may be.
const recentFor = time.Second

// Recent shares the result of a check among all calls that come while it runs and shortly after.
// Anyone may call the health endpoints, and each check costs calls to other servers.
type Recent[T any] struct {
	check func() T
	now   func() time.Time
	keep  time.Duration

	mu    sync.Mutex
	begun time.Time
	last  *recentResult[T]
}

// recentResult is the result of one check, once done is closed.
type recentResult[T any] struct {
	done  chan struct{}
	value T
}

// NewRecent returns a Recent whose results are at most a second old. The check must return, and
// must not panic.
func NewRecent[T any](now func() time.Time, check func() T) *Recent[T] {
	return NewRecentFor(recentFor, now, check)
}

// NewRecentFor returns a Recent whose results may be as old as keep.
func NewRecentFor[T any](keep time.Duration, now func() time.Time, check func() T) *Recent[T] {
	return &Recent[T]{check: check, now: now, keep: keep}
}

// Get returns the last result, or runs the check if that result is too old.
func (r *Recent[T]) Get() T {
	r.mu.Lock()
	now := r.now()
	last, age := r.last, now.Sub(r.begun)
	if last != nil && last.isDone() && (age < 0 || age >= r.keep) {
		last = nil
	}
	if last != nil {
		r.mu.Unlock()
		<-last.done
		return last.value
	}
	mine := &recentResult[T]{done: make(chan struct{})}
	r.last, r.begun = mine, now
	r.mu.Unlock()
	defer close(mine.done)
	mine.value = r.check()
	return mine.value
}

// isDone reports whether the check has returned.
func (r *recentResult[T]) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
