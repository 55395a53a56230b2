package api

import (
	"context"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
)

// keyFresh is how long a key or a session is believed without asking again. A deleted one
// must be refused everywhere within a second, so it leaves room for the
// request itself.
const keyFresh = 700 * time.Millisecond

// maxCachedKeys bounds the memory that callers can take.
const maxCachedKeys = 10_000

// turn waits until the caller may ask the store.
type turn func(context.Context) (*limit.Permit, error)

// recall asks the store what has the hash of a secret, and remembers the answer for a
// moment.
type recall[T any] struct {
	ask func(ctx context.Context, hash [32]byte) (T, error)
	now func() time.Time

	mu      sync.Mutex
	known   map[[32]byte]recalled[T]
	unknown map[[32]byte]time.Time // since when
}

type recalled[T any] struct {
	what T
	seen time.Time
}

func newRecall[T any](now func() time.Time, ask func(context.Context, [32]byte) (T, error)) *recall[T] {
	return &recall[T]{ask: ask, now: now, known: map[[32]byte]recalled[T]{}, unknown: map[[32]byte]time.Time{}}
}

var errUnknownHash = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "nothing has that hash"}

// find returns what has the hash: KindNotFound when nothing has, and the store's errors.
// Of a hash of which nothing is known the store is asked when it is the caller's turn,
// if there are turns.
func (r *recall[T]) find(ctx context.Context, hash [32]byte, turn turn) (T, error) {
	var none T
	now := r.now()
	r.mu.Lock()
	last, known := r.known[hash]
	since := r.unknown[hash]
	r.mu.Unlock()
	if !since.IsZero() && fresh(since, now) {
		return none, errUnknownHash
	}
	if known && fresh(last.seen, now) {
		return last.what, nil
	}
	if !known && turn != nil {
		permit, err := turn(ctx)
		if err != nil {
			return none, err
		}
		defer permit.Release()
	}
	what, err := r.ask(ctx, hash)
	if mediagate.Is(err, mediagate.KindNotFound) {
		r.forget(hash, now)
	}
	if err != nil {
		return none, err
	}
	r.keep(hash, recalled[T]{what, now})
	return what, nil
}

// keep stores an answer; when the table is full, stale entries make room,
// and all of them when none is stale.
func (r *recall[T]) keep(hash [32]byte, last recalled[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxCachedKeys {
		for h, old := range r.known {
			if last.seen.Sub(old.seen) >= keyFresh {
				delete(r.known, h)
			}
		}
		if len(r.known) >= maxCachedKeys {
			clear(r.known)
		}
	}
	r.known[hash] = last
	delete(r.unknown, hash)
}

// fresh reports whether what was seen then is to be believed.
func fresh(seen, now time.Time) bool {
	age := now.Sub(seen)
	return age >= 0 && age < keyFresh
}

// forget notes that nothing has the hash. That is believed as long as an answer is;
// when the table is full it begins anew, which costs queries and nothing else.
func (r *recall[T]) forget(hash [32]byte, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, hash)
	if len(r.unknown) >= maxCachedKeys {
		clear(r.unknown)
	}
	r.unknown[hash] = now
}

// forgetWhere drops answers that were changed through this process, so that here
// it is seen at once. What was unknown may be there again.
func (r *recall[T]) forgetWhere(changed func(what T) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.unknown)
	for h, last := range r.known {
		if changed(last.what) {
			delete(r.known, h)
		}
	}
}
