package activitytest

import (
	"context"
	"time"

	"github.com/mediagate/mediagate"
)

// ChannelStates reads all channels that anybody has noted.
func (s *Store) ChannelStates(ctx context.Context) ([]mediagate.ChannelState, error) {
	return under(ctx, s, "ChannelStates", func() ([]mediagate.ChannelState, error) {
		states := []mediagate.ChannelState{}
		for _, name := range names(s.channels) {
			states = append(states, s.channels[name].shown())
		}
		return states, nil
	})
}

// Channel is what is known of one.
func (s *Store) Channel(name string) mediagate.ChannelState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channel(name).shown()
}

func (c *channelRow) shown() mediagate.ChannelState {
	c.state.LastSeenAt = c.seenAt
	return c.state
}

func (s *Store) changeChannel(ctx context.Context, method, name string, change func(*channelRow) bool) (state mediagate.ChannelState, changed bool, err error) {
	err = s.run(ctx, method, func() error {
		c := s.channel(name)
		changed = change(c)
		state = c.shown()
		return nil
	})
	return state, changed, err
}

// reset closes a breaker.
func (c *channelRow) reset(now time.Time) {
	c.probe = ""
	c.state = mediagate.ChannelState{
		Name: c.state.Name, Enabled: c.state.Enabled, ChangedAt: now, LastError: c.state.LastError, LastErrorAt: c.state.LastErrorAt,
	}
}

// TripBreaker takes a channel out that is in.
func (s *Store) TripBreaker(ctx context.Context, t mediagate.Trip) (mediagate.ChannelState, bool, error) {
	return s.changeChannel(ctx, "TripBreaker", t.Channel, func(c *channelRow) bool {
		if c.state.Open || c.state.ChangedAt.After(t.Began) {
			return false
		}
		now := s.clock()
		c.state.Open, c.state.Reason, c.state.Trips, c.state.ChangedAt, c.state.ProbeAt = true, t.Reason, 1, now, now.Add(t.OpenFor)
		return true
	})
}

// ClaimProbe gives the probe to one caller.
func (s *Store) ClaimProbe(ctx context.Context, channel, probe string, lease time.Duration) (mediagate.ChannelState, bool, error) {
	return s.changeChannel(ctx, "ClaimProbe", channel, func(c *channelRow) bool {
		now := s.clock()
		if !c.state.Enabled || !c.state.ProbeDue(now) {
			return false
		}
		c.probe, c.state.ProbeUntil = probe, now.Add(lease)
		return true
	})
}

// CloseBreaker lets all jobs through again.
func (s *Store) CloseBreaker(ctx context.Context, channel, probe string) (mediagate.ChannelState, bool, error) {
	return s.changeChannel(ctx, "CloseBreaker", channel, func(c *channelRow) bool {
		if !c.state.Open || c.probe != probe {
			return false
		}
		c.reset(s.clock())
		return true
	})
}

// ReopenBreaker ends a probe that failed.
func (s *Store) ReopenBreaker(ctx context.Context, channel, probe string, reason mediagate.ParkReason, openFor time.Duration) (mediagate.ChannelState, bool, error) {
	return s.changeChannel(ctx, "ReopenBreaker", channel, func(c *channelRow) bool {
		if !c.state.Open || c.probe != probe {
			return false
		}
		c.probe, c.state.ProbeUntil, c.state.ProbeAt, c.state.Reason = "", time.Time{}, s.clock().Add(openFor), reason
		c.state.Trips++
		return true
	})
}

// ReleaseProbe gives a probe back.
func (s *Store) ReleaseProbe(ctx context.Context, channel, probe string) (mediagate.ChannelState, bool, error) {
	return s.changeChannel(ctx, "ReleaseProbe", channel, func(c *channelRow) bool {
		if c.probe != probe {
			return false
		}
		c.probe, c.state.ProbeUntil = "", time.Time{}
		return true
	})
}

// EnableChannel is an operator's command.
func (s *Store) EnableChannel(ctx context.Context, channel string, enabled bool) (mediagate.ChannelState, error) {
	state, _, err := s.changeChannel(ctx, "EnableChannel", channel, func(c *channelRow) bool {
		if enabled {
			c.state.Enabled = true
			c.reset(s.clock())
		} else if c.state.Enabled {
			c.state.Enabled, c.state.ChangedAt = false, s.clock()
		}
		return true
	})
	return state, err
}

// CountCalls keeps what was counted.
func (s *Store) CountCalls(ctx context.Context, calls []mediagate.ChannelCalls) error {
	return s.run(ctx, "CountCalls", func() error {
		for _, c := range calls {
			s.calls = append(s.calls, c)
			if row := s.channels[c.Channel]; row != nil && c.LastError != "" && c.LastErrorAt.After(row.state.LastErrorAt) {
				row.state.LastError, row.state.LastErrorAt = c.LastError, c.LastErrorAt
			}
		}
		return nil
	})
}

// ChannelRates adds up the submits since then.
func (s *Store) ChannelRates(ctx context.Context, since time.Time) (map[string]mediagate.ChannelCalls, error) {
	return under(ctx, s, "ChannelRates", func() (map[string]mediagate.ChannelCalls, error) {
		rates := map[string]mediagate.ChannelCalls{}
		for _, c := range s.calls {
			if c.Submits > 0 && !c.Minute.Truncate(time.Minute).Before(since.Truncate(time.Minute)) {
				sum := rates[c.Channel]
				rates[c.Channel] = mediagate.ChannelCalls{Channel: c.Channel, Submits: sum.Submits + c.Submits, Failures: sum.Failures + c.Failures}
			}
		}
		return rates, nil
	})
}
