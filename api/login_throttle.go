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

// What keys that nobody has are let cost. Their check digits can be computed by
// anybody, so each different one is a question to the database.
const (
	triesWindow  = time.Minute
	triesOfOne   = 60    // failed ones of an address in a window, of IPv6 of a /64
	triesOfAll   = 1_000 // of all addresses
	failureDelay = time.Second
)

// loginThrottle counts failed tries to log in, for a window at a time. No more addresses
// are remembered than may fail before everybody is under suspicion.
type loginThrottle struct {
	now func() time.Time

	mu    sync.Mutex
	since time.Time
	all   int
	of    map[netip.Prefix]int
}

// fail counts a failed try.
func (t *loginThrottle) fail(client netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn()
	if t.all >= triesOfAll {
		return
	}
	t.all++
	t.of[listener.NetworkOf(client)]++
}

// suspect reports whether so many have failed that the address is given no more
// questions to the database of its own.
func (t *loginThrottle) suspect(client netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn()
	return t.all >= triesOfAll || t.of[listener.NetworkOf(client)] >= triesOfOne
}

// turn begins the next window when it is time.
func (t *loginThrottle) turn() {
	if now := t.now(); t.of == nil || now.Sub(t.since) >= triesWindow || now.Before(t.since) {
		t.since, t.all, t.of = now, 0, map[netip.Prefix]int{}
	}
}

// identify finds the caller of a key.
func (s *Server) identify(ctx context.Context, c *call, token string) (who *caller, err error) {
	err = s.throttled(ctx, c, func(turn turn) error {
		who, err = s.findKey(ctx, token, turn)
		return err
	})
	return who, err
}

// throttled runs a try to log in. An address of which too many tries have failed
// still has everything that is valid answered: what is known here at once, other things
// when it is its turn among such addresses. Only that a try has failed it hears a while later.
func (s *Server) throttled(ctx context.Context, c *call, try func(turn) error) error {
	suspect := s.throttle.suspect(c.client)
	var wait turn
	if suspect {
		wait = func(ctx context.Context) (*limit.Permit, error) {
			permit, err := s.cfg.Limits.Suspects.Acquire(ctx, listener.NetworkOf(c.client).String(), 1)
			if err != nil {
				err = &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "no answer about the key in time", Err: err}
			}
			return permit, err
		}
	}
	err := try(wait)
	if !mediagate.Is(err, mediagate.KindUnauthenticated) {
		return err
	}
	s.throttle.fail(c.client)
	if suspect {
		select {
		case <-time.After(failureDelay):
		case <-ctx.Done():
		case <-s.watch.ctx.Done(): // the server is to stop
		}
	}
	return err
}
