package activitytest

import "github.com/mediagate/mediagate"

// Peek reads a task as nobody can: past the faults, at any time.
func (s *Store) Peek(id string) (mediagate.Task, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.tasks[id]
	if !ok {
		return mediagate.Task{}, false
	}
	t := r.task
	if t.Webhook != nil {
		w := *t.Webhook
		t.Webhook = &w
	}
	return t, true
}
