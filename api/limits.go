package api

import (
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/internal/limit"
)

// tryAcquire takes n units of a limit for the call without waiting, or returns an error that says
// that there is no room. what names the units.
func (c *call) tryAcquire(of *limit.Limit, n int64, what string) (*limit.Permit, error) {
	permit, ok := of.TryAcquire(c.tenant(), n)
	if !ok {
		return nil, c.errNoRoom(of, what)
	}
	return permit, nil
}

// errNoRoom is the error of a call that gets no units of a limit. If its account holds units or
// waits for some, the account has its share: KindRateLimited. Otherwise the process has none left:
// KindUnavailable. what names the units, such as "request bodies in progress".
func (c *call) errNoRoom(of *limit.Limit, what string) error {
	if of.Uses(c.tenant()) {
		return &mediagate.Error{
			Kind: mediagate.KindRateLimited, RetryAfter: time.Second,
			Message: "too many requests: this account has its share of the " + what + ", try again when one has ended",
		}
	}
	return &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "no room for " + what}
}
