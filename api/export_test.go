package api

// Waiting is the number of tasks that somebody waits for.
func Waiting(s *Server) int {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	return len(s.watch.waiting)
}
