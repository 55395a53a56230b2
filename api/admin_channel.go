package api

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/catalog"
)

const (
	// rateWindow is what an error rate is about.
	rateWindow = 5 * time.Minute
	// goneAfter is how long no worker may have had a channel (D11).
	goneAfter = 10 * time.Minute
)

// The states of a channel, as operators read them.
const (
	channelUp       = "up"
	channelFailing  = "failing"  // all of its submits of late failed, but its breaker is closed
	channelBroken   = "broken"   // its breaker is open: no new jobs
	channelProbing  = "probing"  // the next job, or one under way, finds out
	channelDisabled = "disabled" // by an operator: it drains
	channelGone     = "gone"     // no worker has it
)

var errChannel = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "channel not found", Param: "channel"}

type channelView struct {
	Name        string   `json:"name"`
	Provider    string   `json:"provider"`
	Models      []string `json:"models"` // empty: all that its provider serves
	Priority    int      `json:"priority"`
	Weight      int      `json:"weight"`
	Concurrency int      `json:"concurrency"`
	Enabled     bool     `json:"enabled"`
	State       string   `json:"state"`
	Reason      *string  `json:"reason"`          // why it is broken
	Disabled    *string  `json:"disabled_reason"` // the operator's words
	Since       *int64   `json:"since"`           // of the state
	NextProbeAt *int64   `json:"next_probe_at"`
	InFlight    int      `json:"in_flight"` // jobs that the vendor has or may have
	Waiting     int      `json:"waiting"`   // tasks queued for a slot
	Oldest      *int64   `json:"oldest"`    // of both
	Polling     int      `json:"polling"`   // jobs that are asked for
	ErrorRate   *float64 `json:"error_rate"`
	LastError   *string  `json:"last_error"`
	LastErrorAt *int64   `json:"last_error_at"`

	Retired []retiredModel `json:"retired"`
}

// retiredModel is a model that the vendor says it no longer has: until then no job goes to
// its route.
type retiredModel struct {
	Upstream string `json:"upstream"`
	Until    int64  `json:"until"`
}

// retiredModels lists those of a channel, by name.
func retiredModels(s mediagate.ChannelState, now time.Time) []retiredModel {
	list := []retiredModel{}
	for _, upstream := range slices.Sorted(maps.Keys(s.Retired)) {
		if s.HasRetired(upstream, now) {
			list = append(list, retiredModel{upstream, s.Retired[upstream].Unix()})
		}
	}
	return list
}

// handleChannels lists the channels by name: those of the settings, and those
// that are in them no more while jobs are left there.
func (s *Server) handleChannels(c *call) error {
	q := c.query()
	limit, err := intQuery(q, "limit", 1, maxLimit, defaultLimit)
	if err != nil {
		return err
	}
	known, err := s.knownChannels(c.ctx)
	if err != nil {
		return err
	}
	if after := q.Get("after"); after != "" {
		at := slices.IndexFunc(known, func(k knownChannel) bool { return k.Name == after })
		if at < 0 {
			return errAfterPage
		}
		known = known[at+1:]
	}
	more := len(known) > limit
	rates, err := s.rates(c.ctx)
	if err != nil {
		return err
	}
	views := make([]channelView, 0, limit)
	for _, k := range known[:min(limit, len(known))] {
		v, err := s.viewChannel(c.ctx, k, rates)
		if err != nil {
			return err
		}
		views = append(views, v)
	}
	return c.ok(adminList[channelView]{Object: "list", Data: views, HasMore: more})
}

func (s *Server) handleChannel(c *call) error {
	k, err := s.pathChannel(c)
	if err != nil {
		return err
	}
	return s.answerChannel(c, k)
}

// handleChannelChange takes a channel out or in. It drains when it is out; when
// it is taken in its breaker is closed, and its retired models are asked for again. The
// operator may say why.
func (s *Server) handleChannelChange(c *call) error {
	k, err := s.pathChannel(c)
	if err != nil {
		return err
	}
	_, enabled, err := readFields(s, c, &catalog.Outline{Whole: true}, func(f *fields) bool {
		c.actsFor(f.text("reason"))
		return readEnabled(f)
	})
	if err != nil {
		return err
	}
	if k.state, err = s.cfg.Store.EnableChannel(c.ctx, k.Name, enabled); err != nil {
		return err
	}
	s.log.InfoContext(c.ctx, "an operator changed a channel", "channel", k.Name, "enabled", enabled)
	return s.answerChannel(c, k)
}

func readEnabled(f *fields) bool {
	for name := range f.body {
		if name != "enabled" && name != "reason" {
			f.fail(name, "%s is no field that can be changed", mediagate.Quote(name))
		}
	}
	if !f.has("enabled") {
		f.fail("enabled", "enabled is required")
	}
	return f.flag("enabled")
}

func (s *Server) answerChannel(c *call, k knownChannel) error {
	rates, err := s.rates(c.ctx)
	if err != nil {
		return err
	}
	v, err := s.viewChannel(c.ctx, k, rates)
	if err != nil {
		return err
	}
	return c.ok(v)
}

// knownChannel is a channel as configured, and what the database knows of it.
type knownChannel struct {
	Channel
	configured bool
	state      mediagate.ChannelState
}

// knownChannels are all channels, by name.
func (s *Server) knownChannels(ctx context.Context) ([]knownChannel, error) {
	states, err := s.cfg.Store.ChannelStates(ctx)
	if err != nil {
		return nil, err
	}
	var known []knownChannel
	for _, c := range s.cfg.Channels {
		known = append(known, knownChannel{c, true, mediagate.ChannelState{Name: c.Name, Enabled: true}})
	}
	for _, state := range states {
		at := slices.IndexFunc(known, func(k knownChannel) bool { return k.Name == state.Name })
		if at >= 0 {
			known[at].state = state
			continue
		}
		left, err := s.jobsLeft(ctx, state.Name)
		if err != nil {
			return nil, err
		}
		if left {
			known = append(known, knownChannel{Channel{Name: state.Name}, false, state})
		}
	}
	slices.SortFunc(known, func(x, y knownChannel) int { return strings.Compare(x.Name, y.Name) })
	return known, nil
}

// jobsLeft reports that a channel has jobs, or tasks that wait for it.
func (s *Server) jobsLeft(ctx context.Context, name string) (bool, error) {
	inFlight, queued, _, err := s.cfg.Store.ChannelLoad(ctx, name)
	if err != nil {
		return false, err
	}
	polling, _, err := s.cfg.Store.AwaitStats(ctx, name)
	return inFlight+queued+polling > 0, err
}

// pathChannel is the channel that the path names.
func (s *Server) pathChannel(c *call) (knownChannel, error) {
	known, err := s.knownChannels(c.ctx)
	if err != nil {
		return knownChannel{}, err
	}
	at := slices.IndexFunc(known, func(k knownChannel) bool { return k.Name == c.Param("channel") })
	if at < 0 {
		return knownChannel{}, errChannel
	}
	return known[at], nil
}

func (s *Server) rates(ctx context.Context) (map[string]mediagate.ChannelCalls, error) {
	return s.cfg.Store.ChannelRates(ctx, s.now().Add(-rateWindow))
}

func (s *Server) viewChannel(ctx context.Context, k knownChannel, rates map[string]mediagate.ChannelCalls) (channelView, error) {
	now, state := s.now(), k.state
	v := channelView{
		Name: k.Name, Provider: k.Provider, Models: append([]string{}, k.Models...), Priority: k.Priority, Weight: k.Weight,
		Concurrency: k.Concurrency, Enabled: state.Enabled, State: k.word(now), Reason: orNull(string(state.Reason)),
		Disabled: orNull(state.DisabledReason), Since: unixOrNull(state.ChangedAt), LastError: orNull(state.LastError), LastErrorAt: unixOrNull(state.LastErrorAt),
		Retired: retiredModels(state, now),
	}
	if v.State == channelBroken {
		v.NextProbeAt = unixOrNull(state.ProbeAt)
	}
	var oldest time.Time
	var err error
	if v.InFlight, v.Waiting, oldest, err = s.cfg.Store.ChannelLoad(ctx, k.Name); err != nil {
		return v, err
	}
	v.Oldest = unixOrNull(oldest)
	if v.Polling, _, err = s.cfg.Store.AwaitStats(ctx, k.Name); err != nil {
		return v, err
	}
	if r := rates[k.Name]; r.Submits > 0 {
		v.ErrorRate = new(math.Round(float64(r.Failures)/float64(r.Submits)*1e4) / 1e4)
		if v.State == channelUp && r.Failures >= r.Submits {
			v.State = channelFailing
		}
	}
	return v, nil
}

// word is the channel's state.
func (k knownChannel) word(now time.Time) string {
	switch s := k.state; {
	case now.Sub(s.LastSeenAt) >= goneAfter:
		return channelGone
	case !s.Enabled:
		return channelDisabled
	case s.Open && (s.ProbeDue(now) || now.Before(s.ProbeUntil)):
		return channelProbing
	case s.Open:
		return channelBroken
	default:
		return channelUp
	}
}
