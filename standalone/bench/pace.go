package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
	"github.com/mediagate/mediagate/cmd/mediagate/app"
)

// The settings that most accounts have.
const (
	paceBudget   = 10
	paceShortest = 2 * time.Second
	paceLongest  = 15 * time.Second
)

// group is so many jobs that wait at once, and how late their ends may be seen.
type group struct {
	name     string
	jobs     int
	rounds   int
	duration time.Duration
	spread   float64
	p50, p95 time.Duration // 0: no aim
}

// measurePace measures how an account's budget is spent: on few jobs, on more
// than can be asked for at the shortest interval, and on very many.
func measurePace(ctx context.Context, m *machine, o options) (rows []row, err error) {
	few := func(duration time.Duration, rounds int) group {
		return group{fmt.Sprintf("20 jobs of %s", duration), 20, rounds, duration, 0.2, 1500 * time.Millisecond, 3 * time.Second}
	}
	groups := []group{few(5*time.Second, 6), few(300*time.Second, 1), {"100 jobs of 120s ± 20 %", 100, 1, 120 * time.Second, 0.2, 3 * time.Second, 0}}
	if o.quick {
		groups = slices.Delete(groups, 1, 2) // five minutes
	}
	channels := m.channels(paceShortest, paceBudget)
	for i := range channels {
		channels[i].PollInterval = app.PollInterval{Min: paceShortest, Max: paceLongest}
	}
	g, err := m.install(ctx, "pace", channels)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	stop := g.work(ctx)
	m.vendor.reset(func(int) time.Duration { return 0 })
	if _, err := g.delay(ctx, m.vendor); err != nil { // until the worker has started
		return nil, err
	}
	for _, c := range groups {
		r, err := g.late(ctx, m.vendor, c)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	if err := stop(); err != nil {
		return nil, err
	}
	many, err := g.many(ctx, o)
	return append(rows, many...), err
}

func (g *gateway) late(ctx context.Context, v *vendor, c group) (row, error) {
	v.reset(func(int) time.Duration {
		return time.Duration(float64(c.duration) * (1 - c.spread + 2*c.spread*rand.Float64())) //nolint:gosec // spreading needs no secret numbers
	})
	var delays []time.Duration
	for range c.rounds {
		found := make([]time.Duration, c.jobs)
		waiting, groupCtx := errgroup.WithContext(ctx)
		for i := range c.jobs {
			waiting.Go(func() (err error) {
				found[i], err = g.delayWithin(groupCtx, v, 2*c.duration+time.Minute)
				return err
			})
		}
		if err := waiting.Wait(); err != nil {
			return row{}, err
		}
		delays = append(delays, found...)
	}
	p50, p95 := quantile(delays, 0.5), quantile(delays, 0.95)
	aim := fmt.Sprintf("≤ %s", c.p50)
	if c.p95 > 0 {
		aim += fmt.Sprintf(", p95 ≤ %s", c.p95)
	}
	return row{
		what: "vendor's end to completed, p50, " + c.name, floor: fmt.Sprintf("%d polls a second, %s apart", paceBudget, paceShortest),
		value: fmt.Sprintf("%s (p95 %s)", p50.Round(10*time.Millisecond), p95.Round(10*time.Millisecond)),
		aim:   aim, met: p50 <= c.p50 && (c.p95 == 0 || p95 <= c.p95),
	}, nil
}

// many lets a poller in this process ask a vendor in this process for rows of
// the database, at a rate that shows within minutes what ten a second would
// within hours.
func (g *gateway) many(ctx context.Context, o options) ([]row, error) {
	jobs, budget := 10_000, 200
	if o.quick {
		jobs, budget = 1000, 100
	}
	s, err := newStage(g)
	if err != nil {
		return nil, err
	}
	v := &tally{asked: make(map[string]time.Time, jobs)}
	if err := times(ctx, 32, jobs, func(ctx context.Context, _ int) error {
		task, err := s.accepted(ctx, paceShortest)
		v.note(task.ID, false)
		return err
	}); err != nil {
		return nil, err
	}
	c := channel.Channel{Channel: mediagate.Channel{
		Name: channelKling, Provider: "kling", RequestsPerSecond: float64(budget), PollMin: paceShortest, PollMax: paceLongest,
	}, Fingerprint: s.fingerprint, Vendor: v}
	log, newID := slog.New(slog.DiscardHandler), func(prefix string) string { return prefix + ulid.Make().String() }
	accounts := &channel.Accounts{
		Channels: channel.NewConfigured([]channel.Channel{c}), Store: g.Store, Workflows: v, Now: g.Store.Now, Logger: log, NewID: newID,
		Breakers: &channel.Breakers{Store: g.Store, Now: g.Store.Now, Logger: log, NewID: newID},
	}
	p, err := accounts.Poller(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	p.Report = func(context.Context, channel.Beat) {}
	fair := time.Duration(jobs/budget) * time.Second
	window := 3 * fair
	calls, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	v.begin()
	if err := p.Run(ctx, calls); err != nil {
		return nil, err
	}
	requests, alone := v.result()
	spent := float64(requests) / (float64(budget) * window.Seconds())
	what := fmt.Sprintf("%d waiting", jobs)
	return []row{
		{
			what: "polling budget that is spent, " + what, floor: fmt.Sprintf("%d polls a second", budget),
			value: fmt.Sprintf("%.2f", spent), aim: "≥ 0.90", met: spent >= 0.9,
		},
		{
			what: "longest that a row is left alone, " + what, floor: fmt.Sprintf("%s, an even share", fair),
			value: fmt.Sprintf("%.2f shares", float64(alone)/float64(fair)), aim: "≤ 2", met: alone <= 2*fair,
		},
	}, nil
}

// tally is a vendor whose jobs never end, and which counts who asks for them.
type tally struct {
	mu       sync.Mutex
	asked    map[string]time.Time // the last time that each job was asked for
	alone    time.Duration        // the longest that one was not
	requests int
}

func (v *tally) note(taskID string, counts bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if counts {
		v.requests++
		v.alone = max(v.alone, now.Sub(v.asked[taskID]))
	}
	v.asked[taskID] = now
}

// begin lets all jobs be asked for as of now: filling the table takes its time.
func (v *tally) begin() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id := range v.asked {
		v.asked[id] = time.Now()
	}
}

func (v *tally) result() (requests int, alone time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	alone = v.alone
	for _, last := range v.asked {
		alone = max(alone, time.Since(last))
	}
	return v.requests, alone
}

// Submit takes nothing: the jobs are there.
func (v *tally) Submit(context.Context, mediagate.Job) (mediagate.Submission, error) {
	return mediagate.Submission{}, mediagate.Errorf(mediagate.KindForbidden, "no jobs are taken")
}

// Poll says that the job runs.
func (v *tally) Poll(_ context.Context, ref mediagate.JobRef) (mediagate.Report, error) {
	v.note(ref.ExternalID, true)
	return mediagate.Report{Ref: ref, Named: true, State: mediagate.JobRunning, Percent: -1}, nil
}

// StepsChanged has no run to signal.
func (v *tally) StepsChanged(context.Context, string, []channel.StepChange) {}

// Wake has no run to signal.
func (v *tally) Wake(context.Context, string, []string) {}
