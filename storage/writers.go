package storage

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

// defaultPatience is how long a write waits for others of its account, unless the caller of
// Open says otherwise: as long as for a lock.
const defaultPatience = 10 * time.Second

// enter waits until a write of the account may have a connection, until leave is called.
// Whatever moves an account's money locks its row, and waits for it while it has a
// connection: a crowd of one account would take all of the pool's while that row is
// locked, and nobody else could even read. Nobody may enter a second time meanwhile.
// Returns KindUnavailable where there is no room in time.
func (s *Store) enter(ctx context.Context, account string) (leave func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	lease, err := s.writers.Acquire(waiting, account, 1)
	if err != nil {
		return nil, &mediagate.Error{
			Kind: mediagate.KindUnavailable, Message: "the account is busy: too many of its requests wait for its balance", Err: err,
		}
	}
	return lease.Release, nil
}
