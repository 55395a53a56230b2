package api

// Waiting is the number of tasks that somebody waits for.
func Waiting(s *Server) int {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	return len(s.watch.waiting)
}

// Bodies is the number of calls that hold room for a body.
func Bodies(s *Server) (n int) {
	budget := s.models.Load().budget
	budget.mu.Lock()
	defer budget.mu.Unlock()
	for _, p := range budget.portions {
		n += p.calls
	}
	return n
}

// Seats changes how many long polls of a key may wait.
func Seats(s *Server, most int) { s.seats.most = most }
