package api

import (
	"sync"
	"time"
)

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
