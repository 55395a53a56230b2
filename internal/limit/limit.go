package limit

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// ErrTooMuch says that a request exceeds the whole limit, so that no wait helps.
var ErrTooMuch = errors.New("more than the limit has")

// Limit bounds what tenants hold at once. A nil Limit has no bound. It is safe for concurrent
// use.
type Limit struct {
	name     string
	capacity int64

	mu      sync.Mutex
	held    int64
	tenants map[string]*tenant // tenants that hold something or wait
	queue   list.List          // of waiting *tenant, in round robin
	waiting int
	refused int64
	waited  time.Duration
}

type tenant struct {
	name   string
	held   int64
	waits  list.List     // of *waiter, first come, first served
	queued *list.Element // its place in the queue; nil if none of it waits
}

type waiter struct {
	n      int64
	served chan struct{} // closed once the waiter has its units
	at     *list.Element // its place among the waiters; nil once served
}

// Figures says how much of a limit is in use.
type Figures struct {
	Name     string
	Tenant   string // what a tenant is; set by Process.Figures
	Capacity int64
	Held     int64
	Waiting  int           // now
	Refused  int64         // so far: requests that got nothing, at once or before their context ended
	Waited   time.Duration // so far, by requests that have stopped waiting
}

// New makes a limit of capacity units. The name appears in figures.
func New(name string, capacity int64) *Limit {
	return &Limit{name: name, capacity: capacity, tenants: map[string]*tenant{}}
}

// Permit is what a tenant holds until it releases it. It must be used by one goroutine at a time.
// A nil Permit holds nothing.
type Permit struct {
	of     *Limit
	tenant string
	n      int64
	done   func() // called after the release; may be nil
}

// TryAcquire takes n units for the tenant if it may have them now.
func (l *Limit) TryAcquire(tenant string, n int64) (*Permit, bool) {
	if l == nil {
		return nil, true
	}
	if n > l.capacity {
		l.refuse()
		return nil, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.enter(tenant, n, false)
	if l.serve(); w.at != nil {
		l.leave(tenant, w)
		l.refused++
		return nil, false
	}
	return &Permit{of: l, tenant: tenant, n: n}, true
}

// Acquire takes n units for the tenant, and waits for them until ctx ends. It takes free units
// even if ctx has ended. It returns the error of ctx, or ErrTooMuch.
func (l *Limit) Acquire(ctx context.Context, tenant string, n int64) (*Permit, error) {
	if l == nil {
		return nil, ctx.Err()
	}
	if err := l.wait(ctx, tenant, n, false); err != nil {
		return nil, err
	}
	return &Permit{of: l, tenant: tenant, n: n}, nil
}

// Grow takes n more units, like Acquire. Among the waiters of its tenant, permits that grow come
// first, so that work in progress can end.
func (p *Permit) Grow(ctx context.Context, n int64) error {
	if p == nil || n == 0 {
		return ctx.Err()
	}
	if p.n+n > p.of.capacity {
		p.of.refuse()
		return ErrTooMuch
	}
	if err := p.of.wait(ctx, p.tenant, n, true); err != nil {
		return err
	}
	p.n += n
	return nil
}

// Shrink gives back what is held beyond n, which must be above 0.
func (p *Permit) Shrink(n int64) {
	if p != nil && n < p.n {
		p.of.giveBack(p.tenant, p.n-n)
		p.n = n
	}
}

// Release gives back what is held. It may be called more than once.
func (p *Permit) Release() {
	if p == nil || p.n == 0 {
		return
	}
	p.of.giveBack(p.tenant, p.n)
	p.n = 0
	if p.done != nil {
		p.done()
	}
}

// Uses reports whether the tenant holds units or waits for some.
func (l *Limit) Uses(tenant string) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tenants[tenant] != nil
}

// Held returns how much the permit holds.
func (p *Permit) Held() int64 {
	if p == nil {
		return 0
	}
	return p.n
}

// Figures returns the current figures.
func (l *Limit) Figures() Figures {
	if l == nil {
		return Figures{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return Figures{
		Name: l.name, Capacity: l.capacity, Held: l.held, Waiting: l.waiting, Refused: l.refused, Waited: l.waited,
	}
}

func (l *Limit) giveBack(name string, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tenants[name]
	l.held -= n
	t.held -= n
	l.forget(t)
	l.serve()
}

func (l *Limit) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused++
}

func (l *Limit) wait(ctx context.Context, tenant string, n int64, first bool) error {
	if n > l.capacity {
		l.refuse()
		return ErrTooMuch
	}
	l.mu.Lock()
	w := l.enter(tenant, n, first)
	l.serve()
	got := w.at == nil
	l.mu.Unlock()
	if got {
		return nil
	}
	since := time.Now()
	select {
	case <-w.served:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waited += time.Since(since)
	if w.at == nil { // served while ctx ended
		return nil
	}
	l.leave(tenant, w)
	l.refused++
	l.serve() // later waiters may have been blocked by this one
	return ctx.Err()
}

// enter adds a waiter to its tenant's queue.
func (l *Limit) enter(name string, n int64, first bool) *waiter {
	t := l.tenants[name]
	if t == nil {
		t = &tenant{name: name}
		l.tenants[name] = t
	}
	w := &waiter{n: n, served: make(chan struct{})}
	if first {
		w.at = t.waits.PushFront(w)
	} else {
		w.at = t.waits.PushBack(w)
	}
	if t.queued == nil {
		t.queued = l.queue.PushBack(t)
	}
	l.waiting++
	return w
}

// leave removes a waiter from its tenant's queue.
func (l *Limit) leave(name string, w *waiter) {
	t := l.tenants[name]
	t.waits.Remove(w.at)
	w.at = nil
	l.waiting--
	if t.waits.Len() == 0 {
		l.queue.Remove(t.queued)
		t.queued = nil
	}
	l.forget(t)
}

// forget drops a tenant that holds nothing and waits for nothing.
func (l *Limit) forget(t *tenant) {
	if t.held == 0 && t.waits.Len() == 0 {
		delete(l.tenants, t.name)
	}
}

// serve gives the waiting tenants what they may have, in round robin. A tenant that was passed
// over needs no second look, since the free units only get fewer.
func (l *Limit) serve() {
	for e := l.queue.Front(); e != nil; {
		t, _ := e.Value.(*tenant)
		w, _ := t.waits.Front().Value.(*waiter)
		free := l.capacity - l.held
		next := e.Next()
		switch {
		case t.held > 0 && t.held+w.n > free-w.n: // the tenant has its share
		case w.n > free:
			return
		default:
			l.held += w.n
			t.held += w.n
			if t.waits.Len() > 1 {
				l.queue.MoveToBack(e)
				if next == nil {
					next = e
				}
			}
			l.leave(t.name, w)
			close(w.served)
		}
		e = next
	}
}
