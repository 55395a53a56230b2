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
	// rateWindow is the time that an error rate covers.
	rateWindow = 5 * time.Minute
	// goneAfter is how long a channel may be without a worker before it counts as gone (D11).
	goneAfter = 10 * time.Minute
)

// The states of a channel, as operators read them.
const (
	channelUp       = "up"
	channelFailing  = "failing"  // all recent submits failed, but the breaker is closed
	channelBroken   = "broken"   // the breaker is open: the channel gets no new jobs
	channelProbing  = "probing"  // the next job, or one in progress, is the probe
	channelDisabled = "disabled" // an operator disabled it, and it drains
	channelGone     = "gone"     // no worker serves it
)

var errChannel = &mediagate.Error{Kind: mediagate.KindNotFound, Message: "channel not found", Param: "channel"}

type channelView struct {
	Name        string   `json:"name"`
	Provider    string   `json:"provider"`
	Models      []string `json:"models"` // empty: all models of its provider
	Priority    int      `json:"priority"`
	Weight      int      `json:"weight"`
	Concurrency int      `json:"concurrency"`
	Enabled     bool     `json:"enabled"`
	State       string   `json:"state"`
	Reason      *string  `json:"reason"`          // why the breaker is open
	Disabled    *string  `json:"disabled_reason"` // in the operator's words
	Since       *int64   `json:"since"`           // start of the state
	NextProbeAt *int64   `json:"next_probe_at"`
	InFlight    int      `json:"in_flight"` // jobs that run or may run at the vendor
	Waiting     int      `json:"waiting"`   // tasks that are queued for a slot
	Oldest      *int64   `json:"oldest"`    // time of the oldest of these jobs and tasks
	Polling     int      `json:"polling"`   // jobs that are polled for
	ErrorRate   *float64 `json:"error_rate"`
	LastError   *string  `json:"last_error"`
	LastErrorAt *int64   `json:"last_error_at"`

	Retired []retiredModel `json:"retired"`
}

// retiredModel is a model that the vendor says it no longer has. No job goes to its route before the
// time Until.
type retiredModel struct {
	Upstream string `json:"upstream"`
	Until    int64  `json:"until"`
}

// retiredModels lists the retired models of a channel, by name.
func retiredModels(s mediagate.ChannelState, now time.Time) []retiredModel {
	list := []retiredModel{}
	for _, upstream := range slices.Sorted(maps.Keys(s.Retired)) {
		if s.HasRetired(upstream, now) {
			list = append(list, retiredModel{upstream, s.Retired[upstream].Unix()})
		}
	}
	return list
}

// handleChannels lists the channels by name: those in the settings, and former ones that still
// have jobs.
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

// handleChannelChange enables or disables a channel. A disabled channel drains. Enabling a channel
// closes its breaker and lets jobs use its retired models again. The operator may give a reason.
func (s *Server) handleChannelChange(c *call) error {
	k, err := s.pathChannel(c)
	if err != nil {
		return err
	}
	_, enabled, err := readFields(s, c, &catalog.FieldMask{Whole: true}, func(f *fields) bool {
		c.setAuditReason(f.text("reason"))
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
			f.fail(name, "%s is not a field of this call; its fields are enabled and reason", mediagate.Quote(name))
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

// servesTask reports whether the channel serves a route of the task.
func (c *Channel) servesTask(t *mediagate.Task) bool {
	return slices.ContainsFunc(t.Plan.Routes, func(r mediagate.Route) bool { return c.Serves(t.Model, r) })
}

// knownChannel is a channel with its configuration and its state in the database.
type knownChannel struct {
	Channel
	configured bool
	state      mediagate.ChannelState
}

// knownChannels lists the channels in the settings, and former ones that still have jobs, by
// name.
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

// jobsLeft reports whether a channel still has jobs, or tasks that wait for it.
func (s *Server) jobsLeft(ctx context.Context, name string) (bool, error) {
	inFlight, queued, _, err := s.cfg.Store.ChannelLoad(ctx, name)
	if err != nil {
		return false, err
	}
	polling, _, err := s.cfg.Store.AwaitStats(ctx, name)
	return inFlight+queued+polling > 0, err
}

// pathChannel returns the channel in the path.
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

func (s *Server) viewChannel(
	ctx context.Context, k knownChannel, rates map[string]mediagate.ChannelCalls,
) (channelView, error) {
	now, state := s.now(), k.state
	v := channelView{
		Name:        k.Name,
		Provider:    k.Provider,
		Models:      append([]string{}, k.Models...),
		Priority:    k.Priority,
		Weight:      k.Weight,
		Concurrency: k.Concurrency,
		Enabled:     state.Enabled,
		State:       k.word(now),
		Reason:      orNull(string(state.Reason)),
		Disabled:    orNull(state.DisabledReason),
		Since:       unixOrNull(state.ChangedAt),
		LastError:   orNull(state.LastError),
		LastErrorAt: unixOrNull(state.LastErrorAt),
		Retired:     retiredModels(state, now),
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

// word names the channel's state.
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
