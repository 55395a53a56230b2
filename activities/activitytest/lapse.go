package activitytest

import (
	"maps"
	"slices"
	"time"

	"github.com/mediagate/mediagate"
)

// moment is what the store had at a time.
type moment struct {
	at      time.Time
	tasks   map[string]*entry
	actions []mediagate.Action
}

// KeepPast has the store remember what it had after each change, for Lapse.
func (s *Store) KeepPast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = []moment{s.present()}
}

// Lapse takes the store back to what it had so long ago, as a failover to a replica that
// lagged does.
func (s *Store) Lapse(back time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	then := s.clock().Add(-back)
	for len(s.past) > 1 && s.past[len(s.past)-1].at.After(then) {
		s.past = s.past[:len(s.past)-1]
	}
	last := s.past[len(s.past)-1]
	s.tasks, s.actions = copied(last.tasks), slices.Clone(last.actions)
}

// present is what the store has. The caller has its lock.
func (s *Store) present() moment { return moment{s.clock(), copied(s.tasks), slices.Clone(s.actions)} }

func copied(tasks map[string]*entry) map[string]*entry {
	all := make(map[string]*entry, len(tasks))
	for id, e := range tasks {
		c := *e
		c.state, c.wakes, c.deliveries = clone(e.state), maps.Clone(e.wakes), slices.Clone(e.deliveries)
		c.polls = make(map[int]*poll, len(e.polls))
		for n, p := range e.polls {
			kept := *p
			c.polls[n] = &kept
		}
		all[id] = &c
	}
	return all
}
