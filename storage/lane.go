package storage

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mediagate/mediagate"
)

// Whatever moves an account's money locks its row, and waits for it while it has a
// connection. A crowd of one account would so take all of the pool's while that row
// is locked, and nobody else could even read. An account's lane is how many of its
// writers have a connection at once; the rest of them wait before it, without one.

const (
	// laneShare is the part of the pool that one account's writers may have. Its
	// row makes them take turns anyway: more of them would be no faster.
	laneShare = 6
	leastLane = 2 // the one whose turn it is, and the next one
	// lanePatience is how long one waits before the lane unless the caller of Open says otherwise: as long as for a lock.
	lanePatience = 10 * time.Second
)

// lanes are those of the accounts whose writers are at work. An account that has
// none has no lane.
type lanes struct {
	width    int64
	patience time.Duration

	mu   sync.Mutex
	open map[string]*lane
}

type lane struct {
	room  *semaphore.Weighted
	users int // within it or before it
}

// newLanes are for a pool of that many connections.
func newLanes(pool int, patience time.Duration) *lanes {
	return &lanes{width: int64(max(pool/laneShare, leastLane)), patience: patience, open: make(map[string]*lane)}
}

// enter waits for room in the account's lane, until leave is called. Nobody may
// enter a second one meanwhile. Returns KindUnavailable where there is no room in
// time.
func (l *lanes) enter(ctx context.Context, account string) (leave func(), err error) {
	into := l.join(account)
	if !into.room.TryAcquire(1) {
		waiting, cancel := context.WithTimeout(ctx, l.patience)
		err = into.room.Acquire(waiting, 1)
		cancel()
	}
	if err != nil {
		l.part(account, into)
		return nil, &mediagate.Error{
			Kind: mediagate.KindUnavailable, Message: "the account is busy: too many of its requests wait for its balance", Err: err,
		}
	}
	return func() {
		into.room.Release(1)
		l.part(account, into)
	}, nil
}

// used tells whether anybody is in the account's lane, or before it.
func (l *lanes) used(account string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[account] != nil
}

func (l *lanes) join(account string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, ok := l.open[account]
	if !ok {
		one = &lane{room: semaphore.NewWeighted(l.width)}
		l.open[account] = one
	}
	one.users++
	return one
}

// part forgets the lane with its last user.
func (l *lanes) part(account string, one *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(l.open, account)
	}
}
