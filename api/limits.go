package api

import "github.com/mediagate/mediagate/limit"

// Limits are how much is taken of what the server bounds, for metrics.
func (s *Server) Limits() []limit.Figures {
	s.connections.mu.Lock()
	open := int64(s.connections.open)
	s.connections.mu.Unlock()
	s.starts.mu.Lock()
	starts := limit.Figures{Name: "starts", Capacity: mostStarts, Held: int64(s.starts.waiting), Refused: s.starts.leftInAll}
	s.starts.mu.Unlock()
	return []limit.Figures{
		{Name: "connections", Capacity: int64(s.connections.most), Held: open, Refused: s.connections.refused.counted()},
		starts, s.seats.figures("waits"), s.listeners.figures("speeches"),
	}
}

func (s *seats) figures(name string) limit.Figures {
	s.mu.Lock()
	defer s.mu.Unlock()
	return limit.Figures{Name: name, Held: s.held, Refused: s.refused}
}
