package api

import "github.com/mediagate/mediagate"

// Limits are how much is taken of what the server bounds, for metrics.
func (s *Server) Limits() []mediagate.LimitFigures {
	s.connections.mu.Lock()
	open := int64(s.connections.open)
	s.connections.mu.Unlock()
	s.starts.mu.Lock()
	starts := mediagate.LimitFigures{Name: "starts", Most: mostStarts, Held: int64(s.starts.waiting), Refused: s.starts.leftInAll}
	s.starts.mu.Unlock()
	return []mediagate.LimitFigures{
		{Name: "connections", Most: int64(s.connections.most), Held: open, Refused: s.connections.refused.counted()},
		starts, s.seats.figures("waits"), s.listeners.figures("speeches"),
	}
}

func (s *seats) figures(name string) mediagate.LimitFigures {
	s.mu.Lock()
	defer s.mu.Unlock()
	return mediagate.LimitFigures{Name: name, Held: s.held, Refused: s.refused}
}
