package api

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mediagate/mediagate"
)

// budget bounds the bytes of bodies that are in memory at once, and how many
// of them are one key's: whoever holds a key could otherwise take all of the
// process's memory, without a cent of balance. Who finds no room waits for a
// moment before the body is read, which also slows down those that only come
// to be refused.
type budget struct {
	whole *semaphore.Weighted
	share int64

	mu       sync.Mutex
	portions map[string]*portion // of the keys that have bodies under way
}

// portion is one key's share.
type portion struct {
	room  *semaphore.Weighted
	calls int // that use it; with the last it is forgotten
}

// defaultBudget is 64 bodies of the usual bound.
const defaultBudget = 64 * bodyLimit

// newBudget makes a budget of so many bytes, of which a key gets a quarter. A
// body of the largest size finds room in either.
func newBudget(size, largest int64) *budget {
	size = max(size, 2*largest)
	return &budget{whole: semaphore.NewWeighted(size), share: max(size/4, largest), portions: map[string]*portion{}}
}

// claim is what one call has of the budget. It is used by one goroutine.
type claim struct {
	budget *budget
	who    string
	of     *portion
	bytes  int64
}

// more takes room for so many bytes more, and waits until ctx ends where there
// is none: KindRateLimited when the key has its share, KindUnavailable when the
// process has all that it can hold.
func (c *claim) more(ctx context.Context, n int64) error {
	if c.of == nil {
		c.of = c.budget.enter(c.who)
	}
	if c.of.room.Acquire(ctx, n) != nil {
		return &mediagate.Error{
			Kind: mediagate.KindRateLimited, RetryAfter: time.Second,
			Message: "too many requests: the bodies under way with this key have no room for another",
		}
	}
	if err := c.budget.whole.Acquire(ctx, n); err != nil {
		c.of.room.Release(n)
		return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "no room for another body", Err: err}
	}
	c.bytes += n
	return nil
}

// release gives everything back; more than once does nothing.
func (c *claim) release() {
	if c.of == nil {
		return
	}
	c.budget.whole.Release(c.bytes)
	c.of.room.Release(c.bytes)
	c.budget.leave(c.who, c.of)
	c.of, c.bytes = nil, 0
}

func (b *budget) enter(who string) *portion {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.portions[who]
	if p == nil {
		p = &portion{room: semaphore.NewWeighted(b.share)}
		b.portions[who] = p
	}
	p.calls++
	return p
}

func (b *budget) leave(who string, p *portion) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.calls--
	if p.calls == 0 {
		delete(b.portions, who)
	}
}
