package api

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/api/listener"
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

// identify finds the caller of a token. An address of which too many tries have
// failed still has every valid key answered: those that are known here at once,
// others with all other strangers' in one question. Only that a try has failed it
// hears a while later.
func (s *Server) identify(ctx context.Context, c *call, token string) (*caller, error) {
	if !s.throttle.suspect(c.client) {
		who, err := s.keys.find(ctx, token, nil)
		if mediagate.Is(err, mediagate.KindUnauthenticated) {
			s.throttle.fail(c.client)
		}
		return who, err
	}
	who, err := s.keys.find(ctx, token, s.strangers.live)
	if mediagate.Is(err, mediagate.KindUnauthenticated) {
		s.throttle.fail(c.client)
		select {
		case <-time.After(failureDelay):
		case <-ctx.Done():
		case <-s.watch.ctx.Done(): // the server is to stop
		}
	}
	return who, err
}

// How strangers are asked for.
const (
	strangersEvery  = 100 * time.Millisecond
	strangersAtOnce = 1_000
	strangersLimit  = 5 * time.Second // for one question
)

// strangers asks the database for keys of suspects: for many at once, one
// question at a time, and not more often than every so often. Each of those who
// wait has a connection, so that these bound how many they are.
type strangers struct {
	store CallerStore

	mu      sync.Mutex
	waiting []*stranger // in the order in which they came
	asking  bool
	asked   time.Time // when the last question began
}

type stranger struct {
	hash [32]byte
	done chan struct{}
	live bool
	err  error
}

// live reports whether there is a key with the hash.
func (s *strangers) live(ctx context.Context, hash [32]byte) (bool, error) {
	me := &stranger{hash: hash, done: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, me)
	if !s.asking {
		s.asking = true
		go s.ask()
	}
	s.mu.Unlock()
	select {
	case <-me.done:
		return me.live, me.err
	case <-ctx.Done():
		return false, &mediagate.Error{Kind: mediagate.KindUnavailable, Message: "no answer about the key in time", Err: ctx.Err()}
	}
}

// ask asks until nobody waits.
func (s *strangers) ask() {
	for {
		time.Sleep(time.Until(s.asked.Add(strangersEvery)))
		s.mu.Lock()
		some := s.waiting[:min(len(s.waiting), strangersAtOnce)]
		if s.waiting = s.waiting[len(some):]; len(some) == 0 {
			s.asking, s.waiting = false, nil
			s.mu.Unlock()
			return
		}
		s.asked = time.Now()
		s.mu.Unlock()
		s.answer(some)
	}
}

// answer asks for some of them.
func (s *strangers) answer(some []*stranger) {
	hashes := make(map[[32]byte]bool, len(some))
	for _, one := range some {
		hashes[one.hash] = false
	}
	ctx, cancel := context.WithTimeout(context.Background(), strangersLimit)
	defer cancel()
	var live [][32]byte
	err := mediagate.Guarded(func() (err error) {
		live, err = s.store.LiveKeys(ctx, slices.Collect(maps.Keys(hashes)))
		return err
	})
	for _, hash := range live {
		hashes[hash] = true
	}
	for _, one := range some {
		one.live, one.err = hashes[one.hash], err
		close(one.done)
	}
}
