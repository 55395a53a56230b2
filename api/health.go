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
// clients are still acknowledged, and with an older catalog or older lists of
// words they are served, so only the database decides, and the clock:
// a process whose own is wrong must not reckon with times (D10, D20).
func (s *Server) handleReady(c *call) error {
	checks := []struct {
		name    string
		look    func(ctx context.Context) error
		without string // what we are not ready without, in the words of the answer
	}{
		{"database", s.cfg.Checks.Database, "the database is not reachable"},
		{"clock", s.cfg.Checks.Clock, "the clock of this server is wrong"},
		{"temporal", s.cfg.Checks.Temporal, ""},
		{"bucket", s.cfg.Checks.Bucket, ""},
		{"catalog", s.cfg.Checks.Catalog, ""},
		{"moderation", s.cfg.Checks.Moderation, ""},
	}
	away := make([]error, len(checks))
	var looks sync.WaitGroup
	for i, check := range checks {
		if check.look != nil {
			looks.Go(func() { away[i] = s.look(check.name, check.look) })
		}
	}
	looks.Wait()
	answer := readiness{Status: "ready"}
	for i, check := range checks {
		switch {
		case away[i] == nil:
		case check.without == "":
			answer.Degraded = append(answer.Degraded, check.name)
		case answer.Error == nil:
			s.log.WarnContext(c.ctx, check.without, "error", away[i])
			answer.Error = &errorA{http.StatusServiceUnavailable, check.without, wordServer, c.requestID}
		}
	}
	switch {
	case answer.Error != nil:
		answer.Status = "unavailable"
		return c.json(http.StatusServiceUnavailable, answer)
	case len(answer.Degraded) > 0:
		answer.Status = "degraded"
	}
	return c.ok(answer)
}

// look asks a part once for all who want to know at the time: anyone may ask
// us, and each look at the bucket is a request to it.
func (s *Server) look(name string, look func(ctx context.Context) error) error {
	_, err, _ := s.looks.Do(name, func() (any, error) {
		ctx, cancel := context.WithTimeout(s.life, checkDeadline)
		defer cancel()
		return nil, look(ctx)
	})
	return err
}
