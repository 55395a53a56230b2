package limit

import (
	"context"
	"sync"
)

// Group is a limit for each of many keys, all with the same capacity: for each channel its calls,
// for each account its callbacks. A key that is not in use costs nothing. A nil Group has no
// bound.
type Group struct {
	name     string
	capacity int64

	mu      sync.Mutex
	limits  map[string]*shared
	dropped Figures // sums of the limits that were dropped
}

// shared is the limit of a key while it is in use.
type shared struct {
	*Limit
	users int
}

// NewGroup makes a Group whose limits have capacity units each. The name appears in figures.
func NewGroup(name string, capacity int64) *Group {
	return &Group{name: name, capacity: capacity, limits: map[string]*shared{}}
}

// TryAcquire takes n units of the key's limit for the tenant if it may have them now.
func (g *Group) TryAcquire(key, tenant string, n int64) (*Permit, bool) {
	if g == nil {
		return nil, true
	}
	permit, ok := g.limitOf(key).TryAcquire(tenant, n)
	if !ok {
		g.release(key)
		return nil, false
	}
	permit.done = func() { g.release(key) }
	return permit, true
}

// Acquire takes n units of the key's limit for the tenant, like [Limit.Acquire].
func (g *Group) Acquire(ctx context.Context, key, tenant string, n int64) (*Permit, error) {
	if g == nil {
		return nil, ctx.Err()
	}
	permit, err := g.limitOf(key).Acquire(ctx, tenant, n)
	if err != nil {
		g.release(key)
		return nil, err
	}
	permit.done = func() { g.release(key) }
	return permit, nil
}

// Figures returns the sums over all keys. The capacity is that of a single key.
func (g *Group) Figures() Figures {
	if g == nil {
		return Figures{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.dropped
	all.Name, all.Capacity = g.name, g.capacity
	for _, l := range g.limits {
		all.add(l.Figures())
	}
	return all
}

func (f *Figures) add(o Figures) {
	f.Held += o.Held
	f.Waiting += o.Waiting
	f.Refused += o.Refused
	f.Waited += o.Waited
}

func (g *Group) limitOf(key string) *Limit {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.limits[key]
	if l == nil {
		l = &shared{Limit: New(g.name, g.capacity)}
		g.limits[key] = l
	}
	l.users++
	return l.Limit
}

func (g *Group) release(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.limits[key]
	if l.users--; l.users == 0 {
		g.dropped.add(l.Figures())
		delete(g.limits, key)
	}
}
