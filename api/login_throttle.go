package api

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/listener"
	"github.com/mediagate/mediagate/internal/limit"
)

// The bounds on attempts with unknown keys. Anybody can compute the check digits of a key, so each
// attempt with another made-up key costs a query to the database.
const (
	failureWindow        = time.Minute
	maxFailuresOfNetwork = 60    // failed attempts of an address (IPv6: of a /64) in a window
	maxFailures          = 1_000 // failed attempts of all addresses in a window
	failureDelay         = time.Second
)

// loginThrottle counts failed logins, for one window at a time. It remembers at most maxFailures
// addresses: after that many failures all addresses are throttled.
type loginThrottle struct {
	now func() time.Time

	mu    sync.Mutex
	since time.Time
	all   int
	of    map[netip.Prefix]int
}

func (t *loginThrottle) countFailure(client netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rollWindow()
	if t.all >= maxFailures {
		return
	}
	t.all++
	t.of[listener.NetworkOf(client)]++
}

// isThrottled reports whether the address needs a permit to query the database, because too many
// logins have failed.
func (t *loginThrottle) isThrottled(client netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rollWindow()
	return t.all >= maxFailures || t.of[listener.NetworkOf(client)] >= maxFailuresOfNetwork
}

// rollWindow begins the next window when it is due.
func (t *loginThrottle) rollWindow() {
	if now := t.now(); t.of == nil || now.Sub(t.since) >= failureWindow || now.Before(t.since) {
		t.since, t.all, t.of = now, 0, map[netip.Prefix]int{}
	}
}

// identify finds the caller of a key.
func (s *Server) identify(ctx context.Context, c *call, token string) (who *caller, err error) {
	err = s.throttleLogin(ctx, c, func(acquire permitFunc) error {
		who, err = s.findKey(ctx, token, acquire)
		return err
	})
	return who, err
}

// throttleLogin runs an attempt to log in. A throttled address still gets an answer to every valid
// key: at once if the key is cached, otherwise after it got one of a few permits. It gets the
// answer to an unknown key only after failureDelay.
func (s *Server) throttleLogin(ctx context.Context, c *call, try func(permitFunc) error) error {
	isThrottled := s.throttle.isThrottled(c.client)
	var acquire permitFunc
	if isThrottled {
		acquire = func(ctx context.Context) (*limit.Permit, error) {
			permit, err := s.cfg.Limits.UnknownKeys.Acquire(ctx, listener.NetworkOf(c.client).String(), 1)
			if err != nil {
				err = &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "no answer about the key in time", Err: err}
			}
			return permit, err
		}
	}
	err := try(acquire)
	if !mediagate.Is(err, mediagate.KindUnauthenticated) {
		return err
	}
	s.throttle.countFailure(c.client)
	if isThrottled {
		select {
		case <-time.After(failureDelay):
		case <-ctx.Done():
		case <-s.watch.ctx.Done(): // the server is stopping
		}
	}
	return err
}
