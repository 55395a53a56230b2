package api

import (
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
)

// take has so much of a limit for the call at once, or says that there is no room.
func (c *call) take(of *limit.Limit, n int64, what string) (*limit.Permit, error) {
	lease, ok := of.TryAcquire(c.tenant(), n)
	if !ok {
		return nil, c.noRoom(of, what)
	}
	return lease, nil
}

// noRoom says that the call gets nothing of a limit: its account has its share, or the
// process all that it can hold.
func (c *call) noRoom(of *limit.Limit, what string) error {
	if of.Uses(c.tenant()) {
		return &mediagate.Error{
			Kind: mediagate.KindRateLimited, RetryAfter: time.Second,
			Message: "too many requests: " + what + " of this account leave no room for another",
		}
	}
	return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "no room for " + what}
}
