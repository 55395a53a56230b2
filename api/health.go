package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
)

// checkDeadline bounds one look at a part that we need.
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

// handleReady tells what a look of the last second has found.
func (s *Server) handleReady(c *call) error {
	found := s.ready.Get()
	answer := readiness{Status: "ready", Degraded: found.degraded}
	switch {
	case found.without != "":
		answer.Status = "unavailable"
		answer.Error = &errorA{
			Code: http.StatusServiceUnavailable, Message: found.without, Type: wordServer,
			Reason: renderings[mediagate.KindUnavailable].reason, RequestID: c.requestID,
		}
		return c.json(http.StatusServiceUnavailable, answer)
	case len(found.degraded) > 0:
		answer.Status = "degraded"
	}
	return c.ok(answer)
}

// parts is what a look at them finds.
type parts struct {
	degraded []string
	without  string // what we are not ready without, in the words of the answer
}

// lookAtParts asks the parts all at once. Without Temporal or the bucket
// clients are still acknowledged, with an older catalog or older lists of
// words they are served, and operators' keys work without the identity provider, so only the database decides, and the clock:
// a process whose own is wrong must not reckon with times (D10, D20).
func (s *Server) lookAtParts() (found parts) {
	checks := []struct {
		name    string
		look    func(ctx context.Context) error
		without string // empty where we are ready all the same
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
	away := make([]error, len(checks))
	ctx, cancel := context.WithTimeout(s.life, checkDeadline)
	defer cancel()
	var looks sync.WaitGroup
	for i, check := range checks {
		if check.look != nil {
			looks.Go(func() { away[i] = mediagate.Guarded(func() error { return check.look(ctx) }) })
		}
	}
	looks.Wait()
	for i, check := range checks {
		switch {
		case away[i] == nil:
		case check.without == "":
			found.degraded = append(found.degraded, check.name)
			s.log.WarnContext(ctx, "degraded", "part", check.name, "error", away[i])
		case found.without == "":
			s.log.WarnContext(ctx, check.without, "error", away[i])
			found.without = check.without
		}
	}
	return found
}

// recentFor is how old an answer about our health may be.
const recentFor = time.Second

// Recent gives what a look finds to all who ask soon after its begin, and to those
// who ask while it looks: anyone may ask us, and each look asks others.
type Recent[T any] struct {
	look func() T
	now  func() time.Time
	keep time.Duration

	mu    sync.Mutex
	begun time.Time
	last  *found[T]
}

type found[T any] struct {
	done chan struct{}
	what T
}

// NewRecent makes one. The look must end, and not panic.
func NewRecent[T any](now func() time.Time, look func() T) *Recent[T] {
	return NewRecentFor(recentFor, now, look)
}

// NewRecentFor makes one whose answers may be as old as keep.
func NewRecentFor[T any](keep time.Duration, now func() time.Time, look func() T) *Recent[T] {
	return &Recent[T]{look: look, now: now, keep: keep}
}

// Get is what the last look has found, or a new one does.
func (r *Recent[T]) Get() T {
	r.mu.Lock()
	now := r.now()
	last, age := r.last, now.Sub(r.begun)
	if last != nil && last.ended() && (age < 0 || age >= r.keep) {
		last = nil
	}
	if last != nil {
		r.mu.Unlock()
		<-last.done
		return last.what
	}
	mine := &found[T]{done: make(chan struct{})}
	r.last, r.begun = mine, now
	r.mu.Unlock()
	defer close(mine.done)
	mine.what = r.look()
	return mine.what
}

// ended reports whether the look is over.
func (f *found[T]) ended() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}
