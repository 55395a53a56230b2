package channel

import (
	"context"
	"sync"
	"time"
)

// Places bound the calls of this process that make jobs: so many at once at each
// channel, and no channel has to do with another's. A vendor that takes the calls
// and does not answer holds its own places and no others.
//
// Who waits for a place goes before who only tries.
type Places struct {
	mu    sync.Mutex
	taken map[string]chan struct{}
}

// Place is room for one call at a channel, until it is left.
type Place struct {
	Channel string
	from    chan struct{}
	once    sync.Once
}

// Leave gives the place back. It may be called again, and on none.
func (p *Place) Leave() {
	if p != nil {
		p.once.Do(func() { <-p.from })
	}
}

// Try takes one of the channel's places, if one is free.
func (p *Places) Try(channel string, most int) (*Place, bool) {
	places := p.of(channel, most)
	select {
	case places <- struct{}{}:
		return &Place{Channel: channel, from: places}, true
	default:
		return nil, false
	}
}

// Await takes one once it is free. It returns false when patience, or ctx, ends
// first.
func (p *Places) Await(ctx context.Context, channel string, most int, patience time.Duration) (*Place, bool) {
	places := p.of(channel, most)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case places <- struct{}{}:
		return &Place{Channel: channel, from: places}, true
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil, false
}

// of is where the channel's places are taken from. The first caller sets how many there
// are.
func (p *Places) of(channel string, most int) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == nil {
		p.taken = make(map[string]chan struct{})
	}
	places, ok := p.taken[channel]
	if !ok {
		places = make(chan struct{}, most)
		p.taken[channel] = places
	}
	return places
}
