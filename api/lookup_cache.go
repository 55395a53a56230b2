package api

import (
	"context"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
)

// keyFresh is how long a cached key or session is used. A deleted key must be refused everywhere
// within a second, so some of that second is left for the request itself.
const keyFresh = 700 * time.Millisecond

// maxCachedKeys bounds the entries of a cache.
const maxCachedKeys = 10_000

// permitFunc waits for a permit to query the store.
type permitFunc func(context.Context) (*limit.Permit, error)

// lookupCache looks up what belongs to the hash of a secret, and caches the store's answer for
// keyFresh.
type lookupCache[T any] struct {
	lookUp func(ctx context.Context, hash [32]byte) (T, error)
	now    func() time.Time

	mu      sync.Mutex
	known   map[[32]byte]cachedLookup[T]
	unknown map[[32]byte]time.Time // when the store last reported the hash as unknown
}

type cachedLookup[T any] struct {
	value T
	at    time.Time
}

func newLookupCache[T any](now func() time.Time, lookUp func(context.Context, [32]byte) (T, error)) *lookupCache[T] {
	return &lookupCache[T]{
		lookUp: lookUp, now: now, known: map[[32]byte]cachedLookup[T]{}, unknown: map[[32]byte]time.Time{},
	}
}

var errUnknownHash = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "unknown hash"}

// find returns what belongs to the hash: KindNotFound if nothing does, and the store's errors.
// Before it queries the store about a hash for which it has no value, not even a stale one, it
// acquires a permit, unless acquire is nil.
func (r *lookupCache[T]) find(ctx context.Context, hash [32]byte, acquire permitFunc) (T, error) {
	var none T
	now := r.now()
	r.mu.Lock()
	last, known := r.known[hash]
	since := r.unknown[hash]
	r.mu.Unlock()
	if !since.IsZero() && fresh(since, now) {
		return none, errUnknownHash
	}
	if known && fresh(last.at, now) {
		return last.value, nil
	}
	if !known && acquire != nil {
		permit, err := acquire(ctx)
		if err != nil {
			return none, err
		}
		defer permit.Release()
	}
	value, err := r.lookUp(ctx, hash)
	if mediagate.Is(err, mediagate.KindNotFound) {
		r.forget(hash, now)
	}
	if err != nil {
		return none, err
	}
	r.keep(hash, cachedLookup[T]{value, now})
	return value, nil
}

// keep caches an answer. If the cache is full it drops the stale entries, or all entries if none
// is stale.
func (r *lookupCache[T]) keep(hash [32]byte, last cachedLookup[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxCachedKeys {
		for h, old := range r.known {
			if last.at.Sub(old.at) >= keyFresh {
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

// fresh reports whether an answer of that time may still be used.
func fresh(at, now time.Time) bool {
	age := now.Sub(at)
	return age >= 0 && age < keyFresh
}

// forget caches that nothing belongs to the hash. If the cache is full it starts afresh, which
// only costs queries.
func (r *lookupCache[T]) forget(hash [32]byte, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, hash)
	if len(r.unknown) >= maxCachedKeys {
		clear(r.unknown)
	}
	r.unknown[hash] = now
}

// forgetWhere drops the cached answers for which changed returns true. The caller has changed their
// values, and the change takes effect in this process at once. It also drops all unknown hashes,
// since one of them may be known by now.
func (r *lookupCache[T]) forgetWhere(changed func(value T) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.unknown)
	for h, last := range r.known {
		if changed(last.value) {
			delete(r.known, h)
		}
	}
}
