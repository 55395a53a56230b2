package api

import (
	"context"
	"net/http"
	"sync"
	"time"
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

// handleReady asks the parts all at once. Without Temporal or the bucket
// clients are still acknowledged, so only the database decides.
func (s *Server) handleReady(c *call) error {
	checks := []struct {
		name string
		look func(ctx context.Context) error
	}{
		{"database", s.cfg.Checks.Database},
		{"temporal", s.cfg.Checks.Temporal},
		{"bucket", s.cfg.Checks.Bucket},
	}
	away := make([]error, len(checks))
	ctx, cancel := context.WithTimeout(c.Request().Context(), checkDeadline)
	defer cancel()
	var looks sync.WaitGroup
	for i, check := range checks {
		if check.look != nil {
			looks.Go(func() { away[i] = check.look(ctx) })
		}
	}
	looks.Wait()
	answer := readiness{Status: "ready"}
	for i, check := range checks[1:] {
		if away[i+1] != nil {
			answer.Status, answer.Degraded = "degraded", append(answer.Degraded, check.name)
		}
	}
	if away[0] != nil {
		s.log.WarnContext(ctx, "database not reachable", "error", away[0])
		status := http.StatusServiceUnavailable
		answer.Status = "unavailable"
		answer.Error = &errorA{status, "the database is not reachable", wordServer, c.requestID}
		return c.json(status, answer)
	}
	return c.ok(answer)
}
