package api

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mediagate/mediagate"
)

// budget bounds the bytes of bodies that are in memory at once, and how many
// of them are one key's, and one account's: whoever holds a key could otherwise
// take all of the process's memory, without a cent of balance. Who finds no room waits for a
// moment before the body is read, which also slows down those that only come
// to be refused.
//
// Small bodies have a part for themselves, in which they never queue behind
// large ones, and so have the usual large ones beside those with media, of
// which two keys could announce as much as there is room for.
type budget struct {
	whole  [sizes]*semaphore.Weighted
	share  [sizes]int64 // of a key
	common [sizes]int64 // of the keys of an account

	mu       sync.Mutex
	portions map[string]*portion // of the keys that have bodies under way
	accounts map[string]*portion // of theirs: a key may make as many keys as it likes
}

// The parts of a budget.
const (
	small = iota // up to firstBuffer
	large        // up to usualBody
	media        // above
	files        // that go on to the bucket as they come: no memory of ours, but connections and the bucket's
	sizes
)

// Of uploads so many of the largest are under way at once as Config says, half of
// them one key's. Smaller ones count as less: by what the bucket's side holds of
// them until they end, which is twice their length and leastFile, and never more
// than of the largest.
const (
	defaultUploads = 8
	leastFile      = 64 << 10
)

// fileWeight is what an upload counts that may turn out to have so many bytes.
func fileWeight(most int64) int64 { return min(4*max(most, leastFile), uploadLimit) }

// usualBody is what a body without media takes: with a quote's endpoint, and
// one byte more to see the end.
const usualBody = bodyLimit + 1<<10

// portion is one key's share, or one account's.
type portion struct {
	room    [sizes]*semaphore.Weighted
	parsing chan struct{} // holds one while a large body is parsed or next
	calls   int           // that use it; with the last it is forgotten
}

// defaultBudget is 64 bodies of the usual bound.
const defaultBudget = 64 * bodyLimit

// newBudget makes a budget of so many bytes, of which a key gets a quarter, an
// account a half, and small bodies an eighth. A body of the largest size finds room in any case:
// where that is more than the usual one, there is room for two beside the rest.
// Uploads are counted beside all of them.
func newBudget(size, largest, uploads int64) *budget {
	usual, inline := min(largest, usualBody), int64(0)
	if largest > usual {
		inline = largest
	}
	b := &budget{portions: map[string]*portion{}, accounts: map[string]*portion{}}
	b.part(small, max(size/8, 8*firstBuffer), 0)
	b.part(large, max(size-size/8, 2*usual), usual)
	b.part(media, 2*inline, inline)
	b.part(files, uploads*uploadLimit, max(1, uploads/2)*uploadLimit)
	return b
}

func (b *budget) part(part int, bytes, largest int64) {
	b.whole[part] = semaphore.NewWeighted(bytes)
	b.share[part], b.common[part] = max(bytes/4, largest), max(bytes/2, largest)
}

// claim is what one call has of the budget. It is used by one goroutine.
type claim struct {
	budget  *budget
	who     string
	account string // empty for operators
	of      *portion
	within  *portion // that of the account; nil for operators
	bytes   [sizes]int64
}

// grow takes room for a body of so many bytes beyond what it has, see take.
func (c *claim) grow(ctx context.Context, from, to int64) error {
	part := small
	switch {
	case to > usualBody:
		part = media
	case to > firstBuffer:
		part = large
	}
	return c.take(ctx, part, to-from)
}

// take takes room in a part, and waits until ctx ends where there is none:
// KindRateLimited when the key or its account has its share, KindUnavailable when
// the process has all that it can hold.
func (c *claim) take(ctx context.Context, part int, n int64) error {
	if c.of == nil {
		c.of = c.budget.enter(c.budget.portions, c.who, c.budget.share)
		if c.account != "" {
			c.within = c.budget.enter(c.budget.accounts, c.account, c.budget.common)
		}
	}
	if c.of.room[part].Acquire(ctx, n) != nil {
		return errNoRoom("with this key")
	}
	if c.within != nil && c.within.room[part].Acquire(ctx, n) != nil {
		c.of.room[part].Release(n)
		return errNoRoom("with the keys of this account")
	}
	if err := c.budget.whole[part].Acquire(ctx, n); err != nil {
		c.of.room[part].Release(n)
		if c.within != nil {
			c.within.room[part].Release(n)
		}
		return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "no room for another body", Err: err}
	}
	c.bytes[part] += n
	return nil
}

func errNoRoom(whose string) error {
	return &mediagate.Error{
		Kind: mediagate.KindRateLimited, RetryAfter: time.Second,
		Message: "too many requests: the bodies under way " + whose + " have no room for another",
	}
}

// release gives everything back; more than once does nothing.
func (c *claim) release() {
	if c.of == nil {
		return
	}
	for part, n := range c.bytes {
		c.budget.whole[part].Release(n)
		c.of.room[part].Release(n)
		if c.within != nil {
			c.within.room[part].Release(n)
		}
	}
	c.budget.leave(c.budget.portions, c.who, c.of)
	if c.within != nil {
		c.budget.leave(c.budget.accounts, c.account, c.within)
	}
	c.of, c.within, c.bytes = nil, nil, [sizes]int64{}
}

func (b *budget) enter(portions map[string]*portion, who string, share [sizes]int64) *portion {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := portions[who]
	if p == nil {
		p = &portion{parsing: make(chan struct{}, 1)}
		for part, bytes := range share {
			p.room[part] = semaphore.NewWeighted(bytes)
		}
		portions[who] = p
	}
	p.calls++
	return p
}

func (b *budget) leave(portions map[string]*portion, who string, p *portion) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.calls--
	if p.calls == 0 {
		delete(portions, who)
	}
}
